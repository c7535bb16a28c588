"""Sessions of the OpenAI Agents SDK in a forge store.

>>> import asyncio
>>> session = ForgeSession("support-7", forge_store.in_memory())
>>> asyncio.run(session.add_items([{"role": "user", "content": "it is slow"}]))
>>> asyncio.run(session.get_items())
[{'role': 'user', 'content': 'it is slow'}]

``pip install 'forge-store[openai]'`` installs the SDK.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, cast

from . import _forge
from ._store import Store, native_of
from ._values import json_text, listed

if TYPE_CHECKING:
    from agents.items import TResponseInputItem
    from agents.memory.session_settings import SessionSettings


class ForgeSession:
    """The ``Session`` protocol of the OpenAI Agents SDK: a thread of the store, with this name.

    ``forge thread`` and ``forge_store.systems.Thread`` show, check and repair the same thread. What
    was removed stays in the history of its session. Items are returned equal, also items that are
    not messages of the Responses API. A store that redacts removes secrets from them before it stores
    them. Any number of processes may add items.
    """

    session_id: str
    session_settings: SessionSettings | None

    def __init__(
        self, session_id: str, store: Store, *, session_settings: SessionSettings | None = None
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings
        self._native = _forge.Thread(native_of(store), session_id)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The items in their order; with ``limit`` only that many of the latest. Without it, the
        limit of ``session_settings`` applies."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        if limit is not None and limit <= 0:
            return []
        return [_item(text) for text in await asyncio.to_thread(self._native.messages, limit)]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Adds items, all or none; it returns when they are durable."""
        texts = [json_text("an item", item) for item in listed("items", items)]
        if texts:
            await asyncio.to_thread(self._native.append, texts, True)

    async def pop_item(self) -> TResponseInputItem | None:
        """Removes the latest item and returns it; ``None`` if there is none."""
        text = await asyncio.to_thread(self._native.pop)
        return None if text is None else _item(text)

    async def clear_session(self) -> None:
        """Removes all items."""
        await asyncio.to_thread(self._native.clear)


def _item(text: str) -> TResponseInputItem:
    return cast("TResponseInputItem", json.loads(text))
