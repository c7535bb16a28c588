"""Microsoft Agent Framework on a forge store: checkpoints of workflows, and histories of chats.

The checkpoints of a workflow are the memory ``agent-framework/workflow/NAME``, and the messages of
a session are the memory ``agent-framework/history/SOURCE/SESSION``.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from ._forge import Conflict
from ._framework import Adapter, Memories, memory_name, missing
from ._store import Store
from ._values import listed
from ._workflow_checkpoints import WorkflowCheckpoints

try:
    import msgspec
    from agent_framework import (
        HistoryProvider,
        Message,
        WorkflowCheckpoint,
        WorkflowCheckpointException,
    )
    from agent_framework._sessions import filter_new_messages
    from agent_framework._workflows._checkpoint_encoding import (
        decode_checkpoint_value,
        encode_checkpoint_value,
    )
except ImportError as error:
    raise missing("agent-framework", error) from error

_log = logging.getLogger(__name__)


class ForgeCheckpointStorage(Adapter[WorkflowCheckpoints]):
    """A ``CheckpointStorage`` of the Agent Framework that keeps checkpoints in a forge store.

    The framework's own encoder writes values that are not JSON as pickles. Like the framework's
    file storage, this class reads only types of the framework and the types in
    ``allowed_checkpoint_types`` (``"module:name"``), and refuses to save others.

    >>> import asyncio
    >>> from agent_framework import WorkflowCheckpoint
    >>> async def main():
    ...     storage = ForgeCheckpointStorage()
    ...     await storage.save(WorkflowCheckpoint("tea", "hash", checkpoint_id="c1"))
    ...     return await storage.list_checkpoint_ids(workflow_name="tea")
    >>> asyncio.run(main())
    ['c1']
    """

    def __init__(
        self, store: Store | None = None, *, allowed_checkpoint_types: Iterable[str] = ()
    ) -> None:
        self._forge_use(WorkflowCheckpoints, store)
        self._allowed = frozenset(listed("allowed_checkpoint_types", allowed_checkpoint_types))

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        """Stores a copy of a checkpoint; returns its id."""
        # Copied before anything is awaited: later changes do not belong to the checkpoint.
        encoded = encode_checkpoint_value(checkpoint.to_dict())
        self._decode(encoded)
        await asyncio.to_thread(self._forge.save, encoded)
        return checkpoint.checkpoint_id

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        """The checkpoint with this id; raises ``WorkflowCheckpointException`` if it is unknown."""
        found = await asyncio.to_thread(self._forge.load, checkpoint_id)
        if found is None:
            raise WorkflowCheckpointException(f"No checkpoint found with ID {checkpoint_id}")
        return self._decode(found)

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        """The checkpoints of a workflow, the earliest first."""
        found = await asyncio.to_thread(self._forge.listed, workflow_name)
        decoded = (self._decode_or_skip(one) for one in found)
        return [one for one in decoded if one is not None]

    async def delete(self, checkpoint_id: str) -> bool:
        """Deletes a checkpoint; returns whether there was one."""
        return await asyncio.to_thread(self._forge.delete, checkpoint_id)

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        """The checkpoint of a workflow with the latest time."""
        heads = await asyncio.to_thread(self._forge.heads, workflow_name)
        heads.sort(key=lambda one: datetime.fromisoformat(one["timestamp"]), reverse=True)
        for head in heads:
            found = await asyncio.to_thread(self._forge.load, head["checkpoint_id"])
            latest = None if found is None else self._decode_or_skip(found)
            if latest is not None:
                return latest
        return None

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[str]:
        """The ids of the checkpoints of a workflow, the earliest first."""
        found = await self.list_checkpoints(workflow_name=workflow_name)
        return [one.checkpoint_id for one in found]

    def _decode(self, encoded: Mapping[str, Any]) -> WorkflowCheckpoint:
        decoded = decode_checkpoint_value(encoded, allowed_types=self._allowed)
        return WorkflowCheckpoint.from_dict(decoded)

    def _decode_or_skip(self, encoded: Mapping[str, Any]) -> WorkflowCheckpoint | None:
        # Like the framework's file storage, a list has only what can be read.
        try:
            return self._decode(encoded)
        except WorkflowCheckpointException as error:
            _log.warning("checkpoint %s was left out: %s", encoded["checkpoint_id"], error)
            return None


class ForgeHistoryProvider(Adapter["_Histories"], HistoryProvider):
    """A ``HistoryProvider`` of the Agent Framework that keeps messages in a forge store.

    The history of a session only grows, and any number of processes may add to it.

    >>> import asyncio
    >>> from agent_framework import Message
    >>> async def main():
    ...     history = ForgeHistoryProvider()
    ...     await history.save_messages("s1", [Message("user", ["hello"])])
    ...     return [message.text for message in await history.get_messages("s1")]
    >>> asyncio.run(main())
    ['hello']
    """

    def __init__(
        self,
        store: Store | None = None,
        *,
        source_id: str = "forge",
        skip_excluded: bool = False,
        **options: Any,
    ) -> None:
        HistoryProvider.__init__(self, source_id, **options)
        self._forge_use(_Histories, store)
        self.skip_excluded = skip_excluded

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """The messages of a session, the earliest first."""
        values = await asyncio.to_thread(self._forge.read, self._name(session_id))
        found = [Message.from_dict(value) for value in values]
        if self.skip_excluded:
            found = [one for one in found if not one.additional_properties.get("_excluded")]
        return found

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Adds messages to a session. Messages that are there already are left out, because a caller
        may pass the whole history again."""
        if messages:
            await asyncio.to_thread(self._forge.add, self._name(session_id), list(messages))

    async def delete_messages(self, session_id: str | None) -> bool:
        """Deletes the history of a session; returns whether there was one."""
        return await asyncio.to_thread(self._forge.drop, self._name(session_id))

    def _name(self, session_id: str | None) -> str:
        return memory_name("agent-framework", "history", self.source_id, session_id or "default")


class _Histories(Memories):
    """Histories in memories: an item ``history`` with their number, and ``message/NUMBER``."""

    def read(self, name: str, after: int = 0) -> list[dict[str, Any]]:
        items = self.items(name, "message/", after=_number(after) if after > 0 else None)
        return [one.value for one in items]

    def add(self, name: str, messages: Sequence[Message]) -> None:
        while True:
            head = self.get(name, "history")
            count = 0 if head is None else int(head.value["messages"])
            # At most these messages can be the beginning of the passed ones.
            values = self.read(name, count - len(messages) - 1)
            known = [Message.from_dict(value) for value in values]
            new = filter_new_messages(known, messages)
            if not new:
                return
            puts: dict[str, Any] = {
                _number(count + number): json.loads(msgspec.json.encode(message.to_dict()))
                for number, message in enumerate(new, 1)
            }
            puts["history"] = {"messages": count + len(new)}
            expected = {"history": None if head is None else head.version}
            try:
                added = f"{len(new)} message{'' if len(new) == 1 else 's'}"
                self.write(name, puts, expected=expected, message=f"add {added}")
                return
            except Conflict:
                continue  # Another process has added messages: add to these.


def _number(number: int) -> str:
    return f"message/{number:012}"
