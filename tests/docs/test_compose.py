"""The example for a team of containers: its parts name one another, and its command is one of ours."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from typer.main import get_command

from farthing.cli.app import app

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
PARTS = yaml.safe_load((EXAMPLES / "compose.yaml").read_text("utf-8"))


def test_its_command_is_one_of_ours():
    """The server is started by options that `farthing serve` has, with extras that there are."""
    words = PARTS["services"]["farthing"]["command"]
    known = {name for option in get_command(app).commands["serve"].params for name in option.opts}
    assert {"--host", "--port"} <= set(re.findall(r"--[a-z-]+", words)) <= known
    assert "farthing[server,postgres]" in words


def test_its_parts_name_one_another():
    """The proxy speaks to the server by its name and port; what each part mounts and waits for is there."""
    services = PARTS["services"]
    caddy = (EXAMPLES / "Caddyfile").read_text("utf-8")
    name, port = re.search(r"reverse_proxy (\w+):(\d+)", caddy).groups()
    assert f"--port {port} " in services[name]["command"]
    assert {other for one in services.values() for other in one.get("depends_on", [])} <= set(services)
    volumes = {volume.partition(":")[0] for one in services.values() for volume in one["volumes"]}
    assert {volume for volume in volumes if not volume.startswith(".")} == set(PARTS["volumes"])
    assert [name for name, one in services.items() if "ports" in one] == ["proxy"]
