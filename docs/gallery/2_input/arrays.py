"""
Arrays, and rows of NaN
=======================

Without ids, samples are known by their row number. A row of NaN is a sample that the view lacks.
"""

import numpy as np
from sklearn.datasets import load_wine

from viewfold import ViewFold

X = load_wine().data
minerals, colour = X[:, :5].copy(), X[:, 9:].copy()
minerals[140:] = np.nan
colour[:30] = np.nan

model = ViewFold(n_clusters=3, random_state=0).fit({"minerals": minerals, "colour": colour})
model.seen_.value_counts()

# %%
# Somebody whom every view lacks has the label −1, and there is a warning:

minerals[35] = colour[35] = np.nan
labels = ViewFold(n_clusters=3, random_state=0).fit_predict([minerals, colour])
int(labels[35])
