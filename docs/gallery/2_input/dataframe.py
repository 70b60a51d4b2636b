"""
DataFrames with ids
===================

The index holds the ids, or a column that you name. Samples are matched by id, whatever the order of rows.
"""

from sklearn.datasets import load_wine

from viewfold import ViewFold

wine = load_wine(as_frame=True).data.rename("w{:03}".format)
minerals = wine.iloc[:140, :5]
colour = wine.iloc[30:, 9:].sample(frac=1, random_state=0)  # in another order

model = ViewFold(n_clusters=3, random_state=0)
model.partial_fit(minerals, view="minerals")
model.partial_fit(colour, view="colour")
model.to_frame().head()

# %%
# The same with ids in a column:

table = colour.rename_axis("bottle").reset_index()
again = ViewFold(n_clusters=3, random_state=0)
again.partial_fit(minerals, view="minerals")
again.partial_fit(table, ids="bottle", view="colour")
bool((again.to_frame() == model.to_frame()).all(axis=None))
