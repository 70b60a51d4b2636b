"""How a view becomes a few features of balanced energy, and what is kept of it for new rows."""

from viewfold.methods.encoders.directions import ScaleRule, scale_of
from viewfold.methods.encoders.features import FeatureEncoder, Kind, learn
from viewfold.methods.encoders.landmarks import Landmarks

__all__ = ["FeatureEncoder", "Kind", "Landmarks", "ScaleRule", "learn", "scale_of"]
