"""A home directory and a project for one client, and forge's data about them."""

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import process
from loopback import Outside

CALC = "def total(xs):\n    return sum(round(x, 2) for x in xs)\n"
FIXED = "def total(xs):\n    return round(sum(xs), 2)\n"
TEST = (
    "import unittest\nfrom calc import total\n\n\nclass Totals(unittest.TestCase):\n"
    "    def test_thirds(self):\n        self.assertEqual(total([1.005, 1.005]), 2.01)\n"
)


class Scratch:
    """A person's home directory and a project in git, and the environment that a client runs in."""

    def __init__(self, root: Path, forge: Path, programs: Path):
        self.root = root
        self.home = root / "home"
        self.project = root / "project"
        self.log = root / "client.log"
        self.outside = Outside()
        # What the hooks and the agent's own commands call.
        binaries = root / "bin"
        for folder in (self.home, self.project, binaries, root / "tmp"):
            folder.mkdir(parents=True)
        (binaries / "forge").symlink_to(forge)
        # A login shell has its own path, and some clients run commands in one.
        self.write("home/.profile", f"PATH={binaries}:$PATH\n")
        self.env = {
            "HOME": str(self.home),
            "TMPDIR": str(root / "tmp"),
            "PATH": os.pathsep.join([str(binaries), str(programs), os.environ["PATH"]]),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "NO_COLOR": "1",
            "CI": "1",
            "NO_PROXY": "127.0.0.1,localhost,::1",
            "no_proxy": "127.0.0.1,localhost,::1",
            "DO_NOT_TRACK": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            self.env[name] = self.env[name.lower()] = self.outside.server.url
        self._make_project()

    def _make_project(self):
        self.write("project/calc.py", CALC)
        self.write("project/test_calc.py", TEST)
        for arguments in (
            ["config", "--global", "user.name", "A Person"],
            ["config", "--global", "user.email", "person@example.com"],
            ["config", "--global", "init.defaultBranch", "main"],
            ["init", "--quiet"],
            ["add", "."],
            ["commit", "--quiet", "-m", "Add up amounts"],
        ):
            subprocess.run(["git", *arguments], cwd=self.project, env=self.env, check=True)

    def close(self):
        """Ends what is still running in this home, whatever its process group."""
        own = f"HOME={self.home}\0".encode()
        for environment in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if own in environment.read_bytes():
                    os.kill(int(environment.parent.name), signal.SIGKILL)
        self.outside.server.close()

    def write(self, name: str, text: str):
        """Writes a file below the root; its directory is created if necessary."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, *command: str, limit: float = 180) -> str:
        """The output of a command that must end with exit code 0."""
        code, said = process.run(list(command), env=self.env, cwd=self.project, limit=limit, log=self.log)
        if code != 0:
            raise RuntimeError(f"'{' '.join(command)}' ended with {code}: see {self.log}")
        return said

    def forge(self, *arguments: str):
        """The answer of a command of forge, as JSON."""
        return json.loads(self.run("forge", "--json", *arguments))

    def wait_for(self, name: str, limit: float = 180):
        """Waits until there is a file of this name in the project."""
        end = time.monotonic() + limit
        while not (self.project / name).exists():
            if time.monotonic() > end:
                raise process.Stuck(f"there was no file '{name}' within {limit:.0f} seconds")
            time.sleep(0.05)

    def snapshot(self) -> dict[str, bytes]:
        """The files in the home directory and in the project, without the data of forge and git."""
        files = {}
        for path in sorted([*self.home.rglob("*"), *self.project.rglob("*")]):
            name = path.relative_to(self.root)
            own = {".git", ".forge"} & set(name.parts) or name.parts[1:3] == (".local", "state")
            if path.is_file() and not own:
                files[str(name)] = path.read_bytes()
        return files
