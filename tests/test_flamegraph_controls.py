"""What a user does in the flame graph, in a browser: search, zoom, states that are left out, direction, order, keys."""

import pytest
from harness.flamegraph import SPANS, rectangles
from harness.page import Page


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
    assert shop.at(0.1, 3)["numbers"]["of the zoomed frame"] == ["70.0 %"]
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
