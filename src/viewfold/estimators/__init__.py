"""The estimators: `FCMVC` and `ViewFold`, thin scikit-learn classes over the transitions."""

from viewfold.estimators.base import FoldingEstimator
from viewfold.estimators.fcmvc import FCMVC
from viewfold.estimators.method import Recipe
from viewfold.estimators.viewfold import ViewFold

__all__ = ["FCMVC", "FoldingEstimator", "Recipe", "ViewFold"]
