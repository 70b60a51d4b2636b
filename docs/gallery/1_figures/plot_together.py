"""
Several figures in one
======================

Give each function an Axes, and save the whole.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from viewfold import ViewFold, plot

wine = load_wine(as_frame=True).data.rename("w{:03}".format)
model = ViewFold(n_clusters=3, random_state=0)
model.partial_fit(wine.iloc[:140, :5], view="minerals")
model.partial_fit(wine.iloc[30:, 5:9], view="phenols")
model.partial_fit(wine.iloc[10:170, 9:], view="colour")

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
plot.sample_map(model, ax=left)
plot.confidence(model, ax=right)
# figure.savefig("wines.svg") would write a file
