"""The long-term memory of graphs: LangGraph's `BaseStore`."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from langgraph.store.base import BaseStore, GetOp, IndexConfig, Item, ListNamespacesOp
from langgraph.store.base import Op, PutOp, Result, SearchItem, SearchOp, TTLConfig

from .. import Conflict, Invalid, Moment, Store, in_memory
from .. import open as open_store
from .._closing import Closing
from .._values import refusal
from ..memory import Item as MemoryItem
from ..memory import Memory
from .store_expiry import ExpirySweeper, expiry_after, is_expired
from .store_keys import EXPIRY, ITEM, VECTOR, Address, address_of, is_chosen, is_match
from .store_keys import key_of, prefix_of
from .store_vectors import Vector, VectorIndex, best_scores


@dataclass
class _Batch:
    """What the operations of a batch read, and what they will write."""

    results: list[Result] = field(default_factory=list[Result])
    searches: dict[int, tuple[SearchOp, list[MemoryItem]]] = field(
        default_factory=dict[int, tuple[SearchOp, list[MemoryItem]]]
    )
    """The searches by similarity, by their place."""
    puts: dict[Address, PutOp] = field(default_factory=dict[Address, PutOp])
    refreshed: dict[str, MemoryItem] = field(default_factory=dict[str, MemoryItem])
    """The times of expiry that reading moves."""
    at: Moment | None = None
    """The moment at which the batch reads."""


class ForgeStore(Closing, BaseStore):
    """A LangGraph store that keeps items in a memory of a forge store.

    `name` is the name of the memory; a store can hold several. `index` and `ttl` are LangGraph's
    own configurations. Without a store, everything is kept in memory.

    >>> from forge_store.langgraph import ForgeStore
    >>> with ForgeStore() as memories:
    ...     memories.put(("users", "42"), "tea", {"kind": "green"})
    ...     [(item.key, item.value) for item in memories.search(("users",))]
    [('tea', {'kind': 'green'})]
    """

    supports_ttl = True

    def __init__(
        self,
        store: Store | None = None,
        *,
        name: str = "langgraph",
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        self._owned = store is None
        self.store = in_memory(redact=False) if store is None else store
        self.memory = Memory(self.store, name)
        self.ttl_config = ttl
        self.index_config = index
        self._index = None if index is None else VectorIndex(index)
        self._sweeper = ExpirySweeper(self.sweep_ttl)

    @classmethod
    @contextmanager
    def from_path(
        cls,
        path: str | PathLike[str] | None = None,
        *,
        encrypted: bool = False,
        name: str = "langgraph",
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
    ) -> Generator[ForgeStore]:
        """Opens or creates the store at a path, and closes it at the end.

        Secrets are not removed from what is stored, because a graph must get back exactly what it
        put.
        """
        store = open_store(path, create=True, redact=False, encrypted=encrypted)
        with cls(store, name=name, index=index, ttl=ttl) as memories:
            memories._owned = True
            yield memories

    def close(self) -> None:
        """Ends the thread that removes expired items, and closes the store if this opened it."""
        self._sweeper.stop()
        if self._owned:
            self.store.close()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Runs these operations. Everything that they write is one record. They read the state before
        that record, and the last of two puts of an item is stored."""
        batch = self._read(ops)
        texts, queries = self._texts(batch), self._queries(batch)
        vectors: list[list[float]] = []
        answers: list[list[float]] = []
        if self._index is not None:
            vectors = self._index.embeddings.embed_documents(texts) if texts else []
            answers = [self._index.embeddings.embed_query(query) for query in queries]
        return self._finish(batch, texts, vectors, queries, answers)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Runs these operations in a thread; see `batch`."""
        batch = await asyncio.to_thread(self._read, ops)
        texts, queries = self._texts(batch), self._queries(batch)
        vectors: list[list[float]] = []
        answers: list[list[float]] = []
        if self._index is not None:
            vectors = await self._index.embeddings.aembed_documents(texts) if texts else []
            asked = (self._index.embeddings.aembed_query(query) for query in queries)
            answers = await asyncio.gather(*asked)
        return await asyncio.to_thread(self._finish, batch, texts, vectors, queries, answers)

    # Reading

    def _read(self, ops: Iterable[Op]) -> _Batch:
        batch = _Batch()
        session = self.memory.session
        batch.at = None if session is None else session.head
        for place, op in enumerate(ops):
            result: Result = None
            if isinstance(op, GetOp):
                result = self._get(batch, op)
            elif isinstance(op, SearchOp):
                found = self._found(batch, op)
                if op.query and self._index is not None:
                    batch.searches[place] = (op, found)
                else:
                    found = found[op.offset : op.offset + op.limit]
                    self._refresh_found(batch, op, found)
                    result = [_search_item(item) for item in found]
            elif isinstance(op, ListNamespacesOp):
                result = self._namespaces(batch, op)
            elif isinstance(op, PutOp):  # pyright: ignore[reportUnnecessaryIsInstance]
                batch.puts[op.namespace, op.key] = op
            else:
                what = f"{type(op).__name__} is not an operation of a store"
                raise refusal(Invalid, what, "use GetOp, PutOp, SearchOp or ListNamespacesOp")
            batch.results.append(result)
        return batch

    def _get(self, batch: _Batch, op: GetOp) -> Item | None:
        address = (op.namespace, op.key)
        key = key_of(ITEM, address)
        if batch.at is None:
            return None
        found = self.memory.get(key, at=batch.at)
        if found is None:
            return None
        expiry = self.memory.get(key_of(EXPIRY, address), at=batch.at)
        if expiry is not None:
            if self._omits_expired and is_expired(expiry.value):
                return None
            if op.refresh_ttl:
                batch.refreshed[expiry.key] = expiry
        return Item(
            namespace=op.namespace,
            key=op.key,
            value=found.value,
            created_at=found.created_at,
            updated_at=found.updated_at,
        )

    def _found(self, batch: _Batch, op: SearchOp) -> list[MemoryItem]:
        """The items that match a search without its query, the last written first."""
        found = self._live(batch, op.namespace_prefix)
        if op.filter:
            wanted = op.filter.items()
            found = [
                item
                for item in found
                if all(is_chosen(item.value.get(name), other) for name, other in wanted)
            ]
        found.sort(key=lambda item: item.updated_at, reverse=True)
        return found

    def _live(self, batch: _Batch, namespace: tuple[str, ...]) -> list[MemoryItem]:
        """The items in a namespace and below it, in the order of their keys."""
        prefix = prefix_of(ITEM, namespace)
        if batch.at is None:
            return []
        found = self.memory.items(prefix, at=batch.at)
        if not self._omits_expired:
            return found
        known = self.memory.items(prefix_of(EXPIRY, namespace), at=batch.at)
        gone = {address_of(one.key) for one in known if is_expired(one.value)}
        return [item for item in found if address_of(item.key) not in gone]

    def _refresh_found(self, batch: _Batch, op: SearchOp, found: list[MemoryItem]) -> None:
        if not op.refresh_ttl or batch.at is None or not found:
            return
        known = self.memory.items(prefix_of(EXPIRY, op.namespace_prefix), at=batch.at)
        by_key = {expiry.key: expiry for expiry in known}
        for item in found:
            key = key_of(EXPIRY, address_of(item.key))
            if key in by_key:
                batch.refreshed[key] = by_key[key]

    def _namespaces(self, batch: _Batch, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        known = {address_of(item.key)[0] for item in self._live(batch, ())}
        conditions = op.match_conditions or ()
        found = {
            namespace if op.max_depth is None else namespace[: op.max_depth]
            for namespace in known
            if all(is_match(condition, namespace) for condition in conditions)
        }
        return sorted(found)[op.offset : op.offset + op.limit]

    @property
    def _omits_expired(self) -> bool:
        return bool((self.ttl_config or {}).get("omit_expired", False))

    # Similarity

    def _texts(self, batch: _Batch) -> list[str]:
        if self._index is None:
            return []
        texts = (self._index.texts(op).values() for op in batch.puts.values())
        return list(dict.fromkeys(text for some in texts for text in some))

    def _queries(self, batch: _Batch) -> list[str]:
        return list(dict.fromkeys(op.query or "" for op, _ in batch.searches.values()))

    def _ranked(self, batch: _Batch, op: SearchOp, found: list[MemoryItem], query: Vector) -> Result:
        known = self.memory.items(prefix_of(VECTOR, op.namespace_prefix), at=batch.at)
        vectors = {address_of(one.key): one.value for one in known}
        scores = best_scores(query, [vectors.get(address_of(item.key), {}) for item in found])
        ranked = list(zip(scores, found))
        ranked.sort(key=lambda pair: (pair[0] is not None, pair[0] or 0.0), reverse=True)
        ranked = ranked[op.offset : op.offset + op.limit]
        self._refresh_found(batch, op, [item for _, item in ranked])
        return [_search_item(item, score) for score, item in ranked]

    # Writing

    def _finish(
        self,
        batch: _Batch,
        texts: list[str],
        vectors: list[list[float]],
        queries: list[str],
        answers: list[list[float]],
    ) -> list[Result]:
        by_text: dict[str, Vector] = {}
        if self._index is not None:
            by_text = dict(zip(texts, self._index.checked(vectors, len(texts))))
            by_query = dict(zip(queries, self._index.checked(answers, len(queries))))
            for place, (op, found) in batch.searches.items():
                query = by_query[op.query or ""]
                batch.results[place] = self._ranked(batch, op, found, query)
        puts: dict[str, Any] = {}
        deletes: set[str] = set()
        for address, put in batch.puts.items():
            parts: dict[str, Any] = {}
            if put.value is not None:
                parts[ITEM] = dict(put.value)
                if put.ttl is not None:
                    parts[EXPIRY] = expiry_after(put.ttl)
                embedded = {} if self._index is None else self._index.texts(put)
                if embedded:
                    parts[VECTOR] = {path: by_text[text] for path, text in embedded.items()}
            puts.update((key_of(kind, address), value) for kind, value in parts.items())
            gone = (kind for kind in (ITEM, EXPIRY, VECTOR) if kind not in parts)
            deletes.update(key_of(kind, address) for kind in gone)
        self._refresh(batch, puts.keys() | deletes)
        if puts or deletes:
            self.memory.write(puts, deletes)
        return batch.results

    def _refresh(self, batch: _Batch, written: set[str]) -> None:
        moved = {key: known for key, known in batch.refreshed.items() if key not in written}
        if not moved:
            return
        puts = {key: expiry_after(known.value["minutes"]) for key, known in moved.items()}
        try:
            expected = {key: known.version for key, known in moved.items()}
            self.memory.write(puts, expected=expected)
        except Conflict:
            # Another writer has changed one of these times since it was read: its change is kept.
            pass

    # Expiry

    def sweep_ttl(self) -> int:
        """Removes the items that have expired, in one record; returns their number."""
        while True:
            known = self.memory.items(prefix_of(EXPIRY, ()))
            gone = [expiry for expiry in known if is_expired(expiry.value)]
            if not gone:
                return 0
            addresses = [address_of(expiry.key) for expiry in gone]
            kinds = (ITEM, EXPIRY, VECTOR)
            keys = [key_of(kind, address) for address in addresses for kind in kinds]
            expected = {expiry.key: expiry.version for expiry in gone}
            try:
                self.memory.write(deletes=keys, expected=expected)
            except Conflict:
                continue
            return len(gone)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Future[None]:
        """Starts a thread that removes expired items repeatedly, at this interval, or that of the
        configuration, or every 5 minutes. The future is done when the thread has ended."""
        minutes = sweep_interval_minutes or (self.ttl_config or {}).get("sweep_interval_minutes")
        return self._sweeper.start(float(minutes or 5))

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Ends this thread; returns ``False`` if it has not ended within these seconds."""
        return self._sweeper.stop(timeout)


def _search_item(item: MemoryItem, score: float | None = None) -> SearchItem:
    namespace, key = address_of(item.key)
    return SearchItem(
        namespace=namespace,
        key=key,
        value=item.value,
        created_at=item.created_at,
        updated_at=item.updated_at,
        score=score,
    )
