"""How well viewfold clusters, measured: the parts of accuracy.py and choose.py."""
