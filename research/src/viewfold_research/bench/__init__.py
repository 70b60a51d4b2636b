"""The experiments of the FCMVC-IV paper, on data at hand and on the user's own.

`run` plans and computes them, `results` keeps them in one DuckDB file, `methods` says what takes
part; ``viewfold bench`` is the command. Nothing is imported before it is needed.
"""
