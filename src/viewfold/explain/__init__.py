"""What makes a cluster, why a sample is in it, and what happened to clusters from step to step.

The first two come from the moments that a state keeps of its views, see `viewfold.state.moments`;
the last from the history of labels, see `viewfold.explain.events`.
"""

from viewfold.explain.features import (
    Explanation,
    ViewEffects,
    distinguished,
    explain_sample,
    feature_table,
    loadings,
    variance_table,
)

__all__ = [
    "Explanation",
    "ViewEffects",
    "distinguished",
    "explain_sample",
    "feature_table",
    "loadings",
    "variance_table",
]
