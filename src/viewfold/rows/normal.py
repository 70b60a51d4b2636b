"""The normal form of an id, and a number for it: the same for ids that are almost the same."""

from __future__ import annotations

import unicodedata
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from viewfold._util.types import Ids

IdKind: TypeAlias = Literal["whole numbers", "texts", "both"]

_SPACE = " \t\n\v\f\r"
_DIGITS = frozenset("0123456789")
_STARTS = _DIGITS | frozenset("+-")
_INVISIBLE = "\ufeff\u200b\u200c\u200d"
NUMBER = r"^\+?(-?)0*([0-9]+?)(?:\.0+)?$"


def normal_forms(ids: Ids) -> Ids:
    """Return ids without outer space, case, letter composition (NFC), leading zeros and ``.0``."""
    if ids.dtype != object:
        return ids.astype(str).astype(object)
    texts = ids.tolist() if kind_of(ids) == "texts" else [str(name) for name in ids]
    plain = [
        text.strip(_SPACE).lower() if text.isascii() else _without_marks(text) for text in texts
    ]
    return np.array(
        [_number(text) if text[:1] in _STARTS and text[-1:] in _DIGITS else text for text in plain],
        dtype=object,
    )


def _without_marks(text: str) -> str:
    return unicodedata.normalize("NFC", text.strip().strip(_INVISIBLE).strip().casefold())


def _number(text: str) -> str:
    """Return a whole number as `NUMBER` has it, and any other text as it is."""
    bare = text.removeprefix("+")
    sign = "-" if bare.startswith("-") else ""
    digits, point, zeros = bare.removeprefix("-").partition(".")
    if not (digits.isascii() and digits.isdigit()) or (point and (not zeros or zeros.strip("0"))):
        return text
    return sign + (digits.lstrip("0") or "0")


def hashed(ids: Ids) -> NDArray[np.uint64]:
    """Return a number of 64 bits for each id, the same for ids of the same normal form.

    Texts are hashed as the whole number they are, if it is one of 64 bits with its sign.
    """
    import pandas as pd

    if ids.dtype != object:
        return mixed(ids.astype(np.int64).view(np.uint64))
    forms = normal_forms(ids)
    key = pd.util.hash_array(forms, categorize=False)
    whole = [i for i, form in enumerate(forms.tolist()) if _is_whole(form)]
    if whole:
        key[whole] = forms[whole].astype(np.int64).view(np.uint64)
    return mixed(key)


def _is_whole(form: str) -> bool:
    """Whether this is a whole number that 64 bits hold."""
    if form[-1:] not in _DIGITS:
        return False
    digits = form.removeprefix("-")
    if len(digits) > 19 or not (digits.isascii() and digits.isdigit()):
        return False
    return len(digits) <= 18 or -(2**63) <= int(form) < 2**63


def mixed(key: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread every bit of numbers over all bits (the finaliser of splitmix64)."""
    spread = key.copy()
    for start in range(0, key.size, 2**14):  # a few at a time, which stay in a cache
        few = spread[start : start + 2**14]
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            few ^= few >> np.uint64(shift)
            few *= np.uint64(factor)
        few ^= few >> np.uint64(31)
    return spread


def kind_of(ids: Ids) -> IdKind:
    import pandas as pd

    if ids.dtype != object:
        return "whole numbers"
    found = pd.api.types.infer_dtype(ids, skipna=False)
    return "texts" if found == "string" else "whole numbers" if found == "integer" else "both"
