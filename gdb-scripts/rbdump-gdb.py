"""Loads the commands of rb_bt.py. gdb runs this file by itself when it opens a Ruby, if a link to this file is at
share/gdb/auto-load/PATH-gdb.py, where PATH is the path of the ruby or libruby. Or add a line to ~/.gdbinit:

    source PREFIX/share/rbdump/gdb/rbdump-gdb.py
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

import rb_bt  # noqa: E402, F401
