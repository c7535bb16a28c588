"""Child processes with a time limit, which leave no process of their group."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
import time


class Stuck(Exception):
    """A client did not do the expected thing in time."""


def run(command, *, env, cwd, limit, log=None, stdin=""):
    """Runs a command to its end, and returns its exit code and its output on stdout."""
    child = Child(command, env=env, cwd=cwd, log=log)
    try:
        child.write(stdin)
        child.close_input()
        return child.wait(limit), "".join(child.drain())
    finally:
        child.kill()


class Child:
    """A running command, in a process group of its own, whose lines are read as they come."""

    def __init__(self, command, *, env, cwd, log=None):
        self.name = os.path.basename(command[0])
        self._log = open(log or os.devnull, "ab")
        self._lines = queue.Queue()
        self._process = subprocess.Popen(
            command,
            env=env,
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            self._log.write(line)
            self._log.flush()
            self._lines.put(line.decode("utf-8", "replace"))
        self._lines.put(None)

    def write(self, text: str):
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(text.encode())
            self._process.stdin.flush()

    def write_json(self, value):
        self.write(json.dumps(value) + "\n")

    def close_input(self):
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def next_json(self, wanted, limit: float) -> dict:
        """The next line that is an object for which `wanted` holds; the lines before it are dropped."""
        end = time.monotonic() + limit
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise Stuck(f"{self.name} did not answer within {limit:.0f} seconds") from None
            if line is None:
                raise Stuck(f"{self.name} ended with {self._process.wait()} before it answered")
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if isinstance(value, dict) and wanted(value):
                return value

    def next_line(self, limit: float) -> str:
        try:
            line = self._lines.get(timeout=limit)
        except queue.Empty:
            raise Stuck(f"{self.name} printed nothing within {limit:.0f} seconds") from None
        if line is None:
            raise Stuck(f"{self.name} ended with {self._process.wait()}")
        return line

    def drain(self) -> list[str]:
        """All lines that were not taken yet, of a command that has ended."""
        self._reader.join(5)
        lines = []
        while not self._lines.empty():
            lines.append(self._lines.get_nowait())
        return [line for line in lines if line is not None]

    def wait(self, limit: float) -> int:
        """The exit code of the command."""
        try:
            return self._process.wait(limit)
        except subprocess.TimeoutExpired:
            raise Stuck(f"{self.name} did not end within {limit:.0f} seconds") from None

    def kill(self):
        """Ends the whole process group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join(5)
        self.close_input()
        self._log.close()
