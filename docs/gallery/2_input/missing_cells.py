"""
Missing cells
=============

Single cells may be missing: they are predicted from the others of the row, and counted.
"""

import numpy as np
from sklearn.datasets import load_wine

from viewfold import ViewFold, metrics

wine = load_wine(as_frame=True)
rng = np.random.default_rng(0)
gaps = wine.data.mask(rng.random(wine.data.shape) < 0.2)

model = ViewFold(n_clusters=3, random_state=0)
model.partial_fit(gaps.iloc[:, :7], view="minerals").partial_fit(gaps.iloc[:, 7:], view="colour")
print([record.n_missing for record in model.views_], "cells were missing")
print("accuracy", round(metrics.accuracy(wine.target, model.labels_), 2))
