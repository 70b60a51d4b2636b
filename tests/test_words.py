"""Messages of the library in the words of the command line."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewfold.app.words import OPTIONS, for_cli, option

LETTERS = "aZ19 _-='\"`\\/[](){}<>,.;:%$&|*?#!~^@+…\t\n\r\0éß中\u202e\U0001f600"
"""All that is special somewhere; all of Unicode takes seconds to make."""

MESSAGES = {
    "Say ids='patient' if it holds them, or ids=False.": (
        "Say --id patient if it holds them, or --no-id."
    ),
    "Leave them out with drop=['a', 'b, c'].": "Leave them out with --drop 'a,\"b, c\"'.",
    "Otherwise say encoding=….": "Otherwise say --encoding ….",
    "It has no encoder (keep_encoders=False)": "It has no encoder (--private)",
    "fewer than n_clusters=3: it can": "fewer than --clusters 3: it can",
    "overwrite=True replaces it": "--overwrite replaces it",
    'ids="O\'Brien"': '--id "O\'Brien"',
    "say ids='' if it holds the ids": "say --id '' if it holds the ids",
    "what can be is entry 2: viewfold.undo('a.vf', entry=2).": (
        "what can be is entry 2: viewfold undo a.vf --entry 2."
    ),
    "There is no view yet. Call fit or partial_fit.": (
        "There is no view yet. Add one with viewfold add."
    ),
    # What others wrote stays as it is.
    "column 'ids=False' holds \"drop=['a']\"": "column 'ids=False' holds \"drop=['a']\"",
    "data/ids=3/part.csv: drop=3.csv is no table": "data/ids=3/part.csv: drop=3.csv is no table",
    "ids=np.str_('a'), drop=[a], columns=": "ids=np.str_('a'), drop=[a], columns=",
    "the file's column 'view=1' isn't it": "the file's column 'view=1' isn't it",
}


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_says_what_one_types(message: str) -> None:
    assert for_cli(message) == MESSAGES[message]


@given(st.sampled_from(OPTIONS), st.text(LETTERS, min_size=1), st.text(LETTERS))
def test_what_is_proposed_can_be_typed_and_names_stay(name: str, value: str, column: str) -> None:
    said = for_cli(f"Column {column!r}: say {name}={value!r}.")
    assert said == f"Column {column!r}: say {option(name, value)}."
    assert shlex.split(option(name, value))[1:] == [value]


@given(st.text(LETTERS))
def test_no_message_is_too_strange(message: str) -> None:
    for_cli(message)
