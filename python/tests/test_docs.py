"""The examples of the pages do what the pages say."""

from __future__ import annotations

import doctest
from importlib.util import find_spec

import pytest
from pages import page_path, section


class _Parser(doctest.DocTestParser):
    """Leaves out the section about CrewAI where that is not installed: its own test runs it."""

    def parse(self, string: str, name: str = "<string>") -> list[str | doctest.Example]:
        if "\n## CrewAI\n" in string and find_spec("crewai") is None:
            left_out = section(string, "CrewAI")
            string = string.replace(left_out, "\n" * left_out.count("\n"))
        return super().parse(string, name)


@pytest.mark.parametrize("name", ["README.md", "python.md", "langgraph.md", "frameworks.md"])
def test_the_examples_of_a_page(name: str) -> None:
    done = doctest.testfile(
        str(page_path(name)),
        module_relative=False,
        optionflags=doctest.IGNORE_EXCEPTION_DETAIL,
        parser=_Parser(),
    )
    assert done.attempted > 0 and done.failed == 0
