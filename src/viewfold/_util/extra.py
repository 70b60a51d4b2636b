"""Packages that only some work needs: imported where it is done, with one message if they lack.

viewfold installs what clustering needs. Everything else is an extra of the package, and whoever
meets one that is not there is told the command that installs it.
"""

from __future__ import annotations

import importlib
from typing import Any

from viewfold.errors import MissingExtraError


def needed(module: str, extra: str, what: str) -> Any:
    """Import a package that comes with an extra.

    Parameters
    ----------
    module : str
        What to import.
    extra : str
        The extra of viewfold that installs it.
    what : str
        What needs it, as the beginning of a sentence.

    Returns
    -------
    module

    Raises
    ------
    MissingExtraError
        If it is not installed, or cannot be imported.

    Examples
    --------
    >>> from viewfold._util.extra import needed
    >>> needed("json", "hdf5", "labs.mat: reading it").__name__
    'json'
    >>> needed("no_such", "hdf5", "labs.mat: reading it")
    Traceback (most recent call last):
    viewfold.errors.MissingExtraError: labs.mat: reading it needs no_such. Install it with: \
pip install 'viewfold[hdf5]'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        said = f"{what} needs {package}. Install it with: {command(extra)}"
        raise MissingExtraError(said) from error


def lacking(what: str, extra: str, error: ImportError) -> MissingExtraError:
    """Return the error about a package that another one could not import.

    Examples
    --------
    >>> from viewfold._util.extra import lacking
    >>> lacking("s3://a/b.csv", "remote", ImportError("Install s3fs to access S3"))
    MissingExtraError("s3://a/b.csv: Install s3fs to access S3. Install what it needs with: pip \
install 'viewfold[remote]'")
    """
    return MissingExtraError(f"{what}: {error}. Install what it needs with: {command(extra)}")


def command(extra: str) -> str:
    """Return what to type to have an extra."""
    return f"pip install 'viewfold[{extra}]'"
