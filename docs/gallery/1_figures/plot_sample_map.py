"""
A map of the samples
====================

Similar samples next to each other; colours and marks are the clusters, numbered in their middle.
"""

from sklearn.datasets import load_wine

from viewfold import ViewFold, plot

wine = load_wine(as_frame=True).data.rename("w{:03}".format)
model = ViewFold(n_clusters=3, random_state=0)
model.partial_fit(wine.iloc[:140, :5], view="minerals")
model.partial_fit(wine.iloc[30:, 5:9], view="phenols")
model.partial_fit(wine.iloc[10:170, 9:], view="colour")

plot.sample_map(model)

# %%
# In a notebook, `viewfold.plot.map` is the same to zoom and select in, if anywidget is installed
# (``viewfold[notebook]``); without it, it draws the figure above.

type(plot.map(model)).__name__
