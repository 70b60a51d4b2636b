"""Pages of docs/: run what they show from top to bottom, compare, write the answers.

- A ``console`` block holds commands after ``$`` with what they say, which is compared.
- A ``python`` block is run: as doctest if it has ``>>>``, else as it is. ``sql`` is run by DuckDB.
- ``<!-- prepare … -->`` holds Python that readers do not see: files that a page takes for granted.
  `DOCS` is the folder of the pages.
- ``<!-- not run: why -->`` above a block says why it is not.
- ``<!-- run by: tests/test_x.py -->`` anywhere in a page says that another test runs it.

`python tests/pages.py docs/tutorials/hospital.md` runs a page in an empty folder and writes what
its blocks say under them: for use after a message has changed. Look at the difference.
Pages on real data need the folder of the data, in VIEWFOLD_DATA.
"""

from __future__ import annotations

import doctest
import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1] / "docs"
BLOCK = re.compile(
    r"^<!-- prepare\n(?P<prepare>.*?)^-->$"
    r"|^(?:<!-- not run: (?P<why>[^\n]+?) -->\n+)?```(?P<language>[^\n`]*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
RUN_BY = re.compile(r"^<!-- run by: ((?:research/)?tests/test_\w+\.py) -->$", re.MULTILINE)
SHELL = ("sh", "bash", "shell", "console")
TYPED = re.compile(r"^(\$ |viewfold |make |pip |python |docker |git )", re.MULTILINE)
VARIES = [
    (r"\d\d\d\d-\d\d-\d\dT\d\d:\d\d:[\d.]+\+00:00", "DATE"),  # of a journal
    (r"\d\d\d\d-\d\d-\d\d \d\d:\d\d(?= UTC|  )", "DATE"),  # of the log
    (r"\d+\.\d s\b", "SECONDS"),
    (r'"seconds": [\d.]+', '"seconds": SECONDS'),
    (r"\d+\.\d MB|\"bytes\":\s+\d+", "BYTES"),
]


@dataclass(frozen=True)
class Block:
    """A block of a page: what it is, what it holds, why it is not run, and where it stands."""

    kind: str
    text: str
    why: str
    line: int


def blocks(page: str) -> list[Block]:
    """Return the blocks of a page that are code, in order."""
    found = []
    for match in BLOCK.finditer(page):
        line = page[: match.start()].count("\n") + 1
        if match["prepare"] is not None:
            found.append(Block("prepare", match["prepare"], "", line))
        elif kind := _kind(match["language"].strip(), match["text"]):
            found.append(Block(kind, match["text"], match["why"] or "", line))
    return found


def _kind(language: str, text: str) -> str:
    """Return what a block is, if it is something that could be run."""
    if language in ("console", "python", "sql"):
        return language
    plain = language in ("", "text", "none")
    return "shell" if language in SHELL or (plain and TYPED.search(text)) else ""


def steps(page: str) -> list[tuple[str, str]]:
    """Return the commands of a page, each with the answer that is shown."""
    return [one for block in blocks(page) if block.kind == "console" for one in _typed(block.text)]


def _typed(text: str) -> list[tuple[str, str]]:
    found = [part for part in re.split(r"^\$ ", text, flags=re.M) if part]
    return [(command, said) for command, _, said in (part.partition("\n") for part in found)]


# ---- running ------------------------------------------------------------------------------------


def answer(command: str) -> tuple[int, str]:
    """Run a command; return its exit code and all it says, as a terminal has it."""
    name, *words = shlex.split(command)
    if name not in ("viewfold", "python", "head") or re.search(r"[|&<>;]( |$)", command):
        return _by_shell(command)
    from viewfold import cli

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
                cli.main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        sys.argv = before
    return code, said.getvalue()


def _by_shell(command: str) -> tuple[int, str]:
    """Run what needs a shell, with the commands of this Python on its path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def run_page(page: str) -> None:
    """Run the blocks of a page in this folder; raise where it shows something else."""
    names: dict[str, Any] = {"__name__": "page", "DOCS": DOCS}
    for block in blocks(page):
        if not block.why:
            _run(block, names)


def _run(block: Block, names: dict[str, Any]) -> None:
    where = f"line {block.line}"
    if block.kind == "console":
        for command, shown in _typed(block.text):
            _, said = answer(command)
            assert not difference(shown, said), f"{where}, $ {command}: {difference(shown, said)}"
    elif block.kind == "sql":
        import duckdb

        for statement in filter(str.strip, re.sub("--.*", "", block.text).split(";")):
            names.setdefault("_sql", duckdb.connect()).sql(statement)
    elif ">>>" in block.text and block.kind == "python":
        test = doctest.DocTestParser().get_doctest(block.text, names, where, None, block.line)
        results: list[str] = []
        runner = doctest.DocTestRunner(Checker())
        runner.run(test, out=results.append, clear_globs=False)
        names.update(test.globs)
        assert not runner.failures, "".join(results)
    else:
        with redirect_stdout(io.StringIO()):
            exec(compile(block.text, where, "exec"), names)


class Checker(doctest.OutputChecker):
    """Compare what Python prints as answers of commands are compared."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return not difference(want, got)


def python_differs(page: str, name: str, names: dict[str, Any] | None = None) -> tuple[int, str]:
    """Run the Python of a page alone; return how many examples it has, and what differs."""
    test = doctest.DocTestParser().get_doctest(page, names or {}, name, None, 0)
    said: list[str] = []
    outcome = doctest.DocTestRunner(Checker()).run(test, out=said.append)
    return outcome.attempted, "".join(said) if outcome.failed else ""


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


# ---- writing ------------------------------------------------------------------------------------


def written(page: str) -> str:
    """Return a page with what its blocks say now; long lines are broken as a terminal would."""
    names: dict[str, Any] = {"__name__": "page", "DOCS": DOCS}

    def run(match: re.Match[str]) -> str:
        found = blocks(match[0])
        if not found or found[0].why:
            return match[0]
        (block,) = found
        if block.kind == "console":
            return match[0].replace(block.text, _with_answers(block.text))
        if ">>>" in block.text and block.kind == "python":
            return match[0].replace(block.text, _with_results(block.text, names))
        _run(block, names)
        return match[0]

    return BLOCK.sub(run, page)


def _with_answers(text: str) -> str:
    lines = []
    for command, _ in _typed(text):
        lines.append(f"$ {command}")
        for line in answer(command)[1].splitlines():
            wrapped = textwrap.wrap(
                line,
                110,
                subsequent_indent="    ",
                break_long_words=False,
                break_on_hyphens=False,
                replace_whitespace=False,
            )
            lines += wrapped if len(line) > 110 else [line.rstrip()]
    return "\n".join(lines) + "\n"


def _with_results(text: str, names: dict[str, Any]) -> str:
    """Return a block of Python with what its examples print now."""
    parts = []
    for part in doctest.DocTestParser().parse(text):
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


def in_folder_of_page(path: Path, do: Callable[[], Any], folder: Path) -> Any:
    """Call something in a folder that has the scripts beside a page."""
    for script in path.parent.glob("*.py"):
        shutil.copy(script, folder)
    before = Path.cwd()
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    try:
        return do()
    finally:
        sys.path.remove(str(folder))
        os.chdir(before)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        source = Path(name).resolve()
        text = source.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as made:
            text = in_folder_of_page(source, lambda text=text: written(text), Path(made))
        source.write_text(text, encoding="utf-8")
