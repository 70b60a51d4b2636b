"""The constants of viewfold's own method, in one place.

Each is read when it is used, so that an experiment can move it: ``research/benchmarks/choose.py``
does, and docs/method.md tells what happens then. None of them depends on the data or a parameter.
"""

from __future__ import annotations

# -- scale
#: A non-negative view with a smaller share of non-zero cells is text: words, or weights of them.
SPARSE = 0.1
#: Uncorrelated columns are principal-component scores if variances fall in this share of steps.
FALLING = 0.9
#: A value so many spreads (of the middle half) from the middle is wild, and comes nearer.
WILD = 4.0
#: A logarithm is about linear below this share of the median of what is positive.
LOG_UNIT = 0.1
#: A number with a long tail becomes a logarithm if that agrees with other columns so much better.
LOG_GAIN = 1.1

# -- encode
#: Columns of the consensus, and of each description of a view, for every cluster.
PER_CLUSTER = 3
#: The least number of these columns, however few clusters there are.
LEAST_RANK = 15
#: Scores on principal directions are U S^½ rather than U S: weaker directions count more.
SPECTRUM = 0.5
#: Coordinates among landmarks are U S²: smoothed over the graph twice.
SMOOTH = 2.0
#: A sample is connected with so many landmarks.
NEIGHBOURS = 8
#: There are so many landmarks, or two for each column that is asked for.
LANDMARKS = 400
#: A large view has a landmark for every twenty samples, up to so many.
MOST_LANDMARKS = 1000
#: Distances to landmarks are taken in so many principal directions.
GRAPH_DIRECTIONS = 100

# -- missing cells
#: Missing cells are predicted from so many principal directions, a tenth of the samples at most.
GAP_DIRECTIONS = 25
#: Steps of the EM algorithm by which these directions are learned from what is there.
GAP_ROUNDS = 2
#: The least noise of a feature, relative to its variance: no cell is predicted exactly.
LEAST_NOISE = 1e-3
#: The share of cells that is hidden to learn how to blend two predictions.
HIDDEN = 0.05

# -- novelty
#: What rows are like is known in so many principal directions, a tenth of the samples at most.
KNOWN_DIRECTIONS = 50
#: There is a landmark for so many of the rows that this is learned from.
PER_LANDMARK = 20

# -- complete
#: Fewer shared samples connect nothing, and what is kept of a view is made of so many or more.
FEWEST = 10

# -- weigh
#: The agreement (share of variance explained) at which a view is half trusted.
HALF_TRUST = 0.01
#: Added to the shares that views explain of each other before these are compared.
FLOOR = 0.05

# -- more rows of a known view
#: They are learned from if their columns moved so far, in standard deviations of what was learned.
DRIFTED = 0.25
#: Rows that are learned from after they were placed have this energy, times their share of all.
AGAIN = 0.5

# -- cluster
#: A tree of Ward's method is grown on so many rows, or on ten for each cluster.
TREE = 150
#: Clusters stay unless k-means from other starts has less than this share of their inertia; or
#: some less, and a smaller determinant of the covariance within clusters.
CALM = 0.98
#: The confidence in a cluster is a softmax of squared distances over so much of their mean.
CAUTION = 5.5
#: Means of features tell two clusters apart if they differ by so many standard deviations.
TOLD = 2.0
#: The confidence of samples that would be in another cluster without one view is multiplied by it.
HANGING = 0.9
#: Clusters of unconnected groups are paired by size if this share of samples is paired reliably.
PAIRED = 0.5

# -- events between steps
#: A cluster goes on in the one that has more than this share of it: there can be only one.
GOES_ON = 0.5
#: A cluster of mostly new samples is a part of an earlier one if it has so much of that.
PART = 0.1
#: A cluster grew if it has so much more of its own size, beyond what others have, too.
GREW = 0.25
#: A cluster shrank if it lost so much of its own size: growth by `GREW`, taken back.
SHRANK = 0.2
#: And by so many standard deviations of what comes and goes by chance, a Poisson count: with 3,
#: more growth is found, and more that is none (``tests/planted_events.py --seed 1``).
CHANCE = 4.0
