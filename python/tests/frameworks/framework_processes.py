"""Starts programs in processes of their own, all at the same time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence


def run(program: str, calls: Iterable[Sequence[object]], *, code: int = 0) -> list[str]:
    """Runs a program once for each list of arguments; returns what each said."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for arguments in calls
    ]
    done = [(process, *process.communicate(timeout=300)) for process in started]
    for process, _, error in done:
        assert process.returncode == code, error
    return [said for _, said, _ in done]
