"""Objectives and residuals of baselines go the way that was published."""

from __future__ import annotations

from typing import Any

import baselines_contract as contract
import numpy as np
import pytest
from baselines_incomplete import incomplete, named

from viewfold_research.baselines import (
    AGCIMC,
    AMGL,
    CMVC,
    FMCNOF,
    FMR,
    FPMVS,
    IMG,
    MIC,
    OPIMC,
    OPMC,
    PMSC,
    PVC,
    UEAF,
    MultiNMF,
)


@pytest.mark.parametrize(
    ("model", "rising"),
    [
        (OPMC(5, n_init=3, tol=0, random_state=0), False),
        (FPMVS(5, tol=0, random_state=0), False),
        (FPMVS(7, tol=0, random_state=0), False),  # more clusters than the last view has features
        (CMVC(5, tol=0, max_iter=30, random_state=0), True),
        (CMVC(7, kernel="linear", tol=0, max_iter=30, random_state=0), True),
        (MultiNMF(4, n_init=2, n_steps=20, random_state=0), False),
        (OPIMC(3, batch_size=150, tol=0, random_state=0), False),
    ],
    ids=lambda x: str(x),
)
def test_the_objective_never_goes_the_wrong_way(model: Any, rising: bool) -> None:
    contract.has_monotone_objective(model, rising=rising)


@pytest.mark.parametrize(
    ("model", "rise"),
    [
        (PVC(3, random_state=0), 1e-9),
        (UEAF(3, random_state=0), 1e-9),
        (MIC(3, n_init=3, random_state=0), 2e-3),
        (MIC(3, n_init=3, beta=1e-7, random_state=0), 2e-3),
    ],
    ids=named,
)
@pytest.mark.parametrize("ratio", [0, 0.4])
def test_the_objective_falls(model: Any, rise: float, ratio: float) -> None:
    views, _, _ = incomplete(90, (6, 8, 5), ratio)
    course = type(model)(**model.get_params()).fit(views).objective_
    assert len(course) > 2
    assert np.diff(course).max() <= rise * course[0]
    assert course[-1] < course[0]


@pytest.mark.parametrize(("anchor", "rise"), [("initial", 1e-3), ("current", 2e-2)])
def test_agc_objective_falls_but_for_small_rises(anchor: str, rise: float) -> None:
    views, _, _ = incomplete(90, (6, 8, 5))
    course = AGCIMC(3, anchor=anchor, random_state=0).fit(views).objective_
    assert course[-1] < 0.95 * course[0]
    assert (np.diff(course) / course[:-1]).max() < rise


def test_img_residual_vanishes() -> None:
    views, _, _ = incomplete(90, (6, 8, 5))
    model = IMG(3, random_state=0).fit(views)
    assert model.objective_[-1] < model.tol < model.objective_[0]
    assert model.n_iter_ < model.max_iter


def test_fmr_residual_reaches_its_tolerance() -> None:
    views, _ = contract.blobs()
    model = FMR(3, n_components=20, random_state=0).fit(views)
    assert model.objective_[-1] < model.tol < model.objective_[0]
    assert model.n_iter_ < model.max_iter


def test_pmsc_objective_hardly_ever_rises() -> None:
    contract.has_monotone_objective(PMSC(3, random_state=0), slack=1e-6)


def test_amgl_objective_never_rises() -> None:
    contract.has_monotone_objective(AMGL(3, random_state=0))


@pytest.mark.parametrize("keep", ["nearest", "farthest"])
@pytest.mark.parametrize("sigma", [1000, None])
def test_fmcnof_objective_never_rises(keep: Any, sigma: float | None) -> None:
    contract.has_monotone_objective(FMCNOF(3, keep=keep, sigma=sigma, random_state=0))
