"""Whatever a method asks of an engine can be sent to another process: no task holds on to rows."""

import pytest
from engine_contract import Make, SmallBucketsContract
from test_engine import ESTIMATORS, _new_ids, folded, views

from viewfold.rows import using
from viewfold.rows.disk import SendingEngine, do, fold

dumps = pytest.importorskip("cloudpickle").dumps


class Here(SendingEngine):
    """Sends everything to itself."""

    n_workers = 1

    def spread(self, sent, parts, tell) -> bytes:
        done = [do(sent, part) for part in parts]
        tell(len(parts))
        return fold(sent, *done)


class TestSendingEngine(SmallBucketsContract):
    @pytest.fixture
    def make(self) -> Make:
        return lambda folder, n_buckets: Here(folder, n_buckets, dumps)


# Without scaling there is a task less.
@pytest.mark.parametrize("estimator", [e for e in ESTIMATORS if e.scale], ids=str)
def test_every_task_can_be_sent(estimator, tmp_path) -> None:
    fresh, ids = views("texts")[0][0][:3], _new_ids("texts")
    with Here(str(tmp_path), 3, dumps) as engine, using(engine):
        model = folded(estimator, "texts")
        n = model._state.n_samples
        model.predict(fresh, view="view0")
        model.extend(fresh, ids=ids, view="view0")
        model.forget(ids)
        model.recluster(3)
        assert model._state.n_samples == n
