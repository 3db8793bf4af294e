"""Measures rbdump against its peers: one table, with the limits. Exit status 1 if one is exceeded. doc/benchmarks.md"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import sys
import tempfile

from measure import TREE, Failed, Run, Setting, out_of_time
from one_look import OneLook
from sampling import Sampling

sys.path.insert(0, str(TREE / "tests"))

from harness.rubies import find_rubies  # noqa: E402


BASELINE = "afd4d11"  # the last before sampling was made cheap


def first_line(command):
    return Run(command, os.environ).output.splitlines()[0] if shutil.which(command[0]) else f"{command[0]}: not found"


def conditions(ruby, rbdump):
    """What the figures depend on."""
    cpu = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return {
        "date": datetime.date.today().isoformat(),
        "cpu": f"{os.cpu_count()} x {cpu[1] if cpu else platform.machine()}",
        "kernel": platform.release(),
        "load": " ".join(f"{load:.2f}" for load in os.getloadavg()),
        "versions": [
            first_line([rbdump, "--version"]),
            f"Ruby {ruby.version}",
            first_line(["gdb", "--version"]),
            first_line(["gcc", "--version"]),
            first_line(["eu-stack", "--version"]),
            first_line(["rbspy", "--version"]),
        ],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", metavar="FILE", help="write every row, and what the figures depend on, there as well")
    parser.add_argument("--repeat", type=int, default=9, help="rounds of the slow measurements (default: 9)")
    parser.add_argument("--instructions", action="store_true", help="count instructions with valgrind too (slow)")
    parser.add_argument("--parts", nargs="*", metavar="PART", choices=OneLook.PARTS + Sampling.PARTS,
                        help=f"only these: {', '.join(OneLook.PARTS + Sampling.PARTS)}")  # fmt: skip
    parser.add_argument("--baseline", metavar="REV", default=BASELINE, help="the rbdump of that revision is measured, too")
    options = parser.parse_args()

    rubies = [ruby for ruby in find_rubies() if ruby.series == (3, 4) and ruby.has_debug]
    if not rubies:
        sys.exit("bench: there is no Ruby 3.4 with debug info: run tests/rubies/build 3.4")
    rbdump = str(pathlib.Path(os.environ.get("RBDUMP", TREE / "build/rbdump")).resolve())
    if not os.access(rbdump, os.X_OK):
        sys.exit(f"bench: {rbdump} is not there: run make")

    signal.signal(signal.SIGALRM, out_of_time)
    with tempfile.TemporaryDirectory(prefix="rbdump-bench-") as folder:
        try:
            about = conditions(rubies[0], rbdump)
            for name, value in about.items():
                print(f"{name + ':':<10}{'; '.join(value) if isinstance(value, list) else value}")
            setting = Setting(options, rubies[0], rbdump, folder)
            for part in (OneLook(setting), Sampling(setting)):
                for name in part.PARTS:
                    if not options.parts or name in options.parts:
                        getattr(part, name)()
        except Failed as problem:
            sys.exit(f"bench: {problem}")
    about["load at the end"] = " ".join(f"{load:.2f}" for load in os.getloadavg())
    print(f"\nload at the end: {about['load at the end']}")
    if options.json:
        result = {"conditions": about, "rows": setting.table.rows}
        pathlib.Path(options.json).write_text(json.dumps(result, indent=1) + "\n")
    if setting.table.exceeded:
        sys.exit("bench: limits exceeded: " + "; ".join(setting.table.exceeded))


if __name__ == "__main__":
    main()
