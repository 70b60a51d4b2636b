"""A state file with the right digest and impossible content does not become a model."""

from pathlib import Path

import pytest
from crafted_files import again, craft, forge
from test_crafted_catalogue import CATALOGUE

import viewfold
from viewfold import StateFileError
from viewfold.errors import DamagedFileError

pytestmark = pytest.mark.usefixtures("every_check")

VALUES = {
    "two ids are one": ("UPDATE samples SET id = 's1' WHERE id = 's2'", "one id"),
    "no id": ("UPDATE samples SET id = NULL WHERE id = 's2'", "no 'id'"),
    "no label": ("UPDATE samples SET label = NULL WHERE id = 's2'", "no 'label'"),
    "no history": ("UPDATE samples SET history = NULL WHERE id = 's2'", "no 'history'"),
    "a gap in a history": (
        "UPDATE samples SET history = [0, NULL, label]::INTEGER[3] WHERE id = 's2'",
        "no 'history'",
    ),
    "another label than the history's": (
        "UPDATE samples SET label = (label + 1) % 4",
        "last of their history",
    ),
    "a label beyond the clusters": (
        "UPDATE samples SET label = 4, history = [4, 4, 4]::INTEGER[3] WHERE id = 's2'",
        "4 clusters",
    ),
    "a large label": (
        "UPDATE samples SET label = 2147483647, history = [0, 0, 2147483647]::INTEGER[3]",
        "4 clusters",
    ),
    "a label below zero": (
        "UPDATE samples SET label = -1, history = [0, 0, -1]::INTEGER[3] WHERE id = 's2'",
        "4 clusters",
    ),
    "a history below -1": (
        "UPDATE samples SET history = [-2, 0, label]::INTEGER[3] WHERE id = 's2'",
        "less than -1",
    ),
    "an embedding that is no number": (
        "UPDATE samples SET embedding = list_transform(embedding, lambda x: 'nan'::DOUBLE)"
        "::DOUBLE[{r}] WHERE id = 's2'",
        "not finite",
    ),
    "an infinite embedding": (
        "UPDATE samples SET embedding = list_transform(embedding, lambda x: '-inf'::DOUBLE)"
        "::DOUBLE[{r}] WHERE id = 's2'",
        "not finite",
    ),
    "a confidence of 2": ("UPDATE samples SET confidence = 2 WHERE id = 's2'", "confidence"),
    "a confidence that is no number": (
        "UPDATE samples SET confidence = 'nan' WHERE id = 's2'",
        "confidence",
    ),
    "a short history": (
        again("samples", "history[2:]::INTEGER[2] AS history"),
        "each of the views",
    ),
    "more views seen than views": (
        again("samples", "[true, true, true, true]::BOOLEAN[4] AS views_seen"),
        "each of the views",
    ),
    "a view less": ("DELETE FROM views WHERE fold = 3", "each of the views"),
    "a log with a gap": ("DELETE FROM log WHERE entry = 2", "log are not 1, 2, 3"),
    "a log that counts twice": ("UPDATE log SET entry = 1", "log are not 1, 2, 3"),
    "a log without numbers": ("UPDATE log SET entry = NULL", "log are not 1, 2, 3"),
    "samples of an entry that is not there": ("UPDATE samples SET added = 9", "samples came by"),
    "views of an entry that is not there": ("UPDATE views SET entry = 9", "views were folded by"),
    "a time that is none": ("UPDATE log SET time = NULL", "damaged"),
    "a map that does not fit": (
        "UPDATE arrays SET shape = [1, octet_length(data) // 8] WHERE name = 'turn/2'",
        "map of earlier encoders at view 'scan' does not fit",
    ),
    "a map of numbers that are none": (
        "UPDATE arrays SET data = from_hex(repeat('FF', octet_length(data))) WHERE name = 'turn/2'",
        "map of earlier encoders at view 'scan' is not finite",
    ),
    "clusters in columns that the embedding lacks": (
        "UPDATE arrays SET data = (data::BLOB || data::BLOB), shape = [2 * shape[1], shape[2]] "
        "WHERE name = 'projection'",
        "more columns than the embedding",
    ),
    "views without samples": (
        "DELETE FROM samples; UPDATE meta SET value = '0' WHERE key = 'n_samples'",
        "it has views, but no samples",
    ),
    "no views": ("DELETE FROM views", "numbered"),
    "views that are numbered otherwise": ("UPDATE views SET fold = fold + 1", "numbered"),
    "two views of one name": ("UPDATE views SET name = 'labs'", "one name"),
    "a view without a name": ("UPDATE views SET name = NULL WHERE fold = 2", "one name"),
    "less than no samples": ("UPDATE views SET n_samples = -1 WHERE fold = 2", "n_samples"),
    "no number of features": ("UPDATE views SET n_features = NULL", "n_features"),
    "no objective": ("UPDATE views SET objective = NULL", "objective"),
    "names of other features": ("UPDATE views SET features = ['x', 'y']", "name for each"),
    "fewer features than the encoder has": (
        "UPDATE views SET n_features = 5 WHERE fold = 2",
        "does not fit the rest in the encoder of view 'scan'",
    ),
    "one sample more": ("UPDATE meta SET value = '161' WHERE key = 'n_samples'", "160 samples"),
    "a sample of which nothing is known": (
        "UPDATE meta SET value = '1000000000000' WHERE key = 'n_samples'",
        "160 samples",
    ),
    "a number of samples that is none": (
        "UPDATE meta SET value = '\"many\"' WHERE key = 'n_samples'",
        "160 samples",
    ),
    "another kind of ids": ("UPDATE meta SET value = '\"int\"' WHERE key = 'ids'", "ids"),
    "ids that are mixed and do not say which": (
        "UPDATE meta SET value = '\"mixed\"' WHERE key = 'ids'",
        "ids",
    ),
    "rows below zero": ("UPDATE meta SET value = '-5' WHERE key = 'length'", "row number"),
    "rows that are no number": ("UPDATE meta SET value = '\"x\"' WHERE key = 'length'", "row num"),
    "a version that is no number": ("UPDATE meta SET value = '\"x\"' WHERE key = 'version'", "'x'"),
    "version 0": ("UPDATE meta SET value = '0' WHERE key = 'version'", "format is 0"),
    "a key twice": ("INSERT INTO meta FROM meta", "twice"),
    "a key without a value": ("UPDATE meta SET value = NULL WHERE key = 'ids'", "without a value"),
    "JSON of a thousand brackets": (
        "UPDATE meta SET value = repeat('[', 50000) WHERE key = 'params'",
        "too deeply",
    ),
    "JSON of many megabytes": (
        "UPDATE meta SET value = '\"' || repeat('x', 64000000) || '\"' WHERE key = 'params'",
        "more than a file of",
    ),
    "quotes without end": (
        "UPDATE meta SET value = repeat('\\\"', 25000) || '\\' WHERE key = 'params'",
        "damaged",
    ),
    "parameters that are a list": (
        "UPDATE meta SET value = '[]' WHERE key = 'params'",
        "parameters",
    ),
    "a parameter that is a list": (
        "UPDATE meta SET value = '{{\"n_clusters\": [4]}}' WHERE key = 'params'",
        "is a list",
    ),
    "a parameter nobody knows": (
        'UPDATE meta SET value = \'{{"n_clusters": 4, "hook": "x"}}\' WHERE key = \'params\'',
        "hook",
    ),
    "a parameter out of range": (
        "UPDATE meta SET value = '{{\"n_clusters\": -4}}' WHERE key = 'params'",
        "n_clusters",
    ),
    "a random state of too few words": (
        'UPDATE meta SET value = \'{{"random_state": {{"RandomState": '
        '["MT19937", [1], 1, 0, 0.0]}}}}\' '
        "WHERE key = 'params'",
        "damaged",
    ),
    "a method nobody knows": ("UPDATE meta SET value = '\"Popen\"' WHERE key = 'method'", "Popen"),
    "an array of fewer bytes": (
        "UPDATE arrays SET data = data[8:] WHERE name = 'centers'",
        "as many bytes",
    ),
    "a scatter of another shape": (
        "UPDATE arrays SET shape = [3, 1] WHERE name = 'scatter'",
        "scatter of its clusters",
    ),
    "a scatter below zero": (
        "UPDATE arrays SET data = from_hex(repeat('000000000000F0BF', 3)) WHERE name = 'scatter'",
        "scatter of its clusters",
    ),
    "an array without bytes": (
        "UPDATE arrays SET data = NULL WHERE name = 'centers'",
        "as many bytes",
    ),
    "an array of 10¹² numbers": (
        "UPDATE arrays SET shape = [1000000, 1000000] WHERE name = 'centers'",
        "as many bytes",
    ),
    "an array of bytes without a shape": (
        "UPDATE arrays SET shape = NULL WHERE name = 'centers'",
        "'centers' has no shape",
    ),
    "a shape below zero": ("UPDATE arrays SET shape = [-1, -4] WHERE name = 'centers'", "shape"),
    "a shape with a gap": ("UPDATE arrays SET shape = [NULL] WHERE name = 'centers'", "shape"),
    "thirty axes": (
        "UPDATE arrays SET shape = list_transform(range(30), lambda x: 1) WHERE name = 'centers'",
        "shape",
    ),
    "an array of objects": ("UPDATE arrays SET dtype = 'object' WHERE name = 'centers'", "object"),
    "two arrays of one name": ("INSERT INTO arrays FROM arrays", "one name"),
    "no centres": ("DELETE FROM arrays WHERE name = 'centers'", "damaged"),
    "centres that are no numbers": (
        "UPDATE arrays SET data = from_hex(repeat('FF', octet_length(data))) "
        "WHERE name = 'centers'",
        "do not fit",
    ),
    "centres of other directions": (
        "UPDATE arrays SET shape = [1, shape[3], shape[2]] WHERE name = 'centers'",
        "clusters",
    ),
    "a projection that is turned": (
        "UPDATE arrays SET shape = [shape[2], shape[1]] WHERE name = 'projection'",
        "do not fit",
    ),
    "a class nobody knows": (
        "UPDATE arrays SET type = 'Popen' WHERE name = 'encoder/1'",
        "does not know: 'Popen/1'",
    ),
    "a part of another class": (
        "UPDATE arrays SET type = 'landmarks', version = 1 WHERE name = 'encoder/1'",
        "encoder of view 'labs'",
    ),
    "an encoder without directions": (
        "DELETE FROM arrays WHERE name = 'encoder/1/encode/project/weights'",
        "encoder of view 'labs'",
    ),
    "an encoder of turned directions": (
        "UPDATE arrays SET shape = [1, shape[1] * shape[2]] "
        "WHERE name = 'encoder/2/encode/project/weights'",
        "does not fit the rest in the encoder of view 'scan'",
    ),
    "an encoder that ends elsewhere": (
        "UPDATE arrays SET shape = [shape[1] * shape[2], 1] WHERE name = 'encoder/2/encode/output'",
        "does not fit the rest in the encoder of view 'scan'",
    ),
    "an encoder of numbers that are none": (
        "UPDATE arrays SET data = from_hex(repeat('FF', octet_length(data))) "
        "WHERE name = 'encoder/2/encode/factor'",
        "not finite in the encoder",
    ),
    "an encoder of whole numbers": (
        "UPDATE arrays SET dtype = 'int64' WHERE name = 'encoder/2/encode/linear'",
        "in the encoder of view 'scan'",
    ),
    "an encoder that cannot fill": (
        "DELETE FROM arrays WHERE name = 'encoder/2/fill' OR name LIKE 'encoder/2/fill/%'",
        "no filled.fill in the encoder of view 'scan'",
    ),
    "a filling of other features": (
        "UPDATE arrays SET shape = [shape[1] - 1], data = data[9:] "
        "WHERE name = 'encoder/2/fill/mean'",
        "does not fit the rest in the encoder of view 'scan'",
    ),
    "landmarks without coordinates": (
        "DELETE FROM arrays WHERE name = 'encoder/2/encode/landmarks/coordinates'",
        "encoder of view 'scan'",
    ),
}


def test_at_least_forty_kinds_are_tried() -> None:
    assert len(CATALOGUE) + len(VALUES) >= 40


@pytest.fixture(scope="module")
def width(good_file: Path) -> int:
    return int(viewfold.load(good_file).embedding_.shape[1])


@pytest.mark.parametrize("kind", VALUES)
def test_a_file_with_the_right_digest_and_wrong_content_is_refused(
    crafted_file: Path, width: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements, message = VALUES[kind]
    craft(crafted_file, *statements.format(r=width).split("; "))
    forge(monkeypatch)
    with pytest.raises(StateFileError, match=message) as error:
        viewfold.load(crafted_file)
    assert type(error.value) in (DamagedFileError, StateFileError)


def test_minus_one_in_a_history_is_a_sample_that_was_not_there_yet(
    crafted_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    craft(crafted_file, "UPDATE samples SET history = [-1, 0, label]::INTEGER[3] WHERE id = 's2'")
    forge(monkeypatch)
    model = viewfold.load(crafted_file)
    (found,) = model._fitted.history[model.ids_ == "s2"]
    assert found[:2].tolist() == [-1, 0]
