"""The estimators: `FCMVC` and `ViewFold`, thin scikit-learn classes over the transitions."""

from viewfold.estimators.base import FoldingEstimator
from viewfold.estimators.models import FCMVC, ViewFold

__all__ = ["FCMVC", "FoldingEstimator", "ViewFold"]
