"""A flame graph that is open in the browser: what is seen at a place, and what a user does."""

import colorsys


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
