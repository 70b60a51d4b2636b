"""Multi-view data to try viewfold on."""

from viewfold.datasets._digits import load_digits_views

__all__ = ["load_digits_views"]
