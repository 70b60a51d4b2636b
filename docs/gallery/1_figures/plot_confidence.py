"""
Confidence
==========

How sure the samples of each cluster are. Five clusters are too many
for these wines: the samples of some of them are less sure than others.
"""

from sklearn.datasets import load_wine

from viewfold import ViewFold, plot

wine = load_wine(as_frame=True).data.rename("w{:03}".format)
model = ViewFold(n_clusters=5, random_state=0)
model.partial_fit(wine.iloc[:140, :5], view="minerals")
model.partial_fit(wine.iloc[30:, 5:9], view="phenols")
model.partial_fit(wine.iloc[10:170, 9:], view="colour")

plot.confidence(model)
