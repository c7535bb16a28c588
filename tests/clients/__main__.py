"""Runs coding agents against stand-ins for their models, and checks what forge recorded.

    python3 tests/clients --forge BINARY [--keep] CLIENT=PROGRAMS...

PROGRAMS is the directory that the client's program is in. `scripts/clients` calls this.
"""

import argparse
import fcntl
import shutil
import socket
import struct
import sys
import tempfile
import time
import traceback
from pathlib import Path

from claude_code import ClaudeCode
from client import Checks
from codex import Codex
from gemini_cli import GeminiCli
from opencode import OpenCode
from scratch import Scratch

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
CLIENTS = {client.name: client for client in (ClaudeCode, Codex, GeminiCli, OpenCode)}


def raise_loopback():
    """Brings up the loopback interface of a new network namespace, where it is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request))[1]
        if not flags & IFF_UP:
            fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--forge", type=Path, required=True)
    parser.add_argument(
        "--keep", action="store_true", help="keep the homes and projects, and say where they are"
    )
    parser.add_argument("clients", nargs="+", metavar="CLIENT=PROGRAMS")
    given = parser.parse_args()
    if sys.platform == "linux":
        raise_loopback()
    root = Path(tempfile.mkdtemp(prefix="clients-")).resolve()
    passed, failed = 0, []
    try:
        for pair in given.clients:
            name, _, programs = pair.partition("=")
            started = time.monotonic()
            print(f"== {name}", flush=True)
            checks = Checks(name)
            scratch = Scratch(root / name, given.forge.resolve(), Path(programs))
            try:
                CLIENTS[name](scratch, checks).test()
            except Exception:
                traceback.print_exc(file=sys.stdout)
                checks.that("the test comes to its end", False)
            finally:
                scratch.close()
            passed += checks.passed
            failed += [f"{name}: {what}" for what in checks.failed]
            print(f"  {time.monotonic() - started:.0f} s", flush=True)
    finally:
        if given.keep or failed:
            print(f"kept in {root}: NAME/client.log, NAME/requests.jsonl, NAME/home, NAME/project")
        else:
            shutil.rmtree(root, ignore_errors=True)
    print(f"clients: {passed} passed, {len(failed)} failed")
    for what in failed:
        print(f"  failed: {what}")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
