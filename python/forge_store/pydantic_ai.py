"""Conversations of Pydantic AI on a forge store.

Each conversation is a memory ``pydantic-ai/ID`` with its record and one item for each message, so
it has a history and can be read as it was at any moment.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ._forge import Conflict
from ._framework import Adapter, Memories, memory_name, missing
from ._store import Store
from .memory import Item

try:
    from pydantic import TypeAdapter
    from pydantic_ai.conversation_store import (
        ConversationConflict,
        ConversationEntry,
        ConversationRecord,
        ConversationStore,
    )
    from pydantic_ai.messages import ModelMessagesTypeAdapter
except ImportError as error:
    raise missing("pydantic-ai", error) from error

_ROOT = "pydantic-ai"

#: For how many entries the conversation is remembered; others are looked for in all conversations.
_REMEMBERED = 10_000


class ForgeConversationStore(Adapter["_Conversations"], ConversationStore):
    """A Pydantic AI ``ConversationStore`` that keeps conversations in a forge store.

    A message is stored once: a fork reads what it shares from the conversation that it came from.
    A deletion removes the messages too, unless a fork still reads them.

    >>> import asyncio
    >>> from pydantic_ai import Agent, Conversation
    >>> from pydantic_ai.models.test import TestModel
    >>> async def main():
    ...     conversations = ForgeConversationStore()
    ...     talk = Conversation(conversation_id="tea")
    ...     await conversations.save(await Agent(TestModel()).run("hello", conversation=talk))
    ...     return len((await conversations.load("tea")).messages)
    >>> asyncio.run(main())
    2
    """

    def __init__(self, store: Store | None = None) -> None:
        self._forge_use(_Conversations, store)

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """The record of a conversation, or ``None`` if there is none."""
        return await asyncio.to_thread(self._forge.read, _name(conversation_id))

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        """The records of all conversations, or of those with this scope, the latest first."""
        return await asyncio.to_thread(self._forge.listed, scope, limit)

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Stores a record with its new entries, both or neither."""
        await asyncio.to_thread(self._forge.save, record, new_entries, expected_revision)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Deletes a conversation. Its entries stay while a fork reads them."""
        await asyncio.to_thread(self._forge.delete, conversation_id, expected_revision)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """The entry with this id; raises ``LookupError`` if there is none."""
        return (await asyncio.to_thread(self._forge.history, entry_id, 1))[0]

    async def read_history(
        self, head_id: str | None, *, limit: int | None = None
    ) -> list[ConversationEntry]:
        """The entries up to this one, or the last ``limit`` of them."""
        if head_id is None or limit == 0:
            return []
        return await asyncio.to_thread(self._forge.history, head_id, limit)


class _Conversations(Memories):
    """Conversations in memories. An item is called ``record``, ``entry/ID``, ``forks`` (who reads
    entries here) or ``source/TOKEN`` (the memory where shared entries are)."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        # Where heads of histories are. An entry's id does not say which conversation it is in.
        self._places: dict[str, str] = {}

    def read(self, name: str) -> ConversationRecord | None:
        found = self.get(name, "record")
        if found is None:
            return None
        record = _records().validate_json(json.dumps(found.value))
        for entry in (record.head_id, *record.branches):
            self._remember(entry, name)
        return record

    def _remember(self, entry: str | None, name: str) -> None:
        if len(self._places) >= _REMEMBERED:
            self._places.clear()
        if entry is not None:
            self._places[entry] = name

    def listed(self, scope: str | None, limit: int | None) -> list[ConversationRecord]:
        found = (self.read(name) for name in self.names(f"{_ROOT}/"))
        records = [one for one in found if one is not None and scope in (None, one.scope)]
        return sorted(records, key=lambda one: one.updated_at, reverse=True)[:limit]

    def save(
        self,
        record: ConversationRecord,
        entries: Sequence[ConversationEntry],
        expected_revision: str | None,
    ) -> None:
        conversation = record.conversation_id
        name, head = _name(conversation), record.head_id
        stored = self.get(name, "record")
        if (None if stored is None else stored.value["revision"]) != expected_revision:
            raise ConversationConflict(conversation)
        puts: dict[str, Any] = {_key(one.id): _entry_value(one) for one in entries}
        puts["record"] = _records().dump_python(record, mode="json")
        try:
            if head is not None and _key(head) not in puts:
                if stored is None and record.forked_from is not None:
                    puts |= self._hold(head, _name(record.forked_from), name)
                else:
                    self._owner(name, head)
            version = None if stored is None else stored.version
            count = f"{len(entries)} message{'' if len(entries) == 1 else 's'}"
            self.write(name, puts, expected={"record": version}, message=f"save {count}")
        except (Conflict, LookupError) as error:
            raise ConversationConflict(conversation) from error
        self._remember(head, name)

    def _hold(self, head: str, source: str, fork: str) -> dict[str, str]:
        """Records in the memory of this entry that a fork reads it; returns what the fork records."""
        token = uuid.uuid4().hex
        while True:
            owner = self._owner(source, head)
            forks = self.get(owner, "forks")
            held: dict[str, str] = {} if forks is None else forks.value
            expected = {"forks": None if forks is None else forks.version, _key(head): 1}
            try:
                self.write(owner, {"forks": {**held, token: fork}}, expected=expected)
                return {f"source/{token}": owner}
            except Conflict:
                continue  # Forked by another one as well, or deleted: see again.

    def _release(self, owner: str, token: str) -> None:
        """Records that a fork was deleted, and deletes what was kept only for it."""
        while (forks := self.get(owner, "forks")) is not None and token in forks.value:
            held = {key: fork for key, fork in forks.value.items() if key != token}
            expected = {"forks": forks.version}
            try:
                if held or self.get(owner, "record") is not None:
                    self.write(owner, {"forks": held}, expected=expected)
                else:
                    self._remove(owner, {**expected, "record": None})
                return
            except Conflict:
                continue

    def delete(self, conversation: str, expected_revision: str) -> None:
        name = _name(conversation)
        while True:
            stored, forks = self.get(name, "record"), self.get(name, "forks")
            if stored is None or stored.value["revision"] != expected_revision:
                raise ConversationConflict(conversation)
            expected: dict[str, int | None] = {"record": stored.version}
            expected["forks"] = None if forks is None else forks.version
            try:
                if forks is not None and forks.value:
                    self.write(name, {}, ["record"], expected=expected)
                else:
                    self._remove(name, expected)
                return
            except Conflict:
                continue  # Saved or forked since: the revision decides.

    def _remove(self, name: str, expected: dict[str, int | None]) -> None:
        """Deletes all items of a memory, and then the memory."""
        items = self.items(name)
        self.write(name, {}, [one.key for one in items], expected=expected)
        # A conversation of the same id may be there again by now; then its memory stays.
        if not self.items(name, limit=1):
            self.drop(name)
        for item in items:
            if item.key.startswith("source/"):
                self._release(item.value, item.key.removeprefix("source/"))

    def history(self, head: str, limit: int | None) -> list[ConversationEntry]:
        name, entry_id = self._place(head), head
        whole: dict[str, Item] = {}
        found: list[ConversationEntry] = []
        if limit is None:
            whole = {one.key: one for one in self.items(name, "entry/")}
        while True:
            item = whole.get(_key(entry_id)) or self.get(name, _key(entry_id))
            if item is None:
                name = self._owner(name, entry_id)
                if limit is None:
                    whole = {one.key: one for one in self.items(name, "entry/")}
                continue
            entry = _entry(item.value)
            found.append(entry)
            if entry.parent_id is None or len(found) == limit:
                return found[::-1]
            entry_id = entry.parent_id

    def _place(self, entry: str) -> str:
        """The memory from which this entry is read."""
        if entry not in self._places:
            for name in self.names(f"{_ROOT}/"):
                if self.get(name, _key(entry)) is not None:
                    return name
            raise LookupError(f"there is no entry {entry!r}")
        return self._owner(self._places[entry], entry)

    def _owner(self, name: str, entry: str) -> str:
        """The memory that has this entry: this one, or one that it was forked from."""
        if self.get(name, _key(entry)) is not None:
            return name
        for source in self.items(name, "source/"):
            try:
                return self._owner(str(source.value), entry)
            except LookupError:
                continue
        raise LookupError(f"there is no entry {entry!r}")


def _name(conversation: str) -> str:
    return memory_name(_ROOT, conversation)


def _key(entry: str) -> str:
    return f"entry/{entry}"


@lru_cache
def _records() -> TypeAdapter[ConversationRecord]:
    return TypeAdapter(ConversationRecord)


def _entry_value(entry: ConversationEntry) -> dict[str, Any]:
    message = ModelMessagesTypeAdapter.dump_python([entry.message], mode="json")[0]
    return {"id": entry.id, "parent_id": entry.parent_id, "kind": entry.kind, "message": message}


def _entry(value: dict[str, Any]) -> ConversationEntry:
    # As JSON, because bytes are base64 there and nowhere else.
    message = ModelMessagesTypeAdapter.validate_json(json.dumps([value["message"]]))[0]
    return ConversationEntry(
        id=value["id"], parent_id=value["parent_id"], message=message, kind=value["kind"]
    )
