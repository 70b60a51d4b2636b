"""
What changed
============

Which clusters merged, split, were born, grew; who moved at the last step.
"""

from sklearn.datasets import load_wine

from viewfold import ViewFold

wine = load_wine(as_frame=True).data.rename("w{:03}".format)
model = ViewFold(n_clusters=2, random_state=0)
model.partial_fit(wine.iloc[:140, :5], view="minerals")
model.partial_fit(wine.iloc[30:, 5:], view="phenols")
model.recluster(3)
model.events_

# %%

model.movers("phenols").head()

# %%
# Everything that was done:

model.log_[["what", "view", "n_samples", "n_moved"]]
