"""Commands to start with: demo, inspect, add; and refresh, which folds as add does."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, redirect_stdout
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from viewfold import errors
from viewfold._util.file import File, ReadOptions
from viewfold.app.folding import FoldOptions, fold_line
from viewfold.app.folding import add as fold
from viewfold.app.summaries import compose_command, explain_number, summarize_inspection
from viewfold.app.words import for_cli, option
from viewfold.cli import options as opt
from viewfold.cli.command import PATH
from viewfold.cli.console import note, print_json, print_lines, progress, say, tell

if TYPE_CHECKING:
    from viewfold.app.inspection import Inspection, SampleFacts

# -- add, refresh

# Options about clusters or known samples, which --only-new leaves as they are.
FOR_ALL = ("clusters", "private", "min_shared", "unconnected", "method", "seed")
dry_run = opt.flag("--dry-run", "Say what would change, and write nothing.")


@opt.state
@opt.file_argument("File, folder or glob with the view.")
@opt.id_column
@opt.view
@opt.clusters()
@opt.flag(
    "--only-new",
    "Add new samples of a known view, and refuse the file if it has a known sample. No other "
    "sample changes its cluster.",
)
@opt.flag(
    "--private",
    "Keep no encoders, and remove those of earlier views; predict then does not work. "
    "docs/privacy.md says what the file still reveals.",
)
@dry_run
@opt.as_json
@opt.add_options(*opt.ROWS_AND_COLUMNS.values(), opt.rename, *opt.FILE_FLAGS.values())
@opt.add_options(opt.no_id, opt.similar_ids, opt.min_shared, opt.max_moved)
@click.option(
    "--unconnected",
    type=click.Choice(["pair", "separate"]),
    help="If no view connects two groups of samples: pair their clusters by size (pair), or keep "
    "them apart (separate).",
)
@opt.option(
    "--method",
    "NAME",
    "Method of a new state: viewfold, fcmvc (the paper's FCMVC-IV), or one that another package "
    "adds.",
    default="viewfold",
)
@opt.option("--seed", "N", "Random seed of a new state.", type=opt.Whole(0, 2**32 - 1), default=0)
@opt.option(
    "--quarantine",
    "FILE",
    "Write rows of a known view that look unlike earlier ones to this table, fold the others, and "
    "exit with code 15.",
    type=PATH,
)
@opt.keep
@opt.wait
@opt.uses_engine
def add(state: Path, file: File, **given: Any) -> None:
    """Fold a view, or more rows of a known view, into a state file.

    If there is no state file, add makes it. You do not need the view afterwards. It may be a CSV,
    TSV, Parquet, JSON lines, Excel, NumPy, MATLAB, AnnData, MuData or Matrix Market file; if
    a file holds several views, add folds all of them.
    """
    source = click.get_current_context().get_parameter_source
    for one in FOR_ALL if given["only_new"] else ():
        if source(one) is click.core.ParameterSource.COMMANDLINE:
            flag = f"--{one.replace('_', '-')}"
            raise click.UsageError(f"{flag} and --only-new do not go together. Leave one out.")
    if given["strict"] and given["quarantine"] is not None:
        raise click.UsageError("--strict and --quarantine do not go together. Leave one out.")
    _fold(state, file, given)


@opt.state
@opt.file_argument("File, folder or glob with all rows of the view.")
@opt.id_column
@opt.view
@dry_run
@opt.as_json
@opt.add_options(*opt.ROWS_AND_COLUMNS.values(), *opt.FILE_FLAGS.values())
@opt.add_options(opt.no_id, opt.similar_ids, opt.min_shared, opt.max_moved, opt.keep, opt.wait)
@opt.uses_engine
def refresh(state: Path, file: File, **given: Any) -> None:
    """Replace all rows of a known view, and learn the view again.

    Use it when status says that a view is stale, or when its columns have changed. Samples that had
    the view and are not in the file keep what they had. undo takes it back.
    """
    _fold(state, file, given | {"refresh": True})


def _fold(state: Path, file: File, given: dict[str, Any]) -> None:
    """Fold a file as the options say, and tell what happened."""
    as_json, most = given.pop("as_json"), given.pop("max_moved")
    ids, of_file, of_rows = opt.pop_reading(given)
    file = File(file.path, **of_file)
    options = replace(ReadOptions.of(**of_rows), rename=given.pop("rename", {}))
    how = FoldOptions(ids=ids, options=options, **given)
    with progress(f"reading {file}") as step:
        added = fold(state, file, how, step)
    model = added.model
    if added.chosen is not None:
        say(explain_number(added.chosen, model.n_clusters_))
    for done in added.folds:
        say(fold_line(done))
    for line in added.notes(state):
        note(line)
    if added.removed:
        are = "would be" if how.dry_run else "are"
        say(f"encoders of {', '.join(added.removed)} {are} removed, also from states to return to.")
    facts, found = {"file": str(state), **added.facts()}, None
    if most is not None:
        moved, known = added.count_moved()
        found = opt.too_many_moved(most, moved, known, added.folds)
        facts |= {"moved": moved, "known_before": known, "too_many_moved": found is not None}
    end = f" This was a dry run: {state} is as it was." if how.dry_run else ""
    tell(
        as_json,
        facts,
        f"{model.n_samples_:,} samples in {model.n_clusters} clusters; views folded: "
        f"{len(model.views_)} ({added.seconds:.1f} s).{end}",
    )
    if added.set_aside():
        raise click.exceptions.Exit(errors.QUARANTINED[1])
    opt.exit_if_moved(most, found)


# -- inspect

SCALES = {
    "zscore": "z-score of every feature",
    "table": "a table of variables (z-scores, logarithms of long tails, levels as they are)",
    "center": "centred (principal-component scores)",
    "l2": "rows of unit length (weights)",
    "tfidf": "tf-idf and rows of unit length (counts)",
    "counts": "divided by the depth of the row, log, z-score (counts)",
    None: "none",
}
SHOWN = 8  # names in a line


@opt.file_argument("File, folder or glob.")
@opt.option("--state", "STATE.vf", "Compare the file with this state.", type=opt.StatePath())
@opt.id_column
@opt.view
@opt.as_json
@opt.add_options(*opt.ROWS_AND_COLUMNS.values(), opt.rename, *opt.FILE_FLAGS.values())
@opt.no_id
@opt.similar_ids
def inspect(file: File, state: Path | None, as_json: bool, **given: Any) -> None:
    """Show how add would read a file, and which command to type next.

    It shows rows, ids, kinds of columns, missing cells and scaling; with --state, also which
    samples are known. Nothing is changed.
    """
    from viewfold.app.inspection import inspect_views
    from viewfold.store import load, store_of

    ids, of_file, of_rows = opt.pop_reading(given)
    file = File(file.path, **of_file)
    model = load(state) if state is not None and store_of(state).exists() else None
    with progress(f"reading {file}"):
        found = inspect_views(file, ids=ids, model=model, **given, **of_rows)
    stem = "".join(c if c.isalnum() or c in "-_." else "-" for c in found[0].name).strip("-.")
    target, new = state or Path(f"{stem or 'state'}.vf"), model is None
    views = []
    for one in found:
        line = compose_command(one, file, target, new=new)
        choices = [
            compose_command(one, file, target, new=new, choice=choice)
            for _, several in one.undecided
            for choice in several
        ]
        if as_json:
            views.append({**summarize_inspection(one, line), "choose": choices})
            continue
        lines = [f"next: {line}" if line else "next: correct the file; no option helps."]
        if any(choices):
            lines = [f"{'or' if i else 'either':<7}{text}" for i, text in enumerate(choices)]
        print_lines(*_describe(one, str(file)), *lines)
    if as_json:
        print_json({"file": str(file), "views": views})


def _describe(found: Inspection, file: str) -> list[str]:
    """Return what was found out, line by line, for a person."""
    written = ", ".join(f"{what} {sign!r}" for what, sign in found.written.items())
    lines = [f"{found.name} ({file}): {found.n_rows:,} rows" + (f"; {written}" if written else "")]
    rows = {"ids": _ids(found)}
    for title, kind in (("numbers", "number"), ("booleans", "boolean"), ("dates", "date")):
        rows[title] = _names([one.name for one in found.of_kind(kind)])
    rows["categories"] = "; ".join(
        f"{one.name} ({_names(one.levels, count=False)})"
        for one in found.of_kind("category")[:SHOWN]
    )
    rows["left out"] = "; ".join(
        f"{one.name} ({one.why or 'as asked'})" for one in found.of_kind("out")[:SHOWN]
    )
    rows["missing"] = _missing(found)
    if found.n_zero:
        left_out = f"{found.n_empty:,} of them are taken for absent samples"
        rows["zeros"] = f"{found.n_zero:,} rows of zeros, {left_out if found.n_empty else 'kept'}"
    rows["suspects"] = "; ".join(
        f"{value:g} in {_names(names, count=False)} may mark missing cells: "
        f"{option('empty_markers', [f'{value:g}', 'NA'])}"
        for value, names in found.suspects.items()
    )
    rows["scaling"] = SCALES.get(found.scale, str(found.scale)) if not found.refused else ""
    rows["samples"] = _samples(found.samples)
    lines += [f"  {title:<11}{text}" for title, text in rows.items() if text]
    lines += [f"  {'cleaned':<11}{one}" for one in found.cleaned]
    lines += [f"  {'asks':<11}{for_cli(one)}" for one in found.problems]
    lines += [f"  {'undecided':<11}{for_cli(one)}" for one, _ in found.undecided]
    lines += [f"  {'refused':<11}{for_cli(found.refused)}"] if found.refused else []
    lines += [f"  {'note':<11}{for_cli(one)}" for one in found.notes]
    return lines


def _ids(found: Inspection) -> str:
    others = [name for name in found.id_candidates if name != found.id_column]
    too = ", too" if found.has_ids else ""
    also = f"; {_names(others, count=False)} looks like ids{too}" if others else ""
    if found.id_column is not None:
        proposed = " (proposed)" if "ids" in found.proposed else ""
        return f"column {found.id_column!r}{proposed}{also}"
    if found.has_ids:
        return f"those that the file has{also}"
    return f"none: samples are known by their row number{also}"


def _names(names: Iterable[object], *, count: bool = True) -> str:
    names = list(names)
    shown = ", ".join(map(str, names[:SHOWN])) + (", …" if len(names) > SHOWN else "")
    return f"{len(names):,}: {shown}" if count and names else shown


def _missing(found: Inspection) -> str:
    if not found.n_missing:
        return "no cell"
    parts = ((one.name, 100 * one.n_missing / found.n_rows) for one in found.worst())
    worst = ", ".join(f"{name} {part:.3g} %" for name, part in parts)
    absent = f"; {found.n_absent:,} rows hold nothing" if found.n_absent else ""
    share = 100 * found.n_missing / found.n_cells
    return f"{found.n_missing:,} cells, {share:.3g} % of those in the file ({worst}){absent}"


def _samples(samples: SampleFacts | None) -> str:
    if samples is None:
        return ""
    text = f"{samples.n_known:,} known, {samples.n_new:,} new"
    if samples.n_similar:
        pairs = ", ".join(f"{new!r} is almost {known!r}" for new, known in samples.examples)
        text += f", of which {samples.n_similar:,} are nearly known ({pairs})"
    if samples.n_in_view:
        text += f"; {samples.n_in_view:,} are in this view already"
    if samples.fits:
        text += f"; the columns are those of {_names(samples.fits, count=False)}"
    return text


# -- the demo

BEGINNING = """\
Six views describe 1,797 handwritten digits. Each view lacks 30 % of the digits, comes in a file of
its own, and is deleted once it is folded. The true digits are known, so the demo can say how many
are in the right cluster: a view may lower that number, and later views raise it again.
"""

NEXT = """
Now with your own files: a row per sample, a column with ids, numbers, categories or dates in the
other columns. `viewfold inspect first.csv` shows how viewfold would read it.

  viewfold add my.vf first.csv --id COLUMN --clusters auto
  viewfold add my.vf second.csv --id COLUMN --clusters auto
  viewfold report my.vf -o report.html"""


@opt.argument("folder", type=PATH, default=".", help="Where to write the results.")
@opt.as_json
def demo(folder: Path, as_json: bool) -> None:
    """Try viewfold on six views of handwritten digits; write labels and a report."""
    with redirect_stdout(sys.stderr) if as_json else nullcontext():
        accuracy = _run_demo(folder)
    if as_json:
        print_json({"folder": str(folder), "accuracy": round(accuracy, 4)})


def _run_demo(folder: Path) -> float:
    """Fold the digits' views, leave ``demo.vf``, labels and a report; return the accuracy."""
    from viewfold import metrics, store
    from viewfold.datasets import load_digits_views
    from viewfold.store import queries

    folder.mkdir(parents=True, exist_ok=True)
    state, labels, page = (folder / name for name in ("demo.vf", "labels.csv", "report.html"))
    digits = load_digits_views()
    for path in (state, labels, page):
        if path.exists() and not (state.exists() and set(queries.names(state)) <= {*digits.views}):
            raise ValueError(f"{path} exists and is not the demo's. Choose another folder.")
    _print(BEGINNING)
    with TemporaryDirectory(prefix=".viewfold-demo-", dir=folder) as files:
        draft = Path(files, state.name)  # an earlier demo stays until this one is complete
        for path in _write_views(digits.views, len(digits.target), Path(files)):
            new = "" if draft.exists() else " --clusters 10"
            _print(f"$ viewfold add {state} {path.name} --id digit{new}")
            _run("add", draft, path, "--id", "digit", "--clusters", "10")
            path.unlink()
            model = store.load(draft)
            truth = digits.target[[int(name[1:]) for name in model.ids_]]
            accuracy = metrics.accuracy(truth, model.labels_)
            _print(f"  ({accuracy:.1%} in the right cluster)\n")
        with store.writing(state):
            draft.replace(state)
    _print(f"$ viewfold labels {state} -o {labels}")
    _run("labels", state, "-o", labels)
    _print(f"$ viewfold report {state} -o {page}")
    _run("report", state, "-o", page, "--title", "Handwritten digits")
    _print(NEXT)
    return accuracy


def _run(*words: str | Path) -> None:
    from viewfold.cli import app

    app([str(word) for word in words], standalone_mode=False)


def _print(text: str) -> None:
    print(text, flush=True)  # what commands say goes to standard error, and should stay in order


def _write_views(views: dict[str, Any], n: int, folder: Path) -> Iterator[Path]:
    """Write one view after the other to a file, without the samples that it lacks."""
    import pandas as pd

    from viewfold.datasets import missing

    gone = missing.at_random(n, len(views), ratio=0.3, random_state=0)
    for column, (name, X) in enumerate(views.items()):
        frame = pd.DataFrame(X).add_prefix(f"{name}_")
        frame.insert(0, "digit", [f"d{i:04}" for i in range(n)])
        path = folder / f"{name}.csv"
        frame[~gone[:, column]].to_csv(path, index=False)
        yield path
