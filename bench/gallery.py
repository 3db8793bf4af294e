#!/usr/bin/env python3
"""
Records rubocop, rake and puma, as Debian has them, from start to end, looks for leaks in Rails and for why servers are stuck,
and makes doc/gallery.md.

    bench/gallery.py [NAME…]    rubocop, rake, puma, leaks, stuck: only these sections are made anew

It needs Debian's rubocop, rake, puma, rails, sidekiq, redis-server, ruby-rdoc (part of ruby) and chromium, and some four
minutes.
"""

import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

TREE = pathlib.Path(__file__).resolve().parent.parent
sys.path += [str(TREE / "tests"), str(TREE / "bench")]

import gallery_stuck  # noqa: E402
from applications import Rails  # noqa: E402
from harness.heap import build  # noqa: E402

RBDUMP = TREE / "build/rbdump"
GALLERY = TREE / "doc/gallery"
OWN = TREE / "bench/gallery"
GEMS = "/usr/share/rubygems-integration/all/gems"
RATE = 199
CLIENTS = 4
SERVED_S = 12
START_S = 60

RESULT = re.compile(r"rbdump: (samples .*)$", re.M)


def rubocop(folder):
    command = ["rubocop", "--cache", "false", "--format", "offenses", "--out", "/dev/null", f"{GEMS}/rubocop-1.39.0/lib"]
    return command, {}, None


def rake(folder):
    return ["rake"], {"OUTPUT": folder / "html"}, None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def client(port, until, counts, which):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    while time.monotonic() < until:
        connection.request("GET", f"/{'json' if counts[which] % 3 == 0 else ''}?{counts[which]}")
        answer = connection.getresponse()
        assert answer.status == 200 and answer.read()
        counts[which] += 1
    connection.close()


def wait_for_server(port):
    bound = time.monotonic() + START_S
    while time.monotonic() < bound:
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), timeout=5):
            return
        time.sleep(0.05)
    sys.exit("gallery: puma does not answer")


def serve(port, process):
    """Asks for pages for a while, then ends the server as its users do. Gives how many pages it answered."""
    wait_for_server(port)
    counts = [0] * CLIENTS
    until = time.monotonic() + SERVED_S
    clients = [threading.Thread(target=client, args=(port, until, counts, i)) for i in range(CLIENTS)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()
    master = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True, check=True)
    for pid in master.stdout.split():
        with contextlib.suppress(FileNotFoundError):
            if "puma" in pathlib.Path(f"/proc/{pid}/cmdline").read_text():
                os.kill(int(pid), signal.SIGTERM)
    return f"{sum(counts):,} pages"


def puma(folder):
    port = free_port()
    command = ["puma", "--quiet", "-w", "2", "-t", "2:4", "-b", f"tcp://127.0.0.1:{port}", "config.ru"]
    return command, {}, lambda process: serve(port, process)


def picture(name, page):
    """Keeps a flame graph as a page and as a picture."""
    GALLERY.mkdir(exist_ok=True)
    file = GALLERY / f"{name}.html"
    file.write_text(page)
    with tempfile.TemporaryDirectory(prefix="rbdump-browser-") as profile:
        subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--hide-scrollbars",
             "--window-size=1400,900", f"--screenshot={file.with_suffix('.png')}", file.as_uri()],
            check=True, capture_output=True, timeout=120,
        )


def record(make):
    """The recording of one, and what is to be said of it."""
    with tempfile.TemporaryDirectory(prefix="rbdump-gallery-") as name:
        folder = pathlib.Path(name)
        command, environment, meanwhile = make(folder)
        raw = folder / make.__name__
        for own in OWN.iterdir():
            shutil.copy(own, folder)
        process = subprocess.Popen(
            [str(word) for word in [RBDUMP, "record", "--children", "--mode", "paused", "-r", RATE, "-o", raw, "--", *command]],
            env={**os.environ, **{key: str(value) for key, value in environment.items()}},
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        did = meanwhile(process) if meanwhile else None
        _, errors = process.communicate(timeout=600)
        report = lambda *how: subprocess.run(
            [RBDUMP, "report", raw.name, *how], cwd=folder, capture_output=True, text=True, check=True, timeout=300
        ).stdout.replace(f"{folder}/", "")
        picture(make.__name__, report("-f", "flamegraph"))
        answer = json.loads(report("-f", "json", "--idle"))
        return {
            "command": command,
            "status": process.returncode,
            "result": RESULT.search(errors)[1],
            "did": did,
            "seconds": answer["duration_ns"] / 1e9,
            "processes": len(answer["processes"]),
            "threads": len(answer["threads"]),
            "size": raw.stat().st_size,
            "ruby": answer["processes"][0]["ruby_description"],
            "table": "\n".join(report().splitlines()[:18]),
        }


def shown(command):
    return " ".join(str(word) for word in command)


def counted(count, noun, plural):
    return f"{count} {noun}{plural if count > 1 else ''}"


def section(name, facts):
    did = f" It served {facts['did']}." if facts["did"] else ""
    return f"""## {name}

[![{name}](gallery/{name}.png)](gallery/{name}.html)

```
rbdump record --children -r {RATE} -- {shown(facts["command"])}
```

The program took {facts["seconds"]:.1f} s, and ended with exit status {facts["status"]}.{did}
The recording takes {facts["size"] / 1024:,.0f} KB, and has {counted(facts["processes"], "process", "es")} and {counted(facts["threads"], "thread", "s")}.
rbdump reported `{facts["result"]}`.

```
{facts["table"]}
```
"""


# What leaks in bench/apps/rails/leaks.rb, and what `rbdump heap --why` is asked.
LEAKS = {
    "a cache that a class has": "PageCache::Page",
    "a list of each thread": "Visit",
    "a variable that a callback keeps": "Ticket",
    "what a C extension keeps": "Handle",
    "names that are never freed": "String -n 1",
}
WARM_S, LEAKING_S = 5, 20


class Leaking(Rails):
    """The Rails application of the benchmarks, with leaks."""

    def __init__(self, folder):
        self.LEAKS = {"LEAKS": str(build(folder))}
        super().__init__(str(folder), 60)


def heap(*arguments):
    done = subprocess.run([RBDUMP, "heap", *map(str, arguments)], check=True, capture_output=True, text=True, timeout=60)
    return done.stdout


def leaks():
    """The section about leaks."""
    with tempfile.TemporaryDirectory() as folder, Leaking(pathlib.Path(folder)) as app:
        before = pathlib.Path(folder) / "before.json"
        time.sleep(WARM_S)
        before.write_text(heap("--json", "--paths", app.pid))
        time.sleep(LEAKING_S)
        diff = heap("--diff", before, "--paths", app.pid, "-n", 8)
        picture("heap", heap("-f", "flamegraph", app.pid))
        picture("leaks", heap("--dominators", "-f", "flamegraph", app.pid))
        why = {what: (name, heap("--why", *name.split(), app.pid)) for what, name in LEAKS.items()}
    parts = [f"### {what[0].upper() + what[1:]}\n\n```\nrbdump heap --why {name} PID\n\n{text.rstrip()}\n```\n" for what, (name, text) in why.items()]
    return f"""## {LEAKS_TITLE}

This section shows the Rails application of the benchmarks, on Debian's Ruby, while it answers 60 requests a second. For this
page, the application has five leaks (`bench/apps/rails/leaks.rb`). The first commands print which classes have grown within
{LEAKING_S} seconds, and which paths keep their objects alive. The classes are sorted by how many more bytes their paths keep
alive than {LEAKING_S} seconds before: the largest increase comes first.

```
rbdump heap --json --paths PID > before.json; sleep {LEAKING_S}
rbdump heap --diff before.json --paths -n 8 PID

{diff.rstrip()}
```

This flame graph shows the memory by age, type and class of the objects:

[![heap](gallery/heap.png)](gallery/heap.html)

```
rbdump heap -f flamegraph -o heap.html PID
```

This flame graph shows how much memory the objects of each class keep alive:

[![leaks](gallery/leaks.png)](gallery/leaks.html)

```
rbdump heap --dominators -f flamegraph -o leaks.html PID
```

Each of the following commands prints what keeps the objects of one leak alive. The fifth leak consists of names of
instance variables: Strings that the symbol table keeps alive, and never drops.

""" + "\n".join(parts)


PARTS = {"rubocop": rubocop, "rake": rake, "puma": puma}
LEAKS_TITLE = "Leaks in a Rails application"
# Sections that are not about a recording: { name: (title, what makes it) }
OTHERS = {"leaks": (LEAKS_TITLE, leaks), "stuck": (gallery_stuck.TITLE, gallery_stuck.section)}


def main():
    names = sys.argv[1:] or [*PARTS, *OTHERS]
    page = TREE / "doc/gallery.md"
    head, *sections = re.split(r"^(?=## )", page.read_text(), flags=re.M)
    kept = {re.match(r"## (.*)", text)[1]: text for text in sections}
    for name in names:
        if name in OTHERS:
            title, make = OTHERS[name]
            kept[title] = make().rstrip() + "\n\n"
        else:
            facts = record(PARTS[name])
            kept[name] = section(name, facts) + "\n"
            print(name, facts["status"], facts["result"])
    titles = [*PARTS, *(title for title, _ in OTHERS.values())]
    page.write_text((head + "".join(kept[title] for title in titles)).rstrip() + "\n")


if __name__ == "__main__":
    main()
