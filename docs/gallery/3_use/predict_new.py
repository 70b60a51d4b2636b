"""
Predict new samples
===================

The cluster of samples that were never folded, from one view or several. `extend` adds them.
"""

from sklearn.datasets import load_wine

from viewfold import ViewFold

wine = load_wine(as_frame=True).data.rename("w{:03}".format)
known, new = wine.iloc[::2], wine.iloc[1::2]
model = ViewFold(n_clusters=3, random_state=0)
model.partial_fit(known.iloc[:, :5], view="minerals").partial_fit(known.iloc[:, 9:], view="colour")

model.predict_frame(new.iloc[:4, :5], view="minerals").round(2)

# %%
# From two views, of which the last bottle has one only:

model.predict_frame({"minerals": new.iloc[:3, :5], "colour": new.iloc[:4, 9:]}).round(2)

# %%
# Less certain ones as noise, −1:

model.predict(new.iloc[:, :5], view="minerals", min_confidence=0.9)[:20]

# %%

model.extend(new.iloc[:4, :5], view="minerals")
model.n_samples_
