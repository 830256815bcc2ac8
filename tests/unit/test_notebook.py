"""`%%farthing`: a cell is priced first, answered when it is paid for, the same from a session and from a server."""

from __future__ import annotations

import io
import json

import pytest
import servers

import farthing
from farthing.notebook import moving

IPython = pytest.importorskip("IPython", reason="NOT TESTED: the magic of notebooks needs ipython")
from IPython.core.error import UsageError  # noqa: E402
from IPython.core.interactiveshell import InteractiveShell  # noqa: E402
from traitlets.config import Config  # noqa: E402

pytestmark = pytest.mark.thorough

SQL = "SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone"


@pytest.fixture(scope="module")
def shell():
    """A shell of IPython with the extension."""
    made = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    made.run_line_magic("load_ext", "farthing")
    return made


@pytest.fixture(params=["session", "server"])
def session(request, tmp_path, shell):
    """A variable `rides`: a session of this process, or a connection to a server."""
    world = servers.World(tmp_path)
    if request.param == "session":
        with world.opened() as made:
            shell.user_ns["rides"] = made
            yield made
    else:
        with world.listening() as address, farthing.connect(address, world.tokens["alice"]) as made:
            shell.user_ns["rides"] = made
            yield made
    del shell.user_ns["rides"]
    world.close()


def test_a_cell_is_priced_then_paid_then_free(shell, session, capsys):
    """Without --pay nothing is paid; with it the answer comes; after that the cell alone answers, free."""
    assert shell.run_cell_magic("farthing", "rides --relative 10%", SQL) is None
    assert "Nothing was paid" in capsys.readouterr().out
    assert not session.spent
    paid = shell.run_cell_magic("farthing", "rides --relative 10% --pay --into first", SQL)
    free = shell.run_cell_magic("farthing", "--relative 10%", SQL)
    assert paid.paid
    assert not free.paid
    assert shell.user_ns["first"] is paid
    assert paid.to_arrow().column_names[:2] == ["zone", "n"]
    assert len(paid.value) == 3


@pytest.mark.usefixtures("session")
def test_a_chart_comes_with_the_answer(shell, monkeypatch):
    """--chart shows intervals and prices by group, of either face."""
    pytest.importorskip("altair")
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda one, **_: shown.append(one))
    shell.run_cell_magic("farthing", "rides --absolute 200 --pay --chart", SQL)
    text = json.dumps(shown[-1].to_dict(validate=False))
    assert '"group": "a"' in text
    still = shown[-1]._repr_mimebundle_()
    assert still["image/svg+xml"].startswith("<svg")
    assert "text/html" not in still  # which would load a script
    assert "within 200" in text


@pytest.mark.parametrize(
    ("line", "cell"),
    [
        ("nobody", SQL),
        ("rides --relative much", SQL),
        ("rides --colour red", SQL),
        ("rides 'open", SQL),
        ("rides --pay", "SELECT * FROM rides"),
        ("rides --pay --absolute 0.001", SQL),
    ],
)
def test_mistakes_are_one_line_and_free(shell, session, line, cell):
    """What cannot be asked is told without a traceback, and nothing is paid."""
    with pytest.raises(UsageError) as told:
        shell.run_cell_magic("farthing", line, cell)
    assert told.value.__cause__ is told.value.__context__ is None
    assert not session.spent


@pytest.mark.usefixtures("session")
def test_keys_are_named_in_the_line(shell):
    """Groups of a cell: a list, or a look for them."""
    some = shell.run_cell_magic("farthing", "rides --keys zone=a,b --absolute 100 --pay", SQL)
    assert some.to_arrow()["zone"].to_pylist() == ["a", "b"]


@pytest.mark.usefixtures("session")
def test_progress_moves(shell, monkeypatch):
    """While a session or a server refines, one line of the cell tells how near it is; it is gone at the end."""
    told = []

    class Line:
        """What `display` gives with an id."""

        def update(self, bundle, *, raw):
            """Note what is shown."""
            assert raw
            told.append(bundle["text/plain"])

    monkeypatch.setattr("farthing.notebook._listens", lambda: True)
    monkeypatch.setattr("IPython.display.display", lambda *_, **how: Line() if how.get("display_id") else None)
    shell.run_cell_magic("farthing", "rides --relative 10% --absolute 30 --cap all --pay", SQL)
    assert "3/3 groups" in told[-2]
    assert told[-1] == ""


def test_progress_moves_in_a_terminal(session, monkeypatch):
    """Without a notebook the line moves on stderr, within its width, if that is a terminal; else nothing is written."""
    for there in (True, False):
        terminal = io.StringIO()
        monkeypatch.setattr(terminal, "isatty", lambda there=there: there)
        monkeypatch.setattr("sys.stderr", terminal)
        monkeypatch.setenv("COLUMNS", "60")
        with moving() as tick:
            answer = session.sql(SQL, relative=0.1, absolute=30 if there else 20, cap="all", progress=tick)
        lines = terminal.getvalue().split("\r\x1b[K")
        assert [line[:10] for line in lines[1:-1]] == ["refining ["] * (len(lines) - 2)
        assert (len(lines) > 3) == there
        assert max(map(len, lines)) < 60
        assert lines[-1] == ""
        assert answer.paid


def test_everything_that_is_shown_is_shown_as_html(session):
    """Answers, plans, books and the session have a view of their own in notebooks."""
    if isinstance(session, farthing.client.RemoteSession):
        pytest.skip("the same classes, or tables of a server")
    answer = session.sql(SQL, absolute=100)
    for one in (answer, session.plan(SQL, absolute=50), session.history(), session.status(), session, answer.trace(),
                session.workload([SQL], absolute=100)):  # fmt: skip
        assert "<" in one._repr_html_(), type(one)
