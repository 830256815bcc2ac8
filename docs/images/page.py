"""Take the pictures of the page: python docs/images/page.py [FOLDER]. It needs Chromium and the extras of the tests."""  # noqa: INP001  no package

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from farthing.server.demo import PEOPLE, flights
from farthing.server.people import Register
from farthing.server.running import Address, serve

READY = "#pay:not([disabled])"
STILL = {"reduced_motion": "reduce"}


def served(folder: Path) -> tuple[str, dict[str, str]]:
    """Serve the flights in a thread, with shares for the analysts; return the address and the tokens."""
    one, people, ports, there = flights(folder / "flights.ledger"), Register(), list[int](), threading.Event()
    tokens = {name: people.add(name, role) for name, role in PEOPLE.items()}
    with one.opened(analyst="owner") as session:
        session.allot("alice", Fraction(1, 2))
        session.allot("bob", Fraction(1, 5))

    def ready(port: int, _: int | None) -> None:
        """Keep the port."""
        ports.append(port)
        there.set()

    where = Address(port=0)
    threading.Thread(target=lambda: serve({one.name: one}, people, where, ready=ready), daemon=True).start()
    there.wait()
    return f"http://127.0.0.1:{ports[0]}", tokens


def signed_in(browser: Any, address: str, token: str, size: tuple[int, int], scheme: str = "light") -> Any:
    """Return the page of somebody."""
    page = browser.new_context(
        viewport=dict(zip(("width", "height"), size, strict=True)), color_scheme=scheme, **STILL
    ).new_page()
    page.goto(address)
    page.fill("#token", token)
    page.keyboard.press("Enter")
    page.wait_for_selector(READY)
    return page


def answer(page: Any) -> None:
    """An analyst's answer: intervals, who paid what, and what is left."""
    page.select_option("#group", "carrier")
    page.wait_for_selector("#pay[disabled]")
    page.click(READY)
    page.wait_for_selector("#paid-chart svg")
    page.wait_for_selector(READY)
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")


def price(page: Any) -> None:
    """What a fine question costs before it is paid, and the ways on."""
    page.select_option("#group", "dest")
    page.fill("#absolute", "10")
    page.wait_for_selector("#more:not([hidden])")
    page.evaluate("document.activeElement.blur()")


def owner(page: Any) -> None:
    """The owner's view: data sets, shares, somebody frozen, the books checked."""
    for _ in range(2):
        page.click("#people tr:has-text('bob') button:has-text('Freeze')")
    page.wait_for_selector("#people tr:has-text('bob') button:has-text('Thaw')")
    page.click("#verify")
    page.wait_for_selector("#verified:has-text('whole')")
    page.evaluate("document.activeElement.blur()")


def main() -> None:
    """Write the pictures as PNG."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    with tempfile.TemporaryDirectory() as place, sync_playwright() as driver:
        address, tokens = served(Path(place))
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = signed_in(browser, address, tokens["alice"], (1400, 1120))
        answer(page)
        page.screenshot(path=folder / "page-answer.png")
        page = signed_in(browser, address, tokens["alice"], (400, 1000), "dark")
        price(page)
        page.locator("#question").screenshot(path=folder / "page-price.png")
        page = signed_in(browser, address, tokens["owner"], (1000, 800))
        owner(page)
        page.locator("#owner").screenshot(path=folder / "page-owner.png")
        browser.close()


if __name__ == "__main__":
    main()
