"""
The section of doc/gallery.md about stuck processes: Debian's puma and sidekiq, with applications that get stuck
(bench/apps/stuck), and what one command prints about each.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from applications import Application, Jobs, free_port
from measure import BENCH, TIMEOUT, TREE, Failed

TITLE = "What is it stuck on?"
RBDUMP = TREE / "build/rbdump"
CLIENTS, PATIENCE_S = 5, 3  # of puma: how many, and how long each waits for an answer
PRICES, ORDERS = 3, 7  # jobs of sidekiq
FRAMES = 2  # how many frames are shown of a stack without a frame of the application
SETTLE_S = 1.0


def connected(process, port):
    """A connection to a server, as soon as it listens."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), TIMEOUT)
        except ConnectionRefusedError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise Failed("a server did not get ready") from None
            time.sleep(0.05)


def shop_until_stuck(port, path):
    """Sends a request again and again, until one is not answered."""
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as connection:
            connection.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
            try:
                while connection.recv(4096):
                    pass
            except TimeoutError:
                return


class Stuck(Application):
    """An application that is stuck. It is run in a folder of its own, so that its paths are short."""

    def __init__(self, folder):
        super().__init__(folder, None)

    def wait_for_progress(self):
        """There is none."""

    def dump(self):
        done = subprocess.run([RBDUMP, str(self.pid)], capture_output=True, text=True, check=True, timeout=TIMEOUT)
        return done.stdout.replace(f"{self.folder}/", "")


class Puma(Stuck):
    """Five threads, and five clients: some buy, some want a refund."""

    FILE = "config.ru"

    def begin(self):
        port = free_port()
        command = ["puma", "--quiet", "-t", f"{CLIENTS}:{CLIENTS}", "-b", f"tcp://127.0.0.1:{port}", "config.ru"]
        puma = self.start(command, cwd=self.folder, stdout=subprocess.DEVNULL)
        self.pid = puma.pid
        connected(puma, port).close()
        paths = [("/buy", "/refund")[i % 2] for i in range(CLIENTS)]
        clients = [threading.Thread(target=shop_until_stuck, args=(port, path)) for path in paths]
        for client in clients:
            client.start()
        for client in clients:
            client.join()


class Sidekiq(Stuck):
    """Ten threads (the default): three jobs wait for the supplier and keep the connections of the pool, seven wait for one."""

    FILE = "jobs.rb"
    supplier, asked = None, ()

    def begin(self):
        port = free_port()
        redis = self.start(
            ["redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--dir", self.folder],
            stdout=subprocess.DEVNULL,
        )
        self.supplier = socket.create_server(("127.0.0.1", 0))
        self.supplier.settimeout(TIMEOUT)
        addresses = {
            "REDIS_URL": f"redis://127.0.0.1:{port}",
            "SUPPLIER": f"http://127.0.0.1:{self.supplier.getsockname()[1]}",
        }
        with connected(redis, port) as connection:
            sidekiq = self.start(
                ["sidekiq", "-r", f"./{self.FILE}", "-e", "production"],
                cwd=self.folder, env=dict(os.environ, **addresses), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            self.pid = sidekiq.pid
            self.push(connection, "PriceJob", PRICES)
            self.asked = [self.supplier.accept()[0] for _ in range(PRICES)]
            self.push(connection, "OrderJob", ORDERS)
            deadline = time.monotonic() + TIMEOUT
            while Jobs.command(connection, "LLEN", "queue:default") > 0:
                if time.monotonic() > deadline:
                    raise Failed("sidekiq does not take its jobs")
                time.sleep(0.05)
        time.sleep(SETTLE_S)

    def end(self):
        super().end()
        for connection in filter(None, (self.supplier, *self.asked)):
            connection.close()

    @staticmethod
    def push(connection, name, count):
        for number in range(count):
            job = {"class": name, "args": ["tea"], "jid": f"{name}{number:016x}", "queue": "default", "retry": False}
            Jobs.command(connection, "LPUSH", "queue:default", json.dumps(job))


def shortened(text, file):
    """A dump without the frames that have called the application. What is left out is marked with …"""
    blocks = []
    for block in text.rstrip().split("\n\n"):
        lines = block.split("\n")
        frames = [at for at, line in enumerate(lines) if re.match(r" {4}\S", line)]
        last = max((at for at in frames if re.match(rf" {{4}}{re.escape(file)}:", lines[at])), default=None)
        if last is None and frames:
            last = frames[:FRAMES][-1]
        kept = lines if last is None or last == len(lines) - 1 else [*lines[: last + 1], "    …"]
        blocks.append("\n".join(kept))
    return "\n\n".join(blocks)


def shown(which):
    with tempfile.TemporaryDirectory(prefix="rbdump-gallery-") as folder:
        shutil.copy(BENCH / "apps/stuck" / which.FILE, folder)
        with which(folder) as app:
            return f"```\n$ rbdump {app.pid}\n{shortened(app.dump(), which.FILE)}\n```\n"


def section():
    return f"""## {TITLE}

This section shows two servers on Debian's Ruby. Their applications get stuck on purpose (`bench/apps/stuck`). For each
server, one command of rbdump prints the cause. The outputs are as rbdump prints them, but only the innermost frames are
shown here: `…` stands for the other frames.

### A puma that does not answer

No client of this puma gets an answer. The output begins with the deadlock: one thread has locked a Mutex in `buy`, another
thread has locked a Mutex in `refund`, and each of them waits for the Mutex that the other thread has locked. The text after
`since` names the line that has locked the Mutex. So both methods lock the same Mutexes, in opposite orders. For each of the
other threads that serve requests, lines that begin with `->` show how its wait leads to the deadlock.

{shown(Puma)}
### A sidekiq that does no jobs

All {PRICES + ORDERS} threads of this sidekiq are busy, but no job ends. This is not a deadlock: {PRICES} threads wait for data from a socket.
The lines with `ppoll` show the address of the server that does not answer. They also show the process at the other end of
the connection, because this process is on the same machine. The stack of these threads contains `ConnectionPool#with`: the
job keeps a connection of the pool while it waits. The other {ORDERS} threads wait in `ConnectionPool#checkout` until a
connection of the pool is free. So `PriceJob` should ask for the price before it takes a connection, and should set a time
limit for the answer.

{shown(Sidekiq)}"""
