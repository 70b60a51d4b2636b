"""Public multi-view sets: fetched from where they are published, and those of the FCMVC-IV paper.

`listed` says where to find the sets of the paper; `viewfold.datasets.load` reads their files.
"""

from viewfold_research.datasets._fetch import fetch, sources
from viewfold_research.datasets._sources import Source, listed
from viewfold_research.datasets._uci import fetch_uci_digits

__all__ = ["Source", "fetch", "fetch_uci_digits", "listed", "sources"]
