"""Run by gdb: prints the native stack of each thread, one line of JSON a thread, the innermost function first."""

import json

import gdb

MOST = 2000

for setting in ("past-main", "past-entry"):
    gdb.execute(f"set backtrace {setting} on")
for thread in gdb.selected_inferior().threads():
    thread.switch()
    frames = []
    frame = gdb.newest_frame()
    # The return address of the outermost function of a fiber is 0.
    while frame is not None and frame.pc() != 0 and len(frames) < MOST:
        # A tail call has left its frame: gdb only guesses such frames.
        if frame.type() != gdb.TAILCALL_FRAME:
            frames.append([frame.pc(), frame.name(), frame.type() == gdb.INLINE_FRAME])
        frame = frame.older()
    print(json.dumps({"tid": thread.ptid[1], "frames": frames}))
