"""Debian's chromium, driven by chromedriver: the WebDriver protocol over HTTP on the loopback, by urllib alone."""

import base64
import contextlib
import json
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {
    "Enter": "\ue007", "Escape": "\ue00c", "ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014",
    "ArrowDown": "\ue015", "Backspace": "\ue003", "Control": "\ue009", "Shift": "\ue008", "Home": "\ue011",
}  # fmt: skip


class BrowserError(Exception):
    """What the driver answers in place of a result."""


class Browser:
    """One session: one window, in which pages are opened one after another."""

    def __init__(self, url, options):
        self._url = url
        wanted = {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options,
                                  "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}}  # fmt: skip
        self._session = None
        self._session = f"/session/{self._call('POST', '/session', {'capabilities': wanted})['sessionId']}"

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, {"Content-Type": "application/json"}, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise BrowserError(json.load(error)["value"]["message"].split("\n")[0]) from error

    def _do(self, path, **body):
        return self._call("POST", self._session + path, body)

    def quit(self):
        self._call("DELETE", self._session)

    def open(self, path):
        """Opens a file, with a log that has nothing of pages before it."""
        self._do("/url", url="about:blank")
        self.console()
        self.requests()
        self._do("/url", url=f"file://{path}")

    def run(self, script, *arguments):
        """What a function with this body returns."""
        return self._do("/execute/sync", script=script, args=list(arguments))

    def wait(self, script, *arguments):
        """What the script returns, once it is true."""
        end = time.monotonic() + 30
        while not (value := self.run(script, *arguments)):
            assert time.monotonic() < end, f"never became true: {script}"
            time.sleep(0.02)
        return value

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0]).textContent", selector)

    def element(self, selector):
        return self._do("/element", using="css selector", value=selector)[ELEMENT]

    def click(self, selector):
        self._do(f"/element/{self.element(selector)}/click")

    def point(self, x, y, click=False):
        """Moves the mouse to a point of the window, and clicks there if asked to."""
        moves = [{"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y)}]
        if click:
            moves += [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        mouse = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": moves}
        self._do("/actions", actions=[mouse])

    def press(self, *keys):
        """Presses keys together: "Control", "f"."""
        codes = [KEYS.get(key, key) for key in keys]
        downs = [{"type": "keyDown", "value": code} for code in codes]
        ups = [{"type": "keyUp", "value": code} for code in reversed(codes)]
        self._do("/actions", actions=[{"type": "key", "id": "keys", "actions": downs + ups}])

    def type(self, text):
        for character in text:
            self.press(character)

    def choose(self, selector, value):
        """Chooses one of a select's options by its value."""
        self.run(
            "const s = document.querySelector(arguments[0]); s.value = arguments[1];"
            "s.dispatchEvent(new Event('change', {bubbles: true}))",
            selector,
            value,
        )

    def back(self):
        """To the address before, within a page; once the page has been told."""
        self.run("window.told = false; addEventListener('hashchange', () => { window.told = true; }, {once: true});")
        self._do("/back")
        self.wait("return window.told")

    def resize(self, width, height):
        self._do("/window/rect", width=width, height=height)

    def devtools(self, command, **parameters):
        return self._do("/goog/cdp/execute", cmd=command, params=parameters)

    def dark(self, wanted):
        """As if the user preferred a dark page."""
        feature = {"name": "prefers-color-scheme", "value": "dark" if wanted else "light"}
        self.devtools("Emulation.setEmulatedMedia", features=[feature])

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self._call("GET", self._session + "/screenshot")))

    def alert(self):
        """The text of a dialog that the page has opened; None if there is none."""
        try:
            return self._call("GET", self._session + "/alert/text")
        except BrowserError:
            return None

    def console(self):
        """What was logged since the last time: errors, and what a policy has refused."""
        return [f"{line['level']}: {line['message']}" for line in self._do("/se/log", type="browser")]

    def requests(self):
        """The addresses that pages have asked for since the last time."""
        events = [json.loads(line["message"])["message"] for line in self._do("/se/log", type="performance")]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]


@contextlib.contextmanager
def browser(folder):
    """A browser with a profile of its own in this folder, without a sandbox: it shows our own files, maybe as root."""
    arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--disable-background-networking", "--force-device-scale-factor=1", "--window-size=1280,800", "--remote-debugging-pipe",
                 f"--user-data-dir={folder}/profile"]  # fmt: skip
    log = folder / "chromedriver.log"
    driver = subprocess.Popen(
        ["chromedriver", "--port=0"],
        stdout=log.open("w"),
        stderr=subprocess.STDOUT,
        env={**os.environ, "HOME": str(folder)},
        start_new_session=True,
    )
    try:
        end = time.monotonic() + 60
        while not (port := re.search(r"successfully on port (\d+)", log.read_text())):
            assert driver.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.05)
        session = Browser(f"http://127.0.0.1:{port[1]}", {"args": arguments, "binary": "/usr/bin/chromium"})
        try:
            yield session
        finally:
            session.quit()
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
