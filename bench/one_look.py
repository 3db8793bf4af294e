"""What one look costs: making a layout, a dump, its pause."""

import json
import os
import re
import shutil
import statistics

from measure import TREE, Calls, Failed, Run, check_frames, counted, interleave, peak_memory, target

STRUCT = "ptype /o struct rb_control_frame_struct"
TRACED = 40  # dumps of a busy target that are run under strace, to count their pauses


class OneLook:
    PARTS = ("generation", "whole_dump", "search", "pauses")

    def __init__(self, setting):
        self.options, self.ruby, self.rbdump, self.folder = setting.options, setting.ruby, setting.rbdump, setting.folder
        self.table, self.environment, self.generate = setting.table, setting.environment, setting.generate
        self.bare = setting.compile("bare_cycle")

    def dump(self, pid, *more):
        return [self.rbdump, "-p", str(pid), *more]

    def generation(self):
        mine, peer = "rbdump --gen-offsets", "gdb -batch -ex 'ptype /o …'"
        size = debug_info_size(self.ruby.elf)
        self.table.section(f"Layout from DWARF: Ruby {self.ruby.version}, .debug_info of {size / 1e6:.1f} MB; CPU time")
        self.table.note(f"… is {STRUCT.removeprefix('ptype /o ')}")
        gdb = ["gdb", "-nx", "-batch", "-ex", STRUCT, self.ruby.elf]
        runs = interleave({mine: self.generate, peer: gdb}, self.options.repeat, self.environment)
        for run in runs[peer]:
            if "total size" not in run.output:
                raise Failed(f"gdb did not show the struct: {run.output.strip()[-300:]}")
        cpu = {name: [run.cpu * 1e3 for run in some] for name, some in runs.items()}
        for name, values in cpu.items():
            self.table.add_spread(name, values, "ms")
        ratio = statistics.median(cpu[mine]) / statistics.median(cpu[peer])
        self.table.add("ratio of the medians", ratio, "ratio", 0.3)
        for name, command in ((mine, self.generate), (peer, gdb)):
            peak = max(peak_memory(command, self.environment, self.folder) for _ in range(3)) / 1e6
            self.table.add(f"peak memory, {name}", peak, "MB", 250 if name == mine else None)

    def whole_dump(self):
        self.table.section("A whole dump of a process that sleeps: 30 frames, with a layout file; wall time")
        with target(self.ruby.path, "sleep", 30) as pid:
            check_frames(Run(self.dump(pid, "--json"), self.environment), (30,))
            script = f"source {TREE / 'gdb-scripts/rb_bt.py'}"
            commands = {
                "rbdump -p PID": self.dump(pid),
                "true (starting an empty program)": ["true"],
                "gdb -batch -p PID, rb-bt": ["gdb", "-nx", "-batch", "-p", str(pid), "-ex", script, "-ex", "rb-bt"],
                "eu-stack -p PID (native frames only)": ["eu-stack", "-p", str(pid)],
                "rbspy snapshot --pid PID": ["rbspy", "snapshot", "--pid", str(pid)],
            }
            missing = [name for name, command in commands.items() if not shutil.which(command[0])]
            for name in missing:
                del commands[name]
            # The slow ones are not needed as often as the quick ones.
            slow = {name: commands.pop(name) for name in list(commands) if name.startswith(("gdb", "eu-", "rbspy"))}
            runs = {name: [] for name in commands | slow}
            for _ in range(self.options.repeat):
                for name, some in interleave(commands, 10, self.environment).items():
                    runs[name] += some
                for name, command in slow.items():
                    runs[name].append(Run(command, self.environment))
            for name, some in runs.items():
                limit = 10 if name == "rbdump -p PID" else None
                self.table.add_spread(name, [run.wall * 1e3 for run in some], "ms", limit)
            for name in missing:
                self.table.note(f"{name}: not found")
            if self.options.instructions:
                every, reading = (
                    counted(self.dump(pid), self.environment, within)[0] for within in (None, "layout_find_kept")
                )
                cpu = statistics.median(run.cpu for run in runs["rbdump -p PID"]) * 1e3
                self.table.add("instructions of rbdump -p PID", every, "")
                self.table.add("  of which to find and read the layout", reading, "")
                self.table.add("  estimate: that share of its CPU time", cpu * reading / every, "ms", 1)
            self.calls(pid, "System calls of that dump (deterministic, except for the place of the heap)")
        with target(self.ruby.path, "busy", 30) as pid:
            self.calls(pid, "System calls of a dump of a busy process")

    def calls(self, pid, title):
        calls = Calls(self.dump(pid), self.environment, self.folder)
        self.table.section(title)
        self.table.add("in all", sum(calls.all.values()), "")
        self.table.note("  " + ", ".join(f"{n} {name}" for name, n in list(calls.all.items())))
        self.table.add("while the target is stopped", sum(calls.pause.values()), "")
        if calls.pause:
            self.table.note("  " + ", ".join(f"{n} {name}" for name, n in calls.pause.items()))

    def search(self):
        self.table.section("A dump of a Ruby without symbols, 30 frames, layout of its version; wall time")
        stripped = os.path.join(self.folder, "stripped")
        Run(["strip", "--strip-all", "-o", stripped, self.ruby.path], self.environment)
        shipped = dict(self.environment, RBDUMP_OFFSETS_D=str(TREE / "offsets.d"))
        # What it finds cannot be kept in the one, and is kept in the other.
        environments = {
            "rbdump searches for its roots": dict(shipped, XDG_CACHE_HOME="/dev/null"),
            "rbdump has found them before": dict(shipped, XDG_CACHE_HOME=os.path.join(self.folder, "kept")),
        }
        with target(stripped, "sleep", 30) as pid:
            runs = {name: [] for name in environments}
            for i in range(10 * self.options.repeat + 1):
                for name, environment in environments.items():
                    run = Run(self.dump(pid, "--json"), environment)
                    check_frames(run, (30,))
                    if i > 0:
                        runs[name].append(run.wall * 1e3)
            for name, walls in runs.items():
                self.table.add_spread(name, walls, "ms", 50)
                calls = Calls(self.dump(pid), environments[name], self.folder)
                self.table.add("  process_vm_readv", calls.all["process_vm_readv"], "")

    def pauses(self):
        self.table.section("The pause, from pause_us of the JSON, and the bare ptrace cycle with the same copy")
        for mode, frames, threads, dumps, limit in (
            ("sleep", 100, 1, 200, 0),
            ("busy", 100, 1, 200, 500),
            ("busy", 1000, 1, 50, None),
            ("busy", 10000, 1, 50, None),
            ("mixed", 10, 100, 50, None),
            ("mixed", 10, 1000, 20, None),
            ("mixed", 10, 4000, 10, None),
        ):
            with target(self.ruby.path, mode, frames, threads) as pid:
                calls = Calls(self.dump(pid), self.environment, self.folder, only="ptrace,process_vm_readv")
                pieces = "".join(f"{address} {length}\n" for address, length in calls.pieces).encode()
                if mode == "busy":
                    traced = [Calls(self.dump(pid), self.environment, self.folder) for _ in range(TRACED)]
                    again = sum(calls.pauses > 1 for calls in traced)
                mine, bare = [], []
                # A busy thread is in the last method or has just left it.
                deep = (frames,) if mode == "sleep" else (frames - 1, frames)
                for _ in range(dumps):
                    run = Run(self.dump(pid, "--json"), self.environment, allowed=(0, 1))
                    check_frames(run, deep, threads)
                    mine.append(json.loads(run.output)["pause_us"])
                    if pieces:
                        cycle = Run([self.bare, str(pid)], self.environment, stdin=pieces)
                        bare.append(float(cycle.output))
            what = f"{frames:,} frames, {threads:,} thread{'s' if threads > 1 else ''}, {mode}"
            self.table.add_spread(f"{what}: rbdump", mine, "us", limit)
            if bare:
                copied = f"{calls.bytes / 1024:,.0f} KiB in {len(calls.pieces)} pieces"
                self.table.add_spread(f"  bare cycle, {copied}", bare, "us")
            if mode == "busy":
                self.table.add(f"  of {TRACED} dumps under strace, those with several pauses", again, "")


def debug_info_size(elf):
    sections = Run(["readelf", "-SW", elf], os.environ).output
    found = re.search(r"\] \.debug_info +\S+ +\S+ \S+ ([0-9a-f]+)", sections)
    if not found:
        raise Failed(f"{elf} has no .debug_info")
    return int(found[1], 16)
