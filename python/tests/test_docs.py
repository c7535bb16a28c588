"""The examples of the pages do what the pages say."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

_HERE = Path(__file__).resolve().parents[1]


def _page(name: str) -> Path:
    """A page, which scripts/python-test puts beside the tests."""
    beside = _HERE / "docs" / name
    return beside if beside.exists() else (_HERE if name == "README.md" else _HERE.parent / "docs") / name


@pytest.mark.parametrize("name", ["README.md", "python.md", "langgraph.md", "frameworks.md"])
def test_the_examples_of_a_page(name: str) -> None:
    done = doctest.testfile(
        str(_page(name)), module_relative=False, optionflags=doctest.IGNORE_EXCEPTION_DETAIL
    )
    assert done.attempted > 0 and done.failed == 0
