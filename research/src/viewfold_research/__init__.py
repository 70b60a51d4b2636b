"""Research on viewfold: other people's methods, the paper's experiments and the leaderboard.

Nothing here is needed to use viewfold. This package uses viewfold's documented names only, so that
it measures what users get.
"""
