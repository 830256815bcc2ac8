"""Advice speaks the words of the face that is used: no text that a face can show holds the words of another."""

from __future__ import annotations

import ast
import asyncio
import json
import re
from functools import cache
from pathlib import Path

import mcp
import pytest
import servers
from sources import nodes
from typer.main import get_command

import farthing
from farthing.advice import Face, MethodCall, Option, parts, told
from farthing.cli.app import app
from farthing.errors import InvalidTarget
from farthing.server import agents, shapes
from farthing.server.wire import desk as desk_module
from farthing.server.wire.desk import Desk

SOURCE = Path(farthing.__file__).parent

pytestmark = pytest.mark.xdist_group("syntax")  # the files are parsed once

PYTHON_ONLY = (
    "attacks", "audit", "experiments", "limits", "mechanisms", "models", "noise", "privacy", "workloads", "client",
    "notebook.py", "server", "session/guarantee.py", "session/partition.py", "session/questions/comparisons.py",
    "session/reading/difference.py", "engines/foreign", "engines/sources.py", "engines/own.py", "ledger/rules.py",
    "session/facade.py", "session/choosing/ranking", "session/answering/optimality.py", "session/answering/online.py",
    "session/answering/best_of.py",
    "released.py", "released_products.py", "trace.py",
)  # fmt: skip
"""Modules of which a message comes out in Python alone, or on a server, whose tests are below."""

ELSEWHERE = {
    "force-reinstall": "of pip",
    "beta": "a part of an accuracy that only `farthing.accuracy` takes",
    "edges": "histograms are asked in Python; SQL groups by FLOOR",
    "size": "what a guarantee is asked for, in Python",
}
"""Options that no command has, in messages about questions that no command asks; and why."""


FACTS = ("next_step", "rule", "what")


def put_in(part: ast.FormattedValue) -> str:
    """Return what stands for a value in a text: a flag for the name of an option."""
    return "--keys" if ast.unparse(part.value) == "option" else "X"


def spoken(node: ast.AST) -> list[str]:
    """Return the texts that an expression may come to, with X for what is put in."""
    match node:
        case ast.Constant(value=str() as text):
            return [text]
        case ast.JoinedStr(values=values):
            return ["".join(str(part.value) if isinstance(part, ast.Constant) else put_in(part) for part in values)]
        case ast.BinOp(left=left, right=right):
            return [a + b for a in spoken(left) or ["X"] for b in spoken(right) or ["X"]]
        case ast.IfExp(body=body, orelse=orelse):
            return spoken(body) + spoken(orelse)
        case ast.BoolOp(values=values):
            return [text for value in values for text in spoken(value)]
    return []


@cache
def written() -> list[tuple[str, str, str]]:
    """Return every text that is written as one of the facts of an error: which fact, its place, the text."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        name, code = path.relative_to(SOURCE).as_posix(), path.read_text(encoding="utf-8")
        named = any(f"{fact}=" in code for fact in FACTS)
        for node in nodes(path) if named else ():
            for keyword in node.keywords if isinstance(node, ast.Call) else ():
                if keyword.arg in FACTS:
                    place = f"{name}:{keyword.value.lineno}"
                    found += [(keyword.arg, place, text) for text in spoken(keyword.value)]
    return found


def advices(skipped: tuple[str, ...], facts: tuple[str, ...] = ("next_step",)) -> list[tuple[str, str]]:
    """Return the texts of some facts, with their places, but for those of some modules."""
    return [(place, text) for fact, place, text in written() if fact in facts and not place.startswith(skipped)]


def python_in(text: str) -> list[str]:
    """Return what is Python in a text of the command line: name=value without a flag, calls, constants, modules."""
    bare = re.sub(
        r"--keys '[^']*'|--[a-z-]+(?: \w+)?=\S+|(?:mu|rho|epsilon)=\S*|FARTHING_\w+=\S*|\?schema=\S+", "", text
    )
    flag = r"--keys '[^']*'|--by [a-z]+=\"[^\"]*\"|--[a-z-]+(?: \w+)?=\S+"
    bare = re.sub(rf"{flag}|(?:mu|rho|epsilon)=\S*|FARTHING_\w+=\S*|\?schema=\S+", "", text)
    named = r"\b(?:session|farthing|answer)\.(?!toml|svg)\w+"
    return re.findall(rf"\b[a-z_]+=(?!\s)\S*|\b[a-z_]+\([^)]*\)|\b(?:True|False|None)\b|{named}|\w+\.\w+\(", bare)


def flags() -> set[str]:
    """Return the options of all commands."""

    def below(command):
        for option in command.params:
            yield from (*option.opts, *option.secondary_opts)
        for each in getattr(command, "commands", {}).values():
            yield from below(each)

    return set(below(get_command(app)))


def test_no_advice_of_the_command_line_is_python():
    """Every next step that a command can print is in the words of the command line."""
    typed = advices(PYTHON_ONLY)
    assert len(typed) > 300
    assert {} == {f"{place} {text}": python_in(told(text, Face.TERMINAL)) for place, text in typed
                  if python_in(told(text, Face.TERMINAL))}  # fmt: skip


def test_rules_of_the_command_line_are_not_python():
    """The same holds for what is said to be wrong, and for the rule."""
    texts = advices((*PYTHON_ONLY, "cli"), ("rule", "what"))
    assert {} == {f"{place} {text}": python_in(told(text, Face.TERMINAL)) for place, text in texts
                  if python_in(told(text, Face.TERMINAL))}  # fmt: skip


def test_every_flag_that_is_advised_exists():
    """An advice names options that some command has."""
    typed = advices(PYTHON_ONLY)
    known = flags() | {f"--{name}" for name in ELSEWHERE} | {"--X", "--X-range"}
    found = {(place, flag) for place, text in typed for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*(?! --upgrade)",
             told(text, Face.TERMINAL)) if flag not in known}  # fmt: skip
    assert set() == found


@pytest.mark.parametrize("face", [Face.WIRE, Face.HTTP])
def test_no_advice_of_a_server_is_python(face):
    """What a server tells of a question is in SQL's or in JSON's words."""
    texts = advices((*PYTHON_ONLY, "cli"))
    found = {}
    for place, text in texts:
        said = re.sub(r"SET farthing\.\w+ = '[^']*'|farthing\.\w+|\"[^\"]*\"", "", told(text, face))
        if python_in(said):
            found[f"{place} {text}"] = python_in(said)
    assert {} == found


def test_a_planted_advice_is_seen():
    """What the old translation let through is found."""
    assert python_in("pass keys={'zone': ['a']}, or session.ranking(k=3)")
    assert python_in("leave strategy= out") == []  # an option alone is read by the door
    assert python_in("leave strategy=None out")
    assert told("leave strategy= out", Face.TERMINAL) == "leave --strategy out"


@pytest.mark.parametrize(
    "text",
    ["SUM(CLAMP(x, 0, 9)) AS n", "--keys zone=a,b", "mu=0.05", "a = b", "x == y", "http://a/b?schema=c", "1 <= k <= 2"],
)
def test_what_is_no_python_stays(text):
    """SQL, flags with their values, losses and formulas are words."""
    assert list(parts(text)) == [text]
    assert told(text, Face.TERMINAL) == text


def test_an_advice_is_read_into_values():
    """Options and calls are values, whatever brackets and quotes they hold."""
    text = 'pass keys={"zone": ["a, b", "c"]}, or farthing.Bounds(max_groups=5, lower=-1.5).'
    assert list(parts(text)) == [
        "pass ",
        Option("keys", '{"zone": ["a, b", "c"]}'),
        ", or ",
        MethodCall("Bounds", (), (Option("max_groups", "5"), Option("lower", "-1.5"))),
        ".",
    ]
    assert "".join(part for part in parts("plain words") if isinstance(part, str)) == "plain words"


def test_a_server_speaks_as_it_is_asked():
    """JSON has members, SQL has SET, a session of farthing.connect has Python's words; files are the owner's."""
    error = InvalidTarget("no target", rule="absolute= or relative=", next_step='absolute=50, or cap="all"')
    assert shapes.of_error(error)["error"]["next"] == '"absolute": 50, or "cap": "all"'
    assert shapes.of_error(error)["error"]["rule"] == '"absolute" or "relative"'
    python = shapes.of_error(error, shapes.face_of({"farthing-face": "Python"}))
    assert python["error"]["next"] == error.next_step
    assert (
        shapes.in_words(error, error.next_step, Face.WIRE)
        == "SET farthing.absolute = '50', or SET farthing.cap = 'all'"
    )
    refused = shapes.RefusedRequest("limit", status=400, next_step="limit=100")
    assert shapes.of_error(refused)["error"]["next"] == "limit=100"


QUESTION = {"dataset": "rides", "sql": "SELECT zone, COUNT(*) AS n FROM rides GROUP BY zone"}
FAR = {"absolute": 0.5, "relative": 0}  # a tenth of the budget does not reach it
NO_ADVICE = {"plan", "question", "goal", "target", "steps"}
"""Texts of a plan and an answer that say what is asked and measured, and advise nothing."""


@pytest.fixture
def world(tmp_path):
    """A server with one table."""
    made = servers.World(tmp_path)
    yield made
    made.close()


def texts_of(facts):
    """Return the members of a plan or an answer that are texts, or lists of texts."""
    return {name for name, fact in facts.items() if isinstance(fact, str) or (name == "steps" and all(fact))}


def test_every_text_of_a_plan_and_an_answer_is_worded_or_advises_nothing(world):
    """A member that is new is put in words for each face, or named here as one that advises nothing."""
    alice = world.person("alice")
    plan, answer = world.service.plan(alice, QUESTION | FAR), world.service.ask(alice, QUESTION | {"absolute": 300})
    assert texts_of(plan) | texts_of(answer) == set(shapes.WORDED) | NO_ADVICE
    assert python_in(plan["advice"])


def plans_of(world):
    """Return the lines of advice about one plan, by the way that it is asked for on a server."""
    asked = QUESTION | FAR
    desk = Desk(world.service, world.person("alice"), None)
    for name, value in FAR.items():
        desk.done(f"SET farthing.{name} = '{value}'")
    facts = {
        "plan": world.request("POST", "/v1/plan", "alice", json=asked).json(),
        "explain": world.ask("alice", sql=f"EXPLAIN {asked['sql']}", **FAR).json(),
        "agent": json.loads(asyncio.run(agent_told(world, asked))),
    }
    lines = {way: [plan[name] for name in shapes.WORDED if name in plan] for way, plan in facts.items()}
    return lines | {"wire": desk.done(f"EXPLAIN {asked['sql']}").table["QUERY PLAN"].to_pylist()[2:]}


async def agent_told(world, asked):
    """Return what the tool `plan` tells an agent."""
    counter = agents.LocalCounter(world.service, world.person("alice"))
    async with mcp.Client(agents.tools(counter)) as client:
        return (await client.call_tool("plan", asked)).content[0].text


def python_told(world):
    """Return what is Python in the advice of each way."""
    ours = r"SET farthing\.\w+ = '[^']*'|farthing\.\w+|\"[^\"]*\"|mu[ =]\S+"
    told = {way: [python_in(re.sub(ours, "", line)) for line in lines] for way, lines in plans_of(world).items()}
    return {way: [one for found in lines for one in found] for way, lines in told.items()}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of mcp
def test_a_plan_of_a_server_speaks_as_it_is_asked(world):
    """Over HTTP, by an agent's tool and over the wire no advice about a plan is in Python's words."""
    assert {} == {way: found for way, found in python_told(world).items() if found}
    assert any('"absolute": ' in line for line in plans_of(world)["plan"])
    python = world.request("POST", "/v1/plan", "alice", json=QUESTION | FAR, headers={"farthing-face": "Python"})
    assert "absolute=" in python.json()["advice"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of mcp
def test_a_plan_that_is_told_as_it_is_made_is_seen(world, monkeypatch):
    """Without the door each way tells Python."""
    for place in (shapes, agents, desk_module):
        monkeypatch.setattr(place, "in_face", lambda facts, _face=None: facts)
    assert [] == [way for way, found in python_told(world).items() if not found]
