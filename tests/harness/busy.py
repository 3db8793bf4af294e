"""The program that calls methods of a C extension all the time (targets/native/busy.rb), and this extension."""

import pathlib
import re
import subprocess

HERE = pathlib.Path(__file__).resolve().parent.parent / "targets/native"


class Extension:
    """The C extension, built without debug info; the addresses of its functions are noted before its symbols are removed."""

    def __init__(self, folder):
        self.path = folder / "busy.so"
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-w", "-o", self.path, HERE / "busy.c"], check=True, timeout=60)
        symbols = subprocess.run(["nm", self.path], check=True, capture_output=True, text=True, timeout=60).stdout
        self.addresses = {name: int(address, 16) for address, name in re.findall(r"^(\w+) [tT] (\w+)$", symbols, re.M)}
        subprocess.run(["strip", self.path], check=True, timeout=60)
        dynamic = subprocess.run(["nm", "-D", self.path], check=True, capture_output=True, text=True, timeout=60).stdout
        # The names of these are gone; those of the others are needed by the linker.
        assert "busy_work" in dynamic and "compute" not in dynamic

    def nameless(self, function):
        return f"busy.so+{self.addresses[function]:#x}"


class Busy:
    """The program that calls the extension's methods."""

    def __init__(self, ruby, extension, flags=()):
        self.process = subprocess.Popen(
            [ruby.path, *flags, "--disable-gems", HERE / "busy.rb", extension.path],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __enter__(self):
        said = self.process.stdout.readline()
        assert said == "ready\n", self.process.stderr.read()
        return self.process

    def __exit__(self, *_):
        self.process.stdin.close()
        assert self.process.wait(60) == 0
        self.process.stdout.close()
        self.process.stderr.close()
