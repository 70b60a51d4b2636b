"""The command line: files in, one line about what happened, data on standard output.

Every command is a few lines around the library. Only typer is imported before a command runs, so
that ``viewfold --help`` answers at once.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from viewfold import __version__, _output, errors
from viewfold._choice import which_view
from viewfold._console import print_json, print_rows, progress, tell
from viewfold._console import say as _say
from viewfold.bench.cli import app as bench
from viewfold.store._replace import replaced

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from viewfold.estimators import FoldingEstimator
    from viewfold.state import Event
    from viewfold.view import View

app = typer.Typer(
    name="viewfold",
    help="Cluster samples whose views arrive one after the other, with gaps, and are then gone.",
    epilog="Begin with: viewfold add patients.vf labs.csv --id patient --clusters 10",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(bench, name="bench", help="The paper's experiments, on your data.")


class Method(StrEnum):
    """The estimators, by the names that the command line has for them."""

    viewfold = "viewfold"
    fcmvc = "fcmvc"


class Similar(StrEnum):
    """What to do with ids that are almost the same."""

    refuse = "refuse"
    match = "match"
    new = "new"


State = Annotated[Path, typer.Argument(metavar="STATE.vf", help="The state file.")]
Id = Annotated[
    str | None,
    typer.Option("--id", help="The column that holds the sample ids.", metavar="COLUMN"),
]
NoId = Annotated[
    bool,
    typer.Option("--no-id", help="No column holds ids: samples are known by their row number."),
]
SimilarIds = Annotated[
    Similar,
    typer.Option(
        "--similar-ids",
        help="Ids that differ only in case, space, leading zeros or accents as written: refuse "
        "them, match them with the known ones, or take them for new samples.",
    ),
]
MinShared = Annotated[
    str | None,
    typer.Option(
        "--min-shared",
        help="Refuse a view of which fewer samples are known, for instance 100 or 50%.",
        metavar="N|P%",
    ),
]
ViewName = Annotated[
    str | None,
    typer.Option(
        "--view",
        help="What the view is called (the file's name if not given); of a file that holds "
        "several views, the one to take.",
        metavar="NAME",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]
Wait = Annotated[float, typer.Option("--wait", help="Seconds to wait for another writer.", min=0)]
Clusters = Annotated[int | None, typer.Option("--clusters", "-k", help="How many clusters.", min=1)]
Kind = Annotated[Method, typer.Option("--method", help="ViewFold, or the paper's FCMVC-IV.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of everything that is random.", min=0)]
Private = Annotated[
    bool,
    typer.Option(
        "--private",
        help="Keep no encoders, those of earlier views included; then there is no predict. See "
        "docs/privacy.md for what a file still tells.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="Write here (.csv, .tsv, .parquet, .jsonl) instead."),
]


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(f"viewfold {__version__}")
        raise typer.Exit


@app.command(epilog="Example: viewfold init patients.vf --clusters 10")
def init(
    state: State,
    clusters: Annotated[int, typer.Option("--clusters", "-k", help="How many clusters.", min=1)],
    method: Kind = Method.viewfold,
    seed: Seed = 0,
    private: Private = False,
    as_json: Json = False,
) -> None:
    """Make an empty state file."""
    if state.exists():
        raise ValueError(f"{state} exists. Choose another name, or add views to it.")
    _new_model(clusters, method, seed, private).save(state)
    tell(
        as_json,
        {"file": str(state), "method": method.value, "clusters": clusters, "private": private},
        f"{state} is ready for its first view: viewfold add {state} FILE --id COLUMN",
    )


@app.command(epilog="Example: viewfold add patients.vf labs.parquet --id patient --clusters 10")
def add(
    state: State,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The view: a file, folder or glob.")],
    id_column: Id = None,
    no_id: NoId = False,
    similar_ids: SimilarIds = Similar.refuse,
    min_shared: MinShared = None,
    view: ViewName = None,
    clusters: Clusters = None,
    method: Kind = Method.viewfold,
    seed: Seed = 0,
    private: Private = False,
    wait: Wait = 60,
    as_json: Json = False,
) -> None:
    """Fold a view into a state file, which is made if it is not there.

    The view is not needed afterwards. CSV, TSV, Parquet, Arrow, JSON lines, NumPy, MATLAB, AnnData,
    MuData and Matrix Market files are read; of a file that holds several views, all are folded.
    """
    from viewfold.estimators import edit

    started = perf_counter()
    least = None if min_shared is None else _share(min_shared)
    new = None
    if not state.exists():
        if clusters is None:
            raise ValueError(f"There is no {state} yet. To make it, say how many --clusters.")
        new = _new_model(clusters, method, seed, private)
    with progress(f"reading {file}") as step:
        views = _read(file, _ids(id_column, no_id), view)
        step(f"waiting for {state}")
        with edit(state, new=new, wait=wait) as model:
            if clusters is not None:
                model.set_params(n_clusters=clusters)
            had = _with_encoder(model)
            if private:
                model.set_params(keep_encoders=False)
            folds = []
            for one in views:
                step(f"folding {one.name}")
                model.partial_fit(one, similar_ids=similar_ids.value, min_shared=least)
                folds.append(_fold_summary(model))
            step(f"writing {state}")
    for fold in folds:
        _say(_fold_line(fold))
    removed = had if not model.keep_encoders else []
    if removed:
        _say(f"encoders of {', '.join(removed)} are removed, also from what undo returns to.")
    seconds = round(perf_counter() - started, 3)
    tell(
        as_json,
        {
            "file": str(state),
            "folds": folds,
            "clusters": model.n_clusters,
            "private": not model.keep_encoders,
            "encoders_removed": removed,
            "seconds": seconds,
        },
        f"{model.ids_.size:,} samples in {model.n_clusters} clusters; views folded: "
        f"{len(model.views_)} ({seconds:.1f} s).",
    )


@app.command(epilog="Example: viewfold labels patients.vf -o clusters.csv")
def labels(state: State, output: Output = None, as_json: Json = False) -> None:
    """Print the cluster of every sample, with its confidence and number of views."""
    from viewfold import queries

    _check_output(output, state)
    _deliver(_some(state, queries.labels(state)), output, as_json, state)


@app.command(epilog="Example: viewfold status patients.vf")
def status(state: State, as_json: Json = False) -> None:
    """Tell what a state file holds."""
    from viewfold import queries

    found = queries.status(state)
    facts: dict[str, Any] = {"file": str(state), "bytes": state.stat().st_size, **found}
    if as_json:
        print_json(facts)
        return
    typer.echo(
        f"{state}: {facts['method']}, {facts['samples']:,} samples in {facts['clusters']} "
        f"clusters, {facts['bytes'] / 1e6:.1f} MB"
    )
    if facts["views"]:
        sizes = enumerate(facts["cluster_sizes"])
        typer.echo("cluster sizes: " + ", ".join(f"{i}: {n:,}" for i, n in sizes))
        print_rows(facts["views"])
    else:
        typer.echo("no view yet")


@app.command(epilog="Example: viewfold predict patients.vf new.csv --id patient --view labs")
def predict(
    state: State,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Rows with a known view's columns.")],
    id_column: Id = None,
    no_id: NoId = False,
    view: ViewName = None,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Print the cluster of samples that were never folded; the file stays as it is."""
    _check_output(output, state, file)
    model = _load(state)
    with progress(f"reading {file}"):
        (rows,) = _read(file, _ids(id_column, no_id), _known(model, view))
        frame = model.predict_frame(rows, view=rows.name)
    _deliver(_as_table(frame), output, as_json, state, file)


@app.command(epilog="Example: viewfold extend patients.vf new.csv --id patient --view labs")
def extend(
    state: State,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Rows with a known view's columns.")],
    id_column: Id = None,
    similar_ids: SimilarIds = Similar.refuse,
    view: ViewName = None,
    wait: Wait = 60,
    as_json: Json = False,
) -> None:
    """Add new samples of a known view. Nobody else moves."""
    from viewfold.estimators import edit

    with progress(f"reading {file}"), edit(state, wait=wait) as model:
        (rows,) = _read(file, id_column, _known(model, view))
        model.extend(rows, view=rows.name, similar_ids=similar_ids.value)
    tell(
        as_json,
        {"file": str(state), "view": rows.name, "new": len(rows.ids), "samples": model.ids_.size},
        f"{len(rows.ids):,} samples of {rows.name} are new; {model.ids_.size:,} in all.",
    )


@app.command(epilog="Example: viewfold forget patients.vf p17 p42")
def forget(
    state: State,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Samples.")] = None,
    listed: Annotated[
        Path | None, typer.Option("--from", help="A text file with one id per line.")
    ] = None,
    wait: Wait = 60,
    as_json: Json = False,
) -> None:
    """Remove samples for good: from the state, its history, and what undo returns to."""
    from viewfold.estimators import edit

    gone = list(ids or [])
    if listed is not None:
        gone += [line.strip() for line in listed.read_text().splitlines() if line.strip()]
    if not gone:
        raise ValueError("Whom? Give ids, or a file of ids with --from.")
    with edit(state, wait=wait) as model:
        model.forget(_as_known(model, gone))
    tell(
        as_json,
        {"file": str(state), "forgotten": len(set(gone)), "samples": int(model.ids_.size)},
        f"{len(set(gone)):,} samples are forgotten; {model.ids_.size:,} are left.",
    )


@app.command(epilog="Example: viewfold undo patients.vf")
def undo(
    state: State,
    entry: Annotated[
        int | None,
        typer.Option("--entry", help="The entry of the log to take back.", metavar="N"),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    wait: Wait = 60,
    as_json: Json = False,
) -> None:
    """Take the last change back, if it is not a forget. One change can be taken back."""
    from viewfold import queries

    _, taken = queries.undoing(state, entry)
    said = " and ".join(map(str, taken)) or "the last change, made before there was a log"
    if not yes:
        if not sys.stdin.isatty():
            raise ValueError(f"This would take back {said}. Say --yes if it should.")
        if not _agreed(f"Take back {said}?"):
            _say("Nothing was changed.")
            raise typer.Exit(1)
    from viewfold.estimators import undo as take_back

    # What was named is what is taken back, whatever another writer did in the meantime.
    model = take_back(state, entry=taken[0].entry if taken else None, wait=wait)
    names = [record.name for record in model.views_] if hasattr(model, "labels_") else []
    samples = int(model.ids_.size) if names else 0
    tell(
        as_json,
        {
            "file": str(state),
            "undone": [event.entry for event in taken],
            "views": names,
            "samples": samples,
        },
        f"Took back {said}. {state} is at {samples:,} samples and the views "
        f"{', '.join(names) or '(none)'}.",
    )


@app.command(epilog="Example: viewfold history patients.vf --id p17")
def history(
    state: State,
    sample: Annotated[
        str | None, typer.Option("--id", help="One sample's way.", metavar="ID")
    ] = None,
    moved: Annotated[
        str | None, typer.Option("--moved", help="Who moved when this view came.", metavar="VIEW")
    ] = None,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Print the log: what every change did, where one sample went, or who moved when."""
    from viewfold import queries

    _check_output(output, state)
    if moved is not None:
        which_view(queries.names(state), moved, f"{state} holds")
        _deliver(queries.movers(state, moved), output, as_json, state)
        return
    if sample is not None:
        rows = queries.way(state, sample)
        if not rows:
            raise ValueError(f"Unknown samples: [{sample!r}].")
    else:
        rows = [_entry(event) for event in queries.log(state)]
    if output is not None:
        import pyarrow as pa

        _deliver(pa.Table.from_pylist(rows), output, as_json, state)
    elif as_json:
        print_json(rows)
    elif rows:
        print_rows(rows)
    else:
        _say(f"{state} is empty: nothing was done to it yet.")


@app.command(epilog="Example: viewfold verify patients.vf")
def verify(
    file: Annotated[Path, typer.Argument(metavar="STATE.vf", help="The file.")],
    as_json: Json = False,
) -> None:
    """Read everything in a state file and tell what is wrong, and what can be saved."""
    from viewfold._verify import verify as look_over

    found = look_over(file)
    if as_json:
        facts = {"file": str(file), "whole": found.whole}
        print_json({**facts, "problems": found.problems, "rescue": found.rescue})
    elif found.whole:
        _say(f"{file} is whole.")
    else:
        for line in (*found.problems, *found.rescue):
            _say(line)
    if not found.whole:
        raise typer.Exit(errors.DamagedFileError.exit_code)


@app.command(epilog="Example: viewfold report patients.vf -o report.html")
def report(
    state: State,
    output: Annotated[Path, typer.Option("-o", "--output", help="The page.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option("--title", help="Its title.")] = None,
    as_json: Json = False,
) -> None:
    """Write a page that shows the clusters; it opens offline."""
    _output.check(output, _output.PAGES, [state])
    from viewfold.report import write

    with progress(f"drawing {output}"):
        model = _folded(state, _load(state))
        write(model, output, title=title or state.stem)
    size = output.stat().st_size
    tell(
        as_json, {"file": str(output), "bytes": size}, f"{output} is written ({size / 1e6:.1f} MB)."
    )


@app.command(epilog="Example: viewfold export patients.vf -o patients.parquet")
def export(
    state: State,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="A .parquet, .csv, .tsv or .jsonl file.")
    ],
    as_json: Json = False,
) -> None:
    """Write everything known of every sample: cluster, confidence, views, history, embedding."""
    from viewfold import queries

    _check_output(output, state)
    table = _some(state, queries.everything(state))
    _output.write_table(table, output, [state], private=state)
    columns = _output.names(table)[1:]
    tell(
        as_json,
        {"file": str(output), "samples": len(table), "columns": columns},
        f"{output} is written: {len(table):,} samples, {len(columns)} columns.",
    )


@app.command(epilog="Example: viewfold datasets --json")
def datasets(as_json: Json = False) -> None:
    """List the paper's data sets: what is known of each, and where to get it."""
    from dataclasses import asdict

    from viewfold.datasets import catalogue

    rows = [asdict(entry) for entry in catalogue()]
    if as_json:
        print_json(rows)
        return
    sizes = ("name", "samples", "views", "classes", "features")
    print_rows([{name: row[name] for name in sizes} for row in rows])
    for row in rows:
        typer.echo(f"\n{row['name']}: {row['address']}\n  {row['note']}")


@app.command(epilog="Example: viewfold demo /tmp/try")
def demo(
    folder: Annotated[Path, typer.Argument(help="Where to leave the results.")] = Path("."),
    as_json: Json = False,
) -> None:
    """Fold six views of handwritten digits, with samples missing; leave labels and a report."""
    from contextlib import redirect_stdout

    from viewfold.demo import tell

    if not as_json:
        tell(folder)
        return
    with redirect_stdout(sys.stderr):
        accuracy = tell(folder)
    print_json({"folder": str(folder), "accuracy": round(accuracy, 4)})


# -- reading


def _new_model(clusters: int, method: Method, seed: int, private: bool) -> FoldingEstimator:
    from viewfold.estimators import FCMVC, ViewFold

    kind = ViewFold if method is Method.viewfold else FCMVC
    return kind(clusters, random_state=seed, keep_encoders=not private)


def _load(state: Path) -> FoldingEstimator:
    from viewfold.estimators import load

    return load(state)


def _folded(state: Path, model: FoldingEstimator) -> FoldingEstimator:
    """Return the model, if there is anything in it."""
    if not hasattr(model, "labels_"):
        raise ValueError(f"{state} is empty: no view was folded yet. Add one with viewfold add.")
    return model


def _ids(column: str | None, none: bool) -> str | bool | None:
    """Return what is said about ids: their column, that there are none (False), or nothing."""
    if none and column is not None:
        raise ValueError("--id names a column of ids, --no-id says that there is none. Choose one.")
    return False if none else column


def _share(text: str) -> float:
    """Return a number of samples, or a part of them for a percentage."""
    number = text.strip().removesuffix("%")
    try:
        return float(number) / 100 if text.strip().endswith("%") else int(number)
    except ValueError:
        raise ValueError(
            f"--min-shared {text!r} is no number. Give one such as 100, or 50%."
        ) from None


def _read(file: str, id_column: str | bool | None, name: str | None) -> list[View]:
    """Return the views of a file; one of them, if a name is given."""
    from viewfold.view import as_view, as_views

    if name is None:
        return as_views(file, ids=id_column)
    return [as_view(file, ids=id_column, name=name)]


def _known(model: FoldingEstimator, view: str | None) -> str:
    """Return the name of the view that rows belong to."""
    if not hasattr(model, "labels_"):
        raise ValueError("No view was folded yet: nothing is known about any.")
    names = [record.name for record in model.views_]
    return names[which_view(names, view, "the state holds")]


def _as_known(model: FoldingEstimator, ids: list[str]) -> list[Any]:
    """Return ids from the command line as the model knows them: as numbers, if it does."""
    known = set(model.ids_.tolist())
    found = [i if i in known else int(i) if i.lstrip("-").isdecimal() else i for i in ids]
    unknown = [i for i in found if i not in known]
    if unknown:
        raise ValueError(f"Unknown samples: {unknown[:5]}. Nothing was done.")
    return found


# -- what a person wants to know


def _fold_summary(model: FoldingEstimator, which: int = -1) -> dict[str, Any]:
    """Return who came, who was there before, and who moved."""
    i = which % len(model.views_)
    record = model.views_[i]
    known, seen = model.history_.iloc[:, i] >= 0, model.seen_.iloc[:, i]
    return {
        "view": record.name,
        "samples": record.n_samples,
        "features": record.n_features,
        "new": record.n_new,
        "shared": record.n_shared,
        "unseen": int((known & ~seen).sum()),
        "moved": len(model.movers(i)),
    }


def _fold_line(fold: dict[str, Any]) -> str:
    return (
        "{view}: {samples:,} samples × {features:,} features; {new:,} new, {shared:,} shared, "
        "{unseen:,} known ones not in it; {moved:,} changed cluster."
    ).format(**fold)


def _with_encoder(model: FoldingEstimator) -> list[str]:
    views = model.views_ if hasattr(model, "labels_") else ()
    return [record.name for record in views if record.encoder is not None]


def _entry(event: Event) -> dict[str, Any]:
    """Return an entry of the log, with the names that the command line has for counts."""
    return {name.removeprefix("n_"): value for name, value in vars(event).items()}


# -- writing


def _check_output(output: Path | None, *inputs: Path | str) -> None:
    """Refuse a place to write to before any work is done."""
    if output is not None:
        _output.check(output, _output.TABLES, inputs)


def _agreed(question: str) -> bool:
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:  # no answer is no
        return False


def _some(state: Path, table: pa.Table | None) -> pa.Table:
    if table is None:
        raise ValueError(f"{state} is empty: no view was folded yet. Add one with viewfold add.")
    return table


def _as_table(frame: pd.DataFrame) -> pa.Table:
    """Return a frame with ids that are numbers, texts or both as other tables have them."""
    import pyarrow as pa

    plain = frame.reset_index()
    if plain["id"].dtype == object:
        plain.insert(1, "id_is_int", [isinstance(i, int) for i in plain["id"]])
        plain["id"] = plain["id"].astype(str)
    return pa.Table.from_pandas(plain, preserve_index=False)


def _deliver(
    table: pa.Table, output: Path | None, as_json: bool, state: Path, *inputs: str
) -> None:
    """Write a table to a file, or to standard output as CSV or JSON."""
    if output is not None:
        _output.write_table(table, output, [state, *inputs], private=state)
        tell(
            as_json,
            {"file": str(output), "samples": len(table)},
            f"{output} is written: {len(table):,} rows.",
        )
    elif as_json:
        names = _output.names(table)
        print_json([dict(zip(names, row, strict=True)) for row in _output.rows(table)])
    else:
        _output.print_table(table)


def main() -> None:
    """Run the command line; an error is one line, or an object with --json, and an exit code."""
    warnings.showwarning = lambda message, *_, **__: _say(f"viewfold: note: {_line(message)}")
    replaced.clear()
    try:
        code = app(standalone_mode=False)
        if code == errors.INTERRUPTED[1]:  # typer keeps Ctrl-C to itself
            code = _fail(KeyboardInterrupt())
    except (Exception, KeyboardInterrupt) as error:
        code = _fail(error)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(error: BaseException) -> int:
    """Say what went wrong, to a person or a program; return the exit code."""
    code, exit_code = errors.code_of(error)
    message = _line(error) or type(error).__name__
    shown = f"viewfold: {message}"
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        code, exit_code = errors.INTERRUPTED
        message = "interrupted; nothing was changed." if not replaced else "interrupted."
        shown = f"viewfold: {message}"
    elif hasattr(error, "format_message"):  # of typer: a wrong option or argument
        code, exit_code = errors.USAGE
        message = error.format_message()
        shown = message if "Usage:" in message else f"viewfold: {_line(message)} See --help."
    elif code == errors.ViewfoldError.code:
        traceback.print_exception(error)
        shown = f"viewfold: this is a defect of viewfold, please report it: {shown[10:]}"
    if replaced:
        shown += f" Written before that: {', '.join(path.name for path in replaced)}."
    if "--json" in sys.argv[1:]:
        written = [str(path) for path in replaced]
        facts = {"code": code, "exit_code": exit_code, "message": message, "written": written}
        print_json({"error": facts})
    else:
        _say(shown)
    return exit_code


def _line(message: object) -> str:
    return " ".join(str(message).split())


if __name__ == "__main__":
    main()
