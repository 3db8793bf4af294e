"""The program whose threads rest in functions of a C extension (targets/native/mixed.rb), and this extension."""

import json
import pathlib
import re
import subprocess

from harness.process import wait_until_it_reads

HERE = pathlib.Path(__file__).resolve().parent.parent / "targets/native"
DEPTH = 20


class Extension:
    """The C extension, and the names of its functions: with debug info, or without symbols."""

    def __init__(self, folder, with_debug):
        self.path = folder / "mixed.so"
        flags = ["-g"] if with_debug else []
        subprocess.run(
            ["gcc", "-O2", *flags, "-shared", "-fPIC", "-w", "-o", self.path, HERE / "mixed.c"], check=True, timeout=60
        )
        symbols = subprocess.run(["nm", self.path], check=True, capture_output=True, text=True, timeout=60).stdout
        functions = dict(re.findall(r"^(\w+) t (\w+)$", symbols, re.M))
        starts = {name: int(address, 16) for address, name in functions.items()}
        self.names = {name: name if with_debug else f"mixed.so+{start:#x}" for name, start in starts.items()}
        if not with_debug:
            subprocess.run(["strip", self.path], check=True, timeout=60)


class Mixed:
    """The program, at rest; `said` is what it says of its threads."""

    def __init__(self, ruby, extension, *flags, depth=DEPTH, cwd=None):
        self.process = subprocess.Popen(
            [ruby.path, *flags, "--disable-gems", HERE / "mixed.rb", extension.path, str(depth)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd,
        )  # fmt: skip
        self.pid = self.process.pid

    def __enter__(self):
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        self.said = json.loads(line)
        wait_until_it_reads(self.pid)
        return self

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(60)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()
