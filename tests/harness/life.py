"""
Dumps of a process at places of its life. gdb runs this: it waits for the process that it is attached to to run another
program, stops that wherever one of the functions of $PLACES is called, has $RBDUMP look at it there, and writes what came
of it to $RESULTS, one line of JSON each.
"""

import json
import os
import subprocess

import gdb


def look(place, results):
    pid = gdb.selected_inferior().pid
    # gdb traces it: rbdump must do without stopping it, which it is anyway.
    command = [os.environ["RBDUMP"], "-p", str(pid), "--json", "--no-stop"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    line = {"place": place, "status": done.returncode, "output": done.stdout, "errors": done.stderr}
    results.write(json.dumps(line) + "\n")
    results.flush()


gdb.execute("set pagination off")
gdb.execute("set breakpoint pending on")
gdb.execute("catch exec")
with open(os.environ["RESULTS"], "w", encoding="utf-8") as out:
    print("ready", flush=True)
    gdb.execute("continue")
    look("exec", out)
    for function in os.environ["PLACES"].split():
        gdb.execute(f"tbreak {function}")
    while True:
        gdb.execute("continue")
        if not gdb.selected_inferior().pid:
            break
        # With debug info, glibc's own name of a function comes first.
        look(gdb.selected_frame().name().removeprefix("__GI_"), out)
