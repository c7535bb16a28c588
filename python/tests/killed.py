"""Kills a process in the middle of its work."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path


def kill_after(lines: int, program: str, *arguments: object) -> bool:
    """Runs a program, and kills it when it has printed this many lines. Returns whether it was
    killed; otherwise it came to its end."""
    paths = os.pathsep.join([*sys.path, str(Path(__file__).parent)])
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": paths}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as child:
        assert child.stdout is not None
        for _ in range(lines):
            child.stdout.readline()
        child.kill()
    assert child.returncode in (0, -9), child.returncode
    return child.returncode == -9
