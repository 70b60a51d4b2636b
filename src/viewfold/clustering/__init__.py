"""Clusters from an embedding: k-means, starts, discriminants, numbers that stay, confidence."""

from viewfold.clustering.assign import assign, confidence
from viewfold.clustering.cluster import Reading, cluster, match, sample_size, settle

__all__ = ["Reading", "assign", "cluster", "confidence", "match", "sample_size", "settle"]
