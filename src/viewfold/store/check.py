"""Check that what was read is a state that viewfold could have written.

Everything later code relies on is checked once, here: ids that differ, labels within range, numbers
that are finite, shapes that fit each other. Nothing is imported that clusters or folds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from viewfold._util.table import Table
from viewfold.errors import UnreadableError

if TYPE_CHECKING:
    from viewfold.state.state import State

# Bytes of the numbers that arrays may hold.
WIDTH = {"float64": 8, "float32": 4, "int64": 8, "int32": 4, "bool": 1}

CAME = ("fold", "update", "refresh", "extend")  # changes by which samples come

# Types of the columns ``id`` and ``id_is_int``, by what ``meta`` calls the kind of ids.
IDS = {"int": ("BIGINT", None), "str": ("VARCHAR", None), "mixed": ("VARCHAR", "BOOLEAN")}

MOST_KEPT = 100  # a file keeps at most so many states to return to
DEEPEST = 16  # so many brackets within each other are enough for any parameter

_TEXT = re.compile(r'"(?:[^"\\]|\\.?)*"?', re.DOTALL)  # cannot fail, so it never goes back


def check_json(text: str | None) -> None:
    """Refuse JSON that is nested too deeply for a parser that calls itself."""
    if text is None:
        raise UnreadableError("its table 'meta' has a key without a value")
    depth = 0
    for bracket in re.findall(r"[][{}]", _TEXT.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > DEEPEST:
            raise UnreadableError("its table 'meta' holds JSON that is nested too deeply")


# -- while rows are read


def check_meta(meta: Mapping[str, Any], n_samples: int, columns: Mapping[str, str]) -> None:
    """Refuse facts that the table of samples contradicts, before memory is taken for it."""
    claimed = meta.get("n_samples", 0)
    if claimed != n_samples or isinstance(claimed, bool | float):
        raise UnreadableError(f"it has {n_samples} samples and should have {claimed!r}")
    kind = str(meta.get("ids"))
    if "n_samples" in meta and IDS.get(kind) != (columns["id"], columns.get("id_is_int")):
        raise UnreadableError(f"its ids are not {kind!r} as it says")
    if not isinstance(meta.get("params"), dict) or not isinstance(meta.get("method"), str):
        raise UnreadableError("it does not say which method and parameters it is of")


def cluster_names(meta: dict[str, Any]) -> dict[int, str]:
    """Return the names of clusters that have one."""
    said = meta.get("cluster_names", {})
    for c, name in said.items() if isinstance(said, dict) else [("", said)]:
        if not (c.isdecimal() and c.isascii() and isinstance(name, str)):
            raise UnreadableError("it does not say what clusters are called as it should")
    return {int(c): name for c, name in said.items()}


def check_keep(keep: Any) -> None:
    if not isinstance(keep, int) or isinstance(keep, bool) or not 0 <= keep <= MOST_KEPT:
        raise UnreadableError(f"it keeps {keep!r} states to return to")


def check_views(views: Table, *, empty: bool) -> None:
    """Refuse records of views that no fold could have written."""
    names, folds = views["name"], views["fold"]
    if folds != list(range(1, len(folds) + 1)) or bool(folds) == empty:
        raise UnreadableError("its views are not numbered 1, 2, …")
    if None in names or len(set(names)) != len(names):
        raise UnreadableError("two of its views have one name, or one has none")
    for count in (name for name in views.column_names if name.startswith("n_")):
        if any(number is None or number < 0 for number in views[count]):
            raise UnreadableError(f"a view has no {count!r}, or less than none")
    if None in views["objective"]:
        raise UnreadableError("a view has no 'objective'")
    for row in views.select(["name", "n_features", "features"]).rows():
        named = row["features"]
        if named is not None and (len(named) != row["n_features"] or None in named):
            raise UnreadableError(f"view {row['name']!r} has not a name for each of its features")


def check_steps(steps: Table) -> None:
    """Refuse steps that are not numbered 1, 2, … in the order of the log."""
    entries = steps["entry"]
    if steps["step"] != list(range(1, len(entries) + 1)) or None in entries:
        raise UnreadableError("its steps are not numbered 1, 2, …")
    if entries != sorted(set(entries)):
        raise UnreadableError("its steps are not in the order of the log")


def check_claims(arrays: Table) -> None:
    """Refuse arrays whose shape does not fit the size of ``data``, before one is read."""
    names = arrays["name"]
    if None in names or len(set(names)) != len(names):
        raise UnreadableError("two of its arrays have one name, or one has none")
    for row in arrays.rows():
        name, shape = row["name"], row["shape"]
        if shape is None:
            if row["data"] is not None:
                raise UnreadableError(f"array {name!r} has no shape")
            continue
        if row["dtype"] not in WIDTH:
            raise UnreadableError(f"it holds an array of {row['dtype']}")
        if len(shape) > 3 or any(axis is None or axis < 0 for axis in shape):
            raise UnreadableError(f"array {name!r} has the shape {shape[:4]}")
        if row["data"] != prod(shape) * WIDTH[row["dtype"]]:
            raise UnreadableError(f"array {name!r} has not as many bytes as its shape tells")


# -- when all is read


def check_state(state: State, samples: Mapping[str, Any] | None = None) -> None:
    """Refuse what cannot be the state of a model; say what is wrong with it."""
    for problem in problems(state, samples):
        raise UnreadableError(problem)


def problems(state: State, samples: Mapping[str, Any] | None = None) -> Iterator[str]:
    """Yield everything that is wrong with what was read, as the rest of a sentence about it.

    `samples` are all columns of the table, of which a state has not all.
    """
    from viewfold.state import names

    for name, value in state.params.items():
        if not isinstance(value, str | int | float | None | np.random.RandomState):
            yield f"parameter {name!r} is a {type(value).__name__}"
    entries = [event.entry for event in state.log]
    if entries != list(range(1, len(entries) + 1)):
        yield "the entries of its log are not 1, 2, 3, …"
    clusters = state.clusters
    if clusters is None:
        return
    expected = Expected.of(state)
    if not {view.entry for view in state.views} <= set(expected.came):
        yield "views were folded by entries that its log does not have"
    if not {view.entry for view in state.views} <= set(state.steps) <= set(entries):
        yield "its steps are not entries of its log, or lack the fold of a view"
    if not state.ids.shape[0]:
        yield "it has views, but no samples"
    if type(state.key) is not int or not 0 <= state.key < 2**63:
        yield f"the key of its fingerprints is {state.key!r}"
    length = state.length
    if length is not None and (not isinstance(length, int) or length < 0):
        yield f"samples are known by row number, of {length!r} rows"
    if isinstance(state.ids, np.ndarray):  # those in buckets are checked where they are read
        rows = {"id": state.ids, "embedding": state.embedding, "views_seen": state.seen}
        rows |= {"history": state.history, "added": state.added}
        yield from row_problems(expected, samples or rows)
    centers, projection, k = clusters.centers, clusters.projection, expected.n_clusters
    if not (
        _has_shape(centers, None, None, None)
        and _has_shape(projection, None, centers.shape[2])
        and min(centers.shape[:2]) > 0
        and _is_finite(centers)
        and _is_finite(projection)
    ):
        yield "the centres of its clusters do not fit their directions"
    elif not (
        clusters.scatter is None
        or (_are_distances(clusters.scatter, len(centers), 3) and _is_finite(clusters.scatter))
    ):
        yield "the scatter of its clusters does not fit their groups"
    elif not (clusters.apart is None or _are_distances(clusters.apart, len(state.views), k, k)):
        yield "how far views tell its clusters apart does not fit them"
    yield from names.problems(state.cluster_names, clusters.n_clusters)
    if clusters.projection.shape[0] > state.embedding.shape[1]:
        yield "its clusters were found in more columns than the embedding has"
    yield from _view_problems(state, clusters.n_clusters)


def _view_problems(state: State, n_clusters: int) -> Iterator[str]:
    from viewfold.data.expected import TRAITS, Profile
    from viewfold.data.view import features_of
    from viewfold.state.moments import Moments

    columns = state.embedding.shape[1]
    both = columns + n_clusters
    for record, linear_map in zip(reversed(state.views), reversed(state.maps), strict=True):
        axes = {"d": record.n_features, "r": columns}
        for problem in part_problems(record.encoder, axes):
            yield f"{problem} in the encoder of view {record.name!r}"
        if record.columns is not None and features_of(record.columns) != record.features:
            yield f"the columns of view {record.name!r} do not give its features"
        if linear_map is None:
            continue
        if not _has_shape(linear_map, None, columns):
            yield f"the map of earlier encoders at view {record.name!r} does not fit"
            break
        if not _is_finite(linear_map):
            yield f"the map of earlier encoders at view {record.name!r} is not finite"
        columns = linear_map.shape[0]  # what the consensus had before this fold
    for record in state.views:
        if not isinstance(record.moments, Moments | None):
            yield f"the moments of view {record.name!r} are something else"
            continue
        for problem in part_problems(record.moments, {"d": record.n_features, "p": both}):
            yield f"{problem} in the moments of view {record.name!r}"
        if not isinstance(record.profile, Profile | None):
            yield f"the profile of view {record.name!r} is something else"
            continue
        sizes = {"d": record.n_features, "t": len(TRAITS), "c": 4, "l": 2, "n": 6}
        for problem in part_problems(record.profile, sizes):
            yield f"{problem} in the profile of view {record.name!r}"


@dataclass(frozen=True)
class Expected:
    """What rows of samples have to fit; `came` are the entries of the log by which they came."""

    came: tuple[int, ...]
    n_views: int
    n_steps: int
    n_clusters: int

    @classmethod
    def of(cls, state: State) -> Expected:
        came = tuple(event.entry for event in state.log if event.what in CAME)
        centers = None if state.clusters is None else state.clusters.centers
        n_clusters = 0 if centers is None or centers.ndim < 2 else centers.shape[-2]
        return cls(came, len(state.views), len(state.steps), n_clusters)


def row_problems(expected: Expected, rows: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with columns of samples: all of a state, or those of one bucket."""
    n = len(rows["id"])
    if not n:
        return
    if not np.isin(rows["added"], expected.came).all():
        yield "samples came by entries that its log does not have"
    import pandas as pd  # commands that read a few columns do without

    if not pd.Index(rows["id"]).is_unique:
        yield "two samples have one id"
    history, embedding = rows["history"], rows["embedding"]
    widths = {"views_seen": expected.n_views, "history": expected.n_steps}
    widths["fingerprints"] = expected.n_views
    if any(rows[name].shape != (n, widths[name]) for name in widths.keys() & rows.keys()):
        yield "views seen, history and fingerprints do not have an entry for each of the views"
        return
    if embedding.ndim != 2 or len(embedding) != n:
        yield "the embedding has not a row for each sample"
    elif not _is_finite(embedding):
        yield "the embedding is not finite"
    if history.min() < -1:
        yield "a cluster in the history is less than -1"
    if history[:, -1].min() < 0 or history[:, -1].max() >= expected.n_clusters:
        yield f"a label is not among its {expected.n_clusters} clusters"
    if "label" in rows and not np.array_equal(rows["label"], history[:, -1]):
        yield "labels are not the last of their history"
    if "confidence" in rows and not ((rows["confidence"] >= 0) & (rows["confidence"] <= 1)).all():
        yield "a confidence is not between 0 and 1"


def _is_finite(array: Any) -> bool:
    """Tell whether all numbers are finite; of a large array, without another of its size."""
    rows = max(1, 2**20 // max(1, prod(array.shape[1:])))
    return all(np.isfinite(array[i : i + rows]).all() for i in range(0, len(array), rows))


def _has_shape(array: Any, *shape: int | None) -> bool:
    """Tell whether these are numbers of such a shape; None stands for any length."""
    return (
        isinstance(array, np.ndarray)
        and array.dtype.kind == "f"
        and array.ndim == len(shape)
        and all(wanted in (None, n) for n, wanted in zip(array.shape, shape, strict=True))
    )


def _are_distances(array: Any, *shape: int) -> bool:
    """Tell whether these can be distances; inf is not known, and what is no number is none."""
    return _has_shape(array, *shape) and bool((array >= 0).all())


def _committee_problems(part: Any, axes: dict[str, int]) -> Iterator[str]:
    """Yield what is wrong with encoders that are used together."""
    from viewfold.state.committee import MOST_ENCODERS, Committee

    members: list[Committee] = []
    while part is not None and len(members) <= MOST_ENCODERS:
        if not isinstance(part, Committee) or isinstance(part.encoder, Committee | None):
            yield "there is no committee.encoder"
            return
        members.append(part)
        part = part.others
    if len(members) > MOST_ENCODERS:
        yield f"there are more than {MOST_ENCODERS} encoders"
        return
    for one in members:
        if not isinstance(one.n_rows, float) or not 1 <= one.n_rows < 2**63:
            yield f"an encoder was learned from {one.n_rows!r} rows"
        # Each has directions and landmarks of its own.
        yield from part_problems(one.encoder, {axis: axes[axis] for axis in "dr"})


def part_problems(part: Any, axes: dict[str, int]) -> Iterator[str]:
    """Yield what is wrong with an encoder or a part of it; `axes` collects the lengths of axes."""
    if part is None:
        return
    from viewfold.state.parts import axes_of, tag_of

    tag = tag_of(part)
    if tag is None:
        yield f"there is a {type(part).__name__}"
        return
    known, kind = axes_of(part), tag.type
    if kind == "committee":
        yield from _committee_problems(part, axes)
        return
    if kind == "known":  # it has directions of its own
        axes = {"d": axes["d"]}
    for field in fields(part):
        value = getattr(part, field.name)
        letters = known.get(field.name)
        if value is None and "None" in str(field.type):
            continue
        if value is None:
            yield f"there is no {kind}.{field.name}"
            continue
        if letters is None and not isinstance(value, np.ndarray | np.generic | int | float):
            yield from part_problems(value, axes)
            continue
        array = np.asarray(value)
        if letters is None:  # nothing is told about it: any numbers of any shape will do
            if not np.isfinite(array).all():
                yield f"{kind}.{field.name} is not finite"
        elif array.ndim != len(letters) or array.dtype.kind != "fb"[not letters]:
            yield f"{kind}.{field.name} is of shape {array.shape}"
        elif any(axes.setdefault(a, n) != n for a, n in zip(letters, array.shape, strict=True)):
            yield f"{kind}.{field.name} of shape {array.shape} does not fit the rest"
        elif letters and not _is_finite(array):
            yield f"{kind}.{field.name} is not finite"
    if kind == "encoder" and (
        axes["f"] != axes["l"] + axes.get("c", 0) or axes["l"] > axes["q"] or not axes.get("m", 1)
    ):
        yield "descriptions do not fit each other"
