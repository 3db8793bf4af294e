"""
gdb, as each test runs it: it reads no settings of the user, asks no server for debug info, and keeps its index of a Ruby's
debug info in the session's cache, since it needs most of its time to make that.
"""

# Without an index. With one, gdb finds no struct of which it meets a declaration before the definition.
PLAIN_GDB = ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off"]
GDB = [*PLAIN_GDB, "-iex", "set index-cache enabled on"]
