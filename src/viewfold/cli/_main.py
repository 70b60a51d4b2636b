"""Run a command; whatever goes wrong becomes one line, or one object, and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
import warnings

import click

from viewfold import errors
from viewfold._util.replace import written
from viewfold.app.words import for_cli
from viewfold.cli.console import complain, note, notes, print_json, voice
from viewfold.cli.journal import journal


def run(app: click.Command) -> None:
    """Run the command line and end the process with an exit code."""
    warnings.showwarning = lambda message, *_, **__: note(_one_line(message))
    notes.clear()
    written.clear()
    journal.close()
    voice.quiet = False
    try:
        code = app(standalone_mode=False)
    except (Exception, KeyboardInterrupt) as error:
        code = _fail(error)
    code = code if isinstance(code, int) else 0
    journal.note("end", exit_code=code)
    sys.exit(code)


def _fail(error: BaseException) -> int:
    """Say what went wrong, to a person or a program; return the exit code."""
    code, exit_code = errors.code_of(error)
    message = for_cli(_one_line(error)) or type(error).__name__
    shown = f"viewfold: {message}"
    if isinstance(error, KeyboardInterrupt | click.Abort):
        code, exit_code = errors.INTERRUPTED
        message = "interrupted; nothing was changed." if not written else "interrupted."
        shown = f"viewfold: {message}"
    elif isinstance(error, click.ClickException):  # a wrong option or argument
        code, exit_code = errors.USAGE
        message = error.format_message()
        shown = message if "Usage:" in message else f"viewfold: {_one_line(message)} See --help."
    elif code == errors.ViewfoldError.code:
        traceback.print_exception(error)
        shown = f"viewfold: this is a defect of viewfold, please report it: {shown[10:]}"
    if written:
        names = ", ".join(os.path.basename(path) for path in written)
        shown += "" if shown.endswith(".") else "."  # errors of the system have no full stop
        shown += f" Written before that: {names}."
    facts = {"code": code, "exit_code": exit_code, "message": message, "written": written.copy()}
    journal.note("error", **facts)
    if "--json" in sys.argv[1:]:
        print_json({"error": facts})
    else:
        complain(shown)
    return exit_code


def _one_line(message: object) -> str:
    return " ".join(str(message).split())
