"""A framework that is not installed is named, with the command that installs it."""

from __future__ import annotations

import sys

import pytest


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("adk", "google.adk", "adk"),
        ("agent_framework", "agent_framework", "agent-framework"),
        ("crewai", "crewai", "crewai"),
        ("langgraph", "langgraph", "langgraph"),
        ("pydantic_ai", "pydantic_ai", "pydantic-ai"),
    ],
)
def test_the_extra_is_named(module: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"forge_store.{module}"
    # Another test may have imported the modules of the framework already.
    parts = (f"{name}.", f"{package}.")
    for known in [one for one in sys.modules if one == name or one.startswith(parts)]:
        monkeypatch.delitem(sys.modules, known)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"pip install 'forge-store\[{extra}\]'"):
        __import__(name)
