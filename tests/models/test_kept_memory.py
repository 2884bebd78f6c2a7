"""Freed memory is kept within and handed back at the end, in a process whose allocator is as new."""

import subprocess
import sys

import pytest

SCRIPT = """
import resource
from pathlib import Path
import torch
from cdlm_lab.models.precision import memory_kept

faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
resident = lambda: int(Path("/proc/self/statm").read_text().split()[1])

def faults_of(steps):
    before = faults()
    for _ in range(steps):
        kept_for_the_backward = [torch.ones(4 << 20) for _ in range(10)]  # 160 MB: 40,960 pages
    return faults() - before

torch.set_num_threads(1)
faults_of(2)
print(faults_of(5))
with memory_kept():
    with memory_kept():
        faults_of(15)
    print(faults_of(5))
    within = resident()
print(within - resident())
print(faults_of(5))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator, until others need the like")
def test_what_is_freed_is_kept_within_and_handed_back_at_the_end():
    ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    before, within, handed_back, after = map(int, ended.stdout.split())
    assert within < 40_960, "five steps touched 204,800 pages"
    assert handed_back > 30_000
    assert after > before / 10, "the outer one ended, so nothing is kept"
