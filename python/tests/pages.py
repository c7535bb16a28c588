"""Finds the pages of the documentation, and their sections."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).resolve().parents[1]


def page_path(name: str) -> Path:
    """A page, which scripts/python-test puts beside the tests."""
    beside = _HERE / "docs" / name
    return beside if beside.exists() else (_HERE if name == "README.md" else _HERE.parent / "docs") / name


def section(text: str, title: str) -> str:
    """The section of a page with this title."""
    found = [one for one in text.split("\n## ") if one.startswith(title + "\n")]
    assert len(found) == 1, f"no section {title!r}"
    return "## " + found[0]
