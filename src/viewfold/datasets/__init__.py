"""Multi-view data to try viewfold on.

One set comes with the package, one is made to measure, one is fetched from OpenML, and any other
is read from its file; the catalogue says where to find those of the FCMVC-IV paper.
"""

from viewfold.datasets._catalogue import DataSet, catalogue
from viewfold.datasets._digits import load_digits_views
from viewfold.datasets._files import load
from viewfold.datasets._synthetic import make_multiview
from viewfold.datasets._uci import fetch_uci_digits

__all__ = [
    "DataSet",
    "catalogue",
    "fetch_uci_digits",
    "load",
    "load_digits_views",
    "make_multiview",
]
