"""From what was typed to a target of attacks: an address, a function, a session, or one of the suite."""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from farthing.cli.input import config, typed
from farthing.cli.input.session import opened
from farthing.errors import DataError, InvalidOption

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from farthing.attacks import Claim, Effort, People, Target
    from farthing.cli.input.options.attack import AttackOptions

BUILT_IN_PEOPLE: Final = 150
_FRESH: Final = 1_000
_DEVIATIONS: Final = 6.0
_FUNCTION: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*\Z")


@dataclass(frozen=True, slots=True)
class TypedTarget:
    """What is attacked, as it was typed.

    Attributes:
        target: a URL, a database URL, module:function, a farthing.toml or its folder, or a built-in name.
        given: the options.
    """

    target: str
    given: AttackOptions

    def promised(self) -> Claim | None:
        """Return the claim, None if there is none."""
        from farthing.attacks import Claim

        epsilon, delta, change = self.given.claim_epsilon, self.given.claim_delta, self.given.claim_change
        if epsilon is None:
            if delta is not None or change is not None:
                raise InvalidOption(
                    "a claim without an epsilon",
                    rule="--claim-delta and --claim-change go with --claim-epsilon",
                    next_step="--claim-epsilon 1",
                )
            return None
        kept: Any = change or "person"
        number = typed.amount("--claim-epsilon", epsilon)
        return Claim(number, 0.0 if delta is None else typed.amount("--claim-delta", delta), kept)

    @property
    def hint(self) -> str:
        """What to try where nothing was answered, "" if there is nothing."""
        if self.given.speaks is None and _FUNCTION.match(self.target):
            return "it was called with a 0/1 vector; if it takes SQL text, add --speaks sql"
        return ""

    def language(self, usual: str) -> Any:
        """Return how the target is asked."""
        speaks = self.given.speaks
        if speaks not in (None, "sql", "vector"):
            raise InvalidOption("unknown language", rule="sql or vector", got=speaks, next_step="--speaks sql")
        return speaks or usual

    def people(self, **usual: str) -> People:
        """Return the people of the file; refuse secrets that no coin tossed."""
        from farthing.attacks import People

        if self.given.secrets is None:
            raise InvalidOption(
                "no people were given to attack",
                rule="--secrets names the people that were loaded into the system, with their secrets",
                next_step="farthing attack secrets people.csv, load it, and add --secrets people.csv",
            )
        facts = {"table": self.given.table, "secret": self.given.where, "id": self.given.id_column}
        named = usual | {name: value for name, value in facts.items() if value is not None}
        people = People.read(self.given.secrets, **named)
        gap = abs(2 * int(people.bits.sum()) - people.n)
        if gap > _DEVIATIONS * people.n**0.5:
            raise DataError(
                "these secrets were not drawn by fair coins",
                rule="a verdict rests on secrets that nobody could know: each is 1 with chance 1/2",
                got=f"{int(people.bits.sum()):,} ones of {people.n:,}",
                next_step="farthing attack secrets people.csv, and load that",
            )
        return people


@contextmanager
def opened_target(order: TypedTarget, effort: Effort) -> Iterator[Target | Sequence[Target]]:
    """Open the target that was named, and close it at the end."""
    named, claim = order.target, order.promised()
    if "://" in named:
        yield _address(order, claim)
    elif named.endswith(".toml") or Path(named).is_dir():
        with _session(order, effort, claim) as target:
            yield target
    elif _FUNCTION.match(named):
        yield _function(order, claim)
    else:
        yield _built_in(order, claim, effort)


def _address(order: TypedTarget, claim: Claim | None) -> Target:
    """Return a web service or a database as a target."""
    from farthing.attacks import targets

    if order.target.startswith(("http://", "https://")):
        return targets.Endpoint(
            order.target,
            order.people(),
            claim=claim,
            speaks=order.language("sql"),
            headers=_headers(order.given.header or ()),
            field=order.given.field,
            timeout_s=order.given.timeout,
        )
    from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

    people = order.people()
    try:
        return targets.Database(order.target, people, claim=claim, timeout_s=order.given.timeout)
    except NoSuchModuleError:
        problem = DataError(
            "unknown kind of address",
            rule="http://, https://, or a database URL of SQLAlchemy, such as postgresql+psycopg://me@host/db",
            got=order.target.partition("://")[0] + "://",
            next_step="check its beginning; a database may need its SQLAlchemy driver installed",
        )
    except (ArgumentError, SQLAlchemyError, ImportError) as error:
        problem = DataError(
            "the database cannot be opened",
            rule="a URL of SQLAlchemy, such as postgresql+psycopg://me@host/db, and its driver",
            got=type(error).__name__,
            next_step="check the URL, and install the driver",
        )
    raise problem


def _headers(lines: Sequence[str]) -> dict[str, str]:
    """Return HTTP headers that are written NAME: VALUE."""
    pairs = [line.partition(":") for line in lines]
    if not all(name.strip() and colon for name, colon, _ in pairs):
        raise InvalidOption(
            "--header is not a header", rule="NAME: VALUE", next_step="--header 'Authorization: Bearer TOKEN'"
        )
    return {name.strip(): value.strip() for name, _, value in pairs}


def _function(order: TypedTarget, claim: Claim | None) -> Target:
    """Return a Python function as a target; it is found from this folder."""
    from farthing.attacks import targets

    module, _, name = order.target.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    problem = ""
    try:
        found = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        problem = str(error) or type(error).__name__
    finally:
        sys.path.remove(str(Path.cwd()))
    if problem:
        raise InvalidOption(
            "there is no such function",
            rule="module:function, of a module that Python finds from this folder",
            got=f"{order.target} ({problem})",
            next_step="check its name, and that python -c 'import MODULE' works",
        )
    if not callable(found):
        raise InvalidOption(
            "this is not a function",
            rule="module:function names what can be called with a question",
            got=f"{order.target}, a {type(found).__name__}",
            next_step="name the function that answers",
        )
    kind: Any = targets.Function if order.language("vector") == "vector" else targets.SqlFunction
    target: Target = kind(found, order.people(), claim=claim, name=order.target, timeout_s=order.given.timeout)
    return target


@contextmanager
def _session(order: TypedTarget, effort: Effort, claim: Claim | None) -> Iterator[Target]:
    """Open the session of a farthing.toml, with its whole budget on books in memory, in equal shares."""
    from farthing.attacks import targets

    settings = config.read(order.target)
    people = order.people(table=settings.name)
    with opened(settings, "memory") as session:
        questions = effort.queries or 8 * people.n
        loss = targets.equal_share(session, questions)
        yield _claiming(targets.FarthingSession(session, people, name=f"farthing, {settings.name}", loss=loss), claim)


def _built_in(order: TypedTarget, claim: Claim | None, effort: Effort) -> Target | Sequence[Target]:
    """Return a target of the suite."""
    from farthing import Budget, attacks
    from farthing.attacks import tables, targets

    seed, questions = effort.seed, effort.queries or 8 * BUILT_IN_PEOPLE
    people = attacks.secrets(BUILT_IN_PEOPLE, seed, attributes=BUILT_IN_PEOPLE) if order.given.secrets is None else None
    crowd = order.people() if people is None else people
    made: dict[str, Callable[[], Any]] = {
        "exact": lambda: targets.Exact(crowd),
        "rounded": lambda: targets.Rounded(crowd, 5),
        "suppressed": lambda: targets.Suppressed(crowd, 10),
        "subsample": lambda: targets.Subsample(crowd, seed),
        "fresh-noise": lambda: targets.FreshGaussian(crowd, 3.0, seed),
        "diffix-birch": lambda: targets.Diffix(tables.loans(seed)),
        "diffix-cedar": lambda: targets.Diffix(tables.rides(seed, known=90, rows=5_000), "cedar"),
        "diffix-dogwood": lambda: targets.Diffix(tables.town(seed), "dogwood"),
        "honest": lambda: targets.Honest(crowd, 1, questions, seed),
        "leaky-ledger": lambda: targets.LeakyLedger(crowd, 1, seed=seed),
        "off-by-two": lambda: targets.each(targets.OffByTwo, attacks.secrets(_FRESH, seed).bits, epsilon=1),
        "float-noise": lambda: targets.each(targets.Floats, attacks.secrets(_FRESH, seed).bits, epsilon=1),
        "farthing": lambda: _ours(crowd, Budget(epsilon=1, delta=1e-6), questions),
    }
    if order.target not in made:
        raise InvalidOption(
            "the target is unknown",
            rule="a URL, module:function, farthing.toml or its folder, or a built-in name",
            got=order.target,
            next_step=typed.nearest(order.target, made),
        )
    chosen: Target | Sequence[Target] = _claiming(made[order.target](), claim)
    return chosen


def _ours(people: People, budget: Any, questions: int) -> Target:
    """Return a farthing session over the people, with an equal share of its budget for each question."""
    from farthing.attacks import targets

    session = targets.FarthingSession.over(people, budget).session
    return targets.FarthingSession(session, people, loss=targets.equal_share(session, questions))


def _claiming(target: Any, claim: Claim | None) -> Any:
    """Return a target, or each of several, with the claim that was named in place of its own."""
    from farthing.attacks import targets

    if claim is None:
        return target
    return (
        [targets.Claimed(one, claim) for one in target] if isinstance(target, list) else targets.Claimed(target, claim)
    )
