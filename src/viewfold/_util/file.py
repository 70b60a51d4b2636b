"""A path with what has to be said about the file: its encoding, decimal sign, sheet or layer.

It goes wherever a path goes, so that no function between the user and a reader has to know any of
these options.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, fields

SPACES = " \u00a0\u202f\u2009"  # as programs write them between thousands
SEPARATORS = ",.'’_" + SPACES
WEB = re.compile(r"https?://", re.I)
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+(://|::)", re.I)


@dataclass(frozen=True)
class File(os.PathLike[str]):
    r"""A file, and how to read it where that cannot be told from the file.

    Parameters
    ----------
    path : str or path-like
        A file, folder, pattern or address; see `viewfold.data.read`. ``"-"`` is standard input.
    sheet : str or list of str, optional
        The sheets to read of an Excel file; all of them otherwise.
    encoding : str, optional
        Of text: any that Python knows, such as ``"cp1252"``.
    decimal : {".", ","}, optional
        The decimal sign in text.
    thousands : str, optional
        What separates thousands in text, such as ``","``, ``"."`` or ``" "``.
    layer : str, optional
        The layer of an AnnData or MuData to take instead of ``X``.
    use_rep : str, optional
        The entry of ``obsm`` to take instead of ``X``, such as ``"X_pca"``.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from viewfold import as_view
    >>> from viewfold.data import File
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "labs.csv")
    ...     _ = path.write_text("id;Größe;Wert\n7;1.250,5;115,499\n", encoding="cp1252")
    ...     labs = as_view(
    ...         File(path, encoding="cp1252", decimal=",", thousands="."), ids="id"
    ...     )
    >>> labs.features, labs.rows.X.tolist()
    (('Größe', 'Wert'), [[1250.5, 115.499]])
    """

    path: str | os.PathLike[str]
    _: KW_ONLY
    sheet: str | Sequence[str] | None = None
    encoding: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    layer: str | None = None
    use_rep: str | None = None

    def __post_init__(self) -> None:
        if self.encoding is not None:
            _check_encoding(self.encoding)
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"decimal={self.decimal!r}: expected '.' or ','.")
        if self.thousands is not None and self.thousands not in list(SEPARATORS):
            raise ValueError(f"thousands={self.thousands!r}: expected one of , . ' _ or a space.")
        if self.thousands is not None and self.thousands == self.decimal:
            raise ValueError(
                f"decimal={self.decimal!r} and thousands={self.thousands!r} are "
                "the same sign. Choose another one for one of them."
            )
        if self.layer is not None and self.use_rep is not None:
            raise ValueError(
                f"layer={self.layer!r} and use_rep={self.use_rep!r} both say "
                "what to take instead of X. Choose one."
            )

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def __str__(self) -> str:
        return plain(os.fspath(self.path))

    def said(self) -> dict[str, object]:
        """Return the options that are given."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: value for name, value in given.items() if value is not None and name != "path"
        }

    def sheets(self) -> list[str] | None:
        """Return the names of the sheets to read, None for all."""
        if self.sheet is None:
            return None
        return [self.sheet] if isinstance(self.sheet, str) else list(self.sheet)


def is_address(path: str) -> bool:
    """Whether a path is one that fsspec opens."""
    return _ADDRESS.match(path) is not None


def plain(address: str) -> str:
    """Return an address without what is not for everybody's eyes: a query, a password."""
    if not is_address(address):
        return address
    address = re.sub(r"://[^/@]*@", "://", address)
    return re.split(r"[?#]", address)[0] if WEB.match(address) else address


def as_file(path: str | os.PathLike[str]) -> File:
    """Return a path as a `File`, with nothing said about it if it is a plain one."""
    return path if isinstance(path, File) else File(path)


def _check_encoding(name: str) -> None:
    try:
        text = codecs.lookup(name)
        codecs.decode(b"", text.name).encode("utf-8")
    except (LookupError, AttributeError, TypeError, ValueError):
        raise ValueError(
            f"encoding={name!r}: there is no such encoding of text. Try utf-8, cp1252, "
            "latin-1 or utf-16."
        ) from None
