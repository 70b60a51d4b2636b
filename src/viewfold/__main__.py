"""``python -m viewfold`` is the command line."""

from viewfold.cli import main

if __name__ == "__main__":
    main()
