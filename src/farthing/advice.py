"""Advice in the words of the face that is used: Python, the command line, SQL over the wire, or JSON over HTTP.

Errors, plans and reports advise in Python's words. `told` is the one door to the other faces: it reads what is Python
in a text into values (`Option`, `MethodCall`), and renders these; all other words stay.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Face(Enum):
    """By what somebody asks."""

    PYTHON = "Python"
    TERMINAL = "the command line"
    WIRE = "SQL"
    HTTP = "JSON"


@dataclass(frozen=True, slots=True)
class Option:
    """One `name=value` of an advice.

    Attributes:
        name: as in Python.
        value: its source text, "" where the advice names the option alone.
    """

    name: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class MethodCall:
    """One `name(...)` of an advice.

    Attributes:
        name: the last part of the dotted name.
        words: the source texts of its positional arguments.
        options: its named arguments.
    """

    name: str
    words: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()


def told(text: str, face: Face) -> str:
    """Return an advice in the words of a face.

    >>> told('ask for absolute=27, or cap="all"; loss=farthing.Gdp(0.02)', Face.TERMINAL)
    'ask for --absolute 27, or --cap all; --loss mu=0.02'
    >>> told("pass bounds=Bounds(max_groups=5, max_rows=20), or Bounds.auto", Face.TERMINAL)
    'pass --max-groups 5 --max-rows 20, or --bounds auto'
    >>> told('relative=0.05, or keys={"zone": ["a", "b"]}', Face.TERMINAL)
    '--relative 0.05, or --keys zone=a,b'
    >>> told('ask for absolute=27, or cap="all"', Face.HTTP)
    'ask for "absolute": 27, or "cap": "all"'
    >>> told('ask for absolute=27, or cap="all"', Face.WIRE)
    "ask for SET farthing.absolute = '27', or SET farthing.cap = 'all'"

    A loss is said as everywhere:

    >>> told("it takes Gdp(mu=1.96) = epsilon 10.7; loss=farthing.Gdp(1.96) pays it", Face.TERMINAL)
    'it takes Gdp(mu=1.96) = epsilon 10.7; --loss mu=1.96 pays it'
    """
    if face is Face.PYTHON:
        return text
    for python, word in _PHRASES[face].items():
        text = text.replace(python, word)
    return "".join(part if isinstance(part, str) else _RENDERED[face](part) for part in parts(text))


def parts(text: str) -> Iterator[str | Option | MethodCall]:
    """Yield what an advice is made of: words, and what is Python in it.

    >>> list(parts("ask for absolute=27, or session.top_k('dest', k=10)"))
    ['ask for ', Option(name='absolute', value='27'), ', or ', MethodCall(name='top_k', words=("'dest'",), options=(Option(name='k', value='10'),))]
    """  # noqa: E501  # one line of output
    here = 0
    for found in _BEGINS.finditer(text):
        if found.start() < here or _FLAG.search(text, here, found.start()):
            continue
        made, end = _read(text, found)
        if made is None:
            if end:  # a loss is said as everywhere, with all that is in it
                yield text[here:end]
                here = end
            continue
        if found.start() > here:
            yield text[here : found.start()]
        yield made
        here = end
    if here < len(text):
        yield text[here:]


_BEGINS: Final = re.compile(
    r"(?<![\w.'\"@`/?-])"
    r"(?P<path>(?:[A-Za-z_]\w*\.)*)(?P<name>[A-Za-z_]\w*)(?P<by>=(?![=\s]|$)|=(?=[\s,;)]|$)|\()"
)
"""Where Python may begin: a name with = or ( right behind it, which is not in a word, a path or a flag's value."""

_FLAG: Final = re.compile(r"--[a-z][a-z-]* $")
_VALUE: Final = re.compile(r"""-?[\d][\d_.]*(?:e-?\d+)?|"[^"]*"|'[^']*'|[A-Za-z_][\w.]*|[\[({]|\.\.\.""")
_SQL: Final = re.compile(r"[A-Z][A-Z_0-9]*")
_PLAIN: Final = frozenset({"mu", "rho"})
"""Names whose `name=value` is a value of the command line: mu=0.05."""

_CURRENCIES: Final = {"Gdp": "mu", "Zcdp": "rho", "Pure": "epsilon"}


def _read(text: str, found: re.Match[str]) -> tuple[Option | MethodCall | None, int]:
    """Return the Python that begins somewhere, and where it ends; None where it is SQL or plain words.

    Behind a loss in plain words, `Pure(epsilon=1)`, the end is told, so that nothing in it is read.
    """
    name, by = found["name"], found["by"]
    if by == "(":
        end = _closed(text, found.end() - 1)
        if end is None or (_SQL.fullmatch(name) and name not in _CURRENCIES):
            return None, 0
        made = _call(name, text[found.end() : end - 1])
        return (None, end) if name in _CURRENCIES and made.options else (made, end)
    if found["path"] or name in _PLAIN or _SQL.fullmatch(name):
        return None, 0
    value = _VALUE.match(text, found.end())
    if value is None:
        return Option(name), found.end()
    end = value.end()
    if value[0] in "[({":
        end = _closed(text, value.start()) or end
    elif text[end : end + 1] == "(":
        end = _closed(text, end) or end
    source = text[found.end() : end]
    if source[-1] in ".,":
        source, end = source[:-1], end - 1
    return Option(name, source), end


def _closed(text: str, start: int) -> int | None:
    """Return where the bracket that opens at a place has been closed, behind it."""
    depth, quote = 0, ""
    for place in range(start, len(text)):
        letter = text[place]
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "[({":
            depth += 1
        elif letter in "])}":
            depth -= 1
            if not depth:
                return place + 1
    return None


def _split(text: str, at: str = ",") -> list[str]:
    """Return the parts of a text between separators that stand in no bracket and no quotes."""
    found, here, place = [], 0, 0
    while place < len(text):
        if text[place] in "[({":
            place = _closed(text, place) or len(text)
            continue
        if text[place] in "\"'":
            place = text.find(text[place], place + 1) % len(text)
        if text[place] == at:
            found.append(text[here:place])
            here = place + 1
        place += 1
    return [part.strip() for part in [*found, text[here:]] if part.strip()]


def _call(name: str, inner: str) -> MethodCall:
    """Return a call from its source."""
    given = [re.fullmatch(r"(\w+)=(.*)", part, re.DOTALL) or part for part in _split(inner)]
    words = tuple(part for part in given if isinstance(part, str))
    options = tuple(Option(part[1], part[2]) for part in given if not isinstance(part, str))
    return MethodCall(name, words, options)


def _plain(source: str) -> str:
    """Return a value as it is typed: texts without quotes, lists with commas, keys as COLUMN=A,B, losses as mu=0.02."""
    source = source.strip()
    if source[:1] in "\"'" and source[-1:] == source[:1]:
        return source[1:-1]
    if source[:1] in "[(" and source[-1:] in "])":
        return ",".join(_plain(part) for part in _split(source[1:-1]))
    if source[:1] == "{" and source[-1:] == "}":
        pairs = [_split(part, ":") for part in _split(source[1:-1])]
        return " ".join("=".join(map(_plain, pair)) if len(pair) == 2 else _plain(pair[0]) for pair in pairs if pair)
    loss = re.fullmatch(r"(?:farthing\.)?(Gdp|Zcdp|Pure)\((?:\w+=)?(.*)\)", source)
    if loss:
        return f"{_CURRENCIES[loss[1]]}={'' if loss[2].isalpha() else loss[2]}"
    return source


def _loss(call: MethodCall) -> str:
    """Return a loss as it is typed: mu=0.02; without its number where it is named alone."""
    value = (call.words or ("",))[0]
    return f"{_CURRENCIES[call.name]}={'' if value.isalpha() else value}"


def _quoted(value: str) -> str:
    """Return a value of an option, quoted where it has blanks."""
    return f"'{value}'" if " " in value else value


_CLAUSES: Final = {"by": "GROUP BY", "where": "WHERE"}
"""What SQL says itself, on every face that has SQL."""

_COMMANDS: Final = {
    "top_k": "farthing select",
    "most_common": "farthing select",
    "ranking": "farthing select",
    "count": "farthing ask 'SELECT COUNT(*) ...'",
    "sql": "farthing ask",
    "difference": "farthing ask",
    "workload": "farthing workload",
    "release": "farthing release",
    "marginals": "farthing release",
    "bounds_report": "farthing bounds",
    "resume": "farthing resume",
    "plan": "farthing plan",
}
"""Which command does what a method of a session does."""

_IN_FILE: Final = frozenset({"version", "public", "protected", "target", "name"})
"""What the command line takes from farthing.toml."""

_TYPED: Final = {
    "same_data": "farthing same-data",
    "at_most": "the price of the plan",
    "dry_run": "--dry-run",
    "value": "the column",
    "k": "-k",
    "ways": "--marginals",
}


def _made(option: Option) -> MethodCall | None:
    """Return the bounds or the budget that an option is made with, None for another value."""
    name, opened, inner = option.value.partition("(")
    name = name.rpartition(".")[2]
    return _call(name, inner[:-1]) if opened and name in {"Bounds", "Budget"} else None


def _clause(option: Option) -> str:
    """Return an option that SQL says by a clause; of named expressions the expressions."""
    named = option.value.startswith("{")
    value = ", ".join(_plain(part.partition(":")[2]) for part in _split(option.value[1:-1])) if named else ""
    return f"{_CLAUSES[option.name]} {value or _plain(option.value).replace(',', ', ')}".rstrip()


def _flag(option: Option) -> str:
    """Return an option as it is typed on the command line."""
    name, value, made = option.name, _plain(option.value), _made(option)
    if made is not None:
        return _typed_call(made)
    if name in _CLAUSES:
        return _clause(option)
    if name in _IN_FILE:
        return f'{name} = "{value}" in farthing.toml' if value else f"{name} in farthing.toml"
    flag = _TYPED.get(name, f"--{name.replace('_', '-')}")
    if value in {"True", "", "False", "None"} or not flag.startswith("-"):
        return flag
    if option.value.startswith("{"):
        return " ".join(f"{flag} {_quoted(each)}" for each in value.split(" "))
    return f"{flag} {_quoted(value)}"


def _typed_call(call: MethodCall) -> str:
    """Return a call as it is typed on the command line."""
    flags = " ".join(_flag(option) if option.value else f"{_flag(option)} ..." for option in call.options)
    if call.name in _CURRENCIES:
        return _loss(call)
    if call.name in {"Bounds", "Budget"}:
        return flags
    if call.name == "refine":
        return f"the same question with {flags}"
    if call.name == "Session":
        return "farthing.toml"
    return f"{_COMMANDS.get(call.name, f'farthing {call.name}')} {flags}".rstrip()


def _typed(part: Option | MethodCall) -> str:
    """Return what an advice names, as it is typed on the command line."""
    return _flag(part) if isinstance(part, Option) else _typed_call(part)


def _set(part: Option | MethodCall) -> str:
    """Return what an advice names, as a statement of SQL sets it."""
    if isinstance(part, MethodCall):
        return _asked(part, _set)
    value = _plain(part.value)
    if _made(part) is not None:
        return _asked(_made(part), _set)
    if part.name in _CLAUSES:
        return _clause(part)
    return f"SET farthing.{part.name} = '{value}'" if value else f"farthing.{part.name}"


def _member(part: Option | MethodCall) -> str:
    """Return what an advice names, as a request in JSON says it."""
    if isinstance(part, MethodCall):
        return _asked(part, _member)
    source = part.value
    if _made(part) is not None:
        return _asked(_made(part), _member)
    if part.name in _CLAUSES:
        return _clause(part)
    literal = {"True": "true", "False": "false", "None": "null"}.get(source, source.replace("'", '"'))
    return f'"{part.name}": {literal}' if source else f'"{part.name}"'


def _asked(call: MethodCall | None, rendered: Callable[[Option], str]) -> str:
    """Return a call where nothing is called: its options; what a budget is made with is its owner's."""
    if call is None:
        return ""
    if call.name in _CURRENCIES:
        return _loss(call)
    if call.name in {"Budget", "Session"}:
        return "another budget, which is for the owner to make"
    if call.name == "resume":
        return "the owner's `farthing resume`"
    return ", ".join(rendered(option) for option in call.options) or "another question"


_SHARED: Final = {
    "ask session.bounds_report first, or plan": "plan",
    "{name: number}": "by name",
    "with by= or GROUP BY": "with GROUP BY",
    "is attached as .answer": "is shown",
    'declared: farthing.Csv(path, columns={"age": "integer"}), or [csv.TABLE.columns] in': "declared, under "
    "[csv.TABLE.columns] in",
    "; in Python it is farthing.Csv(path), with what it proposes": "",
}
_PHRASES: Final = {
    Face.PYTHON: dict[str, str](),
    Face.TERMINAL: {
        "Bounds.auto": "--bounds auto",
        "raise found_above": "raise --found-above",
        "lower found_above": "lower --found-above",
        "session.resume(), or `farthing resume`": "farthing resume",
        "ask session.bounds_report first": "farthing bounds first",
        "a workload of farthing.workloads": "--marginals",
        'version="2026-11" (in farthing.toml: version,': 'version = "2026-11" (in farthing.toml,',
        "same_data=True, or `farthing same-data`": "farthing same-data",
    } | _SHARED,
    Face.WIRE: {"; Bounds.auto finds some privately": "", ", or Bounds.auto": ""} | _SHARED,
    Face.HTTP: {"; Bounds.auto finds some privately": "", ", or Bounds.auto": ""} | _SHARED,
}  # fmt: skip
"""Phrases of Python that are neither an option nor a call."""

_RENDERED: Final = {Face.TERMINAL: _typed, Face.WIRE: _set, Face.HTTP: _member}
