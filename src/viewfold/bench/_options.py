"""The options of experiments, as decorators."""

from __future__ import annotations

import click

from viewfold._command import PATH, Decorator, Whole, stacked

data = click.option(
    "--data",
    metavar="DIR",
    type=PATH,
    help="Folder of data sets (.npz or .mat), or one file; without it, scikit-learn's digits.",
)
datasets = click.option("--datasets", metavar="A,B", help="Which of them; all if not given.")
methods = click.option(
    "--methods", metavar="A,B", help="Which methods; see: viewfold bench methods."
)
kmeans_runs = click.option(
    "--kmeans-runs",
    metavar="N",
    type=Whole(min=1),
    default=50,
    help="Runs of k-means on each embedding.",
)
jobs = click.option(
    "--jobs", metavar="N", type=Whole(min=0), default=0, help="Processes; 0 for one per core."
)
out = click.option(
    "--out",
    metavar="DIR",
    type=PATH,
    default="bench-results",
    help="Where results.duckdb is kept.",
)
masks = click.option(
    "--masks",
    metavar="FILE",
    type=PATH,
    multiple=True,
    help="Masks (.npz) to use instead of drawing them.",
)
seed = click.option(
    "--seed",
    metavar="N",
    type=Whole(min=0),
    default=0,
    help="What everything random follows from.",
)
order = click.option(
    "--order",
    default="paper",
    help="Order of views: 'paper' where it is known, 'file', or positions: 1,2,0.",
)
retry = click.option(
    "--retry", is_flag=True, help="Compute failed cells again, and those out of memory."
)
profile = click.option("--profile", is_flag=True, help="Say what the time was spent on.")


def missing(ratios: str, draws: int) -> Decorator:
    """Return the options that say how many samples views lack, and how often they are drawn."""
    return stacked(
        click.option(
            "--ratios",
            metavar="R,R",
            default=ratios,
            help="Shares of samples that each view lacks: 0.1,0.3 or 0.1..0.5.",
        ),
        click.option(
            "--draws",
            metavar="N",
            type=Whole(min=1),
            default=draws,
            help="Draws of missing samples per ratio.",
        ),
    )


def limits(memory: float | None = None, seconds: int | None = None) -> Decorator:
    """Return the options that say what a method may take."""
    return stacked(
        click.option(
            "--memory-limit",
            metavar="GB",
            type=float,
            default=memory,
            help="Memory a method may ask for.",
        ),
        click.option(
            "--time-limit",
            metavar="S",
            type=Whole(min=1),
            default=seconds,
            help="CPU seconds that a cell may take.",
        ),
    )
