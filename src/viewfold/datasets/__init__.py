"""Multi-view data to try viewfold on.

One set comes with the package, others are made to measure, and any other is read from its file.
The package viewfold-research fetches public sets (`viewfold_research.datasets`).
"""

from viewfold.datasets._made import load, load_digits_views, make_multiview, make_patients

__all__ = ["load", "load_digits_views", "make_multiview", "make_patients"]
