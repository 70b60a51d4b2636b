"""The constants of viewfold's own method, in one place.

Each is read when it is used, so that an experiment can move it: ``research/benchmarks/choose.py``
does, and docs/method.md tells what happens then. None of them depends on the data or a parameter.
"""

from __future__ import annotations

# -- scale

SPARSE = 0.1
"""A non-negative view with a smaller share of non-zero cells is text: words, or weights of them."""

FALLING = 0.9
"""Uncorrelated columns are principal-component scores if variances fall in this share of steps."""

# -- encode

PER_CLUSTER = 3
"""Columns of the consensus, and of each description of a view, for every cluster."""

LEAST_RANK = 15
"""The least number of these columns, however few clusters there are."""

SPECTRUM = 0.5
"""Scores on principal directions are U S^½ rather than U S: weaker directions count more."""

SMOOTH = 2.0
"""Coordinates among landmarks are U S²: smoothed over the graph twice."""

NEIGHBOURS = 8
"""A sample is connected with so many landmarks."""

LANDMARKS = 400
"""There are so many landmarks, or two for each column that is asked for."""

MOST_LANDMARKS = 1000
"""A large view has a landmark for every twenty samples, up to so many."""

GRAPH_DIRECTIONS = 100
"""Distances to landmarks are taken in so many principal directions."""

# -- missing cells

GAP_DIRECTIONS = 25
"""Missing cells are predicted from so many principal directions, a tenth of the samples at most."""

GAP_ROUNDS = 2
"""Steps of the EM algorithm by which these directions are learned from what is there."""

LEAST_NOISE = 1e-3
"""The least noise of a feature, relative to its variance: no cell is predicted exactly."""

HIDDEN = 0.05
"""The share of cells that is hidden to learn how to blend two predictions."""

# -- complete

FEWEST = 10
"""Fewer shared samples connect nothing, and what is kept of a view is made of so many or more."""

# -- weigh

HALF_TRUST = 0.01
"""The agreement (share of variance explained) at which a view is half trusted."""

FLOOR = 0.05
"""Added to the shares that views explain of each other before these are compared."""

# -- more rows of a known view

AGAIN = 0.5
"""Rows that are learned from after they were placed have this energy, times their share of all."""

# -- cluster

TREE = 150
"""A tree of Ward's method is grown on so many rows, or on ten for each cluster."""

CAUTION = 5.5
"""The confidence in a cluster is a softmax of squared distances over so much of their mean."""

TOLD = 2.0
"""Means of features tell two clusters apart if they differ by so many standard deviations."""

PAIRED = 0.5
"""Clusters of unconnected groups are paired by size if this share of samples is paired reliably."""

# -- events between steps

GOES_ON = 0.5
"""A cluster goes on in the one that has more than this share of it: there can be only one."""

PART = 0.1
"""A cluster of mostly new samples is a part of an earlier one if it has so much of that."""

GREW = 0.25
"""A cluster grew if it has so much more of its own size, beyond what others have, too."""

SHRANK = 0.2
"""A cluster shrank if it lost so much of its own size: growth by `GREW`, taken back."""

CHANCE = 4.0
"""And by so many standard deviations of what comes and goes by chance, a Poisson count: with 3,
more growth is found, and more that is none (``tests/planted_events.py --seed 1``)."""
