"""Pinned states: gdb stops a thread at a known instruction, and leaves it stopped there."""

import contextlib
import pathlib
import subprocess

from harness.target import TARGETS
from harness.under_gdb import leave_stopped

STOP_IN_WINDOW = """
import gdb, re
gdb.execute("set pagination off")
function = "vm_call_iseq_setup_normal_0start_2params_2locals"
frame = gdb.lookup_global_symbol(function) or gdb.lookup_static_symbol(function)
start = int(frame.value().address)
# The store of ec->cfp: the first store at 0x10 from the register that holds ec, the first argument.
code = gdb.selected_inferior().architecture().disassemble(start, start + 200)
stored = next(i for i, at in enumerate(code) if re.search(r"mov +%r\\w+,0x10\\(%rdi\\)", at["asm"]))
gdb.execute(f"break *{code[stored + 1]['addr']}")
gdb.execute("ignore 1 {calls_before}")
print("ready", flush=True)
gdb.execute("continue")
gdb.execute(f"shell kill -STOP {gdb.selected_inferior().pid}")
gdb.execute("detach")
"""


@contextlib.contextmanager
def pinned_in_a_window(ruby, folder, script="graph/pinned.rb", calls_before=0):
    """
    A script on a Ruby 2.7 with debug info, stopped (SIGSTOP) right after a new control frame was published, and before
    it is filled in: that of the first call of a method with two arguments, after so many others. Gives the process,
    whose standard output tells the stack when it goes on.
    """
    stop = pathlib.Path(folder) / "stop.py"
    stop.write_text(STOP_IN_WINDOW.replace("{calls_before}", str(calls_before)))
    with subprocess.Popen(
        [ruby.path, "--disable-gems", TARGETS / script],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as target:  # fmt: skip
        assert target.stdout.readline() == "ready\n"
        try:
            leave_stopped(target.pid, ["-x", stop], lambda: print("go", file=target.stdin, flush=True))
            yield target
        finally:
            if target.poll() is None:
                target.kill()
