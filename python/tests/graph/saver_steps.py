"""Makes checkpoints for tests."""

from __future__ import annotations

from typing import Any


def config(thread: str = "t", namespace: str = "", step: str | None = None) -> Any:
    """Returns a config."""
    where = {"thread_id": thread, "checkpoint_ns": namespace}
    return {"configurable": where if step is None else {**where, "checkpoint_id": step}}


def checkpoint(step: str, values: dict[str, Any], versions: dict[str, Any] | None = None) -> Any:
    """Returns a checkpoint with these values; their versions are 1 if nothing else is said."""
    versions = dict.fromkeys(values, 1) if versions is None else versions
    return {
        "v": 4,
        "ts": "2026-01-01T00:00:00+00:00",
        "id": step,
        "channel_values": values,
        "channel_versions": versions,
        "versions_seen": {},
        "updated_channels": None,
    }


def put(
    saver: Any,
    step: str,
    values: dict[str, Any] | None = None,
    *,
    parent: str | None = None,
    thread: str = "t",
    namespace: str = "",
    metadata: dict[str, Any] | None = None,
    versions: dict[str, Any] | None = None,
    new: dict[str, Any] | None = None,
) -> Any:
    """Puts a checkpoint."""
    one = checkpoint(step, values or {}, versions)
    described = {"source": "loop", "step": 1, "parents": {}, **(metadata or {})}
    new = one["channel_versions"] if new is None else new
    return saver.put(config(thread, namespace, parent), one, described, new)
