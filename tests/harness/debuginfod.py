"""Servers of debug info, on the loopback interface: one that has files, and one that never answers."""

import contextlib
import http.server
import shutil
import socket
import threading


def put(folder, build_id, debug_file):
    """Puts a debug file where a server of this folder has it."""
    place = folder / "buildid" / build_id
    place.mkdir(parents=True)
    shutil.move(debug_file, place / "debuginfo")


@contextlib.contextmanager
def serving(folder):
    """A server that has what put() has put there, and nothing else. Gives its URL, and the paths that it was asked for."""
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=folder)

        def do_GET(self):
            asked.append(self.path)
            super().do_GET()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()


@contextlib.contextmanager
def silent():
    """A server that takes connections and says nothing. Gives its URL."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def settings(url, cache):
    """The environment in which this server, and no cache of before, is used."""
    return {"DEBUGINFOD_URLS": url, "DEBUGINFOD_CACHE_PATH": str(cache)}
