"""Targets that are somebody's own system: answers, refusals, and everything else they may do."""

import json
import sqlite3
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import duckdb
import numpy as np
import pytest
import sqlalchemy

from farthing import Budget, Pure, Session, attacks
from farthing.attacks import Claim, Question, Refused, targets
from farthing.errors import DataError

PEOPLE = attacks.secrets(40, seed=1)
HALF = np.arange(40) < 20
TRUTH = int(PEOPLE.bits[:20].sum())
ASK = Question(chosen=HALF)
SQL = Question(text=PEOPLE.count("id <= 20"))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (float("nan"), "not a finite number"),
        (float("inf"), "not a finite number"),
        ("many", "not one number: str"),
        (None, "not one number: NoneType"),
        ([1.0, 2.0], "not one number: list"),
        (np.ones(3), "not one number: ndarray"),
        (object(), "not one number: object"),
        (1j, "not one number: complex"),
        (True, "not one number: bool"),
        (np.ones(1, dtype=bool)[0], "not one number: bool"),
        (1e300, "larger than any count"),
    ],
)
def test_what_is_no_number_is_a_failure(said, words):
    """NaN, texts, several numbers and worse are recorded, with plain words."""
    refused = targets.Function(lambda _: said, PEOPLE).ask(ASK)
    assert "failure" == refused.why
    assert words in refused.reason


def test_numbers_of_all_kinds_are_answers():
    """Integers, numpy scalars and 0-d arrays."""
    for said in (3, np.int64(3), np.float32(3), np.array(3)):
        assert 3.0 == targets.Function(lambda _, said=said: said, PEOPLE).ask(ASK)


def test_a_function_that_raises_has_failed():
    """An exception is a refusal with its text, not the end of the attack."""
    refused = targets.Function(lambda _: 1 / 0, PEOPLE).ask(ASK)
    assert Refused("ZeroDivisionError: division by zero", "failure") == refused


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_a_function_that_wants_to_end_the_program_has_failed(error):
    """In its thread that is a failure with its name, not a late answer."""

    def answer(_):
        raise error

    refused = targets.Function(answer, PEOPLE, timeout_s=60.0).ask(ASK)
    assert "failure" == refused.why
    assert error.__name__ in refused.reason


def test_reasons_are_plain_text():
    """Nothing that a terminal obeys gets through."""
    assert "no [2J way  " == Refused("no\x1b[2J way\n\x9b").reason


def test_numbers_are_no_functions():
    """What cannot be called is refused before it is asked."""
    for kind in (targets.Function, targets.SqlFunction):
        with pytest.raises(DataError, match="not a function"):
            kind(3, PEOPLE)


def test_a_function_that_hangs_is_left_behind():
    """No answer in time is a refusal; after three in a row the target is not asked again."""
    asked, freed = [], threading.Event()
    target = targets.Function(lambda _: asked.append(1) or freed.wait(), PEOPLE, timeout_s=0.05)
    said = [target.ask(ASK) for _ in range(6)]  # whoever waited for the function would wait for ever
    freed.set()

    assert 3 == len(asked)
    assert ["no answer in 0.05 s"] * 3 == [refused.reason for refused in said[:3]]
    assert "not asked" in said[5].reason


def test_questions_must_fit():
    """A vector of another length, SQL to a vector target and a question in two ways are refused."""
    with pytest.raises(DataError, match="known people"):
        targets.Exact(PEOPLE.bits).ask(Question(chosen=np.ones(3, dtype=bool)))
    with pytest.raises(DataError, match="known people"):
        targets.Exact(PEOPLE.bits).ask(SQL)
    with pytest.raises(DataError, match="asked with a vector"):
        targets.SqlFunction(lambda _: 1, PEOPLE).ask(ASK)
    for both in ({}, {"text": "SELECT 1", "chosen": HALF}):
        with pytest.raises(DataError, match="one way"):
            Question(**both)


def test_what_is_no_target_is_refused():
    """A function needs the secrets; a target has its own; numbers are no targets."""
    for wrong in (lambda _: 0, 3):
        with pytest.raises(DataError, match="this cannot be attacked"):
            attacks.linear(wrong)
    with pytest.raises(DataError, match="own secrets"):
        attacks.linear(targets.Exact(PEOPLE.bits), bits=PEOPLE.bits)
    with pytest.raises(DataError, match="no target"):
        attacks.single_target([])


def test_toys_defend_as_they_say():
    """Each of them on a count that is known."""
    bits = np.ones(40, dtype=bool)
    answer = {kind: target.answer(HALF) for kind, target in {
        "exact": targets.Exact(bits), "rounded": targets.Rounded(bits, 7), "shown": targets.Suppressed(bits, 20),
        "small": targets.Suppressed(bits, 21), "sample": targets.Subsample(bits),
    }.items()}  # fmt: skip

    assert (20, 21, 20) == (answer["exact"], answer["rounded"], answer["shown"])
    assert "fewer people" in answer["small"].reason
    assert 0 == answer["sample"] % 2
    with pytest.raises(DataError, match="lie of this size"):
        targets.Adversarial(bits, 1)


def test_budgets_end():
    """After its questions an honest target refuses for good, and says that it is the budget."""
    target = targets.Honest(PEOPLE.bits, epsilon=2, questions=3)
    said = [target.answer(HALF) for _ in range(5)]
    assert [False] * 3 + [True] * 2 == [isinstance(one, Refused) for one in said]
    assert "budget" == said[4].why
    assert Claim(2) == target.claim


def loaded(connection):
    """Return a connection that holds the people."""
    connection.execute("CREATE TABLE people (id INTEGER, age INTEGER, sex VARCHAR, area INTEGER, secret INTEGER)")
    columns = PEOPLE.to_arrow().to_pydict()
    for row in zip(*columns.values(), strict=True):
        connection.execute("INSERT INTO people VALUES (?, ?, ?, ?, ?)", row)
    return connection


@pytest.mark.parametrize("driver", [sqlite3, duckdb])
def test_dbapi_connections_answer(driver):
    """One number is an answer; an error, several rows, no row and NULL are failures."""
    target = targets.Database(loaded(driver.connect(":memory:")), PEOPLE)
    assert TRUTH == target.ask(SQL)
    texts = {
        "SELECT nothing FROM nowhere": "Error",
        "SELECT id FROM people": "several",
        "SELECT id FROM people WHERE id < 0": "no row",
        "SELECT NULL": "NoneType",
    }
    for text, words in texts.items():
        refused = target.ask(Question(text=text))
        assert words in refused.reason or "Exception" in refused.reason
        assert "failure" == refused.why


def test_slow_queries_are_interrupted():
    """A query over its time is stopped by the driver."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    target = targets.Database(connection, PEOPLE, timeout_s=0.1)
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT COUNT(*) FROM c"

    assert Refused("no answer in 0.1 s", "failure") == target.ask(Question(text=endless))


def test_sqlalchemy_urls_engines_and_connections_answer(tmp_path):
    """All three ways to name a database, in file."""
    with sqlite3.connect(tmp_path / "people.db") as connection:
        loaded(connection)
    connection.close()
    url = f"sqlite:///{tmp_path / 'people.db'}"
    engine = sqlalchemy.create_engine(url)
    with engine.connect() as opened:
        for way in (url, engine, opened):
            assert TRUTH == targets.Database(way, PEOPLE).ask(SQL)
    engine.dispose()


REPLIES = {
    "number": (200, "7"),
    "object": (200, '{"answer": 7}'),
    "text": (200, '{"answer": "seven"}'),
    "other": (200, '{"result": 7}'),
    "nan": (200, "NaN"),
    "list": (200, "[1, 2]"),
    "html": (200, "<html>"),
    "deep": (200, "[" * 100_000),
    "locked": (401, "who are you?"),
    "error": (500, "oops"),
    "refused": (403, '{"refused": "no such column"}'),
    "budget": (200, '{"refused": "spent", "budget": true}'),
}


class Handler(BaseHTTPRequestHandler):
    """Reply as the path says, or echo who was counted."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/hang":
            time.sleep(1.0)
        counted = str(sum(body["query"])) if "query" in body else str(len(body["sql"]))
        status, text = REPLIES.get(self.path[1:], (200, counted))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def server():
    """Return the address of a small web service."""
    serving = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=serving.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{serving.server_port}"
    serving.shutdown()
    serving.server_close()


def test_endpoints_answer_in_both_languages(server):
    """SQL and vectors are posted, and numbers come back, bare or in an object."""
    assert len(SQL.text) == targets.Endpoint(server, PEOPLE).ask(SQL)
    assert 20.0 == targets.Endpoint(server, PEOPLE, speaks="vector").ask(ASK)
    for path in ("number", "object"):
        assert 7.0 == targets.Endpoint(f"{server}/{path}", PEOPLE).ask(SQL)
    assert 7.0 == targets.Endpoint(f"{server}/other", PEOPLE, field="result").ask(SQL)


@pytest.mark.parametrize(
    ("path", "refused"),
    [
        ("text", Refused("the answer is not one number: str", "failure")),
        ("other", Refused("the reply has no 'answer'", "failure")),
        ("nan", Refused("the answer is not a finite number: nan", "failure")),
        ("list", Refused("the answer is not one number: list", "failure")),
        ("html", Refused("the reply is not JSON", "failure")),
        ("deep", Refused("the reply is not JSON", "failure")),
        ("error", Refused("HTTP status 500", "failure")),
        ("locked", Refused("HTTP status 401", "closed")),
        ("refused", Refused("no such column", "policy")),
        ("budget", Refused("spent", "budget")),
        ("hang", Refused("no answer in 0.2 s", "failure")),
    ],
)
def test_endpoints_that_do_not_answer(server, path, refused):
    """Everything that is no number comes back as a refusal of its kind."""
    target = targets.Endpoint(f"{server}/{path}", PEOPLE, timeout_s=0.2 if path == "hang" else 60)
    said = target.ask(SQL)
    assert refused == said or (path == "hang" and "timed out" in said.reason)


def test_endpoints_that_are_not_there():
    """Nobody listening ends an attack; what is no web address is refused at once."""
    nobody = targets.Endpoint("http://127.0.0.1:9", PEOPLE)
    assert ("closed", True) == (nobody.ask(SQL).why, "not reached" in nobody.ask(SQL).reason)
    with pytest.raises(DataError, match="cannot be asked"):
        attacks.linear(nobody)
    for url in ("file:///etc/hosts", "people", "ftp://host"):
        with pytest.raises(DataError, match="web service"):
            targets.Endpoint(url, PEOPLE)


def test_a_session_claims_what_its_budget_promises_a_group_of_two():
    """Changing a secret is one person leaving and one coming; the ledger's refusal is one by budget."""
    target = targets.FarthingSession.over(PEOPLE, Budget(epsilon=0.5), loss=Pure(0.25))
    assert Claim(1.0) == target.claim
    said = [target.ask(question) for question in (SQL, ASK, Question(text=PEOPLE.count("id <= 21")))]
    assert [False, False, True] == [isinstance(one, Refused) for one in said]
    assert "budget" == said[2].why
    refused = target.ask(Question(text="SELECT COUNT(*) FROM people WHERE random() < 1"))
    assert "policy" == refused.why


def test_a_session_needs_its_people():
    """Guesses are scored by secrets that a session does not give away."""
    session = Session(PEOPLE.to_arrow(), budget=Budget(epsilon=1))
    with pytest.raises(DataError, match="does not give its rows away"):
        targets.FarthingSession(session)
