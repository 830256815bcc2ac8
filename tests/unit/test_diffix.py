"""The simulated Diffix: what it reads, what it refuses, and how it hides."""

import numpy as np
import pyarrow as pa
import pytest

from farthing.attacks import tables
from farthing.attacks.diffix import CALIBRATED, RESTRICTIONS, Diffix
from farthing.attacks.diffix.facts import DiffixFacts
from farthing.attacks.diffix.noise import StickyNoise
from farthing.attacks.diffix.outliers import by_groups, by_moments
from farthing.attacks.diffix.reading import read
from farthing.attacks.target import Question, Refused, Target
from farthing.errors import DataError, InvalidOption, UnsupportedQuery

LOANS, RIDES = tables.loans(seed=0), tables.rides(seed=0, known=90, rows=4_000)
HASH = "floor(100 * pow(client_id * 2, 0.7) + 0.5) = floor(100 * pow(client_id * 2, 0.7))"
POWER = "FLOOR(pickup_latitude ^ 8.789 + 0.5) = FLOOR(pickup_latitude ^ 8.789)"
FILTER = "trip_distance IN (0.87, 1.97, 2.75)"
VERSIONS = tuple(RESTRICTIONS)


def answer(where, version="birch", table=LOANS, select="COUNT(*)", **facts):
    """Return what a system says to one condition."""
    return Diffix(table, version, **facts).answer(f"SELECT {select} FROM {table.name} WHERE {where}")


def exact(where, table=LOANS, select="COUNT(*)"):
    """Return the answer of a system without noise."""
    return answer(where, table=table, select=select, layer_sd=0)


def kinds(where):
    """Return what the conditions are read as."""
    return sorted(condition.kind for condition in read(f"SELECT COUNT(*) FROM t WHERE {where}").conditions)


def test_it_is_a_target():
    """It has what an attack asks of a target, speaks SQL only, and promises nothing."""
    diffix = Diffix(LOANS, "cedar")

    assert isinstance(diffix, Target)
    assert ("Diffix Cedar", None, "sql") == (diffix.name, diffix.claim, diffix.speaks)
    assert isinstance(diffix.ask(Question(chosen=np.ones(3, dtype=bool))), Refused)


@pytest.mark.parametrize(
    ("where", "kind"),
    [
        ("a = 1", ["equal"]),
        ("1 = a", ["equal"]),
        ("a IN (1)", ["equal"]),
        ("a IN (1, 2)", ["in"]),
        ("a <> 1", ["unequal"]),
        ("a NOT IN (1, 2)", ["unequal"]),
        ("a BETWEEN 1 AND 2", ["range"]),
        ("a >= 1 AND b = 2 AND 3 > a", ["equal", "range"]),
        ("floor(a) = 1", ["bucket"]),
        ("cast(a AS integer) = 1", ["bucket"]),
        ("floor(a + 1) = 1", ["predicate"]),
        ("(a = b)", ["predicate"]),
    ],
)
def test_conditions_are_read(where, kind):
    """A condition is clear, a range in disguise, or unclear; the two ends of a range are one condition."""
    assert kind == kinds(where)


def test_ways_to_write_a_condition_are_one():
    """The noise of a clear condition does not depend on how it is written."""
    written = ["status = 'C'", "'C' = status", "status IN ('C')", "(status = 'C') AND 'C' = status"]

    assert 1 == len({answer(where) for where in written})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "what",
        "DROP TABLE loans",
        "SELECT 1",
        "SELECT COUNT(*) FROM loans; SELECT COUNT(*) FROM loans",
        "SELECT COUNT(*), COUNT(*) FROM loans",
        "SELECT status FROM loans",
        "SELECT AVG(amount) FROM loans",
        "SELECT SUM(DISTINCT amount) FROM loans",
        "SELECT SUM(status) FROM loans",
        "SELECT COUNT(DISTINCT status) FROM loans",
        "SELECT COUNT(*) FROM people",
        "SELECT COUNT(*) FROM (SELECT * FROM loans)",
        "SELECT COUNT(*) FROM loans JOIN loans AS b ON TRUE",
        "SELECT status, COUNT(*) FROM loans GROUP BY status",
        "SELECT COUNT(*) FROM loans LIMIT 1",
        "WITH loans AS (SELECT 1) SELECT COUNT(*) FROM loans",
        *(
            f"SELECT COUNT(*) FROM loans WHERE {where}"
            for where in [
                "status = 'C' OR amount = 5000",
                "NOT status = 'C'",
                "amount > 5000",
                "amount > 1 AND amount > 2",
                "TRUE",
                "1 = 1",
                "nobody = 1",
                "status = 3",
                "status LIKE 'C%'",
                "amount IN (SELECT 1)",
                "amount IN (1, 'a')",
                "sha256(status) = 'x'",
                "floor(status) = 1",
                "cast(amount AS blob) = 'x'",
                "substring(status, 0, 1) = 'C'",
                "extract(hour FROM status) = 1",
                "amount = " + "(" * 300 + "1" + ")" * 300,
                "amount = " + "- " * 5_000 + "1",
                "amount " + "+ 1 " * 5_000 + " = amount",
            ]
        ),
    ],
)
def test_what_is_not_of_the_subset_is_refused(text):
    """Other SQL is refused by name; nothing that is asked raises an error."""
    found = Diffix(LOANS).answer(text)

    assert isinstance(found, Refused)
    assert found.reason.startswith("refused: ")


ACCEPTED = {
    "birch": [HASH, "client_id <> 2744", "client_id BETWEEN 2000 AND 3000", "abs(client_id - 5) = 3000"],
    "cedar": ["client_id BETWEEN 2000 AND 13999", "floor(amount / 7) = floor(amount / 7 + 0.5)", "status <> 'A'"],
    "dogwood": ["client_id BETWEEN 2000 AND 13999", "floor(amount) = 200000", "amount / 7 = 3000", "status <> 'A'"],
}
REFUSED = {
    "birch": ["floor(1 + 2 * sqrt(abs(amount - 3))) = ceil(ceil(ceil(ceil(ceil(ceil(amount))))))"],
    "cedar": [HASH, "client_id <> 2744", "abs(client_id - 5) = 3000", "floor(client_id) = 3000"],
    "dogwood": [HASH, "client_id <> 2744", "floor(amount / 7) = floor(amount / 7 + 0.5)", "floor(amount + 1) = 9"],
}


@pytest.mark.parametrize(("version", "where"), [(key, where) for key, held in ACCEPTED.items() for where in held])
def test_what_a_version_accepts(version, where):
    """A question within the rules has an answer, or too few people."""
    found = answer(where, version)

    assert not isinstance(found, Refused) or found.reason.startswith("suppressed")


@pytest.mark.parametrize(("version", "where"), [(key, where) for key, held in REFUSED.items() for where in held])
def test_what_a_version_refuses(version, where):
    """A question against the rules is refused, and the reason names the rule."""
    assert "rule: " in answer(where, version).reason
    assert answer(where, version).reason.startswith("refused")


@pytest.mark.parametrize("version", ["birch", "cedar"])
def test_the_second_attack_is_within_the_rules_of_cedar(version):
    """Latitudes isolate nobody by themselves, so their powers may be rounded; digits of a number may be added."""
    digit = "SUM(CAST(SUBSTRING(ssn, 3, 1) AS integer))"

    assert isinstance(answer(f"{POWER} AND {FILTER} AND payment_type = 'CSH'", version, RIDES), float)
    assert isinstance(answer(f"{POWER} AND {FILTER}", version, RIDES, digit), float)
    assert "implicit range" in answer(f"{POWER} AND {FILTER}", "dogwood", RIDES, digit).reason


def test_arithmetic_in_a_rounded_sum_is_refused_by_dogwood():
    """No arithmetic inside of a rounding function, wherever it stands."""
    assert isinstance(answer("status = 'C'", "cedar", select="SUM(floor(amount / 7))"), float)
    assert "no arithmetic" in answer("status = 'C'", "dogwood", select="SUM(floor(amount / 7))").reason
    assert isinstance(answer("status = 'C'", "dogwood", select="SUM(floor(amount))"), float)


def test_isolating_columns_are_found():
    """A column isolates where more than four in five of its values belong to one user each."""
    facts = Diffix(RIDES).facts

    assert {"rider", "ssn", "pickup_datetime"} == {name for name in RIDES.columns if facts.isolating(name)}


def test_values_are_those_of_sql():
    """Without noise the answers are those of the data."""
    ids, status = LOANS.columns["client_id"], LOANS.columns["status"]
    power = 100 * np.power(ids * 2.0, 0.7)

    assert (status == "C").sum() == exact("status = 'C'")
    assert ((ids >= 2000) & (ids < 5000)).sum() == exact("client_id >= 2000 AND client_id < 5000")
    assert (np.floor(power + 0.5) == np.floor(power)).sum() == exact(HASH)
    assert np.isin(status, ("A", "B")).sum() == exact("status IN ('A', 'B')", select="COUNT(DISTINCT client_id)")
    assert (~np.isin(status, ("A", "B"))).sum() == exact("status NOT IN ('A', 'B')", select="COUNT(client_id)")


def test_values_of_times_and_text():
    """Parts of times and text are read as SQL does; what is no number has no value."""
    times, ssns = RIDES.columns["pickup_datetime"], RIDES.columns["ssn"]
    hours = (times.astype("M8[h]").astype(np.int64)) % 24
    seconds = np.array([int(str(time)[-1]) for time in times])

    assert (hours == 3).sum() == exact("extract(hour FROM pickup_datetime) = 3", RIDES)
    assert (seconds == 7).sum() == exact("substring(cast(pickup_datetime AS text), 19, 1) = '7'", RIDES)
    assert sum(ssn[2] == "4" for ssn in ssns) == exact("cast(substring(ssn, 3, 1) AS integer) = 4", RIDES)
    assert isinstance(exact("cast(substring(ssn, 4, 1) AS integer) = 4", RIDES), Refused)
    assert (times < np.datetime64("2013-02-01")).sum() == exact(
        "pickup_datetime BETWEEN '2013-01-01' AND '2013-01-31 23:59:59'", RIDES
    )


def test_noise_is_sticky():
    """The same question has the same answer, in this system and in another one of the same key, and not of another."""
    where = "status = 'C' AND client_id BETWEEN 2000 AND 5000"
    asked = [answer(where), answer(where), answer(where, seed=1), answer(where, seed=2)]

    assert asked[0] == asked[1]
    assert 1 < len(set(asked))


def test_the_same_users_by_other_words_share_their_noise():
    """Unclear conditions that select the same rows have the same layers: rewriting gains nothing."""
    written = ["floor(amount * 3) = 14997", "floor(3 * amount) = 14997 + 0", "ceil(amount + amount * 2) = 14997"]
    table = tables.loans(seed=0)
    table.columns["amount"][:50] = 4999

    assert 1 == len({answer(where, table=table) for where in written})
    assert 50 == answer(written[0], table=table, layer_sd=0)


def test_few_users_are_suppressed():
    """Up to two users never are an answer, seven always are one: the threshold is about four."""
    ids = LOANS.columns["client_id"]
    said = {n: answer(f"client_id BETWEEN {ids[0]} AND {ids[n - 1]}") for n in (1, 2, 7)}

    assert [True, True, False] == [isinstance(said[n], Refused) for n in said]
    assert "suppressed: too few users" == said[1].reason


def test_a_count_is_a_whole_number_of_at_least_two():
    """Counts are rounded, and never tell that there is hardly anybody."""
    ids = LOANS.columns["client_id"]
    said = [answer(f"client_id BETWEEN {low} AND {high}", layer_sd=5) for low, high in zip(ids, ids[5:], strict=False)]
    numbers = [number for number in said if not isinstance(number, Refused)]

    assert 2 == min(numbers)
    assert all(number == int(number) for number in numbers)


def spread(layer_sd, version="birch"):
    """Return the standard deviation of the errors of the first attack's counts."""
    diffix, people = Diffix(LOANS, version, layer_sd), LOANS.people
    errors = []
    for step in range(250):
        power = 50 * np.power(people.ids * 3.0, 0.5 + step / 1000)
        held = np.floor(power + 0.5) == np.floor(power)
        said = f"50 * pow(client_id * 3, {0.5 + step / 1000})"
        found = diffix.answer(people.count(f"floor({said} + 0.5) = floor({said})"))
        errors.append(found - (held & people.bits).sum())
    return float(np.std(errors))


@pytest.mark.parametrize(("layer_sd", "expected"), [(1.0, 2.0), (CALIBRATED, 3.7)])
def test_four_layers_vary_between_the_counts_of_an_attack(layer_sd, expected):
    """Six layers, of which two are the same in all counts: 2 layer_sd, and rounding; 5 deviations of room."""
    want = np.sqrt(expected**2 + 1 / 12)

    assert want == pytest.approx(spread(layer_sd), abs=5 * want / np.sqrt(500))


def test_each_member_of_a_list_adds_a_layer():
    """A subset that is said as a list of ids is answered with the noise of as many layers."""
    diffix, coin = Diffix(LOANS), np.random.default_rng(0)
    errors = []
    for _ in range(200):
        chosen = coin.choice(LOANS.people.ids, size=40, replace=False)
        found = diffix.answer(f"SELECT COUNT(*) FROM loans WHERE client_id IN ({', '.join(map(str, chosen))})")
        errors.append(found - 40)

    assert np.sqrt(41) == pytest.approx(np.std(errors), rel=0.25)


def test_outliers_are_flattened():
    """The largest one or two become like the next few, and set the noise."""
    sizes = np.array([1.0] * 50 + [1_000.0])
    grouped, moments = by_groups(sizes, StickyNoise(b"key"), "users"), by_moments(sizes)

    assert (51.0, 1.0) == (grouped.total, grouped.unit)
    assert sizes.sum() > moments.total > 51
    assert by_groups(-sizes, StickyNoise(b"key"), "users").total == -51
    assert by_moments(np.ones(9)).total == 9


def test_tables_of_arrow_are_read():
    """An Arrow table is as good as arrays; names do not depend on case."""
    facts = DiffixFacts.of(pa.table({"ID": [1, 2, 2], "word": ["a", "b", "b"]}), name="T", unit="id")

    assert ["id", "word"] == sorted(facts.columns)
    assert [0, 1, 1] == facts.users.tolist()
    assert frozenset() == facts.frequent("word")


@pytest.mark.parametrize(
    "table",
    [
        3,
        {"x": [1]},
        {"id": [1], "x": [1, 2]},
        {"id": [[1]]},
        pa.table({"id": pa.array([1, None])}),
    ],
)
def test_what_is_no_table(table):
    """A table has the column of users, columns of one length, and no NULLs."""
    with pytest.raises(DataError, match="next: "):
        DiffixFacts.of(table, name="t", unit="id")


@pytest.mark.parametrize("facts", [{"version": "elm"}, {"layer_sd": -1}, {"layer_sd": float("nan")}, {"floated": "x"}])
def test_what_is_no_diffix(facts):
    """Unknown versions and impossible noise are refused."""
    with pytest.raises(InvalidOption, match="rule: "):
        Diffix(LOANS, **facts)


def test_a_reading_raises_by_name():
    """The refusal of the reader carries the construct."""
    with pytest.raises(UnsupportedQuery) as refusal:
        read("SELECT COUNT(*) FROM t GROUP BY a")

    assert "GROUP" == refusal.value.construct
