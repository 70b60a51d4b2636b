"""Files from the web: whole or not at all, no larger than they may be, over http and https only."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from viewfold._util.watch import Tally

_PIECE = 2**18
_SECONDS = 30  # without a byte
_RANK = {"http": 0, "https": 1}


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follow redirections, but not to a protocol that is weaker or no web protocol."""

    max_redirections = 5

    def redirect_request(
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Any:
        check_redirect(req.full_url, newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def check_redirect(old: str, new: str) -> None:
    """Refuse to go from https to http, or to anything that is neither.

    Another host is allowed: addresses move, and what comes is compared with a digest.

    Examples
    --------
    >>> from viewfold.datasets._download import check_redirect
    >>> check_redirect("http://data.org/a", "https://mirror.org/a")
    >>> check_redirect("https://data.org/a", "http://data.org/a")
    Traceback (most recent call last):
    ...
    ValueError: https://data.org/a sends on to http://data.org/a, which is less safe.
    """
    if _RANK.get(urlsplit(new).scheme, -1) < _RANK[urlsplit(old).scheme]:
        raise ValueError(f"{old} sends on to {new}, which is less safe.")


def check_address(address: str) -> None:
    """Refuse an address that is not of the web."""
    parts = urlsplit(address)
    if parts.scheme not in _RANK or not parts.hostname:
        raise ValueError(f"{address!r} is no address that begins with https:// or http://.")


def download(address: str, path: Path, most: int) -> None:
    """Copy what is at an address to a file.

    Parameters
    ----------
    address : str
        Where it is.
    path : Path
        What to write. After an error, there is no such file.
    most : int
        How many bytes it may have.

    Raises
    ------
    OSError
        If it does not come, or not whole.
    ValueError
        If the address is not of the web, or more comes than may.
    """
    check_address(address)
    opener = urllib.request.build_opener(_Redirects)
    request = urllib.request.Request(address, headers={"User-Agent": "viewfold"})
    try:
        with opener.open(request, timeout=_SECONDS) as answer, open(path, "wb") as file:
            _copy(answer, file, address, most)
    except http.client.HTTPException as error:
        path.unlink(missing_ok=True)
        raise OSError(f"{address}: {type(error).__name__}") from error
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _copy(answer: Any, file: Any, address: str, most: int) -> None:
    promised = answer.headers.get("Content-Length")
    size = int(promised) if promised and promised.isdecimal() else None
    if size is not None and size > most:
        raise ValueError(f"{address} has {size:,} bytes, where {most:,} are the most to expect.")
    count, tally = 0, Tally(size)
    while piece := answer.read(_PIECE):
        count += len(piece)
        if count > most:
            raise ValueError(f"{address} has more than the {most:,} bytes to expect.")
        file.write(piece)
        tally.reach(count)
    if size is not None and count != size:
        raise OSError(f"{address} broke off after {count:,} of {size:,} bytes")
