"""Public sets, downloaded once, checked, and kept as one file that `load` reads.

Nothing is kept before it was read and found to be what it should be: a download that broke off, or
a file that has changed, leaves the folder as it was.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import tempfile
import urllib.request
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from viewfold.datasets import load
from viewfold_research.datasets._sources import SOURCES, Parsed, Source, genes

if TYPE_CHECKING:
    from sklearn.utils import Bunch


FOLDER, MIRROR = "VIEWFOLD_DATA", "VIEWFOLD_MIRROR"


def fetch(
    name: str,
    *,
    data_home: str | PathLike[str] | None = None,
    mirror: str | None = None,
    verify: bool = True,
) -> Bunch:
    """Fetch a public multi-view set: from its folder, or once from where it is published.

    Parameters
    ----------
    name : str
        One of ``viewfold_research.datasets.sources()``.
    data_home : str or path, optional
        The folder for data. By default what the environment variable ``VIEWFOLD_DATA`` names, else
        ``viewfold`` in scikit-learn's.
    mirror : str, optional
        An address to use instead of the public one, which has ``NAME/FILE``. By default what
        ``VIEWFOLD_MIRROR`` names, if anything.
    verify : bool
        Whether to compare views and classes with the digest that this package knows.

    Returns
    -------
    Bunch
        ``views``, a dict of arrays or sparse matrices, rows of NaN where a sample lacks a view;
        ``target``, the classes from 0; ``target_names``; ``feature_names``, a dict of those views
        whose features have names; ``filename``, where the set is kept.

    Raises
    ------
    OSError, ValueError
        If the set does not come, or what came is not the set; it says what to do by hand.

    Notes
    -----
    What is verified is the content: a SHA-256 digest of the numbers of all views in their order
    (single precision) and the classes, computed from a copy of the set. The digests of the
    published *files* are not known to this package: the same numbers in another packing pass, and
    names of features are taken from the file as they are.

    The set is kept as ``NAME.npz`` (``NAME.mat`` is read, too). Files that were got by hand lie in
    a folder ``NAME`` beside it.

    Examples
    --------
    >>> from viewfold_research.datasets import fetch
    >>> fetch("4sources")
    Traceback (most recent call last):
    ...
    ValueError: There is no set '4sources'. There are: tcga-breast, 3sources, mouse-cortex, bdgp.
    """
    if name not in SOURCES:
        raise ValueError(f"There is no set {name!r}. There are: {', '.join(SOURCES)}.")
    source, mirror = SOURCES[name], mirror or os.environ.get(MIRROR)
    base = os.environ.get("SCIKIT_LEARN_DATA", os.path.join("~", "scikit_learn_data"))
    home = Path(data_home or os.environ.get(FOLDER) or f"{base}/viewfold").expanduser()
    for kind in ("npz", "mat"):
        if (path := home / f"{name}.{kind}").is_file():
            return _read_file(source, path, verify)
    if mirror:
        check_address(mirror)
    home.mkdir(parents=True, exist_ok=True)
    views, target, names = _get_files(source, home, mirror)
    if verify:
        _verify(source, views, target, f"{len(source.files)} files of {source.address}")
    path = home / f"{name}.npz"
    with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=home) as scratch:
        draft = Path(scratch, path.name)
        _write(draft, dict(zip(source.views, views, strict=True)), target, names)
        draft.replace(path)
    return _read_file(source, path, verify)


def sources() -> list[Source]:
    """List the public sets that `fetch` knows.

    Returns
    -------
    list of Source

    Examples
    --------
    >>> from viewfold_research.datasets import sources
    >>> [(source.name, source.samples, source.views) for source in sources()][0]
    ('tcga-breast', 220, {'mrna': 200, 'mirna': 184, 'protein': 142})
    """
    return list(SOURCES.values())


def digest(views: list[Any], target: NDArray[np.int64]) -> str:
    """Return the SHA-256 digest of what views and classes hold, whatever their types."""
    whole = hashlib.sha256()
    for X in views:
        whole.update(repr(tuple(map(int, X.shape))).encode())
        if sparse.issparse(X):
            X = sparse.csr_array(X, copy=True)
            X.sum_duplicates()
            X.eliminate_zeros()
            whole.update(X.indptr.astype("<i8").tobytes())
            whole.update(X.indices.astype("<i8").tobytes())
            X = X.data
        numbers = np.ascontiguousarray(X, "<f4")
        whole.update(np.where(np.isnan(numbers), np.float32(np.nan), numbers + 0).tobytes())
    whole.update(np.asarray(target, "<i8").tobytes())
    return whole.hexdigest()


def _get_files(source: Source, home: Path, mirror: str | None) -> Parsed:
    """Return what the files hold; they are only there while they are read."""
    if source.parse is None:
        raise FileNotFoundError(
            f"The set {source.name!r} cannot be downloaded by viewfold. {source.note} It is at "
            f"{source.address}. {_by_hand(source, home)}"
        )
    by_hand = home / source.name
    with tempfile.TemporaryDirectory(prefix=f".{source.name}.", dir=home) as scratch:
        folder = Path(scratch)
        for name, address in source.files.items():
            if (by_hand / name).is_file():
                shutil.copyfile(by_hand / name, folder / name)
                continue
            if mirror:
                address = f"{mirror.rstrip('/')}/{source.name}/{name}"
            try:
                download(address, folder / name, source.most)
            except ValueError as error:
                raise ValueError(f"{error} {_by_hand(source, home)}") from error
            except OSError as error:
                why = error if isinstance(error, HTTPError) else getattr(error, "reason", error)
                raise OSError(
                    f"{name} of {source.name!r} did not come from {address} ({why}). "
                    f"{_by_hand(source, home)}"
                ) from error
        try:
            return source.parse(folder)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise ValueError(
                f"The files of {source.name!r} are not as they were published: {error}. "
                f"{_by_hand(source, home)}"
            ) from error


def _by_hand(source: Source, home: Path) -> str:
    ready = f"a file {home / source.name}.npz (or .mat) that viewfold.datasets.load reads"
    if not source.files:
        return f"Make {ready}."
    base = next(iter(source.files.values())).rpartition("/")[0]
    return (
        f"By hand: get {', '.join(source.files)} from {base}/ and put them into "
        f"{home / source.name}, or make {ready}; or name a server that has them at "
        f"{source.name}/FILE in the environment variable {MIRROR}."
    )


def _read_file(source: Source, path: Path, verify: bool) -> Bunch:
    from sklearn.utils import Bunch

    held = load(path)
    if held.target is None or len(held.views) != len(source.views):
        raise ValueError(f"{path} is not {source.name!r}: views or classes are missing.")
    views = dict(zip(source.views, held.views.values(), strict=True))
    if verify:
        _verify(source, list(views.values()), held.target, str(path))
    names = {"rna": genes()} if source.name == "mouse-cortex" else {}
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as file:
            for v, view in enumerate(source.views):
                if f"names_{v}" in file:
                    names[view] = file[f"names_{v}"].tolist()
    return Bunch(
        views=views,
        target=held.target,
        target_names=list(source.classes),
        feature_names=names,
        filename=str(path),
    )


def _verify(source: Source, views: list[Any], target: NDArray[np.int64], where: str) -> None:
    expected = [(source.samples, features) for features in source.views.values()]
    found = [tuple(X.shape) for X in views]
    if found != expected or target.shape != (source.samples,):
        raise ValueError(
            f"{where}: {source.name!r} has views of {expected}, but these are {found}, with "
            f"{target.size} classes."
        )
    if (is_now := digest(views, target)) != source.digest:
        raise ValueError(
            f"{where}: the content of {source.name!r} has the SHA-256 digest {is_now}, not "
            f"{source.digest}: values, their order or classes are others. Remove it and fetch it "
            "again. (In Python, verify=False takes it as it is.)"
        )


def _write(
    path: Path, views: dict[str, Any], target: NDArray[np.int64], names: dict[str, list[str]]
) -> None:
    parts: dict[str, Any] = {"y": target}
    for v, (view, X) in enumerate(views.items()):
        if sparse.issparse(X):
            parts |= {f"view_{v}_{part}": getattr(X, part) for part in ("data", "indices")}
            parts |= {f"view_{v}_indptr": X.indptr, f"view_{v}_shape": np.array(X.shape)}
        else:
            parts[f"view_{v}"] = X
        if names.get(view):
            parts[f"names_{v}"] = np.array(names[view])
    with open(path, "wb") as file:
        np.savez_compressed(file, **parts)


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
    """
    if _RANK.get(urlsplit(new).scheme, -1) < _RANK[urlsplit(old).scheme]:
        raise ValueError(f"{old} sends on to {new}, which is less safe.")


def check_address(address: str) -> None:
    parts = urlsplit(address)
    if parts.scheme not in _RANK or not parts.hostname:
        raise ValueError(f"{address!r} is no address that begins with https:// or http://.")


def download(address: str, path: Path, most: int) -> None:
    """Copy what is at an address to a file; `most` are the bytes to expect."""
    check_address(address)
    opener = urllib.request.build_opener(_Redirects)
    request = urllib.request.Request(address, headers={"User-Agent": "viewfold"})
    try:
        with opener.open(request, timeout=_SECONDS) as answer, open(path, "wb") as file:
            promised = answer.headers.get("Content-Length")
            size = int(promised) if promised and promised.isdecimal() else None
            if size is not None and size > most:
                raise ValueError(
                    f"{address} has {size:,} bytes, where {most:,} are the most to expect."
                )
            count = 0
            while piece := answer.read(_PIECE):
                count += len(piece)
                if count > most:
                    raise ValueError(f"{address} has more than the {most:,} bytes to expect.")
                file.write(piece)
            if size is not None and count != size:
                raise OSError(f"{address} broke off after {count:,} of {size:,} bytes")
    except http.client.HTTPException as error:
        raise OSError(f"{address}: {type(error).__name__}") from error
