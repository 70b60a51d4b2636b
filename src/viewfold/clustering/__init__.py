"""Clusters from an embedding: k-means, starts, discriminants, matching of labels, confidence."""

from viewfold.clustering.assign import assign, confidence, squared_distances
from viewfold.clustering.find import Reading, cluster, match, sample_size, settle
from viewfold.clustering.silhouette import silhouette

__all__ = [
    "Reading",
    "assign",
    "cluster",
    "confidence",
    "match",
    "sample_size",
    "settle",
    "silhouette",
    "squared_distances",
]
