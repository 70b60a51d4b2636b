"""What the defaults of ViewFold are worth where they were not chosen: one set left out.

    python research/benchmarks/choose.py --data DIR [--sets NAME …] [--results FILE] [--jobs 2]

Every constant of the method moved by half of it, down and up, and every other switch, on all sets
and masks of ``accuracy.py``; then, for each set, the variant that is best on the other sets. What
this shows is a lower bound of what was fitted: the variants are neighbours of the defaults, and the
defaults, like the form of each rule, were found by looking at all of these sets and masks. Two
other seeds tell how far averages move by chance. Results are kept as those of ``accuracy.py`` are.
"""

from __future__ import annotations

from quality import choice
from quality.study import Study, arguments

PARTS = {
    "constants": choice.show_constants,
    "switches": choice.show_switches,
    "one set left out": choice.show_left_out,
}


def main() -> None:
    study = Study.asked(arguments(__doc__).parse_args())
    study.compute(choice.cells(study))
    for part, show in PARTS.items():
        print(f"\n## {part}\n", flush=True)
        show(study)


if __name__ == "__main__":
    main()
