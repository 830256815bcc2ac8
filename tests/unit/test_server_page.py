"""The page in a real Chromium: a price before it is paid, answers, owners, keyboards, readers, and hostile texts."""

from __future__ import annotations

import json
import os
import shutil
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import servers

import farthing
from farthing.server import shapes

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
sync_api = pytest.importorskip("playwright.sync_api", reason="NOT TESTED: the page needs playwright")
pytestmark = [
    pytest.mark.skipif(
        CHROMIUM is None and not os.environ.get("FARTHING_REQUIRE_CHROMIUM"),
        reason="NOT TESTED: the page needs Chromium, apt-get install chromium",
    ),
    pytest.mark.filterwarnings("ignore"),  # of the browser's driver
    pytest.mark.thorough,
    pytest.mark.xdist_group("page"),  # one browser for all
]
READY = "#pay:not([disabled])"
PRICED = "#price:not(:empty)"


@pytest.fixture
def world(tmp_path):
    """A server on a free port."""
    made = servers.World(tmp_path)
    with made.listening() as made.address:
        yield made
    made.close()


@pytest.fixture(scope="module")
def browser():
    """One browser for all tests."""
    with sync_api.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="module")
def kept(browser):  # noqa: ARG001  # closed before it
    """Pages that tests hand on to each other, by how they were made: a new one costs more than what most tests do."""
    pages = {}
    yield pages
    for made in pages.values():
        for page in made:
            page.context.close()


def enters(page, token):
    """Sign in by a token."""
    page.fill("#token", token)
    page.keyboard.press("Enter")


@pytest.fixture
def opened(world, browser, kept):
    """Open pages; what a page's console says is a failure. Each server has its own address, and so an empty storage."""
    said, used = [], []

    def heard(message):
        """Note what the console says."""
        said.append(message.text)

    def failed(error):
        """Note what failed."""
        said.append(str(error))

    def open_as(who, **how):
        """Open the page and sign in; as None, stay outside."""
        free = kept.setdefault(repr(how), [])
        page = free.pop() if free else browser.new_context(**how).new_page()
        used.append((page, free))
        page.set_default_timeout(60_000)
        page.on("console", heard)
        page.on("pageerror", failed)
        page.goto(world.address)
        if who is not None:
            enters(page, world.tokens.get(who, "nobody.x"))
        return page

    yield open_as
    for page, free in used:
        page.remove_listener("console", heard)
        page.remove_listener("pageerror", failed)
        page.unroute_all(behavior="wait")
        page.emulate_media(color_scheme="light", reduced_motion="no-preference")
        page.set_viewport_size({"width": 1280, "height": 720})
        page.goto("about:blank")
        free.append(page)
    assert [] == [text for text in said if "the server responded with a status of 4" not in text]


def asked(page):
    """Pay for the question that stands there, and wait for its answer."""
    page.click(READY)
    page.wait_for_selector("#answer:not([hidden])")
    page.wait_for_selector(READY)


def spent(world):
    """Return what the ledger has charged."""
    with world.opened(analyst="test") as session:
        return session.spent


def use_up(world):
    """Leave hardly any budget."""
    with world.opened(analyst="test") as session:
        session.sql("SELECT COUNT(*) AS m FROM rides WHERE x < 7", loss=farthing.Gdp(0.235), cap="all")


def test_a_question_by_clicks_is_priced_paid_and_shown(opened, world):
    """The price stands there before anything is paid; then rows, charts and history; then it is free."""
    page = opened("alice")
    page.wait_for_selector(READY)
    assert "Costs at most epsilon" in page.inner_text("#price")
    assert "this question would use at most" in page.inner_text("#gauge-words")
    assert not spent(world)
    asked(page)
    assert page.locator("#rows tbody tr").count() == 3
    assert page.locator("#bars rect").count() == 3
    assert page.locator("#paid-chart circle").count() == 3
    assert "alice" in page.inner_text("#history")
    assert "Free" in page.inner_text("#price")
    page.click("#sharpen")
    page.wait_for_selector("#price:has-text('Costs at most')")
    assert page.input_value("#absolute") == "50"
    page.select_option("#filter", "x")
    page.fill("#against", "10")
    assert page.input_value("#sql").endswith("WHERE x = 10 GROUP BY zone")


def test_it_closes_in_live(opened, monkeypatch):
    """While a question is measured each look is told and drawn as it comes; afterwards the whole way stays."""
    tell = shapes.of_progress

    def slowly(*given):
        """Tell a look, and wait."""
        time.sleep(0.05)
        return tell(*given)

    monkeypatch.setattr(shapes, "of_progress", slowly)
    page = opened("alice")
    page.evaluate("""() => { window.seen = new Set(); const node = document.getElementById('progress');
        new MutationObserver(() => { if (node.querySelector('#closing svg'))
            window.seen.add(document.getElementById('progress-words').textContent); })
        .observe(node, {subtree: true, childList: true, characterData: true}); }""")
    asked(page)
    assert page.evaluate("window.seen.size") >= 3
    page.click("#closed summary")
    assert page.is_visible("#closed-chart svg .line")


def test_what_does_not_fit_is_refused_and_coarsened(opened, world):
    """What is left buys no fine answer: nothing can be paid, the words are the plan's; a coarse one can be."""
    use_up(world)
    before = spent(world)
    page = opened("bob")
    page.wait_for_selector(READY)
    page.fill("#absolute", "1")
    page.fill("#accuracy", "100")
    page.wait_for_selector("#price:has-text('Out of reach')")
    assert page.is_disabled("#pay")
    assert "nothing is charged" in page.inner_text("#price")
    assert page.is_visible("#coarsen")
    assert spent(world) == before
    page.fill("#absolute", "300")
    page.fill("#accuracy", "0")
    asked(page)


def test_one_click_coarsens_to_what_the_cap_buys_and_another_pays_more(opened):
    """Over the cap: one button names the width that the cap buys, and it is within reach; the other lifts the cap."""
    page = opened("alice")
    page.fill("#absolute", "15")
    page.wait_for_selector("#more:not([hidden])")
    page.click("#more")
    page.wait_for_selector("#price:not(:has-text('marked as not met'))")
    page.wait_for_selector("#more", state="hidden")
    page.select_option("#group", "")  # another question: the cap is back
    page.fill("#absolute", "15")
    page.wait_for_selector("#coarsen:has-text('instead')")
    page.click("#coarsen")
    page.wait_for_selector("#coarsen", state="hidden")
    page.wait_for_selector(READY)
    assert page.inner_text("#pay") == "Pay and ask"


def test_a_share_has_its_own_gauge(opened, world):
    """Who has a share sees it beside the whole; the owner sees everybody's."""
    with world.opened(analyst="owner") as session:
        session.allot("alice", farthing.Gdp(0.1))
    page = opened("alice")
    asked(page)
    assert "Your share: " in page.inner_text("#share-words")
    page = opened("owner")
    page.wait_for_selector("#people tbody tr")
    assert "of the share is used" in page.locator("#people tr:has-text('alice') svg").get_attribute("aria-label")
    assert "the whole budget" in page.inner_text("#people tr:has-text('bob')")


def test_an_owner_freezes_and_thaws(opened):
    """Two presses freeze an analyst or a data set, Cancel does not; the analyst's page says so and takes no payment."""
    page, other = opened("owner"), opened("alice")
    for row in ("#people tr:has-text('alice')", "#sets tr:has-text('rides')"):
        page.click(f"{row} button:has-text('Freeze')")
        page.click(f"{row} button:has-text('Cancel')")
        assert page.locator("button:has-text('Thaw')").count() == 0
        page.click(f"{row} button:has-text('Freeze')")
        page.click(f"{row} button:has-text('Freeze')")
        page.wait_for_selector(f"{row} button:has-text('Thaw')")
        other.reload()
        other.wait_for_selector("#price:has-text('Frozen by the owner')")
        assert other.is_visible("#frozen")
        assert other.is_disabled("#pay")
        page.click(f"{row} button:has-text('Thaw')")
        page.click(f"{row} button:has-text('Thaw')")
        page.wait_for_selector(f"{row} button:has-text('Freeze')")
    other.reload()
    asked(other)
    page.click("#verify")
    page.wait_for_selector("#verified:has-text('their chain is whole')")


def test_an_auditor_reads_and_does_not_ask(opened):
    """An auditor sees people, data sets and history, checks the books, and has nothing to ask or freeze with."""
    page = opened("eve")
    page.wait_for_selector("#people tbody tr")
    assert page.is_hidden("#question")
    assert page.locator("button:has-text('Freeze')").count() == 0
    page.click("#verify")
    page.wait_for_selector("#verified:has-text('their chain is whole')")


def violations(page, *, colours=False):
    """Return what axe-core finds wrong, of everything or of colours alone, each with its places."""
    from axe_playwright_python.sync_playwright import Axe

    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(Axe().axe_script)
    how = {"resultTypes": ["violations"]} | ({"runOnly": ["color-contrast", "link-in-text-block"]} if colours else {})
    found = page.evaluate("(how) => axe.run(how).then((all) => all.violations)", how)
    return [(one["id"], [node["html"][:100] for node in one["nodes"][:3]]) for one in found]


def states(opened, world):
    """Yield the page in each of its states, with a name."""
    page = opened("mallory")
    page.wait_for_selector("#enter-error:not([hidden])")
    yield "refused at the door", page
    enters(page, world.tokens["alice"])
    page.wait_for_selector(READY)
    page.click("#budget summary")
    page.click("#sizes summary")
    yield "priced", page
    asked(page)
    page.click("#closed summary")
    page.click("#to-python")
    yield "answered", page
    page.fill("#sql", "SELECT * FROM rides")
    page.wait_for_selector("#price:has-text('Rule')")
    yield "not a question", page
    with page.expect_navigation():  # the page loads anew, and before its script runs nobody can sign in
        page.click("#leave")
    enters(page, world.tokens["owner"])
    page.wait_for_selector("#people tbody tr")
    page.fill("#absolute", "5")
    page.wait_for_selector("#more:not([hidden])")
    page.click("#verify")
    page.click("#people button:has-text('Freeze')")
    yield "owner, out of reach, about to freeze", page
    with world.opened(analyst="owner") as session:
        session.freeze()
    page = opened("bob")
    page.select_option("#group", "")
    page.wait_for_selector("#price:has-text('Frozen')")
    yield "frozen", page
    with world.opened(analyst="owner") as session:
        session.thaw()
    page = opened("eve")
    page.wait_for_selector("#people tbody tr")
    yield "auditor", page


def test_every_state_is_accessible_and_fits(opened, world):
    """axe-core finds nothing in any state, light and narrow, nor in the colours, dark and wide; nothing sticks out."""
    seen = {}
    for name, page in states(opened, world):
        for width, scheme in ((800, "light"), (360, "light"), (1400, "dark")):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), name
            if width != 800:
                seen[name, scheme] = violations(page, colours=scheme == "dark")
    assert not any(seen.values()), seen


def test_axe_finds_what_is_wrong(opened):
    """A control without a name, and pale letters, are found: the check above has power."""
    page = opened(None)
    page.evaluate("document.querySelector('#enter label').remove(); document.body.style.color = '#eee'")
    assert {"label", "color-contrast"} <= {name for name, _ in violations(page)}


FOCUSED = """(() => { const node = document.activeElement, seen = getComputedStyle(node);
    return [node.id || node.textContent.trim(), node === document.body || node.id === 'main'
        || node.id.endsWith('title') || (seen.outlineStyle !== 'none' && parseFloat(seen.outlineWidth) >= 2)]; })()"""
"""What has the focus, and whether that can be seen."""


def tabbed(page, wanted):
    """Press Tab until something has the focus; whatever has it on the way must show it."""
    for _ in range(60):
        page.keyboard.press("Tab")
        name, shown = page.evaluate(FOCUSED)
        assert shown, f"the focus on {name} cannot be seen"
        if name == wanted:
            return
    pytest.fail(f"{wanted} cannot be reached by Tab")


def test_the_keyboard_is_enough(opened, world):
    """From login to the answer, and for the owner to freezing, nothing but keys; the focus can be seen at each step."""
    page = opened(None)
    page.keyboard.type(world.tokens["owner"])  # the field has the focus from the start
    page.keyboard.press("Enter")
    page.wait_for_selector(READY)
    tabbed(page, "accuracy")
    before = page.inner_text("#accuracy-told")
    page.keyboard.press("ArrowLeft")
    assert page.inner_text("#accuracy-told") != before
    page.wait_for_selector("#pay[disabled]")
    page.wait_for_selector(READY)
    tabbed(page, "pay")
    page.keyboard.press("Enter")
    page.wait_for_selector("#answer:not([hidden])")
    page.wait_for_selector("#answer-title:focus")  # a predicate that polls would need eval, which the page forbids
    tabbed(page, "to-python")
    page.keyboard.press("Enter")
    assert "farthing.connect(" in page.inner_text("#python")
    tabbed(page, "Freeze")
    page.keyboard.press("Enter")
    page.wait_for_selector(":focus:text-is('Freeze rides')")
    page.keyboard.press("Escape")
    page.wait_for_selector(":focus:text-is('Freeze')")


def test_nothing_moves_for_those_who_wish_no_motion(opened):
    """With reduced motion no element has a transition or an animation; without the wish some have."""
    moving = """[...document.querySelectorAll('*')].filter((node) => { const seen = getComputedStyle(node);
        return parseFloat(seen.transitionDuration) || seen.animationName !== 'none'
            || seen.scrollBehavior === 'smooth'; }).length"""
    page = opened("alice")
    page.wait_for_selector(READY)
    for wish, moves in (("reduce", False), ("no-preference", True)):
        page.emulate_media(reduced_motion=wish)
        assert bool(page.evaluate(moving)) is moves


EVIL = "<img src=x onerror=\"window.hit='{0}'\"><script>window.hit='{0}'</script>\"'>{0}"
"""A text that runs wherever it is taken for markup."""


def poisoned(told, place=""):
    """Return what a server told with every text replaced, and the names of columns as well; kinds and states stay."""
    if isinstance(told, dict):
        named = place.endswith((".columns", ".tables", ".shares"))
        return {
            (EVIL.format(f"{place}.{name}") if named else name): poisoned(one, f"{place}.{name}")
            for name, one in told.items()
        }
    if isinstance(told, list):
        return [poisoned(one, place) for one in told]
    kept = place.endswith((".role", ".plan", ".opened", ".until")) or ".columns." in place
    return EVIL.format(place) if isinstance(told, str) and not kept else told


def poison(page):
    """Replace every text that the server sends to a page; return the set into which the addresses come."""
    places = set()

    def answer(route):
        """Pass on what the server says, poisoned; the server is asked by the true names."""
        sent = route.request.post_data_json
        came = route.fetch(
            **({"post_data": json.dumps(sent | {"dataset": "rides"})} if "dataset" in (sent or {}) else {})
        )
        kind = came.headers.get("content-type", "")
        if "event-stream" in kind:
            events = [part.split("\ndata: ") for part in came.text().split("\n\n") if "\ndata: " in part]
            body = "".join(f"{name}\ndata: {json.dumps(poisoned(json.loads(data), name))}\n\n" for name, data in events)
            route.fulfill(response=came, body=body)
            return
        body = poisoned(came.json(), route.request.url.rpartition("/")[2].partition("?")[0])
        places.add(route.request.url)
        route.fulfill(response=came, body=json.dumps(body))

    page.route("**/v1/**", answer)
    return places


def test_no_text_of_the_server_is_markup(opened, world):
    """Every text in every response is replaced by a hostile one, keys and names of columns too: none runs."""
    page = opened(None)
    places = poison(page)
    page.fill("#token", world.tokens["owner"])
    page.keyboard.press("Enter")
    page.wait_for_selector("#people tbody tr")
    page.select_option("#group", index=1)
    page.select_option("#filter", index=1)
    page.fill("#sql", servers.COUNT["sql"])
    page.wait_for_selector(PRICED)
    asked(page)
    page.click("#to-python")
    page.fill("#sql", "SELECT * FROM rides")
    page.wait_for_selector("#price:has-text('onerror')")
    page.click("#verify")
    page.wait_for_selector("#verified:has-text('onerror')")
    assert len(places) >= 5
    assert "onerror" in page.inner_text("#rows")
    assert "onerror" in page.inner_text("#history")
    assert page.evaluate("window.hit") is None
    assert page.locator("img, iframe, object, embed, base, body a[href]:not(.skip)").count() == 0
    assert page.locator("script").count() == 1


def test_markup_would_be_seen(opened, world):
    """With a planted mistake, texts that are put in place as markup, elements of the server's texts are there."""
    page = opened(None).context.new_page()  # its console is not ours to listen to

    def mistaken(route):
        """Give the script with the mistake."""
        came = route.fetch()
        route.fulfill(response=came, body=came.text().replace("node.textContent = String", "node.innerHTML = String"))

    page.route("**/dom.js", mistaken)
    poison(page)
    page.goto(world.address)
    enters(page, world.tokens["owner"])
    page.wait_for_selector("#people tbody tr")
    assert page.locator("img").count() > 0
    page.close()


def test_nothing_else_runs_or_is_reached(opened, world):
    """The policy of the page: no script of another's, none within the page, no frame around it, no other address."""
    page = opened("alice")
    page.wait_for_selector(READY)
    quiet = page.context.new_page()  # its console is not ours to listen to
    quiet.goto(world.address)
    quiet.evaluate("""() => { const one = document.createElement('script'); one.textContent = 'window.hit = 1';
        document.body.append(one);
        document.body.insertAdjacentHTML('beforeend', '<img src=x onerror="window.hit = 2">'); }""")
    reached = quiet.evaluate("fetch('http://127.0.0.1:9/').then(() => 'reached', (error) => error.name)")
    assert (quiet.evaluate("window.hit"), reached) == (None, "TypeError")
    quiet.set_content(f"<iframe src='{world.address}'></iframe>")
    assert quiet.frames[-1].locator("#token").count() == 0
    quiet.close()
    assert page.evaluate("document.cookie") == ""
    assert page.evaluate("Object.keys(localStorage).length") == 0


def test_strangers_stay_outside(opened):
    """A token that is nobody's says so, and shows nothing; who signs out leaves nothing behind."""
    page = opened("mallory")
    page.wait_for_selector("#enter-error:not([hidden])")
    assert "not known" in page.inner_text("#enter-error")
    assert page.is_hidden("#inside")
    page = opened("alice")
    asked(page)
    page.click("#leave")
    page.wait_for_selector("#enter:not([hidden])")
    assert page.locator("td").count() == 0
    assert page.evaluate("sessionStorage.length") == 0


def downloaded(page, button):
    """Return the path of what a button gives."""
    with page.expect_download() as taken:
        page.click(button)
    return taken.value.path()


def test_an_answer_is_taken_away(opened, world, monkeypatch):
    """CSV, Parquet, Arrow, the notebook and the lines of Python hold the answer of the page, and are free."""
    page = opened("alice")
    asked(page)
    before = spent(world)
    assert "<script>" in downloaded(page, "#to-csv").read_text()
    rows = pq.read_table(downloaded(page, "#to-parquet")).to_pylist()
    assert rows == pa.ipc.open_stream(downloaded(page, "#to-arrow")).read_all().to_pylist()
    shown = [line.split("\t")[1].replace(",", "") for line in page.inner_text("#rows tbody").splitlines()]
    assert [float(one) for one in shown] == pytest.approx([row["n"] for row in rows], rel=0.01)
    monkeypatch.setenv("FARTHING_TOKEN", world.tokens["alice"])
    cells = json.loads(downloaded(page, "#to-notebook").read_text())["cells"]
    page.click("#to-python")
    texts = ["\n".join(cell["source"] for cell in cells if cell["cell_type"] == "code"), page.inner_text("#python")]
    for text in texts:
        names = {}
        exec(text, names)  # noqa: S102  # what the page offers
        assert names["answer"].value.tolist() == [row["n"] for row in rows]
        names["session"].close()
        assert world.tokens["alice"] not in text
    assert spent(world) == before
