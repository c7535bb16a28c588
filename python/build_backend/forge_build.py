"""The build backend of the package (PEP 517). It runs `scripts/rocksdb`, then maturin.

RocksDB's own crate takes about 25 minutes to compile RocksDB. `scripts/rocksdb` takes 3 to 6
minutes, and keeps the result for later builds.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import maturin
from maturin import (  # noqa: F401  (hooks that need no preparation)
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

_CLONE = Path(__file__).resolve().parents[2]


def _prepare() -> None:
    """Checks the tools, and builds RocksDB into its cache if it is not there."""
    if not (_CLONE / "scripts" / "rocksdb").is_file():
        raise SystemExit(
            "forge-store is built from a clone of forge, and this is only its folder 'python': "
            "clone all of it, then run 'pip install ./python'"
        )
    for script in ("setup", "rocksdb"):
        done = subprocess.run([str(_CLONE / "scripts" / script)], cwd=_CLONE, check=False)
        if done.returncode != 0:
            raise SystemExit(f"scripts/{script} failed (see above); then run pip again")
    # Everything in the clone is compiled into one folder, so nothing is compiled twice.
    os.environ.setdefault("CARGO_TARGET_DIR", str(_CLONE / "target"))
    sys.stderr.flush()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):  # type: ignore[no-untyped-def]
    """Builds a wheel."""
    _prepare()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):  # type: ignore[no-untyped-def]
    """Builds a wheel that refers to the sources in this folder."""
    _prepare()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory, config_settings=None):  # type: ignore[no-untyped-def]
    """Refuses: the crates of the package are in the whole clone."""
    raise SystemExit(
        "forge-store has no source archive of its own: build the wheel with 'make python'"
    )
