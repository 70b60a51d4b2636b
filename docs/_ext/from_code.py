"""Parts of the reference that are written by the program itself: names, commands, codes, answers.

A page says where with a comment, ``<!-- made: errors -->``; the text takes its place when the site
is built, so that no page can be behind the code. Everything here is plain text without Sphinx.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parents[1]
MARK = re.compile(r"^<!-- made: (\w+)((?: [\w.]+)*) -->$", re.MULTILINE)
OUTSIDE = {"CHANGELOG": "changelog", "CONTRIBUTING": "contributing", "SECURITY": "security"}
"""Pages beside docs/, and what they are called on the site."""


def filled(page: str) -> str:
    """Return a page with what is made by the program in the places that it names."""
    return MARK.sub(lambda found: MAKERS[found[1]](*found[2].split()), page)


def outside(name: str) -> str:
    """Return a page from beside docs/, with links that hold here."""
    page = (HERE.parent / f"{name}.md").read_text(encoding="utf-8").replace("](docs/", "](")
    for other, here in {**OUTSIDE, "README": "index"}.items():
        page = page.replace(f"]({other}.md", f"]({here}.md")
    return page


# ---- names --------------------------------------------------------------------------------------


def public_names(module: str) -> list[str]:
    """Return the public names of a module: `__all__`, or what it defines without an underscore.

    Constants count if the module has nothing else, as `viewfold._util.constants` does.
    """
    made = importlib.import_module(module)
    if hasattr(made, "__all__"):
        return sorted(made.__all__, key=str.lower)
    own = [name for name in vars(made) if not name.startswith("_")]
    things = [name for name in own if getattr(getattr(made, name), "__module__", "") == module]
    return sorted(things or [name for name in own if name.isupper()], key=str.lower)


def api(module: str, *names: str) -> str:
    """Return directives that document names of a module (all public ones if none is given)."""
    made = importlib.import_module(module)
    chosen = list(names) or public_names(module)
    things = {name: _found(made, name) for name in chosen}
    documented = {name: it for name, it in things.items() if not inspect.ismodule(it)}
    constants = [name for name, it in documented.items() if not callable(it)]
    callables = [name for name in documented if name not in constants]
    opening = [f".. automodule:: {module}", "   :no-members:"]  # what the module itself says
    if names:
        opening = [f".. currentmodule:: {module}"]
    lines = ["```{eval-rst}", *opening, ""]
    if len(documented) > 1:
        lines += [".. autosummary::", ""]
        lines += [f"   {name}" for name in (*callables, *constants)]
        lines += [""]
    for name in callables:
        lines += _documented(module, name, documented[name])
    for name in constants:
        lines += [f".. autodata:: {module}.{name}", ""]
    return "\n".join([*lines, "```"])


def _found(module: Any, name: str) -> Any:
    """Return what a name stands for; a class without its package is one that Sphinx imitates."""
    try:
        return getattr(module, name)
    except ImportError:
        return type(name, (), {})


def _documented(module: str, name: str, thing: Any) -> list[str]:
    if not inspect.isclass(thing):
        return [f".. autofunction:: {module}.{name}", ""]
    # Fields that no section of the docstring describes have comments of their own (``#:``).
    described = "Attributes\n" in (thing.__doc__ or "") or "Parameters\n" in (thing.__doc__ or "")
    fields = getattr(thing, "__dataclass_fields__", {}) if not described else {}
    members = ", ".join([*fields, *own_members(thing)])
    options = [f"   :members: {members}"] if members else []
    return [f".. autoclass:: {module}.{name}", *options, ""]


def own_members(kind: type) -> list[str]:
    """Return the methods and properties of a class that viewfold documents."""
    found = []
    for name, member in inspect.getmembers_static(kind):
        home = next((base for base in kind.__mro__ if name in vars(base)), object)
        is_ours = home.__module__.startswith("viewfold")
        plain = getattr(member, "__func__", member)
        can = inspect.isfunction(plain) or isinstance(member, property)
        if is_ours and can and not name.startswith("_") and inspect.getdoc(getattr(kind, name)):
            found.append(name)
    return found


# ---- command line -------------------------------------------------------------------------------


def commands() -> Iterator[tuple[str, Any]]:
    """Yield the name of every command, as one types it, with the command."""
    from viewfold.cli import app

    for name, command in app.commands.items():
        yield from _below(name, command)


def _below(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield name, command
        return
    for sub, other in command.commands.items():
        yield from _below(f"{name} {sub}", other)


def commandline() -> str:
    """Return a section for each command: what it does, its arguments and options, an example."""
    parts = []
    shared = ("--quiet", "--log", "--help")
    group = ""
    for name, command in commands():
        if command.group != group:
            group = command.group
            parts.append(f"## {group}")
        summary, _, more = inspect.cleandoc(command.help or "").partition("\n\n")
        arguments = [one for one in command.params if one.param_type_name == "argument"]
        with command.make_context(name, [], resilient_parsing=True) as context:
            sections = {
                title: [one for one in options if one.opts[0] not in shared]
                for title, options in command.sections(context).items()
            }
        first = sections.pop("Options")
        shown = " ".join(_argument(one) for one in arguments)
        parts += [f"### `viewfold {name}`", " ".join(summary.split()), " ".join(more.split())]
        parts += [
            f"```sh\nviewfold {name} {'[OPTIONS] ' if first else ''}{shown}".rstrip() + "\n```"
        ]
        for title, rows in {"": [*arguments, *first], **sections}.items():
            if rows:
                made = ["| | what it is | unless given |", "|---|---|---|", *map(_row, rows)]
                parts += [f"**{title}**" if title else "", "\n".join(made)]
        if command.epilog:
            example = command.epilog.removeprefix("Example: ")
            parts.append(f"For example: `{example}`")
    return "\n\n".join(part for part in parts if part)


def _argument(one: Any) -> str:
    name = one.metavar or one.name.upper()
    many = name + (" …" if one.nargs != 1 and not name.endswith("…") else "")
    return many if one.required else f"[{many}]"


def _row(one: Any) -> str:
    is_option = one.param_type_name == "option"
    name = ", ".join(one.opts) if is_option else _argument(one)
    kind = _kind(one) if is_option else ""
    default = one.to_info_dict()["default"]
    said = "" if default is None or default is False else f"`{default}`"
    cells = (
        f"`{' '.join([name, kind]).strip()}`",
        one.help or "",
        "required" if one.required else said,
    )
    return "| " + " | ".join(cell.replace("|", "\\|").replace("<", "\\<") for cell in cells) + " |"


def _kind(one: Any) -> str:
    """Return what follows an option: its metavar, the values it may have, or its name."""
    if one.metavar or one.is_flag:
        return one.metavar or ""
    return "|".join(getattr(one.type, "choices", [one.name.upper()]))


# ---- extras -------------------------------------------------------------------------------------

BRINGS = {
    "all": "everything above but Spark",
    "bio": "AnnData and MuData: `.h5ad`, `.h5mu`, `model.annotate`",
    "dask": "folds on a Dask cluster, dask DataFrames and arrays",
    "excel": "`.xlsx` files",
    "hdf5": "MATLAB 7.3 files",
    "notebook": "a widget in notebooks",
    "parquet": "Parquet and Arrow written, `.zst`, `.vfd` folders; CSV several times as fast",
    "plots": "figures",
    "remote": "files at `s3://…`, `https://…`, `az://…`",
    "spark": "folds on a Spark cluster, Spark DataFrames (needs Java)",
    "ui": "the local web page, `viewfold ui`",
}


def extras() -> str:
    """Return a table of what can be installed beside the core, from pyproject.toml."""
    import tomllib

    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    rows = []
    for extra, packages in project["optional-dependencies"].items():
        if extra not in ("dev", "docs"):
            names = ", ".join(re.split(r"[<>=~ ;]", package)[0] for package in packages)
            rows.append(f"| `{extra}` | {BRINGS[extra]} | {names} |")
    return "\n".join(["| extra | for | brings |", "|---|---|---|", *rows])


# ---- errors and answers -------------------------------------------------------------------------


def error_codes() -> dict[str, tuple[int, str]]:
    """Return exit code and Python class of every code in `viewfold.errors`."""
    from viewfold import errors

    found = {}
    for kind in vars(errors).values():
        if inspect.isclass(kind) and issubclass(kind, errors.ViewfoldError):
            found[kind.code] = (kind.exit_code, f"viewfold.errors.{kind.__name__}")
    for kind, code, exit_code in errors.BUILT_IN:
        found.setdefault(code, (exit_code, kind.__name__))
    for code, exit_code in (errors.USAGE, errors.MOVED, errors.QUARANTINED):
        found[code] = (exit_code, "")
    return dict(sorted(found.items(), key=lambda one: one[1][0]))


def errors() -> str:
    """Return the table of error codes."""
    rows = [
        f"| {exit_code} | `{code}` | {f'`{kind}`' if kind else '–'} |"
        for code, (exit_code, kind) in error_codes().items()
    ]
    return "\n".join(["| exit | code | raised in Python as |", "|---|---|---|", *rows])


def answers() -> str:
    """Return a table for every answer in answers.schema.json."""
    schema = json.loads((HERE / "reference" / "answers.schema.json").read_text(encoding="utf-8"))
    parts = []
    for name, answer in schema["$defs"].items():
        rows = list(_fields(answer))
        parts += [f"## {answer['title']}", answer.get("description", ""), f"`#/$defs/{name}`"]
        parts.append("\n".join(["| field | type | what it is |", "|---|---|---|", *rows]))
    return "\n\n".join(part for part in parts if part)


def _fields(answer: dict[str, Any], before: str = "") -> Iterator[str]:
    if answer.get("type") == "array":
        yield from _fields(answer.get("items", {}), f"{before}[]")
        return
    required = answer.get("required", [])
    for name, field in answer.get("properties", {}).items():
        place = f"{before}.{name}".lstrip(".")
        kinds = field.get("type", "any")
        kinds = kinds if isinstance(kinds, str) else " or ".join(kinds)
        said = field.get("description", "") + ("" if name in required else " *Not always there.*")
        yield f"| `{place}` | {kinds} | {said.strip()} |"
        yield from _fields(field, place)


MAKERS: dict[str, Callable[..., str]] = {
    "api": api,
    "commandline": commandline,
    "errors": errors,
    "extras": extras,
    "outside": outside,
    "answers": answers,
}
