"""What makes a cluster, and why a sample is in it: told by features of views that are gone.

Everything comes from the moments that a state keeps of its views, see `viewfold.core.moments`.
"""

from viewfold.explain.effects import Told, feature_table
from viewfold.explain.samples import Explanation, explain_sample
from viewfold.explain.shares import loadings, variance_table

__all__ = [
    "Explanation",
    "Told",
    "explain_sample",
    "feature_table",
    "loadings",
    "variance_table",
]
