"""Errors of the command line: one line on stderr, one exit code, never a traceback for what can be explained."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, cast

import typer
from typer.core import TyperGroup

from farthing.advice import Face, told
from farthing.errors import FarthingError, InvalidOption, TargetMissed

if TYPE_CHECKING:
    from collections.abc import Iterator

_JSON: Final = "--json"

_Misuse: Final = cast("type[Exception]", typer.BadParameter.__base__)
"""What the library raises for words that fit no command; it has no public name in all of its versions."""

_HELP: Final = "NoArgsIsHelpError"
"""What the library raises where a group of commands is named alone: its help is printed."""


def in_flags(text: str) -> str:
    """Return advice in the words of the command line."""
    return told(text, Face.TERMINAL)


@contextmanager
def explained(*, as_json: bool = False) -> Iterator[None]:
    """Turn an error into its line and its exit code; with --json also into an object on stdout."""
    try:
        yield
    except FarthingError as error:
        from farthing.query import outward

        if as_json:
            typer.echo(outward.dumped(_facts(error)))
        line = outward.line(" ".join(str(_typed(error)).split()))
        sys.stdout.flush()
        typer.echo(f"farthing: {line}", err=True)
        raise typer.Exit(error.exit_code) from None


class Program(TyperGroup):
    """All commands: a wrong option, argument or name of a command is an error like any other."""

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **more: Any) -> Any:
        """Read the words of the command line."""
        as_json = _JSON in args
        with _worded(as_json=as_json):
            context = super().make_context(info_name, args, *rest, **more)
        context.meta[_JSON] = as_json
        return context

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with _worded(as_json=ctx.meta[_JSON]):
            return super().invoke(ctx)


@contextmanager
def _worded(*, as_json: bool) -> Iterator[None]:
    """Say what is wrong with words that fit no command, as all errors are said; not where help is printed."""
    wrong = None
    try:
        yield
    except _Misuse as error:
        if type(error).__name__ == _HELP:
            raise
        wrong = error
    if wrong is not None:
        with explained(as_json=as_json):
            raise _misused(wrong)


def _misused(error: Any) -> InvalidOption:
    """Return what is said of words that fit no command."""
    context = getattr(error, "ctx", None)
    command = " ".join(["farthing", *(context.command_path.split()[1:] if context else ())])
    what = error.format_message().rstrip(".")
    return InvalidOption(
        what[:1].lower() + what[1:],
        rule=f"{command} takes the options and arguments that its help lists",
        got=str(getattr(error, "option_name", None) or getattr(error, "param_hint", None) or command),
        next_step=f"{command} -h",
    )


def _typed(error: FarthingError) -> FarthingError:
    """Return what is said of an error on the command line; what was got stays as it was typed."""
    return FarthingError(
        in_flags(error.what), rule=in_flags(error.rule), got=error.got, next_step=in_flags(error.next_step)
    )


def _facts(error: FarthingError) -> dict[str, Any]:
    """Return an error as plain values; an answer that was paid for comes with it."""
    facts: dict[str, Any] = {}
    if isinstance(error, TargetMissed):
        facts = error.answer.to_dict()
    said = _typed(error)
    facts["error"] = {
        "kind": type(error).__name__,
        "what": said.what,
        "rule": said.rule,
        "got": said.got,
        "next_step": said.next_step,
        "exit_code": error.exit_code,
    }
    return facts
