"""The house of the command line: one file a command, one declaration an option, imports that run downward."""

import ast
import importlib
import re
from collections import Counter
from pathlib import Path

import typer
from rich.text import Text
from sources import nodes
from typer.main import get_command

import farthing
from farthing.cli.app import app

CLI = Path(farthing.__file__).parent / "cli"


def called(group, path=()):
    """Return the names of all commands below a group, as paths."""
    for name, command in getattr(group, "commands", {}).items():
        yield from called(command, (*path, name)) if getattr(command, "commands", None) else [(*path, name)]


def test_each_command_has_a_file_of_its_name():
    """`farthing same-data` is `same_data` of commands/same_data.py; there is no other file in the folder."""
    names = {"/".join(path).replace("-", "_") for path in called(get_command(app))}
    files = {path.relative_to(CLI / "commands").with_suffix("").as_posix() for path in (CLI / "commands").rglob("*.py")}
    assert names == {name for name in files if not name.endswith("__init__")}
    for name in names:
        module = importlib.import_module("farthing.cli.commands." + name.replace("/", "."))
        assert callable(getattr(module, name.rpartition("/")[2])), name


def test_a_body_has_the_name_of_its_command():
    """What a command calls in `run` stands in a file of the command's name, or, of a sub-command, of its group."""
    for path in (CLI / "commands").rglob("*.py"):
        stem = path.parent.name if path.parent.name != "commands" else path.stem
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("farthing.cli.run"):
                assert [f"farthing.cli.run.{stem}", path.stem] == [node.module, node.names[0].name]


def declared():
    """Return name and line of help of all options, where they are declared in the source."""
    for path in CLI.rglob("*.py"):
        for node in nodes(path):
            match node:
                case ast.arg(arg=name, annotation=ast.expr() as said):
                    pass
                case (
                    ast.AnnAssign(target=ast.Name(id=name), annotation=said)
                    | ast.Assign(targets=[ast.Name(id=name)], value=said)
                ):
                    pass
                case _:
                    continue
            for call in ast.walk(said):
                if isinstance(call, ast.Call) and ast.unparse(call.func) in {"typer.Option", "typer.Argument"}:
                    flags = [ast.literal_eval(each) for each in call.args if isinstance(each, ast.Constant)]
                    line = next(ast.unparse(each.value) for each in call.keywords if each.arg == "help")
                    yield (flags or [name.lower()])[0], line


def test_each_option_is_declared_once():
    """No option stands in two places with one line of help: those of several commands are in `input.options`."""
    options = Counter(declared())
    assert len(options) > 80
    assert [] == [option for option, times in options.items() if times > 1]


def test_help_lists_the_commands_in_the_order_of_a_first_day():
    """Demo, init and the questions come first; attack, a group, last."""
    names = list(typer.main.get_command(app).commands)
    assert ["demo", "init", "ask", "plan"] == names[:4]
    assert "attack" == names[-1]


def helps(group):
    """Return the help of each command below a group, and of each of its options."""
    for command in getattr(group, "commands", {}).values():
        yield command.help or ""
        yield from (option.help or "" for option in command.params if hasattr(option, "help"))
        yield from helps(command)


def test_help_shows_every_bracket_that_it_has():
    """Square brackets are style to the printer of help, and vanish if they are not escaped."""
    found = list(helps(get_command(app)))
    assert [] == [text for text in found if Text.from_markup(text).plain != text.replace("\\[", "[")]
    assert any("[[part]]" in Text.from_markup(text).plain for text in found)


def test_every_environment_variable_is_in_the_reference():
    """The table of the command line's page has each variable that the code reads, and two usual ones."""
    named = set()
    for path in Path(farthing.__file__).parent.rglob("*.py"):
        named |= set(re.findall(r"FARTHING_[A-Z]+", path.read_text(encoding="utf-8")))
    page = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| (`[A-Z_]+`(?:, `[A-Z_]+`)*) \|", page, re.MULTILINE)
    assert {name for row in table for name in re.findall(r"[A-Z_]+", row)} == named | {"NO_COLOR", "COLUMNS"}
