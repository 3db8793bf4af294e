"""The flame graph, in a browser: where frames are, what is said of them, search, zoom, states, two profiles."""

import colorsys
import html.parser
import json
import re

import pytest

from harness.browser import browser
from harness.flamegraph import C, MARK, frame, profile, rectangles, write_page
from harness.symbolize import BUILD

PROBE = BUILD / "tests" / "probes" / "flamegraph"

MAIN = frame("<main>", "shop.rb", 1, 60)
TOTAL = frame("Order#total", "lib/order.rb", 8, 10)
SUM = frame("Array#sum", kind=C, line=10)
OPEN = frame("Order#open", "lib/order.rb", 20, 21)
READ = frame("IO#read", kind=C, line=21)
RUN = frame("Worker#run", "lib/worker.rb", 3, 4)
POP = frame("Thread::Queue#pop", kind=C, line=4)
TORN = frame("(torn: window)", kind=MARK)

SPANS = [
    (0, "cpu", 300, 3, MAIN, TOTAL, SUM),
    (0, "gc", 100, 1, MAIN, TOTAL),
    (0, "blocked", 180, 2, MAIN, OPEN, READ),
    (0, "cpu", 20, 1, MAIN, OPEN, TORN),
    (1, "sleeping", 280, 3, MAIN, RUN, POP),
    (1, "cpu", 120, 1, MAIN, RUN, TOTAL, TOTAL),
]
THREADS = ((0, None), (0, "worker"))

# After: Order#open is faster, Worker#run is gone, Cache#get is new.
CACHE = frame("Cache#get", "lib/cache.rb", 5, 6)
MOVED = [TOTAL[0], TOTAL[1], 18, 20, TOTAL[4]]  # to other lines of its file
AFTER_SPANS = [
    (0, "cpu", 300, 3, MAIN, CACHE),
    (0, "cpu", 600, 6, MAIN, MOVED, SUM),
    (0, "blocked", 100, 1, MAIN, OPEN, READ),
]

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    '"><img src=x onerror=alert(2)>',
    "</title><svg onload=alert(3)>",
    "a\u2028b\nc\rd\u2029e\tf\x01\x7f",
    "\u202egnirts\u202c",
    "`${alert(4)}`",
    "__proto__",
    "constructor",
    "&lt;b&gt;&amp;",
    "\\u003c/script\\u003e\\",
    "]]>{{DATA}}%s%n",
    "it's 漢字 😀 e\u0301",
    "",
    " ",
    "long" * 300_000,
]


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("chromium")) as session:
        yield session


class Page:
    """A flame graph that is open in the browser."""

    def __init__(self, session, path):
        self.browser = session
        self.path = path
        session.dark(False)
        session.open(path)
        session.wait("return document.documentElement.dataset.ready")
        self.settle()

    def settle(self):
        """Waits until all that was asked for is drawn."""
        self.browser.run("return new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(true))))")

    def box(self):
        return self.browser.run(
            "const c = document.getElementById('graph'), r = c.getBoundingClientRect();"
            "return {left: r.left, top: r.top, width: r.width, height: r.height, row: Number(c.dataset.rowHeight)}"
        )

    def at(self, part, depth, click=False):
        """What the tooltip says at this part of the width, in this row."""
        box = self.box()
        self.browser.point(box["left"] + part * box["width"], box["top"] + (depth + 0.5) * box["row"], click)
        self.settle()
        return self.tooltip()

    def tooltip(self):
        """Name, place, note, the numbers by their names, and shares of states; None if it is not shown."""
        return self.browser.run("""
            const tip = document.getElementById('tooltip');
            if (tip.hidden) return null;
            const text = (s) => tip.querySelector(s).textContent;
            const rows = (s, from) => Object.fromEntries([...tip.querySelectorAll(s + ' tr')].map((row) =>
                [row.cells[0].textContent, [...row.cells].slice(from).map((cell) => cell.textContent.trim())]));
            return {name: text('.name'), place: text('.place'), note: text('.note'),
                    numbers: rows('.numbers', 1), states: rows('.bars', 2)};
        """)

    def name_at(self, part, depth):
        tip = self.at(part, depth)
        return tip and tip["name"]

    def check(self, expected):
        """Each frame is where it must be: both ends and the middle of it, as far as a pixel can tell."""
        pixel = 1.5 / self.box()["width"]
        for r in expected:
            assert r.width > 6 * pixel, "too narrow to be looked at"
            for part in (r.left + pixel, r.left + r.width / 2, r.left + r.width - 2 * pixel):
                assert self.name_at(part, r.depth) == r.name, (r, part)

    def search(self, text, regex=False):
        self.browser.run(
            "const s = document.getElementById('search'); s.value = arguments[0];"
            "document.getElementById('regex').checked = arguments[1];"
            "s.dispatchEvent(new Event('input', {bubbles: true}))",
            text,
            regex,
        )
        self.settle()
        return self.browser.text("#matched")

    def toggle(self, state):
        self.browser.click(f"#states input[data-state={state}]")
        self.settle()

    def path_shown(self):
        return self.browser.run("return [...document.querySelectorAll('#path button')].map((b) => b.textContent)")

    def pixels(self, part, depth, width=9):
        """The colours of a piece of a row: [[r, g, b], …]."""
        data = self.browser.run(
            "const c = document.getElementById('graph'), row = Number(c.dataset.rowHeight);"
            "const x = Math.round(arguments[0] * c.width), y = arguments[1] * row;"
            "const copy = Object.assign(document.createElement('canvas'), {width: arguments[2], height: row - 1});"
            "const context = copy.getContext('2d', {willReadFrequently: true});"
            "context.drawImage(c, -x, -y);"
            "return [...context.getImageData(0, 0, copy.width, copy.height).data]",
            part,
            depth,
            width,
        )
        return [data[i : i + 3] for i in range(0, len(data), 4)]

    def hue(self, part, depth):
        """Hue (0 to 1) and saturation of the upper left pixel there: no text reaches it, no strip of states."""
        r, g, b = self.pixels(part, depth, 1)[1]
        hue, _, saturation = colorsys.rgb_to_hls(r / 255, g / 255, b / 255)
        return hue, saturation


@pytest.fixture(scope="module")
def pages(chromium, tmp_path_factory):
    """Writes a page, and opens it."""
    folder = tmp_path_factory.mktemp("pages")
    written = {}

    def open_page(name, after, before=None, **options):
        if name not in written:
            written[name] = write_page(PROBE, folder / f"{name}.html", after, before, **options)
        return Page(chromium, written[name])

    yield open_page
    assert chromium.alert() is None


@pytest.fixture
def shop(pages):
    page = pages("shop", profile(SPANS, THREADS))
    yield page
    assert page.browser.console() == []


@pytest.fixture
def compared(pages):
    page = pages("compared", profile(AFTER_SPANS, pid=500), profile(SPANS, THREADS))
    yield page
    assert page.browser.console() == []


def test_what_was_recorded(shop):
    assert shop.browser.text("#title") == "shopwall-clock time"
    facts = shop.browser.text("#facts")
    for fact in ("2.50 s", "99.5 samples a second", "paused", "2 threads", "2023-11-14 22:13:20 UTC", "rbdump "):
        assert fact in facts
    counts = shop.browser.text("#counts")
    assert counts == "18 samples: 9 complete, 4 truncated, 3 torn, 2 unreadable; 1 sample late"


@pytest.mark.parametrize("by, what", [("cpu", "CPU time"), ("gvl", "GVL"), ("gc", "garbage collection")])
def test_views(pages, by, what):
    page = pages(f"by-{by}", profile(SPANS, THREADS, cut=True), by=by)
    assert what in page.browser.text("#title")
    assert "cut short" in page.browser.text("#counts")


def test_frames_are_as_wide_as_their_shares(shop):
    expected = rectangles(SPANS)
    assert [r.name for r in expected if r.depth == 2] == ["Order#total", "Worker#run", "Order#open"]
    shop.check(expected)
    assert shop.name_at(0.5, 0) == "all"
    assert shop.name_at(0.35, 3) is None


def test_tooltip(shop):
    tip = shop.at(0.2, 2)
    assert (tip["name"], tip["place"], tip["note"]) == ("Order#total", "lib/order.rb:8", "")
    assert tip["numbers"] == {"total": ["400 ms (40.0 %)"], "self": ["100 ms (10.0 %)"], "samples": ["4"]}
    assert tip["states"] == {"cpu": ["75.0 %"], "gc": ["25.0 %"]}
    assert shop.at(0.1, 3)["place"] == "C function"
    assert "no method" in shop.at(0.99, 3)["note"]


def test_search(shop):
    assert shop.search("order#TOTAL") == "52.0 % in 3 frames"  # one is inside another, and counts once
    assert shop.search("lib/worker.rb") == "40.0 % in 1 frame"
    assert shop.search("Order#.*") == "0.0 % in 0 frames"
    assert shop.search("Order#(total|open)$", regex=True) == "72.0 % in 4 frames"
    assert shop.search("/^io#/") == "18.0 % in 1 frame"
    assert shop.search("(", regex=True) == "not a regular expression"
    assert shop.search("(") == "2.0 % in 1 frame"
    assert shop.search("") == ""


def test_matches_stand_out(shop):
    before = shop.hue(0.2, 2), shop.hue(0.6, 2)
    shop.search("Order#total")
    after = shop.hue(0.2, 2), shop.hue(0.6, 2)
    assert 0.85 < after[0][0] < 0.97 and after[0] != before[0]  # magenta
    assert after[1][0] == pytest.approx(before[1][0], abs=0.04)


@pytest.mark.long
def test_zoom_and_back(shop):
    shop.at(0.6, 2, click=True)
    assert shop.path_shown() == ["all", "<main>", "Worker#run"]
    zoomed = rectangles(SPANS, path=("<main>", "Worker#run"))
    shop.check(zoomed)
    assert shop.name_at(0.01, 1) == shop.name_at(0.99, 1) == "<main>"
    assert shop.at(0.1, 3)["numbers"]["of the zoom"] == ["70.0 %"]
    assert shop.search("pop") == "28.0 % in 1 frame"  # of all, not of what is zoomed in on
    shop.at(0.9, 3, click=True)
    assert shop.path_shown()[-1] == "Order#total"
    shop.browser.back()
    shop.settle()
    assert shop.path_shown()[-1] == "Worker#run"
    shop.check(zoomed)
    shop.at(0.5, 0, click=True)
    assert shop.path_shown() == ["all"]
    shop.check(rectangles(SPANS))
    shop.browser.back()
    shop.settle()
    shop.browser.click("#path button:nth-of-type(2)")
    shop.settle()
    assert shop.path_shown() == ["all", "<main>"]


def test_the_address_has_the_zoom(shop):
    shop.at(0.6, 2, click=True)
    address = shop.browser.run("return location.href")
    again = Page(shop.browser, address.removeprefix("file://"))
    assert again.path_shown() == ["all", "<main>", "Worker#run"]
    for wrong in ("frame=999999", "frame=-1", "frame=1.5", "thread=7&frame=%", "__proto__=1"):
        assert Page(shop.browser, f"{shop.path}#{wrong}").path_shown()[0] == "all"


def test_states_are_left_out(shop):
    shop.toggle("sleeping")
    counted = {"cpu", "gc", "gvl", "blocked", "starting"}
    expected = rectangles(SPANS, states=counted)
    assert expected[-1].width != rectangles(SPANS)[-1].width
    shop.check(expected)
    assert shop.search("Order#total") == "72.2 % in 3 frames"  # 520 of 720 ms
    assert shop.search("pop") == "0.0 % in 0 frames"
    tip = shop.at(0.1, 1)
    assert tip["numbers"]["total"] == ["720 ms (100.0 %)"]
    assert "sleeping (left out)" in tip["states"]
    for state in ("cpu", "gc", "blocked"):
        shop.toggle(state)
    assert shop.browser.text("#nothing") == "No time was spent in these states."
    assert shop.name_at(0.5, 1) is None
    shop.toggle("gc")
    shop.check(rectangles(SPANS, states={"gc"}))


def test_only_states_that_there_are_can_be_left_out(shop):
    shown = shop.browser.run(
        "return [...document.querySelectorAll('#states label')].filter((l) => !l.hidden).map((l) => l.textContent)"
    )
    assert shown == ["cpu44.0 %", "gc10.0 %", "blocked18.0 %", "sleeping28.0 %"]


def test_threads(pages):
    page = pages("threads", profile(SPANS, THREADS), threads=True)
    assert page.name_at(0.1, 1) == "thread 110 (main)"
    assert page.name_at(0.9, 1) == "thread 111 worker"
    options = page.browser.run(
        "return [...document.querySelectorAll('#scope option')].map((o) => [o.value, o.text.trim()])"
    )
    assert [text for _, text in options] == ["all", "thread 110 (main)", "thread 111 worker"]
    page.browser.choose("#scope", options[2][0])
    page.settle()
    assert page.path_shown() == ["thread 111 worker"]
    worker = [span for span in SPANS if span[0] == 1]
    page.check(rectangles(worker))
    assert page.search("pop") == "70.0 % in 1 frame"
    page.browser.back()
    page.settle()
    assert page.search("pop") == "28.0 % in 1 frame"
    assert page.browser.run("return document.getElementById('scope').value") == "0"


def test_processes(pages):
    after = profile(SPANS, ((0, None), (1, None)), ("puma", "worker 7"))
    page = pages("processes", after)
    assert (page.name_at(0.1, 1), page.name_at(0.9, 1)) == ("puma 100", "worker 7 101")


def test_lines(pages):
    page = pages("lines", profile(SPANS, THREADS), lines=True)
    assert page.name_at(0.2, 2) == "Order#total:10"


def test_flames(shop):
    box = shop.box()
    lowest = int(box["height"] / box["row"]) - 1
    offset = box["height"] / box["row"] - 1 - lowest
    shop.browser.click("#direction")
    shop.settle()
    assert shop.name_at(0.5, lowest + offset) == "all"
    assert shop.name_at(0.2, lowest + offset - 2) == "Order#total"
    shop.browser.press("i")
    shop.settle()
    assert shop.name_at(0.5, 0) == "all"


def test_order(shop):
    shop.browser.choose("#order", "name")
    shop.settle()
    assert [shop.name_at(part, 2) for part in (0.05, 0.4, 0.9)] == ["Order#open", "Order#total", "Worker#run"]


def test_keys(shop):
    press = shop.browser.press
    press("Control", "f")
    shop.browser.type("total")
    assert shop.browser.text("#matched") == "52.0 % in 3 frames"
    press("Enter")
    assert shop.browser.text("#status").startswith("Order#total · lib/order.rb:8 · 400 ms (40.0 %)")
    press("Enter")
    assert "120 ms (12.0 %)" in shop.browser.text("#status")
    press("Shift", "Enter")
    assert "400 ms" in shop.browser.text("#status")
    press("Escape")
    assert shop.browser.run("return document.activeElement.id") == "graph"
    press("ArrowRight")
    assert shop.browser.text("#status").startswith("Worker#run")
    press("ArrowDown")
    assert shop.browser.text("#status").startswith("Thread::Queue#pop")
    press("ArrowUp")
    press("Enter")
    shop.settle()
    assert shop.path_shown()[-1] == "Worker#run"
    press("Backspace")
    shop.browser.wait("return document.querySelectorAll('#path button').length == 1")
    press("/")
    assert shop.browser.run("return document.activeElement.id") == "search"
    shop.browser.type("if")  # are letters there
    assert shop.browser.run("return document.getElementById('search').value") == "if"
    press("Escape")
    press("?")
    assert shop.browser.run("return document.getElementById('help').open")
    press("Escape")


def test_colors_are_of_states(shop):
    cpu, sleeping, blocked = shop.hue(0.2, 3), shop.hue(0.5, 3), shop.hue(0.9, 3)
    assert 0.03 < cpu[0] < 0.12 and cpu[1] > 0.5  # orange
    assert 0.5 < blocked[0] < 0.65 and blocked[1] > 0.5  # blue
    assert sleeping[1] < 0.4  # greyish


def test_marks_are_hatched(shop):
    assert shop.at(0.99, 3)["name"] == TORN[0]
    colors = shop.pixels(0.985, 3)
    assert all(max(color) - min(color) < 20 for color in colors)
    assert max(map(sum, colors)) - min(map(sum, colors)) > 100
    plain = shop.pixels(0.85, 3, 4)[:20]
    assert max(map(sum, plain)) - min(map(sum, plain)) < 20


def test_colors_by_package_and_file(pages):
    gem = "/usr/share/gems/gems/rack-3.0.8/lib/rack.rb"
    inner = [
        frame("Rack.call", gem, 1, 2),
        frame("Rack::Q.parse", gem.replace("rack.rb", "q.rb"), 1, 2),
        frame("App.call", "/srv/app.rb", 1, 2),
        frame("Set#add", "/usr/lib/ruby/3.1.0/set.rb", 1, 2),
        frame("Array#each", kind=C),
        frame("Integer#times", "<internal:numeric>", 1, 1),
    ]
    spans = [(0, "cpu", 60 - i, 1, MAIN, inner[i]) for i in range(6)]
    page = pages("packages", profile(spans))
    page.browser.choose("#color", "package")
    page.settle()
    legend = page.browser.run("return [...document.querySelectorAll('#legend bdi')].map((p) => p.textContent)")
    assert legend == ["rack", "application", "standard library", "C functions", "Ruby itself"]
    parts = [(r.left + r.width / 8, 2) for r in rectangles(spans)[1:]]
    hues = [page.hue(*part)[0] for part in parts]
    assert hues[0] == pytest.approx(hues[1], abs=0.02)
    assert all(abs(a - b) > 0.03 for i, a in enumerate(hues[1:]) for b in hues[i + 2 :])
    page.browser.choose("#color", "file")
    page.settle()
    assert abs(page.hue(*parts[0])[0] - page.hue(*parts[1])[0]) > 0.03


def test_dark(shop):
    light = shop.pixels(0.5, 8, 1)[0]
    shop.browser.dark(True)
    shop.settle()
    dark = shop.pixels(0.5, 8, 1)[0]
    assert sum(light) > 700 and sum(dark) < 120
    assert shop.browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb({}, {}, {})".format(*dark)
    shop.browser.dark(False)


def test_functions(shop):
    shop.browser.press("f")
    rows = shop.browser.run(
        "return [...document.querySelectorAll('#table-panel tbody tr')]"
        ".map((row) => [...row.cells].map((cell) => cell.innerText))"
    )
    shares = {re.split(r" |\n", name)[0]: (own, total) for own, total, name in rows}
    assert shares["Order#total"] == ("22.0 %", "52.0 %")
    assert shares["<main>"] == ("0.0 %", "100.0 %")
    assert [float(own.split()[0]) for own, _, _ in rows] == sorted((float(r[0].split()[0]) for r in rows), reverse=True)
    shop.browser.click("#table-panel tbody button")
    assert shop.browser.text("#matched") == "30.0 % in 1 frame"  # Array#sum


def test_no_network(shop):
    shop.at(0.6, 2, click=True)
    shop.search("x")
    assert shop.browser.requests() == [f"file://{shop.path}"]
    text = shop.path.read_text()
    assert "default-src 'none'" in text
    refused = shop.browser.run(
        "return new Promise((r) => { addEventListener('securitypolicyviolation', (e) => r(e.violatedDirective));"
        "const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s) })"
    )
    assert refused.startswith("script-src")
    assert not shop.browser.run("return window.ran")
    shop.browser.console()


class Data(html.parser.HTMLParser):
    """The text of the page's element with the data, and what other elements there are."""

    def __init__(self):
        super().__init__()
        self.text = ""
        self.names = []
        self._inside = False

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self._inside = tag == "script" and ("id", "profile") in attrs

    def handle_endtag(self, tag):
        self._inside = False

    def handle_data(self, data):
        self.text += data if self._inside else ""


def hostile_page(pages):
    spans = [
        (0, "cpu", 50, 1, frame(name, name or None, 7), frame(other, other or None, 7))
        for name, other in zip(HOSTILE, HOSTILE[1:] + HOSTILE[:1])
    ]
    after = profile(spans, [(0, HOSTILE[0])], [HOSTILE[2]], pid=1)
    return pages("hostile", after, after, title=HOSTILE[0] + HOSTILE[3], by=HOSTILE[2], threads=True)


def test_hostile_names_reach_the_page_as_they_are(pages):
    page = hostile_page(pages)
    parsed = Data()
    parsed.feed(page.path.read_bytes().decode())
    strings = json.loads(parsed.text)["strings"]
    assert set(HOSTILE) <= set(strings)
    assert parsed.names.count("script") == 2 and "img" not in parsed.names and "svg" not in parsed.names


def test_hostile_names_do_no_harm(pages):
    page = hostile_page(pages)
    for name in HOSTILE:
        found = page.search("c\\u{d}d" if "\n" in name else name)  # what a box for one line can have
        if name:
            assert re.fullmatch(r"after [\d.]+ %, before [\d.]+ % in [1-9]\d* frames", found), name[:50]
    page.search("")
    page.browser.press("f")
    seen = set()
    for i in range(len(HOSTILE)):
        seen.add(page.name_at((i + 0.5) / len(HOSTILE), 2))
        page.browser.run("document.getElementById('graph').focus()")
    assert {name for name in HOSTILE if name.isprintable() and len(name) < 100} <= seen
    assert "a\\u{2028}b\\u{a}c\\u{d}d\\u{2029}e\\u{9}f\\u{1}\\u{7f}" in seen
    assert "\\u{202e}gnirts\\u{202c}" in seen
    for color in ("state", "package", "file", "difference"):
        page.browser.choose("#color", color)
        page.settle()
    elements = page.browser.run("return ['img', 'svg', 'script'].map((n) => document.getElementsByTagName(n).length)")
    assert elements == [0, 0, 2]
    assert page.browser.alert() is None
    assert page.browser.console() == []


def test_two_profiles(compared):
    assert compared.browser.text("#facts").count("recorded") == 2
    compared.check(rectangles(AFTER_SPANS))
    tip = compared.at(0.1, 2)
    assert tip["name"] == "Order#total" and tip["place"] == "lib/order.rb:18"
    assert tip["numbers"]["total"] == ["600 ms (60.0 %)", "400 ms (40.0 %)"]
    assert tip["numbers"]["self"] == ["0 ns (0.0 %)", "100 ms (10.0 %)"]
    assert tip["numbers"]["samples"] == ["6", "4"]
    assert tip["numbers"]["difference"] == ["+20.0 points"]
    assert compared.search("Order#total") == "after 60.0 %, before 52.0 % in 3 frames"
    assert compared.at(0.7, 2)["note"] == "only after"


def test_red_is_more_blue_is_less(compared):
    more, less = compared.hue(0.1, 2), compared.hue(0.95, 2)
    assert more[0] < 0.06 or more[0] > 0.95
    assert 0.5 < less[0] < 0.7
    same = compared.hue(0.5, 1)
    assert same[1] < 0.15 or same[0] == pytest.approx(less[0], abs=0.1)


def test_what_is_only_before_can_be_seen(compared):
    compared.browser.choose("#side", "1")
    compared.settle()
    # Siblings are in the order of both profiles together.
    names = [compared.name_at(part, 2) for part in (0.2, 0.5, 0.9)]
    assert names == ["Order#total", "Worker#run", "Order#open"]
    tip = compared.at(0.5, 2)
    assert tip["note"] == "only before"
    assert tip["numbers"]["total"] == ["0 ns (0.0 %)", "400 ms (40.0 %)"]
    hue, _ = compared.hue(0.5, 2)
    assert 0.5 < hue < 0.7
    compared.browser.press("f")
    rows = compared.browser.run(
        "return [...document.querySelectorAll('#table-panel tbody tr')].map((row) => row.innerText)"
    )
    gone = [row for row in rows if row.endswith("only before")]
    assert len(gone) == 3 and any("Worker#run" in row and "−40.0 points" in row for row in gone)
    assert any("Cache#get" in row and "+30.0 points" in row and row.endswith("only after") for row in rows)


def test_threads_of_two_profiles(pages):
    """Ids are others in each recording: the first thread of a name is compared with the first of that name."""
    page = pages("compared-threads", profile(SPANS, THREADS, pid=900), profile(SPANS, THREADS), threads=True)
    assert page.at(0.9, 1)["numbers"]["difference"] == ["±0.00 points"]
    assert (page.name_at(0.1, 1), page.name_at(0.9, 1)) == ("thread 910 (main)", "thread 911 worker")


def many_nodes():
    """100,102 nodes: a hundred methods, which call a hundred each, which call nine each."""
    outer = [frame(f"Outer#m{i}", f"lib/outer{i % 7}.rb", i) for i in range(100)]
    middle = [frame(f"Middle#m{i}", f"lib/middle{i % 5}.rb", i) for i in range(100)]
    inner = [frame(f"Inner#m{i}", "lib/inner.rb", i) for i in range(9)]
    return [(0, "cpu", 1, 1, MAIN, o, m, i) for o in outer for m in middle for i in inner]


def test_many_nodes(pages):
    page = pages("many", profile(many_nodes()))
    assert page.search("Inner#m3") == "11.1 % in 10,000 frames"
    took = page.browser.run("""
        const drawn = () => document.getElementById('graph').dataset.drawn;
        const box = document.querySelector('#states input[data-state=cpu]');
        box.click();
        const start = performance.now(), before = drawn();
        box.click();
        return new Promise((done) => {
            const look = () => drawn() !== before ? done(performance.now() - start) : requestAnimationFrame(look);
            look();
        });
    """)
    assert took < 1500
    assert page.browser.run("return document.querySelectorAll('*').length") < 300
    page.at(0.005, 2, click=True)
    assert page.path_shown() == ["all", "<main>", "Outer#m0"]
    assert page.name_at(0.005, 3) == "Middle#m0"
    assert page.browser.console() == []


def test_deep_stack(pages):
    deep = [frame(f"Deep#m{i % 50}", "deep.rb", i % 50) for i in range(5000)]
    page = pages("deep", profile([(0, "cpu", 10, 1, *deep)]))
    assert page.search("Deep#m49") == "100.0 % in 100 frames"
    page.browser.run("document.getElementById('scroller').scrollTop = 1e9")
    page.settle()
    box = page.box()
    view = page.browser.run("return document.getElementById('scroller').clientHeight")
    assert page.name_at(0.5, view / box["row"] - 1) == "Deep#m49"
    page.at(0.5, view / box["row"] - 1, click=True)
    assert len(page.path_shown()) == 6
    assert page.browser.console() == []


def test_nothing_was_sampled(pages):
    page = pages("empty", profile([]))
    assert page.browser.text("#nothing") == "No time was spent in these states."
    assert page.browser.console() == []
