"""
Sparse matrices of words
========================

Counts of words are recognised: tf-idf and rows of unit length. They stay sparse.
"""

import numpy as np
from scipy import sparse

from viewfold import ViewFold

rng = np.random.default_rng(0)
topic = rng.integers(3, size=200)
rates = rng.gamma(0.3, size=(3, 400))
counts = sparse.csr_array(rng.poisson(0.2 * rates[topic]))
print(counts.shape, f"{counts.nnz / np.prod(counts.shape):.0%} of the cells are not zero")

model = ViewFold(n_clusters=3, random_state=0).fit([counts])
np.bincount(model.labels_)
