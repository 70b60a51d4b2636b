"""Does a column hold ids? Its name, in several languages, and its cells tell.

A column of ids would be a feature that tells all samples apart, and nobody would notice.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from viewfold._util.file import ReadOptions
from viewfold._util.messages import format_names, with_suggestion
from viewfold.rows.normal import normal_forms

if TYPE_CHECKING:
    from viewfold.data.codes import Codes
    from viewfold.data.parts import Parts

HEAD = 2000  # cells that tell whether a column holds ids
_SUFFIX = r"(?:id|no|nr|num|number|code|key)"
_WHO = r"(?:patient|sample|subject|person|participant|donor|case|record|customer|client|user|cell)"
_ID_NAMES = re.compile(
    rf"(?:id|ids|uid|uuid|guid|mrn|barcode|[pscgtnef]id|index|level_0|unnamed:? ?0|"
    rf"__index_level_\d+__|row|(?:.*[_\W])?id|id[_\W].*|(?:row|{_WHO}|.*[_\W]{_WHO})[_\W]?{_SUFFIX})",
    re.IGNORECASE,
)
_WORDS = """
id ids nr no num number nummer n° nº numéro numero número numer identifiant identifier identificador
identificativo identyfikator kennung kennzeichen aktenzeichen schlüssel key clé clave chiave klucz
code código codigo codice kod kode ref reference référence referencia matricule matrícula matricola
pesel barcode sku account
"""
_ID_WORDS = frozenset(_WORDS.split())
_NAMES = """
first last firstname lastname surname forename vorname nachname name prénom prenom nom nombre
apellido apellidos imię imie nazwisko nome cognome voornaam achternaam
"""
_PERSON_NAMES = frozenset(_NAMES.split())
_PERSONS = re.compile(  # whose ids are looked for, rather than those of an order or an account
    "customer|client|patient|subject|sample|donor|user|employee|kunde|probe|mitarbeiter|personal|"
    "klient|pacjent|pracown|próbk|usuario|pacien|muestra|empleado|utilisateur|échantillon|salarié|"
    "utente|paziente|dipendente|klant|medewerker"
)
_PAIR = 15  # how much two columns look like ids together
_CLEARLY = 4  # how much more than others the column of ids has to look like them
_ID_ENDS = ("nummer", "kennung", "schlüssel", "nr")  # of German and Dutch words
_CAMEL = re.compile(r".*[a-z](?:Id|ID)")
_WHO_ALONE = re.compile(_WHO, re.IGNORECASE)


def is_called_id(name: str, first: bool) -> bool:
    """Whether a column is called as ids are; some names tell so in the first column only."""
    kinds = (_ID_NAMES, _CAMEL, _WHO_ALONE) if first else (_ID_NAMES, _CAMEL)
    return any(kind.fullmatch(name.strip()) for kind in kinds)


def may_be_called_id(name: str) -> bool:
    """Whether a name has a word for ids in it, in one of several languages."""
    return is_called_id(name, first=True) or _has_id_word(name)


def _has_id_word(name: str) -> bool:
    words = re.findall(r"n[°º]|[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())
    return any(word in _ID_WORDS or word.endswith(_ID_ENDS) for word in words)


def find_ids(
    columns: Mapping[str, Sequence[Any]], known: frozenset[str] = frozenset()
) -> list[tuple[str, int]]:
    """Return the columns that look as if they held ids, and how much, the likeliest first.

    Cells are texts, None where they are missing, and other values where they cannot be ids;
    `known` has the normal forms of ids that are known. Two columns that are ids together have a
    comma between them.
    """
    rows = list(dict.fromkeys(zip(*columns.values(), strict=True)))  # identical rows count once
    cells = dict(zip(columns, zip(*rows, strict=True), strict=True)) if rows else {}
    found = []
    for j, (name, held) in enumerate(cells.items()):
        if score := _score(name, held, j == 0, known):
            found.append((-score, j, name))
    # Neighbours at the front: two names of a person, or a number within something, such as a shop.
    names = list(cells)[:3]
    for a, b in itertools.pairwise(names):
        both = [*cells[a], *cells[b]]
        persons = {a.strip().lower(), b.strip().lower()} <= _PERSON_NAMES
        numbered = any(_has_id_word(one) for one in (a, b)) and not all(
            str(cell).isdecimal() for cell in both
        )
        if not (persons or numbered) or not all(isinstance(c, str) and c.strip() for c in both):
            continue
        alone = any(name in (a, b) for _, _, name in found)
        if not alone and len(set(zip(cells[a], cells[b], strict=True))) == len(rows) > 2:
            found.append((-_PAIR, 0, f"{a},{b}"))
    return [(name, -minus) for minus, _, name in sorted(found)]


def _score(name: str, held: Sequence[Any], first: bool, known: frozenset[str]) -> int:
    """Return how much a column looks like ids; 0 if it cannot hold them."""
    texts = [cell for cell in held if cell is not None and (cell != "")]
    if len(texts) < 2 or not all(isinstance(cell, str) for cell in texts):
        return 0
    # Ids of seventeen digits lose the last one when they are read as numbers.
    if len(set(texts)) < (0.95 if all(map(str.isdecimal, texts)) else 1) * len(texts):
        return 0
    called = 20 if is_called_id(name, first) else 15 if may_be_called_id(name) else 0
    called += 4 if called and _PERSONS.search(name.lower()) else 0
    if len(texts) < len(held) and not called:
        return 0
    digits = all(text.strip().isdecimal() for text in texts)
    padded = digits and any(text.strip()[0] == "0" != text.strip() for text in texts)
    spaces = sum(text.strip().count(" ") for text in texts) / len(texts)
    if not digits and (spaces >= 2 or sum(map(len, texts)) > 40 * len(texts)):
        return 0  # free text
    if digits:
        wide = len(texts) >= 20 and len({len(text) for text in texts}) == 1 and len(texts[0]) > 3
        score = called + 5 * padded or 3 * wide
    else:
        score = called + (8 if spaces == 0 and any(c.isdecimal() for c in texts[0]) else 5)
    if score and known:
        forms = normal_forms(np.array(texts, dtype=object)).tolist()
        score += 100 * (2 * sum(form in known for form in forms) >= len(forms))
    return score and score + first


def look_like_ids(values: Any) -> bool:
    """Whether the values of a column are whole numbers, and (nearly) all of them different."""
    held = np.asarray(values)
    held = held[np.isfinite(held)] if held.dtype.kind == "f" else held
    if held.size < 2 or held.dtype.kind == "b":
        return False
    # Ids of seventeen digits lose the last one when they are read as numbers.
    enough = 0.95 * held.size
    return bool((held == np.rint(held)).all() and np.unique(held).size >= enough)


def first_cells(parts: Parts) -> dict[str, list[Any]]:
    """Return the first cells of each column: texts where they may be ids."""
    if parts.names is None or sparse.issparse(parts.rows):
        return {}
    rows = np.asarray(parts.rows[:HEAD])
    found: dict[str, list[Any]] = {}
    for j, name in enumerate(parts.names):
        codes, values = parts.codes.get(name), rows[:, j]
        is_number = codes is None or codes.kind == "number"
        if codes is not None and codes.kind == "category" and len(codes.head) >= len(rows):
            found[name] = codes.head[: len(rows)]
        elif is_number and (np.isnan(values) | (values == np.rint(values))).all():
            found[name] = [None if v != v else f"{v:.0f}" for v in values.tolist()]
        else:
            found[name] = values.tolist()
    return found


# -- where no ids are given, what looks like them is refused


def like_ids(
    name: str, label: str, why: str = "whole numbers that are all different"
) -> ValueError:
    """Return the error about a column that would be a feature, and looks like ids."""
    said = (
        f"{label}: column {name!r} looks like ids ({why}). Say ids={name!r} if it holds them, or "
        "ids=False if samples are known by their row number."
    )
    return with_suggestion(ValueError(said), ids=name)


def check_no_ids(
    parts: Parts, label: str, *, is_file: bool, known: frozenset[str] = frozenset()
) -> None:
    """Refuse columns that look like ids; the error knows the likeliest."""
    cells, codes = first_cells(parts), parts.codes
    scores = find_ids(cells, known)
    found = [name for name, score in scores if score > scores[0][1] - _CLEARLY]
    if len(found) > 1 and is_file:
        said = (
            f"{label}: columns {format_names(found)} look like ids. Say which holds them: "
            f"{' or '.join(f'ids={name!r}' for name in found)}."
        )
        error = with_suggestion(ValueError(said), ids=found[0])
        error.choices = tuple({"ids": name} for name in found)  # type: ignore[attr-defined]
        raise error
    if is_file:  # free text is left out, and told
        codes = {n: c for n, c in codes.items() if n in found or is_called_id(n, first=False)}
        if found and all(str(cell).isdecimal() for cell in cells.get(found[0], [""])):
            raise like_ids(found[0], label)
    check_no_text_ids(codes, label, *found)
    if is_file and found:
        raise like_ids(found[0], label, "its name and its cells")
    for j, name in enumerate(cells):
        if is_called_id(name, first=j == 0) and look_like_ids(parts.rows[:, j]):
            raise like_ids(name, label)


def check_no_text_ids(codes: Mapping[str, Codes], label: str, *likeliest: str) -> None:
    """Refuse texts that are all different: they may be the ids, or `likeliest` are."""
    for name, column in codes.items():
        if column.kind != "category" or not column.n_cells:
            continue
        if not column.repeats or is_called_id(name, first=False):
            why = "its name" if column.repeats else "texts that are all different"
            error = like_ids(name, label, why)
            raise with_suggestion(error, ids=likeliest[0]) if likeliest else error


def check_no_new_ids(options: ReadOptions, names: Sequence[str], label: str) -> None:
    """Refuse a column that a known view lacks and that is called like ids."""
    for name in options.known_names(names, label):
        if name not in options.kinds and may_be_called_id(name):
            raise like_ids(name, label, "its name")
