"""
What makes a cluster
====================

The features that tell clusters apart, also of views that are gone; and why a sample is where it is.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from viewfold import ViewFold

wine = load_wine(as_frame=True).data.rename("w{:03}".format)
model = ViewFold(n_clusters=3, random_state=0)
model.partial_fit(wine.iloc[:140, :5], view="minerals")
model.partial_fit(wine.iloc[30:, 5:], view="phenols")
del wine  # not needed any more

effects = model.features(top=4)
figure, panels = plt.subplots(1, 3, figsize=(9, 2.6), layout="constrained")
for ax, (cluster, of_cluster) in zip(panels, effects.groupby("cluster"), strict=True):
    ax.barh(of_cluster["feature"], of_cluster["effect"], color="#0072b2")
    ax.set(title=f"cluster {cluster}", xlim=(-2, 2), xlabel="effect")
    ax.invert_yaxis()

# %%

print(model.explain("w100", top=3))

# %%
# How much of each view the consensus and the clusters explain:

model.variance().round(2)
