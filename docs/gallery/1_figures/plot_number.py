"""
Scores of numbers of clusters
=============================

How much each number of clusters stands out. The dot is the number that the model has.
"""

from sklearn.datasets import load_wine

from viewfold import ViewFold, suggest_n_clusters

wine = load_wine(as_frame=True).data.rename("w{:03}".format)
model = ViewFold(n_clusters=3, random_state=0)
model.partial_fit(wine.iloc[:140, :5], view="minerals")
model.partial_fit(wine.iloc[30:, 5:9], view="phenols")
model.partial_fit(wine.iloc[10:170, 9:], view="colour")

suggestion = suggest_n_clusters(model, range(2, 11))
suggestion.plot(now=3)
