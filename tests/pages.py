"""Pages of docs/ that show commands with their answers: run them, compare, write the answers.

`python tests/pages.py docs/tutorials/hospital.md` runs the commands of a page in an empty folder,
and writes what they say under them: for use after a message has changed. Look at the difference.
"""

from __future__ import annotations

import doctest
import io
import os
import re
import runpy
import shlex
import shutil
import sys
import tempfile
import textwrap
from contextlib import redirect_stderr, redirect_stdout
from itertools import zip_longest
from pathlib import Path

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
VARIES = [
    (r"\d\d\d\d-\d\d-\d\d \d\d:\d\d(?= UTC|  )", "DATE"),  # of the log
    (r"\d+\.\d s\b", "SECONDS"),
    (r"\d+\.\d MB", "BYTES"),
]


def steps(page: str) -> list[tuple[str, str]]:
    """Return the commands of a page, each with the answer that is shown."""
    found = [part for block in BLOCK.findall(page) for part in re.split(r"^\$ ", block, flags=re.M)]
    return [
        (command, said) for command, _, said in (part.partition("\n") for part in found if part)
    ]


def answer(command: str) -> tuple[int, str]:
    """Run a command in this process; return its exit code and all it says, as a terminal has it."""
    from viewfold import cli

    name, *words = shlex.split(command)
    said = io.StringIO()
    before, code = sys.argv, 0
    sys.argv = [name, *words]
    try:
        with redirect_stdout(said), redirect_stderr(said):
            if name == "python":
                sys.argv = words
                runpy.run_path(words[0], run_name="__main__")
            elif name == "head":
                number, path = words
                print("\n".join(Path(path).read_text().splitlines()[: -int(number)]))
            else:
                assert name == "viewfold", command
                cli.main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        sys.argv = before
    return code, said.getvalue()


def difference(shown: str, said: str) -> str:
    """Tell where a page and an answer differ, but for times, sizes, and the last digits."""
    for pattern, word in VARIES:
        shown, said = re.sub(pattern, word, shown), re.sub(pattern, word, said)
    for one, other in zip_longest(shown.split(), said.split(), fillvalue=""):
        if one != other and not _close(one, other):
            return f"the page has {one!r}, the command {other!r} in:\n{said}"
    return ""


def _close(one: str, other: str) -> bool:
    """Tell whether two words are the same number or CSV line, up to rounding of fractions."""
    number = re.compile(r"-?\d+\.\d+")
    if number.sub("", one) != number.sub("", other):
        return False
    pairs = zip(number.findall(one), number.findall(other), strict=True)
    return all(abs(float(a) - float(b)) < 0.02 for a, b in pairs)


def written(page: str) -> str:
    """Return a page with what its commands say now; long lines are broken as a terminal would."""

    def run(block: re.Match[str]) -> str:
        lines = []
        for command, _ in steps(block[0]):
            said = answer(command)[1].splitlines()
            lines += [f"$ {command}"]
            for line in said:
                wrapped = textwrap.wrap(
                    line,
                    110,
                    subsequent_indent="    ",
                    break_long_words=False,
                    break_on_hyphens=False,
                    replace_whitespace=False,
                )
                lines += wrapped if len(line) > 110 else [line]
        return "```console\n" + "\n".join(lines) + "\n```"

    if page.find(">>>") < page.find("```console"):  # commands read what Python has saved
        return BLOCK.sub(run, _with_results(page))
    return _with_results(BLOCK.sub(run, page))


def _with_results(page: str) -> str:
    """Return a page with what its Python examples print now."""
    names: dict[str, object] = {}
    parts = []
    for part in doctest.DocTestParser().parse(page):
        if isinstance(part, doctest.Example):
            said = io.StringIO()
            with redirect_stdout(said):
                exec(compile(part.source, "page", "single"), names)
            first, *more = part.source.splitlines()
            lines = [f">>> {first}", *(f"... {line}".rstrip() for line in more)]
            lines += [line.rstrip() for line in said.getvalue().splitlines()]
            part = "\n".join(lines) + "\n"
        parts.append(part)
    return "".join(parts)


if __name__ == "__main__":
    path = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        for script in path.parent.glob("*.py"):
            shutil.copy(script, folder)
        os.chdir(folder)
        sys.path.insert(0, folder)
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
        os.chdir(path.parent)
