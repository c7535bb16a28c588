"""Fixtures of the tests of the LangGraph saver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("langgraph.checkpoint.base", reason="langgraph is not installed")

from forge_store.langgraph import ForgeSaver


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[ForgeSaver]:
    """A saver on a store in a folder."""
    with ForgeSaver.from_path(tmp_path / "store") as saver:
        yield saver
