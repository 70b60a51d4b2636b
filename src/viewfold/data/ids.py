"""Sample ids: whole numbers or texts. Two ids that are almost the same are taken for a mistake.

A trailing space, ``007`` for ``7`` or a capital letter would make a second sample of one person,
and nobody would notice. Ids that are almost known are refused, unless the user says what to do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from viewfold._util.arguments import warn_user
from viewfold._util.messages import with_suggestion
from viewfold._util.types import Ids, as_python
from viewfold.rows.normal import NUMBER, IdKind, kind_of, normal_forms

Similar: TypeAlias = Literal["refuse", "match", "new"]

# What programs write where there is no value; compare in lower case, without space around.
MISSING = frozenset(
    ["", "na", "n/a", "nan", "-nan", "null", "none", "nat", "<na>", "#na", "#n/a", "#n/a n/a"]
)

_TOTALS = frozenset(["total", "totals", "grand total", "sum", "mean", "average", "median"])
_LONGEST_MISSING = 12
_SURROGATE = re.compile("[\ud800-\udfff]")
_AT_ONCE = 10_000  # texts that are checked together, which is ten times as fast as one by one


def as_ids(ids: Any, n: int, label: str) -> Ids:
    """Return one int or str per row, all different; errors begin with the label."""
    if not (isinstance(ids, np.ndarray | pd.Index) and ids.dtype.kind in "iu"):
        held = ids.to_list() if hasattr(ids, "to_list") else ids
        # A list keeps 1 apart from "1"; a text or whole number of NumPy becomes one of Python.
        ids = [
            v.item() if isinstance(v, np.str_ | np.integer) and v.dtype.kind != "m" else v
            for v in held
        ]
    index = pd.Index(ids, tupleize_cols=False)
    if len(index) != n:
        raise ValueError(
            f"{label} has {n} rows but {len(index)} ids were given. Give one id per row."
        )
    _check_each(index, label)
    whole = index.inferred_type == "integer"
    if not whole:
        check_characters(index.tolist(), f"{label}: the id")
    known: Ids = index.to_numpy(dtype=np.int64 if whole else object)
    if not index.is_unique:
        twice = index[index.duplicated()].tolist()[0]
        where = np.flatnonzero(known == twice).tolist()
        shown = ", ".join(map(str, where[:5])) + (f", … ({len(where)} in all)" * (len(where) > 5))
        raise ValueError(
            f"{label} has duplicate ids: {twice!r} stands in rows {shown}. Keep one row per sample."
        )
    return known


def check_characters(texts: Sequence[Any], label: str) -> None:
    """Refuse texts with half a character (a lone surrogate), which no file can hold."""
    for start in range(0, len(texts), _AT_ONCE):
        some = texts[start : start + _AT_ONCE]
        try:
            "".join(map(str, some)).encode()
        except UnicodeEncodeError:
            wrong = next(text for text in map(str, some) if _SURROGATE.search(text))
            raise ValueError(
                f"{label} {wrong!r} holds half a character (a lone surrogate), which cannot be "
                "written to a file. Correct it: it was probably read in the wrong encoding."
            ) from None


def tell_of_totals(ids: Ids, label: str) -> None:
    """Say that the last row may hold sums, if its id says so."""
    last = ids.tolist()[-1]
    if len(ids) > 1 and isinstance(last, str) and last.strip().lower() in _TOTALS:
        warn_user(
            f"{label}: the last row is called {last!r}. If it is none of the samples, remove it.",
        )


def _check_each(index: pd.Index, label: str) -> None:
    if index.dtype.kind == "i":
        return
    texts = index.inferred_type == "string"
    for row, value in enumerate(index.tolist()):
        if texts and len(value) > _LONGEST_MISSING:
            continue  # this is cheap, and nearly all ids of a large view are so long
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise ValueError(
                f"{label}, row {row}: the id {as_python(value)!r} is a {type(value).__name__}. "
                "Ids are ints or strings; convert them, and drop rows without an id."
            )
        if isinstance(value, int):
            if not -(2**63) <= value < 2**63:
                raise ValueError(
                    f"{label}, row {row}: the id {value} has more than 64 bits with its sign. "
                    "Write such ids as texts."
                )
        elif value.strip().lower() in MISSING:
            raise ValueError(
                f"{label}, row {row}: the id {value!r} says that there is none. Fill it in or drop "
                "the row."
            )


def match_similar(
    ids: Ids,
    known: NDArray[np.bool_],
    similar: Ids,
    kind: IdKind | None,
    rule: Similar,
    label: str,
    rows: NDArray[np.intp] | None = None,
) -> Ids:
    """Refuse new ids of a view that are almost known, or give them the known spelling.

    `known` tells which ids are known with exactly this spelling, `similar` has the known ids that
    are almost one of the others (see `alike`), and `kind` is the kind of the known ids. `rule` says
    what to do with a new id that is almost known, or almost the same as another new one: "refuse"
    it, "match" it to the known sample, or take it for a "new" sample. `rows` is how errors number
    the rows; they do not, if it is None.
    """
    new = np.flatnonzero(~known)
    if not new.size or rule == "new":
        return ids
    kind = kind or kind_of(ids)
    theirs, ours = normal_forms(ids[new]), normal_forms(similar)
    index = pd.Index(theirs, dtype=object)
    if rule == "refuse" and index.is_unique and not index.isin(ours).any():
        return ids
    # In the order of the union; what comes first is what others are almost.
    forms = pd.Series(np.concatenate([ours, theirs]), dtype=object)
    first = pd.Series(np.arange(forms.size)).groupby(forms).transform("first").to_numpy()
    place = first[similar.size :]
    again = np.flatnonzero(place != similar.size + np.arange(new.size))
    doubles = again[place[again] >= similar.size]
    if again.size and rule == "refuse":
        raise _almost(ids, new, similar, kind, again, place, label, rows)
    if doubles.size:
        raise _same(new[[place[doubles[0]] - similar.size, doubles[0]]], ids, label, rows)
    known_first = first[: similar.size]
    several = known_first[pd.Series(known_first).duplicated()]
    unclear = again[np.isin(place[again], several)]
    if unclear.size:  # nobody can choose between two known ids that are almost the same
        a, b = similar[np.flatnonzero(known_first == place[unclear[0]])[:2]].tolist()
        raise ValueError(
            f"{label}: {ids[new].tolist()[unclear[0]]!r} may be {a!r} or {b!r}, which are both "
            "known. Write it as one of them."
        )
    out = ids.astype(object)
    out[new[again]] = similar[place[again]]
    for i in np.setdiff1d(new, new[again]).tolist():
        out[i] = _of_kind(kind, out[i])
    twice = np.flatnonzero(pd.Index(out).duplicated(keep=False))
    if twice.size:
        raise _same(np.flatnonzero(out == out[twice[0]]), ids, label, rows)
    return as_ids(out, out.size, label)


def check_rule(rule: str) -> None:
    if rule not in ("refuse", "match", "new"):
        raise ValueError(f"similar_ids={rule!r}: expected 'refuse', 'match' or 'new'.")


def alike(known: Ids, forms: Ids) -> Ids:
    """Return the known ids whose normal form is one of `forms`."""
    found: Ids = known[pd.Index(normal_forms(known), dtype=object).isin(forms)]
    return found


def _of_kind(kind: str, name: Any) -> Any:
    """Return a new id as the known ones are written, if it is a number."""
    if kind == "texts":
        return str(name)
    found = re.fullmatch(NUMBER, name.strip()) if isinstance(name, str) else None
    return int(found[1] + found[2]) if found and kind == "whole numbers" else name


def _almost(
    ids: Ids, new: Any, known: Ids, kind: IdKind, again: Any, place: Any, label: str, rows: Any
) -> ValueError:
    shown = []
    for i in again[:3].tolist():
        within = int(place[i]) - known.size
        other = repr(known.tolist()[place[i]]) if within < 0 else _at(new[within], ids, rows)
        shown.append(f"{_at(new[i], ids, rows)} is almost {other}")
    if len(again) > 3:
        shown.append(f"… ({len(again):,} in all)")
    others = "; if they are others, similar_ids='new'"
    said = (
        f"{label}: {', '.join(shown)}. If they are the same samples, correct them or say "
        f"similar_ids='match'"
        f"{others if kind_of(ids) == kind or not known.size else ''}."
    )
    return with_suggestion(ValueError(said), similar_ids="match")


def _same(which: Any, ids: Ids, label: str, rows: Any) -> ValueError:
    a, b = (_at(i, ids, rows) for i in which[:2])
    return ValueError(
        f"{label}: {a} and {b} are the same sample, if similar ids are matched. Keep one of them."
    )


def _at(i: Any, ids: Ids, rows: Any) -> str:
    return f"{ids[i : i + 1].tolist()[0]!r}" + ("" if rows is None else f" in row {rows[i]}")


def check_kind(ours: IdKind, example: Any, ids: Ids, label: str) -> None:
    """Refuse texts among whole numbers and the other way round: ids keep the kind they have."""
    if ours in ("both", kind_of(ids)):
        return
    other = str if ours == "whole numbers" else int
    wrong = next(name for name in ids.tolist() if isinstance(name, other))
    said = (
        f"{label} has ids that are {'texts' if other is str else 'whole numbers'} ({wrong!r}), but "
        f"the samples folded so far have {ours} ({example!r}). Give every view ids of "
        f"the same kind; similar_ids='match' converts numbers."
    )
    raise with_suggestion(ValueError(said), similar_ids="match")
