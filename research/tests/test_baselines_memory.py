"""Baselines tell their square matrices beforehand; the others grow with the samples."""

from __future__ import annotations

import resource
import tracemalloc
from typing import Any

import baselines_contract as contract
import numpy as np
import pytest
from baselines_incomplete import incomplete, named
from sklearn.base import clone

from viewfold_research.baselines import (
    AGCIMC,
    AMGL,
    CMVC,
    FMCNOF,
    FMR,
    FPMVS,
    IMG,
    LMVSC,
    MIC,
    NEMO,
    OPIMC,
    OPMC,
    PMSC,
    PVC,
    UEAF,
    MultiNMF,
)
from viewfold_research.baselines._base import align, memory_limit
from viewfold_research.baselines.cmvc import partition

QUADRATIC = [IMG(3, random_state=0), AGCIMC(3, random_state=0), UEAF(3, random_state=0)]


@pytest.mark.parametrize("model", [FMR(3), PMSC(3), NEMO(3, n_neighbors=59), *QUADRATIC], ids=named)
def test_memory_is_told_beforehand(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(model, NEMO):  # n neighbours of n samples: as many bytes as n × n
        monkeypatch.setattr(NEMO, "_neighbours", lambda self, n: n)
    contract.tells_memory_beforehand(model, monkeypatch)


@pytest.mark.parametrize("model", [AMGL(3), LMVSC(3), FMCNOF(3)], ids=named)
def test_linear_methods_ask_for_no_square_matrices(model: Any) -> None:
    assert model._bytes(10**6, [100]) == 0


@pytest.mark.parametrize(
    "model",
    [AMGL(3, max_iter=1), LMVSC(3), FMCNOF(3), NEMO(3, n_neighbors=10)],
    ids=named,
)
def test_memory_of_sparse_and_linear_methods_doubles_with_the_samples(model: Any) -> None:
    peaks = []
    for n in (1200, 2400):
        data = align(contract.blobs(n, (6, 4), apart=1)[0])
        tracemalloc.start()
        model.set_params(random_state=0).solve(data)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2.5 * peaks[0]
    assert peaks[1] < 8 * 2400**2 / 2


@pytest.mark.parametrize("kind", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_the_limit_is_what_the_system_allows(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    free = {"RLIMIT_AS": resource.RLIM_INFINITY, "RLIMIT_DATA": resource.RLIM_INFINITY}
    limits = {getattr(resource, name): soft for name, soft in (free | {kind: 10**6}).items()}
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limits[which], None))
    assert memory_limit() == 10**6


def peak(model: Any, views: list[Any]) -> int:
    """Bytes at most during fit, besides the views."""
    tracemalloc.start()
    try:
        clone(model).fit(views)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "model",
    [
        OPMC(3, n_init=2, max_iter=5, random_state=0),
        FPMVS(3, max_iter=5, random_state=0),
        CMVC(3, kernel="linear", random_state=0),
        OPIMC(3, random_state=0),
        MultiNMF(3, n_init=2, max_iter=2, n_steps=5, random_state=0),
    ],
    ids=named,
)
def test_memory_grows_with_the_samples_not_with_their_square(model: Any) -> None:
    few, many = (contract.blobs(n)[0] for n in (3000, 6000))
    model.fit(few[:1])  # what is imported or cached once is not counted
    assert peak(model, many) < 2.3 * peak(model, few)
    assert model._bytes(70_000, [100]) == 0


def test_the_turning_of_a_partition_looks_at_samples_a_fixed_number_of_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    views, _ = contract.blobs(400, apart=1)
    seen: list[int] = []

    class Seen(np.ndarray):
        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kw: Any) -> Any:
            if ufunc is np.matmul:
                seen.append(max(np.shape(x)[0] for x in inputs))
            plain = [np.asarray(x) for x in inputs]
            return getattr(ufunc, method)(*plain, **kw)

    monkeypatch.setattr(
        "viewfold_research.baselines.cmvc.partition",
        lambda X, k, gaussian: partition(X, k, gaussian=gaussian).view(Seen),
    )
    counts = []
    for steps in (2, 40):
        seen.clear()
        CMVC(3, max_iter=steps, tol=0, random_state=0).fit(views)
        counts.append(len([n for n in seen if n == 400]))
    assert counts[0] == counts[1] > 0


@pytest.mark.parametrize("model", QUADRATIC, ids=named)
def test_memory_told_is_memory_taken(model: Any) -> None:
    n = 400
    views, _, _ = incomplete(n, (6, 5), 0.3)
    taken = peak(clone(model).set_params(max_iter=3), views)
    told = model._bytes(n, [6, 5])
    assert 0.5 * told <= taken <= 1.1 * told


@pytest.mark.parametrize(
    "model",
    [
        PVC(3, max_iter=2),
        MIC(3, n_init=2, max_iter=2, n_steps=3),
        NEMO(3, n_neighbors=10, random_state=0),
    ],
    ids=named,
)
def test_nothing_of_size_n_times_n(model: Any) -> None:
    n = 3000
    views, _, _ = incomplete(n, (6, 5), 0.3)
    assert peak(model, views) < 0.5 * 8 * n**2
