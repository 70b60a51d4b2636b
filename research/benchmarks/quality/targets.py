"""The promises, the numbers that were found, and whether they are kept."""

from __future__ import annotations

import statistics

import numpy as np

from quality import choice, questions, stability, table
from quality.cells import HERE, Cell
from quality.runs import MEASURES
from quality.sets import LARGE, OLD
from quality.study import Study, markdown

Line = tuple[str, str, bool | None]
GAINS = np.array([3.0, 3.0, 1.0])
"""Points of ACC above the defaults before, at each ratio."""

OLD_MAY_LOSE = 1.0
LEAD = 4.0
LARGE_SET = (84.0, 80.0)
TIMES_FASTER = 20.0
RIGHT_NUMBERS = 15 / 19
LEFT_OUT = 1.0


def show(study: Study) -> None:
    """Print each target, the number and whether it is met; only from results that are there."""
    parts = (of_table, of_choice, of_stability, of_others)
    lines = [line for part in parts for line in part(study)]
    verdicts = {True: "met", False: "**missed**", None: "not measured"}
    markdown(["target", "found", ""], [[target, said, verdicts[ok]] for target, said, ok in lines])


def numbers(target: str, values: np.ndarray, least: np.ndarray | float) -> Line:
    """Compare numbers with what they must be at least."""
    values = np.atleast_1d(values)
    if np.isnan(values).any():
        return target, "", None
    return target, " / ".join(f"{value:.1f}" for value in values), bool((values >= least).all())


def exceptions(target: str, said: list[str], measured: np.ndarray) -> Line:
    """Say what is against a target, if all of it was measured."""
    if np.isnan(measured).any():
        return target, "", None
    return target, "; ".join(said) or "none", not said


def of_table(study: Study) -> list[Line]:
    found = table.columns(study)
    acc = {name: column[..., 0] for name, column in found.items()}
    ours, lines = acc["ViewFold"], []
    if study.before:
        gain = ours - acc["before"]
        lines.append(numbers("ACC above before at least 3 / 3 / 1", gain.mean(axis=0), GAINS))
        old = gain[np.isin(study.names, OLD)]
        if len(old):
            lines.append(numbers("old sets: at least −1", old.mean(axis=0), -OLD_MAY_LOSE))
    for rival in table.nemos(study):
        lead = (ours - acc[rival]).mean(axis=0)
        lines.append(numbers(f"ACC above {rival} at least 4 at each ratio", lead, LEAD))
    alone = {name: column for name, column in found.items() if table.SINGLE in name}
    others = {name: column for name, column in found.items() if name not in alone}
    complete = [study.facts[name].complete for name in study.names]
    target = "cells behind NEMO, FCMVC or k-means by more than 3"
    measured = np.array([acc[name] for name in others])
    lines.append(exceptions(target, table.behind(study, others), measured))
    target = "complete sets behind their best single view by more than 3"
    measured = np.array([acc[name][complete, 0] for name in alone])
    said = table.behind(study, {"ViewFold": found["ViewFold"], **alone})
    return [*lines, exceptions(target, said, measured)]


def of_choice(study: Study) -> list[Line]:
    lost = choice.losses(study) or dict.fromkeys(MEASURES, np.array([np.nan]))
    target = "one set left out: change of {} at least −1"
    return [numbers(target.format(measure), -by, -LEFT_OUT) for measure, by in lost.items()]


def of_stability(study: Study) -> list[Line]:
    lines = []
    for kind in stability.KINDS:
        found = np.array(list(stability.spread(study, kind).values()))
        target = f"{kind}: std of ACC above {stability.MOST}"
        lines.append(exceptions(target, stability.restless(study, kind), found))
    costs = np.array([cost for each in stability.costs(study).values() for cost in each.values()])
    target = f"noise: cost above {stability.MOST}"
    return [*lines, exceptions(target, stability.costly(study), costs)]


def of_others(study: Study) -> list[Line]:
    large = study.results.of(Cell("ViewFold", LARGE))
    pair = np.array([large.get(measure, np.nan) for measure in ("ACC", "NMI")])
    found = questions.suggested(study)
    share = np.array(questions.right(found) if len(found) == len(study.names) else np.nan)
    lines = [
        numbers(f"{LARGE}: ACC / NMI at least 84 / 80", pair, np.array(LARGE_SET)),
        *(
            numbers(f"CPU time of {rival} / ours at least 20", np.array(ratio), TIMES_FASTER)
            for rival, ratio in questions.rival_times(study).items()
        ),
        numbers("suggested within a fifth on 15 of 19", share, RIGHT_NUMBERS * len(study.names)),
    ]
    if study.before:
        ratios = questions.ratios(study)
        text = "; ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
        least = statistics.median(ratios.values()) <= 1 if ratios else None
        lines.append(("CPU time after / before at most 1 (median)", text, least))
        before, now = (questions.lines(tree) for tree in (study.before, HERE))
        fewer = "fewer lines in method/ than before"
        lines.append((fewer, f"{now} against {before}", now < before))
    return lines
