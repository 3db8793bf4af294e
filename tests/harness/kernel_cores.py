"""Cores that the kernel writes: why it writes none here, if so, and the mark of tests that need one."""

import pytest
from conftest import note_not_applicable
from harness.core import no_kernel_cores

WHY_NOT = no_kernel_cores()
if WHY_NOT:
    note_not_applicable(f"cores of the kernel: {WHY_NOT}")
by_the_kernel = pytest.mark.parametrize("place", [] if WHY_NOT else ["kernel"], indirect=True)
