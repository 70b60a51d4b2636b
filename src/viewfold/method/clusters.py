"""Clusters from an embedding: k-means, starts, discriminants, matching of labels, confidence."""

from viewfold.method.assign import assign, next_nearest, squared_distances
from viewfold.method.certainty import confidence, scattered, sure_enough
from viewfold.method.find import Reading, cluster, match, sample_size, settle
from viewfold.method.silhouette import silhouette
from viewfold.method.stability import resampled

__all__ = [
    "Reading",
    "assign",
    "cluster",
    "confidence",
    "match",
    "next_nearest",
    "resampled",
    "sample_size",
    "scattered",
    "settle",
    "silhouette",
    "squared_distances",
    "sure_enough",
]
