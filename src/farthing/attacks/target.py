"""What is attacked, and what the attacker knows: anything that answers questions about a secret bit of known people."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, runtime_checkable

import numpy as np

from farthing.errors import DataError, InvalidBudget

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa
    from numpy.typing import NDArray

Speaks = Literal["vector", "sql"]
"""What a target understands: a 0/1 vector over the known people, or SQL text."""

Why = Literal["policy", "budget", "failure", "closed"]
"""Why there is no answer: this question is not allowed, no further one is, nothing came that is an answer, or nobody is
let in."""

Verdict = Literal["broken", "holds", "undecided"]
"""What an attack says of a claim."""


@dataclass(frozen=True, slots=True)
class Refused:
    r"""No answer, and why not. Refusals are answers too: a target whose refusals depend on a secret leaks it.

    Attributes:
        reason: the target's own words, or what was wrong with what it said.
        why: "policy" if this question is not answered, "budget" if the target has said all that it will ever say,
            "failure" if it hung, broke, or said something that is not a number, "closed" if it is not there at all or
            lets nobody in.

    A function returns it; it is not an exception. Control characters in the reason become spaces.

    >>> Refused("too few people\x1b[2J").reason
    'too few people [2J'
    """

    reason: str
    why: Why = "policy"

    def __post_init__(self) -> None:
        plain = "".join(letter if letter.isprintable() else " " for letter in str(self.reason))
        object.__setattr__(self, "reason", plain)


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """How many of these people have the secret? Said either way.

    Attributes:
        text: SQL that returns one number, or None.
        chosen: bool[n], who is counted, in the order of the known people, or None.

    >>> Question(chosen=np.array([True, False])).text is None
    True
    """

    text: str | None = None
    chosen: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        if (self.text is None) == (self.chosen is None):
            raise DataError(
                "a question is asked in one way",
                rule="either SQL text or a 0/1 vector",
                got="both" if self.text is not None else "neither",
                next_step="Question(text=...) or Question(chosen=...)",
            )


@dataclass(frozen=True, slots=True)
class Claim:
    """The promise that an attack tests: (epsilon, delta)-differential privacy, and for which change of the data.

    Attributes:
        epsilon: > 0.
        delta: in [0, 1).
        change: what the promise hides. "bit": one person's secret becomes the other one; a verdict compares with
            epsilon itself. "person": one person is added or taken away; changing a secret is two of these, so a verdict
            compares with 2 epsilon, at delta (1 + e^epsilon).

    >>> Claim(epsilon=1).cap
    0.731...
    >>> Claim(epsilon=1, change="person").of_a_bit
    Claim(epsilon=2, delta=0.0, change='bit')
    """

    epsilon: float
    delta: float = 0.0
    change: Literal["bit", "person"] = "bit"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.epsilon) and self.epsilon > 0 and 0 <= self.delta < 1):
            raise InvalidBudget(
                "the claim is out of range",
                rule="epsilon is finite and > 0, delta is in [0, 1)",
                got=f"epsilon={self.epsilon}, delta={self.delta}",
                next_step="Claim(epsilon=1); a target that claims nothing has claim None",
            )
        if self.change not in ("bit", "person"):
            raise InvalidBudget(
                "the change is unknown",
                rule='change is "bit" or "person"',
                got=self.change,
                next_step='"person" for guarantees about adding or removing somebody, "bit" for changing one secret',
            )

    @property
    def of_a_bit(self) -> Claim:
        """The same promise about one secret that changes."""
        if self.change == "bit":
            return self
        return Claim(2 * self.epsilon, min(self.delta * (1 + math.exp(min(self.epsilon, 700.0))), 1 - 2.0**-53))

    @property
    def cap(self) -> float:
        """The chance of guessing a fair bit that the promise allows at most: (e^epsilon + delta) / (1 + e^epsilon)."""
        one = self.of_a_bit
        return (1 + one.delta * math.exp(-one.epsilon)) / (1 + math.exp(-one.epsilon))

    def __str__(self) -> str:
        delta = f", delta {self.delta:g}" if self.delta else ""
        return f"epsilon {self.epsilon:g}{delta} for a change of one {self.change}"


UNSTATED: Final = Claim(1.0)
"""What a target that claims nothing is judged against: more than epsilon 1 allows to be known of one bit."""

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """The known people: what the attacker knows of them, and the secret bits, which score the guesses and nothing else.

    Attributes:
        bits: bool[n], the secrets. Attacks never read them to choose a question or a guess.
        columns: what the attacker knows: one array[n] a column.
        id: the column that tells people apart.
        table: the table's name in SQL.
        secret: SQL that is true for those who have the secret.
        counting: the aggregate that counts people in SQL.
        prior: the chance of a secret to be 1 when it was drawn, each independently: verdicts rest on it.

    >>> People.of([1, 0, 1]).n
    3
    """

    bits: NDArray[np.bool_]
    columns: Mapping[str, NDArray[Any]]
    id: str = "id"
    table: str = "people"
    secret: str = "secret = 1"  # noqa: S105  (SQL)
    counting: str = "COUNT(*)"
    prior: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", binary(self.bits))
        columns = {name: np.asarray(column) for name, column in self.columns.items()}
        object.__setattr__(self, "columns", columns)
        sizes = {len(column) for column in columns.values()}
        if sizes - {self.n} or self.id not in columns or len(np.unique(columns[self.id])) != self.n:
            raise DataError(
                "these columns do not describe known people",
                rule="every column has one value a person, and the id column tells them apart",
                got=f"{self.n} secrets, columns {sorted(columns)} of lengths {sorted(sizes)}, id column {self.id!r}",
                next_step="People(bits, {'id': ids, ...}, id='id')",
            )
        if not 0 < self.prior < 1:
            raise DataError(
                "the prior is out of range",
                rule="the chance of a secret to be 1 is in (0, 1)",
                got=self.prior,
                next_step="draw the secrets with attacks.secrets(n, seed), which has prior=0.5",
            )

    @classmethod
    def of(cls, bits: Any, **facts: Any) -> People:
        """Return people with the ids 1 .. n and these secrets; people who are known already as they are."""
        if isinstance(bits, People):
            return bits
        secret = binary(bits)
        return cls(secret, {"id": np.arange(1, len(secret) + 1)}, **facts)

    @classmethod
    def read(cls, path: str | Path, *, column: str = "secret", **facts: Any) -> People:
        """Return the people of a CSV or Parquet file with their secrets in one 0/1 column, as `secrets` writes them."""
        table = _read(Path(path))
        if column not in table.column_names:
            raise DataError(
                "no column of secrets",
                rule="the file has a column of zeros and ones",
                got=", ".join(table.column_names),
                next_step=f"People.read(path, column=...) instead of {column!r}",
            )
        arrays = {name: table[name].to_numpy() for name in table.column_names}
        return cls(binary(arrays.pop(column)), arrays, **facts)

    @property
    def n(self) -> int:
        """How many people."""
        return len(self.bits)

    @property
    def ids(self) -> NDArray[Any]:
        """What tells people apart: array[n]."""
        return self.columns[self.id]

    @property
    def baseline(self) -> float:
        """The share that whoever always guesses the more frequent bit gets right."""
        share = float(np.mean(self.bits))
        return max(share, 1 - share)

    def count(self, where: str) -> str:
        """Return SQL that counts those who have the secret among those for whom a predicate is true."""
        return f"SELECT {self.counting} FROM {quoted(self.table)} WHERE {where} AND {self.secret}"

    def to_arrow(self, column: str = "secret") -> pa.Table:
        """Return the whole table, with the secrets as zeros and ones, for its owner to load."""
        import pyarrow as pa

        return pa.table({**self.columns, column: self.bits.astype(np.int64)})


@runtime_checkable
class AttackTarget(Protocol):
    """Anything that answers questions about known people."""

    @property
    def name(self) -> str:
        """What it is called in reports."""

    @property
    def people(self) -> People:
        """Whom it is asked about."""

    @property
    def claim(self) -> Claim | None:
        """What it promises, or None."""

    @property
    def speaks(self) -> Speaks:
        """How it is asked."""

    def ask(self, question: Question, /) -> float | Refused:
        """Answer one question, or refuse it. Never raises because of what the data are."""


@dataclass(slots=True)
class Conversation:
    """A conversation with a target: every question, counted; every reply, checked.

    Attributes:
        target: who is asked.
        sent, answered: how many questions, and how many of them got a number.
        refusals: how many refusals of each kind.
        reasons: the distinct reasons, the first few of them.
        first: the first answer.
        varied: whether another answer was not the same.
    """

    target: AttackTarget
    sent: int = 0
    answered: int = 0
    refusals: dict[Why, int] = field(default_factory=lambda: {"policy": 0, "budget": 0, "failure": 0, "closed": 0})
    reasons: list[str] = field(default_factory=list)
    first: float | None = None
    varied: bool = False

    def ask(self, question: Question, of: AttackTarget | None = None) -> float:
        """Return the answer, NaN for none; of another target of the same kind, where one is named.

        A target that has only ever failed is not asked any more.

        Raises:
            DataError: the target is not there, or lets nobody in.
        """
        if self.refusals["failure"] == self.sent >= MOST_REFUSALS:
            return math.nan
        self.sent += 1
        said = number((of or self.target).ask(question))
        if isinstance(said, Refused):
            self._note(said)
            return math.nan
        self.answered += 1
        self.first = said if self.first is None else self.first
        self.varied |= said < self.first or said > self.first
        return said

    def _note(self, refused: Refused) -> None:
        """Count a refusal; stop where nobody is let in."""
        self.refusals[refused.why] += 1
        if refused.reason not in self.reasons and len(self.reasons) < MOST_REASONS:
            self.reasons.append(refused.reason)
        if self.refusals["closed"] == self.sent >= MOST_CLOSED:
            raise DataError(
                "the target cannot be asked",
                rule="it is there, and lets the attacker in",
                got=refused.reason,
                next_step="check the address, and what it wants to be sent, such as --header 'Authorization: ...'",
            )

    def all(self, questions: list[Question]) -> NDArray[np.float64]:
        """Return the answers of several questions, NaN for none: float64[questions]."""
        return np.array([self.ask(question) for question in questions], dtype=np.float64)

    def turns(self, repeats: int, *, pooled: bool = False) -> Iterator[int]:
        """Yield 0 .. repeats - 1, as long as there is a point in asking: a spent budget is tried a few times more.

        Targets that are pooled have a budget each, and all are asked.
        """
        for turn in range(repeats):
            if not pooled and self.refusals["budget"] >= MOST_REFUSALS:
                return
            yield turn

    @property
    def refused(self) -> int:
        """How many questions got no number."""
        return self.sent - self.answered

    @property
    def alike(self) -> bool:
        """Whether it said the same to everything, and so told nothing."""
        return self.answered > 1 and self.first is not None and not self.varied

    @property
    def exhausted(self) -> bool:
        """Whether a budget ended it."""
        return self.refusals["budget"] > 0


MOST_REFUSALS: Final = 20
"""How often an attack goes on asking after a budget was spent, in case that it was not, or where all else failed."""

MOST_CLOSED: Final = 3
"""How often a target is tried that is not there or lets nobody in."""

MOST_ANSWER: Final = 1e12
"""Whatever is larger is not a count of people, with any noise."""

MOST_REASONS: Final = 5
"""How many distinct reasons of refusal a report keeps."""


def number(said: Any) -> float | Refused:
    """Return what a target said as a finite number, or as the refusal that it amounts to.

    >>> number(float("nan"))
    Refused(reason='the answer is not a finite number: nan', why='failure')
    >>> number([1, 2]).reason
    'the answer is not one number: list'
    """
    if isinstance(said, Refused):
        return said
    if isinstance(said, (str, bytes)) or said is None or np.ndim(said) != 0 or np.asarray(said).dtype.kind == "b":
        return Refused(f"the answer is not one number: {type(said).__name__}", "failure")
    try:
        value = float(said)
    except (TypeError, ValueError, OverflowError):
        return Refused(f"the answer is not one number: {type(said).__name__}", "failure")
    if not math.isfinite(value):
        return Refused(f"the answer is not a finite number: {value}", "failure")
    return value if abs(value) <= MOST_ANSWER else Refused(f"the answer is larger than any count: {value:g}", "failure")


def binary(values: Any) -> NDArray[np.bool_]:
    """Return secrets as bool[n], or refuse what is not zeros and ones."""
    array = np.asarray(values)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
        raise DataError(
            "the secrets are not bits",
            rule="one 0 or 1 for each known person",
            got=f"an array of {array.dtype} and shape {array.shape}",
            next_step="attack a yes/no question about each person, such as status = 'C'",
        )
    return array.astype(bool)


def quoted(name: str) -> str:
    """Return a table or column name as SQL."""
    return name if _PLAIN.match(name) else '"' + name.replace('"', '""') + '"'


def literal(value: Any) -> str:
    """Return a known value as an SQL constant.

    >>> literal("O'Hara"), literal(np.int64(3)), literal(2.5)
    ("'O''Hara'", '3', '2.5')
    """
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, (int, float)):
        return repr(plain)
    return "'" + str(plain).replace("'", "''") + "'"


def _read(path: Path) -> pa.Table:
    """Return the table in a CSV or Parquet file."""
    from pyarrow import ArrowInvalid, csv, parquet

    try:
        return parquet.read_table(path) if path.suffix.lower() == ".parquet" else csv.read_csv(path)
    except (OSError, ArrowInvalid) as error:
        raise DataError(
            "the people cannot be read",
            rule="a CSV or Parquet file",
            got=f"{path}: {error}",
            next_step="write one with attacks.secrets(n, seed, path='people.parquet')",
        ) from error


Asked = Conversation
Target = AttackTarget
"""The names by which users know them."""
