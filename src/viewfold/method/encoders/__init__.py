"""Encoders: a view becomes a few features of balanced energy, and so do rows that come later."""

from viewfold.method.encoders.directions import ScaleRule, scale_of
from viewfold.method.encoders.features import (
    FeatureEncoder,
    Learner,
    encoder_1,
    learn_landmarks,
    learn_linear,
    learn_mix,
)
from viewfold.method.encoders.landmarks import Landmarks

__all__ = [
    "FeatureEncoder",
    "Landmarks",
    "Learner",
    "ScaleRule",
    "encoder_1",
    "learn_landmarks",
    "learn_linear",
    "learn_mix",
    "scale_of",
]
