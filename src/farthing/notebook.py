"""`%%farthing` in a notebook: a cell of SQL is priced first, and answered when the price is confirmed.

    %load_ext farthing

    %%farthing session --relative 5% --chart
    SELECT zone, COUNT(*) AS rides FROM rides GROUP BY zone

`session` is a variable: a `Session`, or what `farthing.connect` returned. Without `--pay` a cell tells its price, and
answers only what is free; with `--pay` it is answered at no more than the price that is told now.
"""

from __future__ import annotations

import ast
import shlex
import shutil
import sys
from argparse import ArgumentParser, Namespace
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NoReturn

from farthing.client import RemoteSession
from farthing.errors import FarthingError, InvalidOption
from farthing.session import Session
from farthing.tabular import html_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from farthing.session import Progress

_TARGETS: Final = ("relative", "absolute", "confidence", "rank", "share", "max_epsilon")
_BAR: Final = 30
_FACES: Final = (Session, RemoteSession)


class _Words(ArgumentParser):
    """The words after `%%farthing`."""

    def error(self, message: str) -> NoReturn:
        """Tell a mistake as an error of ours; the program goes on."""
        raise _unclear(message)


@dataclass(frozen=True, slots=True)
class Notebook:
    """What answers the cells of a notebook.

    Attributes:
        shell: IPython's, of which the variables are.
    """

    shell: Any

    def answered(self, line: str, cell: str) -> Any:
        """Price the SQL of a cell; answer it if it is free, or with --pay.

        A mistake or a refusal is one line in the notebook, without a traceback.
        """
        from IPython.core.error import UsageError

        problem = None
        try:
            return self._asked(_parser().parse_args(_split(line)), cell)
        except FarthingError as error:
            problem = str(error)
        raise UsageError(problem)

    def _asked(self, given: Namespace, text: str) -> Any:
        """Price a question, and answer it where that is wished or free."""
        session = self._session(given.session)
        how: dict[str, Any] = {name: _number(name, getattr(given, name)) for name in _TARGETS if getattr(given, name)}
        how |= {"cap": given.cap} if given.cap else {}
        keys = _keys(given.keys)
        plan = session.plan(text, keys=keys, **how)
        if plan.worst_price and not given.pay:
            print(plan)  # noqa: T201  # what a cell shows
            print("Nothing was paid. Run the cell with --pay to be answered at no more than this.")  # noqa: T201
            return None
        with moving() as tick:
            if hasattr(plan, "ask"):  # of a server
                answer = plan.ask(progress=tick)
            else:
                answer = session.sql(text, keys=keys, **how, at_most=plan.worst_price, progress=tick)
        if given.into:
            self.shell.user_ns[given.into] = answer
        if given.chart:
            from IPython import display

            show: Any = display.display
            show(answer.chart())
        return answer

    def _session(self, name: str | None) -> Any:
        """Return the session of a name; by default the only one that there is."""
        there: Mapping[str, Any] = {
            name: value
            for name, value in self.shell.user_ns.items()
            if isinstance(value, _FACES) and not name.startswith("_")
        }
        if name is None and len({id(one) for one in there.values()}) == 1:
            return next(iter(there.values()))
        if name is None or name not in there:
            raise InvalidOption(
                "no session is named",
                rule="%%farthing asks a variable that is a session or a connection",
                got=name or "",
                next_step=f"%%farthing {next(iter(there), 'session')}",
            )
        return there[name]


@contextmanager
def moving() -> Iterator[Callable[[Progress], None]]:
    """Give a callback for `progress=` that shows how a refinement closes in, in one moving line.

    It moves in a notebook's cell, else on a terminal, on stderr, and is gone when the answer is there. Where nobody
    looks, as in a script whose stderr is a file, nothing moves.

    >>> import pyarrow as pa
    >>> import farthing
    >>> s = farthing.Session(pa.table({"x": range(500)}), budget=farthing.Budget(epsilon=1, delta=1e-6))
    >>> with moving() as tick:  # doctest: +SKIP
    ...     answer = s.count(absolute=50, progress=tick)
    """
    write = _cell() or _terminal()

    def tick(seen: Progress) -> None:
        """Move the line on."""
        done = round(_BAR * seen.done / max(seen.groups, 1))
        bar = "#" * done + "-" * (_BAR - done)
        write(f"refining [{bar}] {seen.done:,}/{seen.groups:,} groups, look {seen.look}{seen.closing}")

    try:
        yield tick
    finally:
        write("")


def _cell() -> Callable[[str], None] | None:
    """Return what writes a line of a notebook's cell over; None where no notebook listens."""
    if find_spec("IPython") is None:
        return None
    from IPython import display

    show: Any = display.display
    line = show({"text/plain": "refining"}, raw=True, display_id=True) if _listens() else None
    if line is None:
        return None

    def write(told: str) -> None:
        """Write it over."""
        shown = f"<code>{html_text(told)}</code>" if told else ""
        line.update({"text/plain": told, "text/html": shown}, raw=True)

    return write


def _terminal() -> Callable[[str], None]:
    """Return what writes a line of a terminal over; nothing where stderr is none."""

    def write(told: str) -> None:
        """Write it over."""
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{told[: max(shutil.get_terminal_size().columns - 1, 1)]}")
            sys.stderr.flush()

    return write


def _listens() -> bool:
    """Return whether a notebook shows what is displayed: a shell of IPython with a kernel behind it."""
    from IPython.core.getipython import get_ipython

    shell: Any = get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def _parser() -> _Words:
    """Return the words that a cell may begin with."""
    words = _Words("%%farthing", add_help=False, allow_abbrev=False)
    words.add_argument("session", nargs="?")
    for name in _TARGETS:
        words.add_argument(f"--{name.replace('_', '-')}")
    words.add_argument("--cap")
    words.add_argument("--keys", action="append", default=[])
    words.add_argument("--pay", action="store_true")
    words.add_argument("--chart", action="store_true")
    words.add_argument("--into")
    return words


def _split(line: str) -> list[str]:
    """Return the words of a line."""
    found = None
    try:
        found = shlex.split(line)
    except ValueError:
        found = None
    if found is None:
        raise _unclear("a quotation mark is open")
    return found


def _number(name: str, text: str) -> float:
    """Return a target; 5% is 0.05."""
    number = None
    try:
        number = float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = None
    if number is None:
        raise _unclear(f"--{name.replace('_', '-')} is not a number")
    return number


def _keys(given: list[str]) -> Any:
    """Return the public groups: zone=a,b lists them, zone=zones.id names a column, private looks for them."""
    if given == ["private"]:
        return "private"
    found: dict[str, Any] = {}
    for one in given:
        column, _, values = one.partition("=")
        listed = [_value(value) for value in values.split(",")]
        found[column] = values if len(listed) == 1 and "." in values else listed
    return found or None


def _value(text: str) -> Any:
    """Return a key: a number where it is written as one."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text
    return value if isinstance(value, int | float) else text


def _unclear(what: str) -> InvalidOption:
    """Return the error of a line that is not understood."""
    return InvalidOption(
        what,
        rule="%%farthing [SESSION] [--relative 5%] [--absolute 50] [--keys zone=a,b] [--pay] [--chart] [--into NAME]",
        next_step="%%farthing session --relative 5%",
    )
