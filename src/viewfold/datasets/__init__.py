"""Multi-view data to try viewfold on.

One set comes with the package, one is made to measure, some are fetched from where they are
published, and any other is read from its file; `listed` says where to find those of the FCMVC-IV
paper.
"""

from viewfold.datasets._fetch import fetch, load, sources
from viewfold.datasets._made import load_digits_views, make_multiview, make_patients
from viewfold.datasets._sources import Source, listed
from viewfold.datasets._uci import fetch_uci_digits

__all__ = [
    "Source",
    "fetch",
    "fetch_uci_digits",
    "listed",
    "load",
    "load_digits_views",
    "make_multiview",
    "make_patients",
    "sources",
]
