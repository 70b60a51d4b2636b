"""How well viewfold clusters: tables for docs/method.md.

    python research/benchmarks/accuracy.py --data DIR [--part table order noise …] [--sets NAME …]
                                  [--before ../before/src] [--results FILE] [--jobs 2]

Unless said otherwise, a number is the mean over three draws of missing samples by the paper's rule
(seeds 0, 1, 2), labels are those of an estimator with its defaults and ``random_state=0``, views in
their order, ACC/NMI/ARI in %. Results are kept in FILE by the digest of the source that made them:
a run goes on where the last one ended, and what has not changed is not computed again.

The defaults of ViewFold were chosen by looking at these very sets and masks: expect less elsewhere.
``choose.py`` says how much of that is left if the set in question had no vote.
"""

from __future__ import annotations

from functools import partial

from quality import deliveries, gaps, questions, stability, table, targets
from quality.study import Study, arguments

PARTS = {
    "table": table.show,
    "order": partial(stability.show_spread, kind="order"),
    "noise": stability.show_noise,
    "seeds": partial(stability.show_spread, kind="seeds"),
    "names": partial(stability.show_spread, kind="names"),
    "suggest": questions.show_suggest,
    "mnist": questions.show_mnist,
    "time": questions.show_time,
    "groups": questions.show_groups,
    "confidence": questions.show_confidence,
    "agreement": questions.show_agreement,
    "deliveries": deliveries.show,
    "cells": gaps.show,
    "targets": targets.show,
}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--part", nargs="+", choices=list(PARTS), default=list(PARTS))
    asked = parser.parse_args()
    study = Study.asked(asked)
    for part in asked.part:
        print(f"\n## {part}\n", flush=True)
        PARTS[part](study)


if __name__ == "__main__":
    main()
