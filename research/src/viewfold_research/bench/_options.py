"""The options of experiments, as decorators."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])


class Decorator(Protocol):
    """What adds options to the function of a command."""

    def __call__(self, command: Function, /) -> Function:
        """Return the function."""


class Whole(click.IntRange):
    """A whole number within bounds."""

    name = "whole number"  # click would say that 'ten' is not a valid integer range


PATH = click.Path(readable=False, path_type=Path)
"""A file or folder; whoever opens it says what is wrong with it."""


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


def stacked(*options: Decorator) -> Decorator:
    """Return a decorator that adds all of these options, in this order."""

    def decorate(command: Function) -> Function:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def missing(ratios: str, draws: int) -> Decorator:
    """Return the options that say how many samples views lack, and how often they are drawn."""
    return stacked(
        click.option(
            "--ratios",
            metavar="R,R",
            default=ratios,
            help="Shares of samples that each view lacks: 0.1,0.3 or, in tenths, 0.1..0.5.",
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
