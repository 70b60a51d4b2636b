"""The normal form of an id, and a number for it: the same for ids that are almost the same."""

from __future__ import annotations

import unicodedata
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from viewfold._types import Ids

IdKind: TypeAlias = Literal["whole numbers", "texts", "both"]

_INVISIBLE = "\ufeff\u200b\u200c\u200d"
NUMBER = r"^\+?(-?)0*([0-9]+?)(?:\.0+)?$"


def normal_forms(ids: Ids) -> Any:
    """Return ids without outer space, case, letter composition (NFC), leading zeros and ``.0``.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold._normal import normal_forms
    >>> normal_forms(np.array([" P1", "p1", "007", "7.0", 7], object)).to_pylist()
    ['p1', 'p1', '7', '7', '7']
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if ids.dtype != object:
        return pa.array(ids).cast(pa.string())
    texts = pa.array(ids if kind_of(ids) == "texts" else [str(name) for name in ids], pa.string())
    simple = pc.string_is_ascii(texts)
    if not pc.all(simple).as_py():
        texts = pa.array([_plain(text) for text in texts.to_pylist()], pa.string())
    texts = pc.ascii_lower(pc.ascii_trim_whitespace(texts))
    if not pc.any(pc.match_substring_regex(texts, NUMBER)).as_py():
        return texts
    return pc.replace_substring_regex(texts, pattern=NUMBER, replacement=r"\1\2")


def _plain(text: str) -> str:
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", text.strip().strip(_INVISIBLE).strip().casefold())


def hashed(ids: Ids) -> NDArray[np.uint64]:
    """Return a number of 64 bits for each id, the same for ids of the same normal form.

    Examples
    --------
    >>> import numpy as np
    >>> from viewfold._normal import hashed
    >>> a, b, c = hashed(np.array(["p7", " P7", "7"], object))
    >>> bool(a == b), bool(c == hashed(np.array([7]))[0])
    (True, True)
    """
    if ids.dtype != object:
        return mixed(ids.astype(np.int64).view(np.uint64))
    import pyarrow as pa
    import pyarrow.compute as pc

    forms = normal_forms(ids)
    whole = pc.match_substring_regex(forms, r"^-?[0-9]{1,18}$")
    key = pd.util.hash_array(forms.to_numpy(zero_copy_only=False), categorize=False)
    if pc.any(whole).as_py():
        number = pc.if_else(whole, forms, None).cast(pa.int64()).fill_null(0)
        is_whole = whole.to_numpy(zero_copy_only=False)
        key = np.where(is_whole, number.to_numpy().view(np.uint64), key)
    return mixed(key)


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
    """Return whether ids are whole numbers, texts, or both."""
    if ids.dtype != object:
        return "whole numbers"
    found = pd.api.types.infer_dtype(ids, skipna=False)
    return "texts" if found == "string" else "whole numbers" if found == "integer" else "both"
