"""
Clients of the application of rails/, each with a connection of its own.

    clients.py PORT CLIENTS RATE

RATE: requests a second of all clients together; 0: as many as the server answers. Prints a line for each answer: the moment of
the monotonic clock, and how long the answer took, in seconds. At a rate, that is counted from when the request was due: a
server that stands still delays all that are due meanwhile. Ends with standard input.
"""

import http.client
import os
import random
import sys
import threading
import time


def paths(seed):
    chance = random.Random(seed)
    while True:
        what = chance.random()
        if what < 0.6:
            yield "GET", f"/authors/{chance.randint(1, 25)}/books"
        elif what < 0.95:
            yield "GET", f"/books/{chance.randint(1, 500)}"
        else:
            yield "POST", f"/books/{chance.randint(1, 500)}"


def run(port, number, interval, first):
    try:
        ask(port, number, interval, first)
    except (OSError, http.client.HTTPException) as problem:
        os.write(1, f"status {type(problem).__name__} of client {number}\n".encode())


def ask(port, number, interval, first):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    due = first
    for method, path in paths(number):
        began = time.monotonic()
        if interval:
            time.sleep(max(0, due - began))
            began = due
            due += interval
        body = f"title=A+title+of+{number}" if method == "POST" else None
        headers = {"Content-Type": "application/x-www-form-urlencoded"} if body else {}
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        answer.read()
        if answer.status not in (200, 302):
            os.write(1, f"status {answer.status} of {path}\n".encode())
            return
        now = time.monotonic()
        os.write(1, f"{now:.6f} {now - began:.6f}\n".encode())


def main():
    port, clients, rate = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    interval = clients / rate if rate else 0
    began = time.monotonic()
    for number in range(clients):
        first = began + interval * number / clients
        threading.Thread(target=run, args=(port, number, interval, first), daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
