"""The commands of ``viewfold bench``: the paper's experiments, one command each.

Only typer is imported here; what computes is imported by the command that needs it, so that
``--help`` answers at once.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from viewfold._console import say

if TYPE_CHECKING:
    from viewfold.bench.run import Report

app = typer.Typer(
    help="Reproduce the experiments of the FCMVC-IV paper, on its data sets or on your own.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

DATA = "Folder of data sets (.npz or .mat), or one file; without it, scikit-learn's digits."
Data = Annotated[Path | None, typer.Option("--data", metavar="DIR", help=DATA)]
Names = Annotated[
    str, typer.Option("--datasets", metavar="A,B", help="Which of them; all if not given.")
]
Methods = Annotated[
    str,
    typer.Option("--methods", metavar="A,B", help="Which methods; see: viewfold bench methods."),
]
Ratios = Annotated[
    str,
    typer.Option(
        "--ratios",
        metavar="R,R",
        help="Shares of samples that each view lacks: 0.1,0.3 or 0.1..0.5.",
    ),
]
Draws = Annotated[int, typer.Option("--draws", min=1, help="Draws of missing samples per ratio.")]
Runs = Annotated[
    int, typer.Option("--kmeans-runs", min=1, help="Runs of k-means on each embedding.")
]
Jobs = Annotated[int, typer.Option("--jobs", min=0, help="Processes; 0 for one per core.")]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where results.duckdb is kept.")]
Masks = Annotated[
    list[Path] | None,
    typer.Option("--masks", metavar="FILE", help="Masks (.npz) to use instead of drawing them."),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="What everything random follows from.")]
Order = Annotated[
    str,
    typer.Option(
        "--order", help="Order of views: 'paper' where it is known, 'file', or positions: 1,2,0."
    ),
]
Retry = Annotated[
    bool, typer.Option("--retry", help="Compute failed cells again, and those out of memory.")
]
Profile = Annotated[bool, typer.Option("--profile", help="Say what the time was spent on.")]
Limit = Annotated[
    float | None,
    typer.Option("--memory-limit", metavar="GB", help="Memory a method may ask for."),
]
Seconds = Annotated[
    int | None,
    typer.Option("--time-limit", metavar="S", min=1, help="CPU seconds that a cell may take."),
]


@app.command()
def complete(
    data: Data = None,
    datasets: Names = "",
    methods: Methods = "",
    kmeans_runs: Runs = 50,
    jobs: Jobs = 0,
    out: Out = Path("bench-results"),
    seed: Seed = 0,
    order: Order = "paper",
    retry: Retry = False,
    profile: Profile = False,
) -> None:
    """Cluster complete views: the paper's first table.

    Example: viewfold bench complete --data sets --datasets uci-digit,wiki --jobs 2
    """
    _run("complete", **locals())


@app.command()
def incomplete(
    data: Data = None,
    datasets: Names = "",
    methods: Methods = "",
    ratios: Ratios = "0.1..0.5",
    draws: Draws = 10,
    kmeans_runs: Runs = 50,
    jobs: Jobs = 0,
    out: Out = Path("bench-results"),
    masks: Masks = None,
    seed: Seed = 0,
    order: Order = "paper",
    retry: Retry = False,
    profile: Profile = False,
) -> None:
    """Cluster views that lack samples: the paper's second table and its curves over the ratio.

    Example: viewfold bench incomplete --data sets --ratios 0.1,0.3 --draws 3 --masks my-masks.npz
    """
    _run("incomplete", **locals())


@app.command()
def time(
    data: Data = None,
    datasets: Names = "",
    methods: Methods = "",
    ratios: Ratios = "0..0.5",
    draws: Draws = 1,
    out: Out = Path("bench-results"),
    masks: Masks = None,
    seed: Seed = 0,
    order: Order = "paper",
    memory_limit: Limit = None,
    time_limit: Seconds = None,
    retry: Retry = False,
    profile: Profile = False,
) -> None:
    """Measure CPU and wall time and memory, from the first view to labels.

    One method at a time runs, on one thread, in a process of its own; the time includes one run of
    k-means for methods that end with an embedding.

    Example: viewfold bench time --data sets --datasets uci-digit --draws 3
    """
    _run("time", **locals())


@app.command()
def order(
    data: Data = None,
    datasets: Names = "",
    methods: Methods = "",
    ratios: Ratios = "0",
    draws: Draws = 1,
    orders: Annotated[int, typer.Option("--orders", min=1, help="Orders to try, at most.")] = 10,
    kmeans_runs: Runs = 50,
    jobs: Jobs = 0,
    out: Out = Path("bench-results"),
    seed: Seed = 0,
    retry: Retry = False,
    profile: Profile = False,
) -> None:
    """Let views arrive in every order, or in ten that are drawn at random.

    Example: viewfold bench order --data sets --datasets uci-digit --methods FCMVC-IV,ViewFold
    """
    _run("order", **locals())


@app.command()
def convergence(
    data: Data = None,
    datasets: Names = "",
    methods: Methods = "",
    ratios: Ratios = "0,0.1,0.3,0.5",
    draws: Draws = 1,
    jobs: Jobs = 0,
    out: Out = Path("bench-results"),
    masks: Masks = None,
    seed: Seed = 0,
    order: Order = "paper",
    retry: Retry = False,
) -> None:
    """Follow the objective from iteration to iteration.

    Example: viewfold bench convergence --data sets --datasets wiki --ratios 0,0.5
    """
    _run("convergence", **locals())


@app.command()
def scale(
    methods: Methods = "",
    sizes: Annotated[
        str, typer.Option("--sizes", metavar="N,N", help="Numbers of samples.")
    ] = "1e4,31623,1e5,316228,1e6",
    ratios: Ratios = "0.3",
    draws: Draws = 1,
    out: Out = Path("bench-results"),
    seed: Seed = 0,
    memory_limit: Limit = None,
    time_limit: Seconds = None,
    retry: Retry = False,
    profile: Profile = False,
) -> None:
    """Measure time and memory on synthetic views of ten thousand to a million samples.

    Example: viewfold bench scale --sizes 1e4,1e5 --memory-limit 4
    """
    _run("scale", **locals())


@app.command()
def leaderboard(
    data: Data = None,
    datasets: Names = "",
    methods: Methods = "",
    ratios: Ratios = "0,0.3,0.5",
    draws: Draws = 1,
    jobs: Jobs = 0,
    out: Out = Path("bench-results"),
    masks: Masks = None,
    seed: Seed = 0,
    order: Order = "paper",
    memory_limit: Limit = 6.0,
    time_limit: Seconds = 60,
    retry: Retry = False,
    profile: Profile = False,
) -> None:
    """Rank all methods on all data sets, and write a page and tables of it.

    One draw of all sets comes before the next, small sets before large ones; what is interrupted
    goes on with the same command, and the page shows what there is.

    Example: viewfold bench leaderboard --data sets --draws 3 --out results
    """
    _run("leaderboard", **locals())
    from viewfold.bench import show as renderer

    typer.echo("\n".join(map(str, renderer.write(out, ["html", "csv"]))))


@app.command("methods")
def list_methods() -> None:
    """List the methods that can take part, also those of other packages.

    Example: viewfold bench methods
    """
    from viewfold.bench.methods import names

    typer.echo("\n".join(names()))


@app.command()
def show(
    out: Out = Path("bench-results"),
    formats: Annotated[
        str, typer.Option("--formats", metavar="A,B", help="Which files to write; all if empty.")
    ] = "",
) -> None:
    """Write tables and figures of all results in a folder.

    Example: viewfold bench show --out bench-results
    """
    from viewfold.bench import show as renderer
    from viewfold.bench.results import Results

    with Results(out):  # complains about a folder without results, and about one in use
        pass
    chosen = _list(formats)
    written = renderer.write(out, chosen) if chosen else renderer.write(out)
    typer.echo("\n".join(map(str, written or [])))


def _run(
    experiment: str, *, out: Path, jobs: int = 1, retry: bool, profile: bool = False, **asked: Any
) -> None:
    from viewfold.bench.plan import Options
    from viewfold.bench.run import run

    report = run(experiment, Options(**_options(asked)), out, jobs=jobs or _cores(), retry=retry)
    if profile:
        _print_profile(report)
    for cell, status in report.failed:
        where = f"{cell.dataset}, {cell.method}, ratio {cell.ratio:g}, draw {cell.draw}"
        say(f"{where}: {status}")
    known = f", {report.known} were there already" if report.known else ""
    say(f"{report.computed} cells computed{known}; results in {out}")
    _print_table(experiment, out)


def _options(asked: dict[str, Any]) -> dict[str, Any]:
    """Turn what was typed into what `Options` takes."""
    options = dict(asked)
    for name in ("datasets", "methods"):
        if name in options:
            options[name] = tuple(_list(options[name]))
    if "ratios" in options:
        options["ratios"] = tuple(_numbers("--ratios", options["ratios"]))
    if "sizes" in options:
        options["sizes"] = tuple(int(n) for n in _numbers("--sizes", options["sizes"]))
    if options.get("order", "paper") not in ("paper", "file"):
        options["order"] = tuple(int(i) for i in _numbers("--order", options["order"]))
    options["masks"] = tuple(options.get("masks") or ())
    limit = options.pop("memory_limit", None)
    options["memory_limit"] = None if limit is None else int(limit * 1e9)
    return options


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _numbers(option: str, text: str) -> list[float]:
    """Read ``0.1,0.3`` and, in tenths, ``0.1..0.5``."""
    try:
        if ".." in text:
            first, last = (round(10 * float(end)) for end in text.split(".."))
            found = [tenths / 10 for tenths in range(first, last + 1)]
        else:
            found = [float(part) for part in _list(text)]
    except ValueError:
        found = []
    if not found:
        raise ValueError(
            f"{option} takes numbers with commas between them, or 0.1..0.5 in tenths; got {text!r}."
        )
    return found


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _print_table(experiment: str, out: Path) -> None:
    from viewfold.bench import show as renderer

    made = renderer.tables(out).get("ranks" if experiment == "leaderboard" else experiment)
    if made is not None:
        told = [name for name in made if name != "source" and not made[name].isin(["", None]).all()]
        typer.echo(made[told].to_string(index=False, float_format="{:.4g}".format, na_rep=""))


def _print_profile(report: Report) -> None:
    kinds = ("method", "k-means", "scores")
    say("CPU seconds: " + ", ".join(kinds))
    for dataset, method in dict.fromkeys(key[:2] for key in report.phases):
        spent = [report.phases.get((dataset, method, kind), 0.0) for kind in kinds]
        line = " ".join(f"{seconds:9.2f}" for seconds in spent)
        say(f"{dataset:16} {method:24} {line}")
