"""Small functions of the page: numbers, names and colours as it writes them, what requests say."""

import numpy as np
import pytest

from viewfold.app.words import counted
from viewfold.errors import BusyError, InputError
from viewfold.state.names import Transfers
from viewfold.web import words
from viewfold.web.counts import as_flow
from viewfold.web.inputs import FOLD, checked, plain_name
from viewfold.web.jobs import ChangedError, status_of
from viewfold.web.report import in_script


def test_numbers_are_written_for_people() -> None:
    assert (counted(1, "view"), counted(1797, "sample")) == ("1 view", "1,797 samples")
    assert words.counted_sample(1797, 1797) == "1,797 samples"
    assert words.counted_sample(2000, 1_000_000) == "a sample of 2,000 of 1,000,000"
    numbers = (0, 1234, 9999, 12345, 100000, 999999, 2500000, 0.5)
    shown = ["0", "1,234", "9,999", "12.3k", "100k", "1M", "2.5M", "0.5"]
    assert [words.short(n) for n in numbers] == shown
    assert [words.rounded(n) for n in (0.123456, float("nan"), None)] == [0.1235, None, None]


def test_names_are_short_and_hide_nothing() -> None:
    names = {3: "late responders"}
    assert [words.label_cluster(c, names) for c in (2, 3)] == ["2", "3 late responders"]
    assert words.shorten("gene expression, tumour, batch 2024-07", 20) == "gene expre…h 2024-07"
    assert words.clip_name("gene expression, tumour") == "gene expression, tumour"
    assert len(words.clip_name("x" * 5000)) == 200
    assert words.printable("a\tb\x00c\u202ed") == "a b\\x00c\\u202ed"
    assert words.printable("\u2028\xa0\x1f|\u200d|\ufeff") == "   |\u200d|\\ufeff"


def test_ids_come_back_to_the_letter() -> None:
    assert [words.as_line(one) for one in (17, "p 17", "p\t17")] == ["17", "p 17", '"p\\t17"']
    assert words.from_line(words.as_line("p\t17")) == "p\t17"


def test_a_hundred_clusters_have_colours_of_their_own() -> None:
    assert [words.colour_of(c) for c in (0, 20, 40)] == ["#0072b2", "#73b1d5", "#00446b"]
    assert len({words.colour_of(c) for c in range(100)}) == 100


def test_clusters_that_are_taken_together_flow_as_one() -> None:
    moved = Transfers.of(np.array([0, 1, 2, -1]), np.array([0, 0, 1, 2]))
    assert as_flow(moved, alone=[0])[-2:] == [
        {"from": -1, "to": -2, "count": 1},
        {"from": 0, "to": 0, "count": 1},
    ]


def test_a_state_that_changed_and_one_that_is_written_have_other_statuses() -> None:
    assert status_of(BusyError("s.vf is being written")) == 423
    assert status_of(ChangedError("s.vf has changed")) == 409


def test_names_of_files_are_no_paths() -> None:
    given = "../../etc/labs.csv", "C:\\data\\labs.csv", ".."
    assert [plain_name(name) for name in given] == ["labs.csv", "labs.csv", "file"]


def test_values_of_requests_are_checked() -> None:
    said = {"upload": "9f", "clusters": "auto", "view": None}
    assert checked(said, FOLD, ("upload",)) == {"upload": "9f", "clusters": 0}
    with pytest.raises(InputError, match="'upload' is missing"):
        checked({}, FOLD, ("upload",))


def test_data_cannot_end_the_script_that_they_stand_in() -> None:
    assert in_script({"name": "</script>"}) == '{"name":"\\u003c/script\\u003e"}'
