"""The page in a real Chromium: sign in, see a price, pay it, see the answer; nothing that a key says is markup."""

from __future__ import annotations

import os
import shutil

import pytest
import servers

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
sync_api = pytest.importorskip("playwright.sync_api", reason="NOT TESTED: the page needs playwright")
pytestmark = [
    pytest.mark.skipif(
        CHROMIUM is None and not os.environ.get("FARTHING_REQUIRE_CHROMIUM"),
        reason="NOT TESTED: the page needs Chromium, apt-get install chromium",
    ),
    pytest.mark.filterwarnings("ignore"),  # of the browser's driver
    pytest.mark.thorough,
]


@pytest.fixture
def world(tmp_path):
    """A server on a free port."""
    made = servers.World(tmp_path)
    with made.listening() as made.address:
        yield made
    made.close()


@pytest.fixture
def opened(world):
    """Open pages; what a page's console says is a failure."""
    said = []
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])

        def open_as(who, **how):
            """Open the page and sign in."""
            page = browser.new_context(**how).new_page()
            page.on("console", lambda message: said.append(message.text))
            page.on("pageerror", lambda error: said.append(str(error)))
            page.goto(world.address)
            page.fill("#token", world.tokens.get(who, "nobody.x"))
            page.keyboard.press("Enter")
            return page

        yield open_as
        browser.close()
    assert [] == [text for text in said if "401" not in text]


def asked(page):
    """Pay for the question that stands there, and wait for its answer."""
    page.wait_for_selector("#pay:not([disabled])")
    page.click("#pay")
    page.wait_for_selector("#answer:not([hidden])")
    page.wait_for_selector("#pay:not([disabled])")


def test_a_question_by_clicks_is_priced_paid_and_shown(opened, world):
    """The price stands there before anything is paid; then rows, bars and history; then the same is free."""
    page = opened("alice")
    page.wait_for_selector("#pay:not([disabled])")
    assert "Costs at most epsilon" in page.inner_text("#price")
    with world.opened(analyst="test") as session:
        assert not session.spent
    asked(page)
    assert page.locator("#rows tbody tr").count() == 3
    assert page.locator("#bars rect").count() == 3
    assert page.locator("#paid-chart circle").count() == 3
    assert "alice" in page.inner_text("#history")
    assert "Free" in page.inner_text("#price")


def test_a_key_is_text(opened):
    """A key that is markup stands on the page as text, in table and bars; no element comes of it."""
    page = opened("alice")
    asked(page)
    assert "<script>" in page.inner_text("#rows")
    assert page.locator("script").count() == 1


def test_what_does_not_fit_is_refused_and_coarsened(opened, world):
    """What is left buys no fine answer: nothing can be paid, the words are the plan's; a coarse one can be."""
    import farthing

    with world.opened(analyst="test") as session:
        session.sql("SELECT COUNT(*) AS m FROM rides WHERE x < 7", loss=farthing.Gdp(0.235), cap="all")
        spent = session.spent
    page = opened("bob")
    page.wait_for_selector("#pay:not([disabled])")
    page.fill("#absolute", "1")
    page.fill("#accuracy", "100")
    page.wait_for_selector("#coarsen:not([hidden])")
    page.wait_for_selector("#price:has-text('Out of reach')")
    assert page.is_disabled("#pay")
    with world.opened(analyst="test") as session:
        assert session.spent == spent
    page.fill("#absolute", "300")
    page.click("#coarsen")
    page.fill("#accuracy", "0")
    asked(page)


@pytest.mark.parametrize("width", [360, 1600])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_has_names(opened, width, scheme):
    """At each width nothing sticks out; every control has a name; texts are readable on their ground."""
    page = opened("owner", viewport={"width": width, "height": 800}, color_scheme=scheme)
    asked(page)
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    unnamed = """[...document.querySelectorAll('input, select, textarea, button, meter')]
        .filter((node) => !(node.labels?.length || node.textContent.trim() || node.getAttribute('aria-labelledby')))
        .map((node) => node.id)"""
    assert page.evaluate(unnamed) == []
    assert page.evaluate(CONTRAST) == []
    assert page.locator("#people tbody tr").count() == 4


CONTRAST = """(() => {
  const light = (text) => {
    const [r, g, b] = text.match(/[\\d.]+/g).map(Number).map((c) => c / 255)
      .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (node) => {
    for (let n = node; n; n = n.parentElement) {
      const c = getComputedStyle(n).backgroundColor;
      if (!c.startsWith('rgba(0, 0, 0, 0')) return c;
    }
    return 'rgb(255, 255, 255)';
  };
  return [...document.querySelectorAll('p, label, th, td, button, legend, h2, h3, summary, option, caption')]
    .filter((n) => n.offsetParent && n.textContent.trim() && !n.disabled)
    .filter((n) => {
      const [a, b] = [light(getComputedStyle(n).color), light(ground(n))].sort((x, y) => y - x);
      return (a + 0.05) / (b + 0.05) < 4.5;
    })
    .map((n) => n.tagName + ' ' + n.textContent.slice(0, 30));
})()"""
"""Texts with a contrast below 4.5 to 1."""


def test_the_keyboard_is_enough(opened):
    """From the first key to the answer without a mouse: the skip link, the slider by arrows, Enter to pay."""
    page = opened("alice")
    page.wait_for_selector("#pay:not([disabled])")
    page.focus("#accuracy")
    before = page.inner_text("#accuracy-told")
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#accuracy-told") != before
    page.wait_for_selector("#pay:not([disabled])")
    page.focus("#pay")
    page.keyboard.press("Enter")
    page.wait_for_selector("#answer:not([hidden])")
    assert page.evaluate("document.activeElement.id") == "answer-title"


def test_strangers_stay_outside(opened):
    """A token that is nobody's says so, and shows nothing."""
    page = opened("mallory")
    page.wait_for_selector("#enter-error:not([hidden])")
    assert "not known" in page.inner_text("#enter-error")
    assert page.is_hidden("#inside")


def test_an_answer_is_taken_away(opened):
    """CSV comes as a file in which no key is a formula; the Python line asks the same."""
    page = opened("alice")
    asked(page)
    with page.expect_download() as taken:
        page.click("#to-csv")
    assert "<script>" in taken.value.path().read_text()
    page.click("#to-python")
    assert "farthing.connect(" in page.inner_text("#python")
    page.click("#verify") if page.is_visible("#verify") else None
