"""Diffix, as it was described in public: sticky layered noise, suppression, flattening, and a list of refusals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from farthing.attacks.diffix.evaluation import holds, value
from farthing.attacks.diffix.facts import DiffixFacts
from farthing.attacks.diffix.noise import StickyNoise, fingerprint
from farthing.attacks.diffix.outliers import Flattened, by_groups, by_moments
from farthing.attacks.diffix.reading import columns_of, read, refused
from farthing.attacks.diffix.restrictions import RESTRICTIONS, Version
from farthing.attacks.target import Refused
from farthing.errors import InvalidOption, UnsupportedQuery

if TYPE_CHECKING:
    from farthing.attacks.diffix.evaluation import Array, Columns
    from farthing.attacks.diffix.reading import Condition, Reading
    from farthing.attacks.tables import Generated
    from farthing.attacks.target import Claim, People, Question

Floated = Literal["set", "ends"]

CALIBRATED: Final = 1.85
"""The standard deviation of a layer that gives the errors of the real system's answers of 2018: about 3.7 a count."""

_LEAST_USERS: Final = 2
_THRESHOLD, _THRESHOLD_SD = 4.0, 0.5
_MOST_KEPT: Final = 256


class Diffix:
    """A simulated Diffix over a table, as a target of attacks.

    Written from the public description of the system; see docs/reference/diffix.md for its rules.

    Args:
        table: a table of `farthing.attacks.tables`, or any with a name, a unit, columns and known people.
        version: "birch" (2017), "cedar" (2018) or "dogwood" (2020): what it refuses, and how it flattens.
        layer_sd: the standard deviation of one noise layer of a count: 1.0 as documented, `CALIBRATED` as measured.
        floated: what the noise of an unclear condition is seeded with: the "set" of the values that fulfil it, or its
            "ends", the least and the greatest. None is "set" for birch and cedar and "ends" for dogwood.
        seed: names the system's secret key.

    >>> from farthing.attacks import tables
    >>> diffix = Diffix(tables.loans(seed=0))
    >>> diffix.answer("SELECT COUNT(*) FROM loans WHERE status = 'C' AND client_id BETWEEN 2000 AND 3000")
    42.0
    >>> diffix.answer("SELECT COUNT(*) FROM loans WHERE status = 'C' OR client_id = 2000").reason[:25]
    'refused: a condition (OR)'
    """

    claim: Claim | None = None
    speaks: Literal["sql"] = "sql"

    def __init__(
        self,
        table: Generated,
        version: Version = "birch",
        layer_sd: float = 1.0,
        *,
        floated: Floated | None = None,
        seed: int = 0,
    ) -> None:
        _check(version, layer_sd, floated)
        self.people: People = table.people
        self.name = f"Diffix {version.capitalize()}"
        self.version, self.layer_sd = version, layer_sd
        self.floated: Floated = floated or ("ends" if version == "dogwood" else "set")
        self.facts = DiffixFacts.of(table.columns, name=table.name, unit=table.unit)
        self.noise = StickyNoise(fingerprint(f"diffix {seed}".encode()))
        self._candidates: dict[tuple[object, ...], Array] = {}

    def ask(self, question: Question, /) -> float | Refused:
        """Answer a question in SQL."""
        if question.text is None:
            return Refused("refused: a vector; this system speaks SQL")
        return self.answer(question.text)

    def answer(self, text: str) -> float | Refused:
        """Return the noisy answer to one SELECT, or why there is none: a rule, or too few users."""
        try:
            reading = read(text)
            for rule in RESTRICTIONS[self.version]:
                rule(reading, self.facts)
            return self._noisy(reading, self._selected(reading))
        except UnsupportedQuery as refusal:
            return Refused(str(refusal))
        except RecursionError:
            return Refused("refused: a text of too many levels")

    def _selected(self, reading: Reading) -> Selected:
        """Return the rows and users that fulfil all conditions; those of clear conditions are found once."""
        clear = tuple(condition for condition in reading.conditions if condition.kind in _PLAIN)
        key = tuple(sorted(repr(condition.key) for condition in clear))
        if key not in self._candidates:
            if len(self._candidates) >= _MOST_KEPT:
                self._candidates.clear()
            self._candidates[key] = self._rows(clear, np.arange(len(self.facts.users)))
        unclear = tuple(condition for condition in reading.conditions if condition.kind not in _PLAIN)
        return Selected.of(self._rows(unclear, self._candidates[key]), self.facts)

    def _rows(self, conditions: tuple[Condition, ...], rows: Array) -> Array:
        """Return those of these rows that fulfil the conditions."""
        for condition in conditions:
            rows = rows[np.broadcast_to(holds(condition, self.facts.part(condition.columns, rows)), rows.shape)]
        return rows

    def _noisy(self, reading: Reading, selected: Selected) -> float | Refused:
        """Return the flattened sum with its layers of noise, if the users are enough."""
        users = selected.seed(self.version)
        count = len(selected.users)
        if count < _LEAST_USERS or count < _THRESHOLD + _THRESHOLD_SD * self.noise.normal("low count", users):
            return Refused("suppressed: too few users")
        flattened = self._flattened(self._contributions(reading, selected), users)
        layers = sum(self.noise.normal(*seed) for seed in self._layers(reading, selected, users))
        noisy = flattened.total + self.layer_sd * flattened.unit * layers
        return noisy if reading.aggregate == "sum" else max(float(_LEAST_USERS), float(np.rint(noisy)))

    def _contributions(self, reading: Reading, selected: Selected) -> Array:
        """Return what each selected user adds to the answer."""
        if reading.aggregate == "count_distinct":
            return np.ones(len(selected.users))
        if reading.aggregate == "count" or reading.argument is None:
            return np.bincount(selected.places).astype(np.float64)
        values = value(reading.argument, selected.part(columns_of(reading.argument)))
        if values.dtype.kind not in "biuf":
            raise refused("a SUM of text", "numbers", reading.argument.sql()[:80], "cast it")
        return np.bincount(selected.places, np.nan_to_num(np.broadcast_to(values, selected.rows.shape)))

    def _flattened(self, contributions: Array, users: object) -> Flattened:
        """Return the sum without outliers, in the way of the version."""
        if self.version == "dogwood":
            return by_moments(contributions)
        return by_groups(contributions, self.noise, users)

    def _layers(self, reading: Reading, selected: Selected, users: object) -> set[tuple[object, ...]]:
        """Return the seeds of the noise layers; what has the same seed is one layer."""
        seeds: set[tuple[object, ...]] = set()
        for condition in reading.conditions:
            seeds |= self._layers_of(condition, selected, users)
        if reading.aggregate != "sum" and reading.argument is not None:
            seeds.add(("counted", reading.argument.sql().lower(), users))
        return seeds or {("nothing asked",)}

    def _layers_of(self, condition: Condition, selected: Selected, users: object) -> set[tuple[object, ...]]:
        """Return the seeds of one condition: a static layer, and one or more that hang on the users."""
        hidden_range = condition.kind == "bucket" and self.version == "dogwood"
        if condition.kind == "range" or hidden_range:
            return {condition.key}
        if condition.kind == "in":
            members = {("equal", condition.columns, (member,), users) for member in condition.constants}
            return {condition.key, *members}
        static = condition.key
        if condition.kind in _UNCLEAR:
            static = ("floated", condition.columns, selected.floated(condition.columns, self.floated))
        return {static, (*static, users)}


_PLAIN: Final = frozenset({"equal", "unequal", "in", "range"})
_UNCLEAR: Final = frozenset({"predicate", "bucket"})


@dataclass(frozen=True, slots=True)
class Selected:
    """The rows that a question is about.

    Attributes:
        rows: their places in the table.
        users: the users among them, each once, in order.
        places: for each row the place of its user among these.
        facts: of the table.
    """

    rows: Array
    users: Array
    places: Array
    facts: DiffixFacts

    @classmethod
    def of(cls, rows: Array, facts: DiffixFacts) -> Selected:
        """Return these rows with their users."""
        users, places = np.unique(facts.users[rows], return_inverse=True)
        return cls(rows, users, places.reshape(-1), facts)

    def part(self, names: tuple[str, ...]) -> Columns:
        """Return columns of these rows."""
        return self.facts.part(names, self.rows)

    def seed(self, version: Version) -> object:
        """Return what names the set of users: a hash of it, or its least, its greatest and its size (Dogwood)."""
        if version == "dogwood" and self.users.size:
            return int(self.users[0]), int(self.users[-1]), self.users.size
        return fingerprint(self.users.tobytes())

    def floated(self, names: tuple[str, ...], how: Floated) -> tuple[Any, ...]:
        """Return what names the values of columns in these rows: a hash of their set, or the least and the greatest."""
        kept = [np.unique(values) for values in self.part(names).values()]
        if how == "set":
            return tuple(fingerprint(values.tobytes()) for values in kept)
        return tuple(str(end) for values in kept for end in (values[:1], values[-1:]))


def _check(version: str, layer_sd: float, floated: str | None) -> None:
    """Refuse what is not a Diffix."""
    if version not in RESTRICTIONS:
        raise InvalidOption(
            "the version is unknown", rule="birch, cedar or dogwood", got=version, next_step="choose one"
        )
    if not 0 <= layer_sd < np.inf:
        raise InvalidOption(
            "the noise is out of range", rule="layer_sd is finite and >= 0", got=layer_sd, next_step="1.0"
        )
    if floated not in (None, "set", "ends"):
        raise InvalidOption(
            "the seed is unknown", rule='floated is "set" or "ends"', got=floated, next_step="leave it out"
        )
