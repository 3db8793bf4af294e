#!/usr/bin/env python3
"""Names of the system calls of x86_64, from the kernel's own header, as a C table.

    gcc -E -dM -include asm/unistd_64.h -x c /dev/null | syscalls.py OUTPUT
"""

import re
import sys

DEFINITION = re.compile(r"#define __NR_(\w+) (\d+)\s*$")

HEAD = """/* Made by gen/syscalls.py from asm/unistd_64.h. */
#include <stddef.h>

#include "base/system_calls.h"

static const char *const names[] = {
"""

TAIL = """};

const char *system_call_name(int number)
{
	return number >= 0 && (size_t)number < sizeof(names) / sizeof(names[0]) ? names[number] : NULL;
}
"""


def main():
    found = sorted((int(match[2]), match[1]) for match in map(DEFINITION.match, sys.stdin) if match)
    if not found:
        sys.exit("syscalls.py: there is no system call in the header")
    with open(sys.argv[1], "w", encoding="utf-8") as output:
        output.write(HEAD)
        for number, name in found:
            output.write(f'\t[{number}] = "{name}",\n')
        output.write(TAIL)


main()
