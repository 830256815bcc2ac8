"""Errors of the command line: one line on stderr, one exit code, never a traceback for what can be explained."""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from farthing.errors import FarthingError, TargetMissed

if TYPE_CHECKING:
    from collections.abc import Iterator

_MADE = re.compile(r"(?:\bbounds=)?\b(?:farthing\.)?(?:Budget|Bounds)\(([^)]*)\)")
_LOSS = re.compile(r"\b(?:farthing\.)?(Gdp|Zcdp|Pure)\((mu|rho|epsilon|[\d.e-]+)\)")
_CURRENCY = {"Gdp": "mu", "Zcdp": "rho", "Pure": "epsilon"}
_BY_NAME = re.compile(r"\b(relative|absolute|rank)=\{'([^']*)': ([\d.]+)[^}]*\}")
_OPTION = re.compile(
    r"\b(within|order_correct|relative|absolute|rms|rank|confidence|loss|max_epsilon|cap|on_miss|lower|upper|max_groups|max_rows|found_above|keys|strategy|order)"
    r"""=["']?(?![{\[])([\w.%=]*)["']?"""
)
_WORDS = {
    "Bounds.auto": "--bounds auto",
    "{name: number}": "by name",
    "with by= or GROUP BY": "with GROUP BY",
    "simultaneous=True": "--simultaneous",
    "raise found_above": "raise --found-above",
    "lower found_above": "lower --found-above",
    "is attached as .answer": "is shown",
}


def in_flags(text: str) -> str:
    """Return advice that was written for Python in the words of the command line.

    >>> in_flags('ask for absolute=27, or cap="all"; loss=farthing.Gdp(0.02)')
    'ask for --absolute 27, or --cap all; --loss mu=0.02'
    >>> in_flags("pass bounds=Bounds(max_groups=5, max_rows=20), or Bounds.auto")
    'pass --max-groups 5 --max-rows 20, or --bounds auto'
    """
    for python, word in _WORDS.items():
        text = text.replace(python, word)
    text = _LOSS.sub(lambda found: f"{_CURRENCY[found[1]]}={'' if found[2].isalpha() else found[2]}", text)
    text = _MADE.sub(lambda found: re.sub(r"(\w+)=([^,]*),?", _flag, found[1]), text)
    text = _BY_NAME.sub(r"--\1 \2=\3", text)
    return _OPTION.sub(_flag, text)


def _flag(found: re.Match[str]) -> str:
    """Return name=value as an option."""
    return f"--{found[1].replace('_', '-')}{' ' if found[2] else ''}{found[2]}"


@contextmanager
def explained(*, as_json: bool = False) -> Iterator[None]:
    """Turn an error into its line and its exit code; with --json also into an object on stdout."""
    try:
        yield
    except FarthingError as error:
        from farthing.query import outward

        if as_json:
            typer.echo(outward.dumped(_facts(error)))
        line = outward.line(in_flags(" ".join(str(error).split())))
        sys.stdout.flush()
        typer.echo(f"farthing: {line}", err=True)
        raise typer.Exit(error.exit_code) from None


def _facts(error: FarthingError) -> dict[str, Any]:
    """Return an error as plain values; an answer that was paid for comes with it."""
    facts: dict[str, Any] = {}
    if isinstance(error, TargetMissed):
        facts = error.answer.to_dict()
    facts["error"] = {
        "kind": type(error).__name__,
        "what": error.what,
        "rule": error.rule,
        "got": error.got,
        "next_step": error.next_step,
        "exit_code": error.exit_code,
    }
    return facts
