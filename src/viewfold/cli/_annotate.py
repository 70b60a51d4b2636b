"""`viewfold export STATE.vf cells.h5ad`: a copy of an AnnData or MuData file gets the clusters."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from viewfold.app import output as _output
from viewfold.app.states import folded_table
from viewfold.app.telling import without_doubtful
from viewfold.cli._files import ids_of
from viewfold.cli.console import progress, tell


def export_copy(
    state: Path,
    file: Path,
    output: Path | None,
    how: tuple[str, str | None, bool, float | None],
    as_json: bool,
) -> None:
    """Write an annotated copy of a file; `how`: key, column of ids, overwrite, min_confidence."""
    from viewfold.data.hdf5 import ENDINGS, copy_name
    from viewfold.data.source import optional

    key, id_column, overwrite, least = how
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
    target = Path(copy_name(file, key)) if output is None else output
    _output.check(target, (ending,), [state, file])
    optional("anndata", "bio", str(file))  # before a large file is copied
    known = _annotation(state, key, least)
    with (
        progress(f"copying {file}") as step,
        _output.replacing(target, (ending,), [state, file], private=state) as draft,
    ):
        shutil.copyfile(file, draft)
        step(f"writing {target}")
        counts = known.into_file(str(draft), id_column, overwrite, str(file))
    tell(
        as_json,
        {"file": str(target), "key": key, **counts._asdict()},
        f"{target} is written: {counts.known:,} samples have a cluster, {counts.unknown:,} are not "
        f"known, {counts.elsewhere:,} known ones are not in {file.name}.",
    )


def _annotation(state: Path, key: str, least: float | None) -> Any:
    from viewfold.data.hdf5 import Annotation
    from viewfold.store import queries

    table = without_doubtful(folded_table(state, queries.embedded(state)), least)
    ids = ids_of(table)
    embedding, clusters, confidence = (table[n] for n in ("embedding", "cluster", "confidence"))
    names = {}
    if "name" in table.column_names:
        pairs = zip(clusters.tolist(), table["name"], strict=True)
        names = {cluster: name for cluster, name in pairs if name is not None}
    return Annotation(ids, clusters, confidence, embedding, key, names)
