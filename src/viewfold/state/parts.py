"""Take encoders and columns of tables apart into plain arrays, and put them together again.

A file holds arrays and the tags of a few known classes, nothing that could be run. Tags are names
that a file keeps for ever: a class may be renamed, and a new version of one is another entry here.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from itertools import accumulate, chain, islice, pairwise
from typing import Any, NamedTuple, TypeAlias, TypeVar, get_args

import numpy as np

from viewfold._util.file import ReadOptions
from viewfold._util.types import Array, Kind
from viewfold.data.expected import Profile
from viewfold.data.view import Column
from viewfold.errors import StateFileError, UnreadableError
from viewfold.state.registry import PARTS


class Tag(NamedTuple):
    """The name and version under which a file holds a class."""

    type: str
    version: int


Part: TypeAlias = Tag | Array
C = TypeVar("C", bound=type)

_tags: dict[type, Tag] = {}
_axes: dict[type, Mapping[str, str]] = {}


def part(name: str, version: int = 1, axes: Mapping[str, str] | None = None) -> Callable[[C], C]:
    """Return a decorator for a dataclass that files may hold: fields are arrays or such classes.

    Parameters
    ----------
    name : str
        What files call it. It stays the same if the class is renamed. A name without a dot is one
        of viewfold's own, which `viewfold.state.registry.PARTS` lists; other packages put theirs in
        front (``"package.name"``), and announce the class as an entry point.
    version : int, default=1
        The version of its fields.
    axes : dict, optional
        A letter for each axis of its arrays. Axes with the same letter have to have the same
        length, or a file is taken for damaged: d are the features of the view, r the columns of the
        embedding.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from viewfold.state.parts import part, put_together, take_apart
    >>> @part("example.scale")
    ... @dataclass(frozen=True)
    ... class Scale:
    ...     factor: np.ndarray
    >>> parts = dict(take_apart(Scale(np.ones(2)), "encoder"))
    >>> parts["encoder"]
    Tag(type='example.scale', version=1)
    >>> put_together(parts, "encoder")
    Scale(factor=array([1., 1.]))
    """

    def add(kind: C) -> C:
        full = f"{name}/{version}"
        if full not in PARTS.built_in:
            if "." not in name:
                raise TypeError(
                    f"viewfold.state.registry.PARTS does not list {full!r}, so a new process could "
                    "not read it. Add it there; another package calls it 'package.name'."
                )
            PARTS.register(full)(kind)
        _tags[kind], _axes[kind] = Tag(name, version), axes or {}
        return kind

    return add


def tag_of(thing: Any) -> Tag | None:
    return _tags.get(type(thing))


def axes_of(thing: Any) -> Mapping[str, str]:
    return _axes[type(thing)]


def take_apart(thing: Any, name: str) -> Iterator[tuple[str, Part]]:
    """Yield the arrays of an encoder with their names, and the tag of every part that has parts."""
    if thing is None:
        return
    if is_dataclass(thing):
        yield name, _tags[type(thing)]
        for field in fields(thing):
            yield from take_apart(getattr(thing, field.name), f"{name}/{field.name}")
    else:
        yield name, np.asarray(thing)


def put_together(parts: Mapping[str, Part], name: str) -> Any:
    """Return what `take_apart` stored under a name; None if there is nothing."""
    found = parts.get(name)
    if not isinstance(found, Tag):
        return found if found is None or found.ndim else found.item()
    tag = f"{found.type}/{found.version}"
    if tag not in PARTS:
        raise UnreadableError(
            f"it holds something that this viewfold does not know: {tag!r}; install a newer "
            "viewfold, or the package that brings it along",
            StateFileError,
        )
    make = PARTS[tag]
    needed = inspect.signature(make).parameters
    return make(**{of: put_together(parts, f"{name}/{of}") for of in needed})


# The room of data knows no files, so that its class is named here.
_OF_TRAITS = dict.fromkeys(("usual", "lowest", "highest"), "td")
_OF_COLUMNS = {"cuts": "cd", "learned": "ld", "recent": "ld", "counts": "n", "steady": "d"}
part("profile", axes=_OF_TRAITS | _OF_COLUMNS)(Profile)


# Kinds of columns by their number in files: the order stays, and new ones come last.
KINDS: tuple[Kind, ...] = get_args(Kind)


@part("columns")
@dataclass(frozen=True)
class StoredColumns:
    """Columns of a table as arrays."""

    kinds: Array  # (n_columns,): what each column is, as its place in `KINDS`
    widths: Array  # (n_columns,): how many levels it has
    first: Array  # (n_columns,): of dates: the view's first, in days since 1970
    lengths: Array  # the lengths of all texts: the names of the columns, then the levels of each
    letters: Array  # the letters (Unicode code points) of all texts
    counts: Array  # at least how many samples have each level (0 for parts of dates)

    @classmethod
    def of(cls, columns: tuple[Column, ...]) -> StoredColumns:
        texts = [column.name for column in columns]
        texts += [level for column in columns for level in column.levels]
        counts = [n for one in columns for n in one.counts or (0,) * len(one.levels)]
        return cls(
            np.array([KINDS.index(column.kind) for column in columns], np.int32),
            np.array([len(column.levels) for column in columns], np.int32),
            np.array([column.first for column in columns], np.float64),
            *_stored(texts),
            np.array(counts, np.int64),
        )

    def columns(self) -> tuple[Column, ...]:
        n = len(_numbers(self.kinds, most=len(KINDS) - 1))
        if np.shape(self.first) != (n,) or len(_numbers(self.widths)) != n:
            raise UnreadableError("the columns of a view do not fit each other")
        texts, total = _texts(self.lengths, self.letters), int(self.widths.sum())
        if len(texts) != n + total:
            raise UnreadableError("the columns of a view have not as many names as they should")
        if len(_numbers(self.counts, most=2**63 - 1)) != total:
            raise UnreadableError("the levels of a view do not fit their counts")
        levels, counts, made = iter(texts[n:]), iter(self.counts.tolist()), []
        facts = zip(texts, self.kinds, self.widths, self.first, strict=False)
        for name, number, width, first in facts:
            kind, having = KINDS[number], tuple(islice(counts, width))
            having = having if kind == "category" else ()
            made.append(Column(name, kind, tuple(islice(levels, width)), float(first), having))
        return tuple(made)


@part("source")
@dataclass(frozen=True)
class StoredSource:
    """What is remembered of how a view was read, as arrays."""

    # (8,): whether empty markers were named, how many; how many layers, and representations (0 or
    # 1); how many columns have new names; whether nothing is cleaned (0 or 1), how many columns
    # are, and how many hold the batch (0 or 1; not in files of earlier versions)
    counts: Array
    # lengths, letters: the texts, as `StoredColumns` has them: markers, layer, representation, the
    # known and the new name of each such column, the name and form of each that is cleaned, and
    # the name of the batch
    lengths: Array
    letters: Array

    @classmethod
    def of(cls, source: ReadOptions) -> StoredSource:
        markers = source.empty_markers
        others = [[text] if text is not None else [] for text in (source.layer, source.use_rep)]
        counts = [markers is not None, len(markers or ()), *map(len, others), len(source.rename)]
        batch = [] if source.batch is None else [source.batch]
        counts += [source.as_is, len(source.cleaning), len(batch)]
        pairs = chain(*source.rename.items(), *source.cleaning.items())
        texts = [*(markers or ()), *others[0], *others[1], *pairs, *batch]
        return cls(np.array(counts, np.int32), *_stored(texts))

    def source(self) -> ReadOptions:
        texts, counts = _texts(self.lengths, self.letters), _numbers(self.counts).tolist()
        counts = [*counts, 0] if len(counts) == 7 else counts
        fits = len(counts) == 8
        fits = fits and sum(counts[1:4]) + 2 * (counts[4] + counts[6]) + counts[7] == len(texts)
        if not fits or max(counts[0], counts[5], counts[7], sum(counts[2:4])) > 1:
            raise UnreadableError("what a file says about how a view was read does not fit")
        left = iter(texts)
        markers, layer, rep, renamed, cleaned, batch = (
            list(islice(left, n)) for n in (*counts[1:4], 2 * counts[4], 2 * counts[6], counts[7])
        )
        return ReadOptions(
            empty_markers=tuple(markers) if counts[0] else None,
            layer=layer[0] if layer else None,
            use_rep=rep[0] if rep else None,
            rename=dict(zip(renamed[::2], renamed[1::2], strict=True)),
            as_is=bool(counts[5]),
            cleaning=dict(zip(cleaned[::2], cleaned[1::2], strict=True)),
            batch=batch[0] if batch else None,
        )


def _stored(texts: list[str]) -> tuple[Array, Array]:
    lengths = np.array([len(text) for text in texts], np.int32)
    return lengths, np.array([ord(letter) for letter in "".join(texts)], np.int32)


def _texts(lengths: Array, letters: Array) -> list[str]:
    if _numbers(lengths).sum() != len(_numbers(letters, most=sys.maxunicode)):
        raise UnreadableError("the texts of a view do not fit their lengths")
    whole = "".join(map(chr, letters.tolist()))
    return [whole[a:b] for a, b in pairwise(accumulate(lengths.tolist(), initial=0))]


def _numbers(array: Array, most: int = 2**31 - 1) -> Array:
    """Return an array that is to hold whole numbers from 0 on, if it does."""
    fine = isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype.kind == "i"
    if not fine or (array.size and not 0 <= array.min() <= array.max() <= most):
        raise UnreadableError("what became of the columns of a view is not in whole numbers")
    return array
