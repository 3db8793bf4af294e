"""The flame graph, in a browser: where frames are, what is said of them, colours, two profiles."""

import re

import pytest
from harness.flamegraph import C, MAIN, OPEN, READ, SPANS, SUM, THREADS, TORN, TOTAL, frame, profile, rectangles

# After: Order#open is faster, Worker#run is gone, Cache#get is new.
CACHE = frame("Cache#get", "lib/cache.rb", 5, 6)
MOVED = [TOTAL[0], TOTAL[1], 18, 20, TOTAL[4]]  # to other lines of its file
AFTER_SPANS = [
    (0, "cpu", 300, 3, MAIN, CACHE),
    (0, "cpu", 600, 6, MAIN, MOVED, SUM),
    (0, "blocked", 100, 1, MAIN, OPEN, READ),
]


@pytest.fixture
def compared(pages):
    page = pages("compared", profile(AFTER_SPANS, pid=500), profile(SPANS, THREADS))
    yield page
    assert page.browser.console() == []


def test_what_was_recorded(shop):
    assert shop.browser.text("#title") == "shopwall-clock time"
    facts = shop.browser.text("#facts")
    for fact in ("2.50 s", "99.5 samples per second", "paused", "2 threads", "2023-11-14 22:13:20 UTC", "rbdump "):
        assert fact in facts
    counts = shop.browser.text("#counts")
    assert counts == "18 samples: 9 complete, 4 truncated, 3 torn, 2 unreadable; 1 sample late"


@pytest.mark.parametrize("by, what", [("cpu", "CPU time"), ("gvl", "GVL"), ("gc", "garbage collection")])
def test_views(pages, by, what):
    page = pages(f"by-{by}", profile(SPANS, THREADS, cut=True), by=by)
    assert what in page.browser.text("#title")
    assert "its end is missing" in page.browser.text("#counts")


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
    assert "not a method" in shop.at(0.99, 3)["note"]


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
    assert (page.name_at(0.1, 1), page.name_at(0.9, 1)) == ("thread (main)", "thread worker")
