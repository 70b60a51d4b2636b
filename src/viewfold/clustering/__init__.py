"""Clusters from an embedding: k-means, starts, discriminants, matching of labels, confidence."""

from viewfold.clustering.assign import assign, next_nearest, squared_distances
from viewfold.clustering.certainty import confidence, scattered, sure_enough
from viewfold.clustering.find import Reading, cluster, match, sample_size, settle
from viewfold.clustering.silhouette import silhouette
from viewfold.clustering.stability import resampled

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
