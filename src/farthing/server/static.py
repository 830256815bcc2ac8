"""The page: a few files of the package, served with a policy under which nothing else can run or be reached."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from farthing.client import RefusedRequest

if TYPE_CHECKING:
    from starlette.requests import Request

FILES: Final = {
    "index.html": "text/html; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
    **dict.fromkeys(
        ("page.js", "dom.js", "question.js", "charts.js", "taking.js", "promise.js", "owner.js"),
        "text/javascript; charset=utf-8",
    ),
    "icon.svg": "image/svg+xml",
}
"""The files there are, with their types: no other name is looked up."""

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def served(name: str) -> Response:
    """Return a file of the page; RefusedRequest with 404 if there is none of that name."""
    if name not in FILES:
        raise RefusedRequest(
            "there is nothing at this address", status=404, rule="the page has its own files", next_step="open /"
        )
    whole = (files("farthing.server") / "page" / name).read_bytes()
    return Response(whole, media_type=FILES[name], headers={"Content-Security-Policy": _POLICY})


async def page(_: Request) -> Response:
    """Return the page."""
    return served("index.html")


async def part(request: Request) -> Response:
    """Return a file of the page."""
    return served(request.path_params["name"])
