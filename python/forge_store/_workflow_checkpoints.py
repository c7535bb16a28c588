"""Stores the encoded checkpoints of Microsoft Agent Framework's workflows in memories."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from ._forge import Conflict, Corrupt
from ._framework import Memories, memory_name
from ._values import refusal
from .memory import Item

_WORKFLOW = ("agent-framework", "workflow")

#: The part of a workflow's state that has the state of each executor.
_EXECUTORS = "_executor_state"

#: The item that counts writes.
_WRITES = "checkpoints"

#: A value whose JSON has at most this many characters is kept in its checkpoint.
_INLINE = 1000


class WorkflowCheckpoints(Memories):
    """Encoded checkpoints in memories: an item ``checkpoint/ID``, and an item ``part/HASH`` for
    each large value of a state, which is stored once for all checkpoints that have it.

    The item ``checkpoints`` counts the writes. Each write expects the count that its writer has
    seen, so no part is removed while another process saves a checkpoint that needs it.
    """

    def save(self, encoded: Mapping[str, Any]) -> None:
        """Stores a checkpoint, in place of one with the same id."""
        name = memory_name(*_WORKFLOW, encoded["workflow_name"])
        key, parts = _key(encoded["checkpoint_id"]), dict[str, Any]()
        state = [[path, _place(value, parts)] for path, value in _values(encoded["state"])]
        head = {**encoded, "state": state}
        step = f"checkpoint after iteration {encoded['iteration_count']}"
        done = False
        while not done:
            writes = self.get(name, _WRITES)
            puts: dict[str, Any] = {key: head, **self._missing(name, parts)}
            unused = [one for one in self._only_of(name, key) if one not in parts]
            done = self._try(name, puts, unused, writes, step)

    def load(self, checkpoint: str) -> dict[str, Any] | None:
        """A checkpoint, or ``None``."""
        while True:
            name, head = self._find(checkpoint)
            if head is None:
                return None
            parts = {key: self.get(name, key) for key in _parts_of(head)}
            if None not in parts.values() or self.get(name, head.key) == head:
                return _whole(head, {key: one for key, one in parts.items() if one is not None})

    def listed(self, workflow: str) -> list[dict[str, Any]]:
        """The checkpoints of a workflow, the earliest first."""
        items = self.items(memory_name(*_WORKFLOW, workflow))
        parts = {one.key: one for one in items if one.key.startswith("part/")}
        return [_whole(head, parts) for head in _sorted_heads(items)]

    def heads(self, workflow: str) -> list[dict[str, Any]]:
        """The checkpoints of a workflow without their state, the earliest first."""
        return [one.value for one in self._heads(memory_name(*_WORKFLOW, workflow))]

    def delete(self, checkpoint: str) -> bool:
        """Deletes a checkpoint, and the parts that only it has."""
        while True:
            name, head = self._find(checkpoint)
            if head is None:
                return False
            writes = self.get(name, _WRITES)
            if self._try(name, {}, [head.key, *self._only_of(name, head.key)], writes, None):
                return True

    def _try(
        self,
        name: str,
        puts: Mapping[str, Any],
        deletes: Iterable[str],
        writes: Item | None,
        message: str | None,
    ) -> bool:
        """Writes, unless another process has written since `writes` was read."""
        count = 0 if writes is None else writes.value["writes"]
        expected = {_WRITES: None if writes is None else writes.version}
        puts = {**puts, _WRITES: {"writes": count + 1}}
        try:
            self.write(name, puts, deletes, expected=expected, message=message)
            return True
        except Conflict:
            return False

    def _missing(self, name: str, parts: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in parts.items() if self.get(name, key) is None}

    def _only_of(self, name: str, key: str) -> set[str]:
        """The parts that only this checkpoint has."""
        mine: set[str] = set()
        others: set[str] = set()
        if self.get(name, key) is not None:
            for head in self._heads(name):
                (mine if head.key == key else others).update(_parts_of(head))
        return mine - others

    def _heads(self, name: str) -> list[Item]:
        return _sorted_heads(self.items(name, "checkpoint/"))

    def _find(self, checkpoint: str) -> tuple[str, Item | None]:
        """The memory of a checkpoint, which its id does not say, and its item."""
        for name in self.names(memory_name(*_WORKFLOW) + "/"):
            head = self.get(name, _key(checkpoint))
            if head is not None:
                return name, head
        return "", None


def _sorted_heads(items: Iterable[Item]) -> list[Item]:
    heads = (one for one in items if one.key.startswith("checkpoint/"))
    return sorted(heads, key=lambda one: one.created_at)


def _parts_of(head: Item) -> set[str]:
    return {place["part"] for _, place in head.value["state"] if "part" in place}


def _whole(head: Item, parts: Mapping[str, Item]) -> dict[str, Any]:
    """An encoded checkpoint with its parts."""
    state: dict[str, Any] = {}
    for path, place in head.value["state"]:
        if "part" in place:
            if place["part"] not in parts:
                what = f"checkpoint {head.value['checkpoint_id']!r} has lost '{place['part']}'"
                raise refusal(Corrupt, what, "load another one, or see 'forge log' of its memory")
            place = parts[place["part"]].value
        inner = state
        for step in path[:-1]:
            inner = inner.setdefault(step, {})
        inner[path[-1]] = place["value"]
    return {**head.value, "state": state}


def _values(state: Mapping[str, Any]) -> list[tuple[list[str], Any]]:
    """The values of an encoded state with their paths; those of executors are apart."""
    found: list[tuple[list[str], Any]] = []
    for key, value in state.items():
        # An empty map, or a pickle instead of a map, is a value by itself.
        if key == _EXECUTORS and value and "__pickled__" not in value:
            found += [([key, executor], known) for executor, known in value.items()]
        else:
            found.append(([key], value))
    return found


def _place(value: Any, parts: dict[str, Any]) -> dict[str, Any]:
    """What a checkpoint has for a value: itself, or the key of the part that it becomes."""
    text = json.dumps(value, sort_keys=True)
    if len(text) <= _INLINE:
        return {"value": value}
    key = "part/" + hashlib.sha256(text.encode()).hexdigest()[:40]
    parts[key] = {"value": value}
    return {"part": key}


def _key(checkpoint: str) -> str:
    return "checkpoint/" + checkpoint
