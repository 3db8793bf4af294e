"""The flame graph, in a browser: hostile names do no harm, many frames or none are shown, and nothing is fetched."""

import html.parser
import json
import re

from harness.flamegraph import MAIN, frame, profile

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


def many_nodes():
    """100,102 nodes: a hundred methods, which call a hundred each, which call nine each."""
    outer = [frame(f"Outer#m{i}", f"lib/outer{i % 7}.rb", i) for i in range(100)]
    middle = [frame(f"Middle#m{i}", f"lib/middle{i % 5}.rb", i) for i in range(100)]
    inner = [frame(f"Inner#m{i}", "lib/inner.rb", i) for i in range(9)]
    return [(0, "cpu", 1, 1, MAIN, o, m, i) for o in outer for m in middle for i in inner]


def cpu_time(page):
    """Of the thread that runs the page's script, in seconds."""
    metrics = page.browser.devtools("Performance.getMetrics")["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "ThreadTime")


def test_many_nodes(pages):
    page = pages("many", profile(many_nodes()))
    assert page.search("Inner#m3") == "11.1 % in 10,000 frames"
    redraw = """
        const drawn = () => document.getElementById('graph').dataset.drawn;
        const box = document.querySelector('#states input[data-state=cpu]');
        box.click();
        const before = drawn();
        box.click();
        return new Promise((done) => {
            const look = () => drawn() !== before ? done(true) : requestAnimationFrame(look);
            look();
        });
    """
    page.browser.devtools("Performance.enable")

    def cpu_time_of_redraw():
        """That of the page's thread, in seconds: how long it waits for a CPU depends on what else the machine has to do."""
        before = cpu_time(page)
        assert page.browser.run(redraw)
        return cpu_time(page) - before

    assert 0 < min(cpu_time_of_redraw() for _ in range(3)) < 1.5
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
