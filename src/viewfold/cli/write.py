"""Commands that show a state elsewhere: a table or an annotated copy, a report, the page."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from viewfold._util.arguments import size_in_bytes
from viewfold._util.file import File
from viewfold.app import output as tables
from viewfold.app.states import check_table, load_folded
from viewfold.app.summaries import mark_doubtful
from viewfold.cli import options as opt
from viewfold.cli.command import PATH
from viewfold.cli.console import complain, progress, say, tell

ENCODER = ".vfe"  # the ending of encoder files
KEY = "viewfold"  # the name of new columns of an AnnData or MuData, unless another one is given


@opt.state
@opt.argument(
    "file",
    metavar="FILE",
    type=PATH,
    required=False,
    help="AnnData or MuData file, of which a copy gets the clusters.",
)
@click.option(
    "-o",
    "--output",
    type=PATH,
    help="File to write: .parquet, .arrow, .csv, .tsv, .xlsx or .jsonl; with FILE, the "
    "copy (by default FILE-viewfold.h5ad).",
)
@opt.option("--id id_column", "COLUMN", "Column of obs that holds the sample ids.")
@opt.option("--key", "NAME", "Name of the new columns of obs.", default=KEY)
@opt.flag("--overwrite", "Replace columns of obs that have this name.")
@opt.option(
    "--encoder",
    "FILE.vfe",
    "Write only what predictions need, without any sample; viewfold.load_encoder reads it.",
    type=PATH,
)
@opt.raw
@opt.min_confidence
@opt.as_json
def export(
    state: Path,
    file: Path | None,
    output: Path | None,
    id_column: str | None,
    key: str,
    overwrite: bool,
    encoder: Path | None,
    raw: bool,
    min_confidence: float | None,
    as_json: bool,
) -> None:
    """Export all results of every sample to a table, an AnnData or a MuData file.

    A table has cluster, confidence, views, history and embedding. A copy of FILE has clusters and
    confidence in its obs, and the embedding in its obsm; FILE stays as it is. With --encoder, no
    sample is written: only what a service needs to predict clusters of new rows.
    """
    from viewfold.store import queries

    if encoder is not None:
        others = (file, output, id_column, min_confidence, key != KEY or overwrite or raw or None)
        if any(one is not None for one in others):
            raise ValueError("--encoder goes with --json only. Leave the rest out.")
        tables.check(encoder, (ENCODER,), [state])
        with progress(f"reading {state}"):
            model = load_folded(state)
            model.export_encoder(encoder)
        views = [record.name for record in model.views_ if record.encoder is not None]
        size = encoder.stat().st_size
        facts = {"file": str(encoder), "bytes": size, "views": views}
        said = f"{encoder} is written ({size / 1e6:.1f} MB): it predicts from {', '.join(views)}."
        tell(as_json, facts, said)
        return
    if file is not None:
        from viewfold.data.hdf5 import Annotation

        target = _copy_target(state, file, output, key)
        table = check_table(state, queries.embedded(state))
        table = mark_doubtful(table, min_confidence)
        clusters, confidence = table["cluster"], table["confidence"]
        names = {}
        if "name" in table.column_names:
            pairs = zip(clusters.tolist(), table["name"], strict=True)
            names = {cluster: name for cluster, name in pairs if name is not None}
        ids, embedding = tables.ids_of(table), table["embedding"]
        known = Annotation(ids, clusters, confidence, embedding, key, names)
        inputs, endings = [state, file], (file.suffix.lower(),)
        with (
            progress(f"copying {file}") as step,
            tables.replacing(target, endings, inputs, private=state) as draft,
        ):
            shutil.copyfile(file, draft)
            step(f"writing {target}")
            counts = known.into_file(str(draft), id_column, overwrite, str(file))
        tell(
            as_json,
            {"file": str(target), "key": key, **counts._asdict()},
            f"{target} is written: {counts.known:,} samples have a cluster, {counts.unknown:,} are "
            f"not known, {counts.elsewhere:,} known samples are not in {file.name}.",
        )
        return
    if id_column is not None or overwrite or key != KEY:
        raise ValueError(
            "--id, --key and --overwrite are about a copy of an AnnData or MuData file, and none "
            "is named. Leave them out, or name the file."
        )
    if output is None:
        raise ValueError(
            "Where to? Name a table with -o, or an AnnData or MuData file of which a copy gets the "
            "clusters."
        )
    tables.check(output, tables.TABLES, [state])
    with progress(f"reading {state}") as step:
        table = mark_doubtful(check_table(state, queries.everything(state)), min_confidence)
        step(f"writing {output}")
        tables.write_table(table, output, [state], private=state, raw=raw)
    columns = tables.names(table)[1:]
    tell(
        as_json,
        {"file": str(output), "samples": len(table), "columns": columns},
        f"{output} is written: {len(table):,} samples, {len(columns)} columns.",
    )


def _copy_target(state: Path, file: Path, output: Path | None, key: str) -> Path:
    """Return where an annotated copy goes, if it can be written."""
    from viewfold.data.hdf5 import ENDINGS
    from viewfold.data.source import optional

    ending = file.suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(
            f"{file} is no AnnData (.h5ad) or MuData (.h5mu). To write a table, name it with -o."
        )
    if not file.is_file():
        raise FileNotFoundError(
            f"{file}: there is no such file. Name the AnnData or MuData of which a copy gets the "
            "clusters."
        )
    target = file.with_stem(f"{file.stem}-{key}") if output is None else output
    tables.check(target, (ending,), [state, file])
    optional("anndata", "bio", str(file))  # before a large file is copied
    return target


@opt.state
@click.option("-o", "--output", type=PATH, default="report.html", help="Page to write.")
@click.option("--title", help="Title of the page.")
@opt.flag("--ids", "Put the sample ids into the page, where people can search them.")
@opt.option(
    "--metadata",
    "FILE",
    "Table about the samples, with columns to colour the map by.",
    type=opt.FILE,
)
@opt.option("--metadata-id", "COLUMN", "Column of that table that holds the sample ids.")
@opt.option(
    "--metadata-columns",
    "A,B,…",
    "Columns to colour the map by; all by default.",
    callback=opt.split_names,
)
@opt.option(
    "--since",
    "ENTRY",
    "Show what changed since this entry of the log; by default, since the report that this one "
    "replaces.",
    type=int,
)
@opt.as_json
def report(
    state: Path,
    output: Path,
    title: str | None,
    ids: bool,
    metadata: File | None,
    metadata_id: str | None,
    metadata_columns: list[str] | None,
    since: int | None,
    as_json: bool,
) -> None:
    """Write an HTML page about the clusters, which opens offline.

    It shows the clusters, what makes them and what changed. If it replaces a report, it shows who
    is new and who moved since then.
    """
    if metadata is None and (metadata_id or metadata_columns):
        raise ValueError("--metadata-id and --metadata-columns say something about --metadata.")
    tables.check(output, tables.PAGES, [state] if metadata is None else [state, metadata])
    from viewfold.web.report import last_report, write

    with progress(f"reading {state}") as step:
        model = load_folded(state)
        entry = last_report(output, model) if since is None else since
        entries = [event.entry for event in model._fitted.log]
        if since is not None and since not in entries:
            raise ValueError(
                f"--since {since}: the log has the entries {entries[0]} to {entries[-1]}. "
                "viewfold history lists them."
            )
        table = None
        if metadata is not None:
            from viewfold.web.metadata import read_metadata

            table = read_metadata(metadata, metadata_id, metadata_columns)
        step(f"drawing {output}")
        named = title or Path(state).stem
        private = state if ids else None
        write(model, output, title=named, ids=ids, metadata=table, since=entry, private=private)
    size = output.stat().st_size
    compared = "" if entry is None else f", compared with entry {entry}"
    tell(
        as_json,
        {"file": str(output), "bytes": size, "ids": ids, "since": entry},
        f"{output} is written ({size / 1e6:.1f} MB{compared}).",
    )


@opt.state
@opt.option(
    "--port", "N", "Port to listen on; 0 takes any free one.", type=opt.Whole(0, 65535), default=0
)
@opt.flag("--no-browser", "Do not open a browser; only print the address.")
@opt.option(
    "--max-upload", "SIZE", "Size of the largest file that you can drop on the page.", default="2G"
)
@opt.keep
@opt.wait
@opt.uses_engine
def ui(
    state: Path, port: int, no_browser: bool, max_upload: str, keep: int | None, wait: float
) -> None:
    """Open a state in the browser: drop files to fold them, see who moved, undo.

    Only this machine can reach the page, and only with the address that is printed. Ctrl-C ends it.
    """
    from viewfold.web.server import serve
    from viewfold.web.session import Settings

    limit = size_in_bytes(max_upload, f"--max-upload {max_upload}")

    def ready(address: str) -> None:
        complain(f"{state} is shown at {address}")
        say("Whoever has this address can change the state. Ctrl-C ends it.")

    serve(state, Settings(keep, wait, limit), port=port, ready=ready, browser=not no_browser)
