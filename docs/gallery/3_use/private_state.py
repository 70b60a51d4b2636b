"""
A private state
===============

Neither encoders nor moments are kept: clusters stay, `predict` and explanations are not to be had.
"""

from sklearn.datasets import load_wine

from viewfold import ViewFold

wine = load_wine(as_frame=True).data.rename("w{:03}".format)
model = ViewFold(n_clusters=3, random_state=0, keep_encoders=False)
model.partial_fit(wine.iloc[:140, :5], view="minerals")
model.partial_fit(wine.iloc[30:, 9:], view="colour")
model.to_frame().head(3)

# %%

try:
    model.predict(wine.iloc[:3, :5], view="minerals")
except ValueError as error:
    print(error)
