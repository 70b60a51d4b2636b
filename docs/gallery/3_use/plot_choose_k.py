"""
Choose the number of clusters
=============================

Ask which number stands out, try it, and see which clusters are found again in other draws.
"""

from sklearn.datasets import load_wine

from viewfold import ViewFold, suggest_n_clusters

wine = load_wine(as_frame=True).data.rename("w{:03}".format)
model = ViewFold(n_clusters=5, random_state=0)
model.partial_fit(wine.iloc[:140, :5], view="minerals")
model.partial_fit(wine.iloc[30:, 5:], view="phenols")

found = suggest_n_clusters(model, range(2, 9))
found.plot(now=5)
found.best

# %%

model.stability()

# %%

model.recluster(found.best)
model.stability()
