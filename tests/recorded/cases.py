"""Folds whose results are on record: all methods, on all kinds of views, in one block and in many.

python tests/recorded/cases.py        # write results.json anew: only if results are to change
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from scipy import linalg, sparse
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from viewfold import FCMVC, ViewFold

FILE = Path(__file__).with_name("results.json")
Views = dict[str, tuple[Any, Any]]


def clusters(seed: int, n: int, widths: dict[str, int], k: int = 4) -> Views:
    """Gaussian clusters; every view lacks another fifth of the samples, ids are texts."""
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    views = {}
    for i, (name, d) in enumerate(widths.items()):
        X = 3 * rng.normal(size=(k, d))[y] + rng.normal(size=(n, d))
        there = np.flatnonzero(np.arange(n) % 5 != i)
        order = rng.permutation(there)
        views[name] = X[order], [f"s{j}" for j in order]
    return views


def digits() -> Views:
    """Pixels, their mean by rows and columns, and how dark: float32, row numbers, few classes."""
    X = load_digits().data.astype(np.float32)
    images = X.reshape(-1, 8, 8)
    marginals = np.hstack([images.mean(axis=1), images.mean(axis=2)])
    half = images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)
    gone = np.random.default_rng(0).random((len(X), 3)) < 0.3
    parts = {"pixels": X, "marginals": marginals, "half": half}
    return {
        name: (rows[~gone[:, i]], np.flatnonzero(~gone[:, i]))
        for i, (name, rows) in enumerate(parts.items())
    }


def text() -> Views:
    """Sparse counts, sparse weights and a wide dense view of the same samples."""
    rng = np.random.default_rng(1)
    y = rng.integers(3, size=500)
    rate = 0.02 + 0.4 * (np.arange(2400) % 3 == y[:, None]) * (rng.random(2400) < 0.1)
    counts = sparse.csr_array(rng.poisson(rate).astype(float))
    weights = sparse.csr_array(counts[:, :900] / 7)
    wide = rng.normal(size=(500, 2100)) + 0.4 * np.eye(3, 2100)[y]
    ids = np.arange(500)
    return {
        "counts": (counts, ids),
        "weights": (weights[:400], ids[:400]),
        "wide": (wide[100:], ids[100:]),
    }


def apart() -> Views:
    """Two views that share no sample, and one that connects them."""
    rng = np.random.default_rng(2)
    y = np.repeat(np.arange(3), [90, 60, 30])
    X = {d: 4 * rng.normal(size=(3, d))[y] + rng.normal(size=(180, d)) for d in (8, 12, 6)}
    ids = rng.permutation(180)
    first, second = ids[:80], ids[80:]
    return {
        "labs": (X[8][first], first),
        "scan": (X[12][second], second),
        "both": (X[6][ids[::3]], ids[::3]),
    }


DATA: dict[str, Callable[[], Views]] = {
    "clusters": lambda: clusters(0, 300, {"labs": 12, "scan": 30, "text": 7}),
    "digits": digits,
    "text": text,
    "apart": apart,
}
MODELS = {
    "fcmvc": FCMVC(4, random_state=0),
    "fcmvc-exact-direct": FCMVC(4, random_state=0, z_step="exact", solver="direct"),
    "fcmvc-raw": FCMVC(4, random_state=0, scale=None),
    "viewfold": ViewFold(4, random_state=0),
    "viewfold-linear": ViewFold(4, random_state=3, encoder="linear"),
    "viewfold-landmarks": ViewFold(4, random_state=0, encoder="landmarks", n_components=7),
}
BLOCKS = (None, 20_000)


ALIKE = "fcmvc-raw", "fcmvc-exact-direct", "viewfold-landmarks"


def names() -> list[str]:
    """All cases but those of one block in disguise, and many blocks of text for models alike."""
    found = [f"{m}/{d}/{b or 'one'}" for m in MODELS for d in DATA for b in BLOCKS]
    left_out = {f"{m}/apart/20000" for m in MODELS if m != "viewfold"}
    left_out |= {f"{m}/text/20000" for m in ALIKE}
    return [name for name in found if name not in left_out]


def machine() -> str:
    """Return a digest of how this machine rounds: other BLAS kernels round otherwise."""
    rng = np.random.default_rng(0)
    found = hashlib.sha256()
    with threadpool_limits(1):
        for kind in (np.float64, np.float32):
            A = rng.normal(size=(1733, 61)).astype(kind)
            B = A[:61]
            for M in (A.T @ A, A @ B, A.T @ np.ascontiguousarray(A), B @ B[:, 0], A.sum(axis=0)):
                found.update(M.tobytes())
            for M in (*linalg.eigh(A.T @ A, driver="evd"), *linalg.eigh(B + B.T), *linalg.svd(B)):
                found.update(M.tobytes())
            found.update(linalg.qr(A, mode="economic")[1].tobytes())
            found.update(KMeans(7, n_init=1, random_state=0).fit(A).cluster_centers_.tobytes())
    found.update(np.exp(rng.normal(size=1000)).tobytes() + np.log1p(rng.random(1000)).tobytes())
    return found.hexdigest()[:16]


def result(name: str) -> dict[str, Any]:
    """Fold the views of a case and return what is on record about it."""
    from sklearn.base import clone

    model, data, size = name.split("/")
    estimator: Any = clone(MODELS[model])
    with nullcontext() if size == "one" else _blocks(int(size)):
        for view, (X, ids) in DATA[data]().items():
            estimator.partial_fit(X, ids=ids, view=view)
        bits = _digest(estimator)
        numbers = _numbers(estimator)
        estimator.forget(estimator.ids_[::7])
        bits_after = _digest(estimator)
    return {"bits": bits, "after_forget": bits_after, **numbers}


def _blocks(size: int) -> Any:
    from viewfold.rows import block_bytes

    return block_bytes(size)


def _digest(model: Any) -> str:
    found = hashlib.sha256()
    for part in (model.embedding_, model.labels_.astype(np.int64), model.history_.to_numpy()):
        found.update(np.ascontiguousarray(part).tobytes())
    return found.hexdigest()[:16]


def _numbers(model: Any) -> dict[str, Any]:
    """Return what any machine finds, to round-off: sizes of clusters and products of rows."""
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(2, 6, model.ids_.size))
    E = model.embedding_.astype(np.float64)
    products = np.einsum("ij,ij->i", a @ E, b @ E)
    return {"sizes": np.bincount(model.labels_).tolist(), "products": products.tolist()}


if __name__ == "__main__":
    recorded = {"machine": machine(), "results": {name: result(name) for name in names()}}
    FILE.write_text(json.dumps(recorded, indent=1) + "\n")
