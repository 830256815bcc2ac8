"""One command against a web service: answers from an open database are broken, those of a farthing session hold."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import duckdb
import pytest
from typer.testing import CliRunner

import farthing
from farthing.attacks import targets
from farthing.cli.app import app
from farthing.errors import BudgetExceeded, FarthingError

pytestmark = pytest.mark.thorough

N = 120


@contextmanager
def served(answer):
    """Give the address of a web service that answers SQL by a function, one question at a time."""
    lock = threading.Lock()

    class Service(BaseHTTPRequestHandler):
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.headers.get("Authorization") != "Bearer sesame":
                self.send_error(403)
                return
            with lock:
                reply = json.dumps(answer(asked["sql"])).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *_):
            """Stay quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/query"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def attack(url, *arguments):
    """Run the command on an address, and return its exit code and what it found."""
    line = ["attack", "run", url, "--secrets", "people.csv", "--header", "Authorization: Bearer sesame", "--json"]
    ended = CliRunner().invoke(app, [*line, *arguments])
    return ended.exit_code, json.loads(ended.stdout)


@pytest.fixture
def people(tmp_path, monkeypatch):
    """Draw people into a file, as the owner of the service does."""
    monkeypatch.chdir(tmp_path)
    assert 0 == CliRunner().invoke(app, ["attack", "secrets", "people.csv", "--n", str(N)]).exit_code


@pytest.mark.usefixtures("people")
def test_an_open_database_behind_a_web_service_is_broken():
    """Every usual attack gets its answers, and all secrets are found."""
    system = duckdb.connect()
    system.execute("CREATE TABLE people AS SELECT * FROM 'people.csv'")
    with served(lambda text: {"answer": system.execute(text).fetchone()[0]}) as url:
        code, found = attack(url, "--claim-epsilon", "1", "--queries", "300")

    assert (10, "broken") == (code, found["verdict"])
    assert {1.0} == {one["accuracy"] for one in found["attacks"]}
    assert 0 == sum(one["refused"] for one in found["attacks"])
    assert found["epsilon_lower"] > 2 * found["claim"]["epsilon"]


@pytest.mark.usefixtures("people")
def test_a_farthing_session_behind_a_web_service_holds():
    """The same questions get answers within the budget, and then the ledger's refusal."""
    budget = farthing.Budget(epsilon=1, delta=1e-6)
    numbers = dict.fromkeys(("id", "age", "area", "secret"), "integer")
    session = farthing.Session(farthing.Csv("people.csv", columns=numbers), budget=budget, name="people")
    loss = targets.equal_share(session, 100)

    def answer(text):
        try:
            return {"answer": float(session.sql(text, loss=loss).value)}
        except BudgetExceeded as refusal:
            return {"refused": refusal.what, "budget": True}
        except FarthingError as refusal:
            return {"refused": refusal.what}

    with served(answer) as url:
        promise = ["--claim-epsilon", "1", "--claim-delta", "1e-6"]
        code, found = attack(url, *promise, "--queries", "150", "--attack", "linear", "--attack", "differencing")

    assert (0, "holds") == (code, found["verdict"])
    assert 100 == found["attacks"][0]["answered"]
    assert 50 == found["attacks"][0]["refused"]
    assert 0.85 > found["attacks"][0]["accuracy"]


@pytest.mark.usefixtures("people")
def test_a_closed_door_is_undecided():
    """Without the header nothing is answered, and the report says what it was told."""
    with served(lambda _: {"answer": 1}) as url:
        ended = CliRunner().invoke(app, ["attack", "run", url, "--secrets", "people.csv", "--attack", "linear"])

    assert 11 == ended.exit_code
    assert "HTTP status 403" in ended.stdout
