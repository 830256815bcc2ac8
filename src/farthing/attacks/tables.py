"""Generated tables like those of the published attacks: loans, taxi rides, and a town for the noise attack.

The secrets are fair and independent, as a verdict needs them; nobody in these tables exists.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from farthing.attacks.coins import Coins
from farthing.attacks.target import People
from farthing.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from numpy.typing import NDArray

LOAN_RANGES: Final = {(2000, 3000): 73, (3000, 5000): 110, (5000, 7000): 130, (10000, 12000): 142}
"""How many clients the attacked ranges of client_id hold: 455 in all, as in the attack of 2018."""

_OTHER_LOANS: Final = {(0, 2000): 120, (7000, 10000): 180, (12000, 14000): 72}
_DISTANCES: Final = (0.87, 1.97, 2.75)
_SPOTS: Final = 5_000
_PASSENGERS: Final = (0.5, 0.7, 0.8, 0.85, 0.95, 1.0)
"""The chances of at most 1, 2, ... passengers; none of them has a chance above one half, as a verdict needs it."""


@dataclass(frozen=True, slots=True, eq=False)
class Generated:
    """A table, whose it is, and whom the attacker knows in it.

    Attributes:
        name: what it is called in SQL.
        unit: the column that tells people apart.
        columns: one array per column.
        people: the known people, with their secret bits.
        among: SQL that is true for the known people and nobody else.
        known: int64[n], their rows.
    """

    name: str
    unit: str
    columns: Mapping[str, NDArray[Any]]
    people: People
    among: str
    known: NDArray[np.int64] = field(repr=False)

    def of_known(self, column: str) -> NDArray[Any]:
        """Return a column's values of the known people, in their order: what an attack is scored by."""
        return self.columns[column][self.known]

    def to_arrow(self) -> pa.Table:
        """Return the whole table, for its owner to load."""
        import pyarrow as pa

        return pa.table({name: pa.array(values) for name, values in self.columns.items()})


def loans(seed: int = 0, *, low: int = 2000, high: int = 3000) -> Generated:
    """Return 827 loans of as many clients; the attacker knows the client ids of one range.

    The columns are client_id, amount and status, "C" being the secret. The table is the same for all ranges of a seed.

    Args:
        seed: any whole number.
        low: where the known range begins.
        high: where it ends; both are those of one of `LOAN_RANGES`.

    >>> table = loans(seed=0)
    >>> len(table.columns["client_id"]), table.people.n, table.among
    (827, 73, 'client_id BETWEEN 2000 AND 3000')
    """
    if (low, high) not in LOAN_RANGES:
        ranges = ", ".join(f"{start} to {end}" for start, end in LOAN_RANGES)
        raise DataError(
            "this range of clients is not one of the attacked ones",
            rule=ranges,
            got=f"{low} to {high}",
            next_step="choose one of them",
        )
    ids = np.concatenate([_inside(seed, ends, n) for ends, n in sorted((LOAN_RANGES | _OTHER_LOANS).items())])
    running = Coins(seed, "loans", "status").bits(len(ids))
    amounts = 1_000 * (5 + Coins(seed, "loans", "amount").integers(495, len(ids)))
    ended = np.array(["A", "B", "D"])[Coins(seed, "loans", "ended").integers(3, len(ids))]
    columns = {"client_id": ids, "amount": amounts, "status": np.where(running, "C", ended)}
    known = np.flatnonzero((ids >= low) & (ids <= high))
    among = f"client_id BETWEEN {low} AND {high}"
    people = People(
        running[known],
        {"client_id": ids[known]},
        id="client_id",
        table="loans",
        secret=f"status = 'C' AND {among}",
        counting="COUNT(DISTINCT client_id)",
    )
    return Generated("loans", "client_id", columns, people, among, known)


def rides(seed: int = 0, *, known: int = 450, rows: int = 20_000) -> Generated:
    """Return taxi rides of as many riders; the attacker knows the pickup latitudes of some, to the sixth decimal.

    The columns are rider, pickup_latitude, trip_distance, payment_type, passenger_count, ssn and pickup_datetime. Most
    latitudes are those of several rides, so that the column isolates nobody; those of the known rides, which three
    trip distances select, are all different. Who paid in cash ("CSH") is the secret bit.

    Args:
        seed: any whole number.
        known: how many rides the attacker knows.
        rows: how many there are.

    >>> table = rides(seed=0, known=90, rows=2000)
    >>> table.people.n, table.among
    (90, 'trip_distance IN (0.87, 1.97, 2.75)')
    """
    if not 3 <= known <= min(_SPOTS, rows):
        raise DataError(
            "the number of known rides is out of range",
            rule=f"3 to {min(_SPOTS, rows)}",
            got=known,
            next_step="take fewer",
        )
    cash = Coins(seed, "rides", "cash").bits(rows)
    columns = {
        "rider": np.arange(1, rows + 1),
        "pickup_latitude": _latitudes(seed, rows, known),
        "trip_distance": _distances(seed, rows, known),
        "payment_type": np.where(cash, "CSH", "CRD"),
        "passenger_count": 1 + np.searchsorted(_PASSENGERS, Coins(seed, "rides", "passengers").uniform(rows)),
        "ssn": _ssns(seed, rows),
        "pickup_datetime": np.datetime64("2013-01-01T00:00:00")
        + Coins(seed, "rides", "pickup").integers(365 * 86_400, rows).astype("m8[s]"),
    }
    place = np.arange(known)
    among = f"trip_distance IN ({', '.join(map(str, _DISTANCES))})"
    people = People(
        cash[:known],
        {"rider": columns["rider"][:known], "pickup_latitude": columns["pickup_latitude"][:known]},
        id="rider",
        table="rides",
        secret=f"{among} AND payment_type = 'CSH'",
    )
    return Generated("rides", "rider", columns, people, among, place)


def town(seed: int = 0, *, victims: int = 200, attributes: int = 5, around: int = 10) -> Generated:
    """Return people of whom some are known by several attributes, each shared with all but one of the others nearby.

    The columns are person, a1, a2, ... and status. Around each victim, for each attribute, live some people with status
    "C" who differ from the victim in this attribute only.

    Args:
        seed: any whole number.
        victims: how many people the attacker knows.
        attributes: how many attributes of them.
        around: how many people differ from a victim in a given attribute only.

    >>> town(seed=0, victims=3, attributes=2, around=10).people.n
    3
    """
    codes = np.arange(victims, dtype=np.int64)
    households = 1 + attributes * around
    values = np.repeat(codes, households)[:, None] * np.ones(attributes, dtype=np.int64)
    place = np.tile(np.arange(households), victims)
    odd = (place - 1) // around
    moved = victims + Coins(seed, "town", "values").integers(max(victims, 2), len(place))
    rows = np.flatnonzero(place > 0)
    values[rows, odd[rows]] = moved[rows]
    bits = Coins(seed, "town", "secrets").bits(victims)
    known = np.flatnonzero(place == 0)
    status = np.full(len(place), "C")
    status[known] = np.where(bits, "C", "D")
    columns: dict[str, NDArray[Any]] = {"person": np.arange(1, len(place) + 1)}
    columns |= {f"a{index + 1}": values[:, index] for index in range(attributes)}
    people = People(
        bits,
        {name: column[known] for name, column in columns.items()},
        id="person",
        table="town",
        secret="status = 'C'",  # noqa: S106 (a secret of theirs, not of ours)
    )
    return Generated("town", "person", columns | {"status": status}, people, "a1 >= 0", known)


def _inside(seed: int, ends: tuple[int, int], count: int) -> NDArray[np.int64]:
    """Return that many different numbers strictly between two ends, in order."""
    low, high = ends
    return np.sort(low + 1 + Coins(seed, "loans", "client_id", low).order(high - low - 1)[:count])


def _latitudes(seed: int, rows: int, known: int) -> NDArray[np.float64]:
    """Return latitudes of Manhattan; the first are all different, one in fifty of the others is missing (0)."""
    spots = 40_700_000 + Coins(seed, "rides", "spots").order(100_000)[:_SPOTS]
    places = Coins(seed, "rides", "places").integers(_SPOTS, rows)
    places[:known] = np.arange(known)
    latitudes = spots[places] / 1e6
    missing = Coins(seed, "rides", "missing").uniform(rows) < 0.02
    missing[:known] = False
    return np.where(missing, 0.0, latitudes)


def _distances(seed: int, rows: int, known: int) -> NDArray[np.float64]:
    """Return distances in miles, to two decimals; the three of the known rides are nobody else's."""
    others = np.array([hundredths / 100 for hundredths in range(10, 900) if hundredths / 100 not in _DISTANCES])
    distances = others[Coins(seed, "rides", "distance").integers(len(others), rows)]
    distances[:known] = np.array(_DISTANCES)[np.arange(known) % len(_DISTANCES)]
    return distances


def _ssns(seed: int, rows: int) -> NDArray[np.str_]:
    """Return made-up social security numbers, nine fair digits each."""
    digits = Coins(seed, "rides", "ssn").integers(10**9, rows)
    return np.array([f"{d // 10**6:03d}-{d // 10**4 % 100:02d}-{d % 10**4:04d}" for d in digits.tolist()])
