"""States of CrewAI flows on a forge store.

Each flow is a memory ``crewai/ID`` with one item for each field of its state, so the comparison of
two moments shows which fields a method changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from os import PathLike
from typing import Any

from ._forge import Conflict
from ._framework import Adapter, Memories, memory_name, missing
from ._store import Store
from ._store import open as open_store

try:
    from crewai.flow.async_feedback.types import PendingFeedbackContext
    from crewai.flow.persistence.base import FlowPersistence
    from pydantic import BaseModel, Field, PrivateAttr
except ImportError as error:
    raise missing("crewai", error) from error

#: The items of a memory that hold fields of the state.
_STATE = "state/"


class ForgeFlowPersistence(FlowPersistence, Adapter["_Flows"]):
    """A CrewAI ``FlowPersistence`` that keeps states and pending feedback in a forge store.

    With ``path`` it opens or creates a store, and closes it at the end of the process, or by
    ``close``. The state that was saved last is loaded; earlier states stay in the history.

    >>> flows = ForgeFlowPersistence()
    >>> flows.save_state("tea", "boil", {"id": "tea", "degrees": 100})
    >>> flows.load_state("tea")
    {'degrees': 100, 'id': 'tea'}
    """

    persistence_type: str = Field(default="ForgeFlowPersistence")
    path: str | None = None
    _forge: _Flows = PrivateAttr()
    _forge_owned: bool = PrivateAttr(default=False)

    def __init__(
        self, store: Store | None = None, *, path: str | PathLike[str] | None = None, **options: Any
    ) -> None:
        opens = store is None and path is not None
        if opens:
            store = open_store(path, create=True, redact=False)
        super().__init__(**options)
        self._forge_use(_Flows, store)
        self.path = self.store.path
        self._forge_owned = self._forge_owned or opens

    def init_db(self) -> None:
        """Does nothing: the store is ready when it is open."""

    def save_state(
        self, flow_uuid: str, method_name: str, state_data: dict[str, Any] | BaseModel
    ) -> None:
        """Stores the state of a flow after a method."""
        self._forge.save(flow_uuid, method_name, _plain(state_data))

    def load_state(self, flow_uuid: str) -> dict[str, Any] | None:
        """The state of a flow that was stored last, or ``None``."""
        return self._forge.state(_name(flow_uuid))

    def save_pending_feedback(
        self,
        flow_uuid: str,
        context: PendingFeedbackContext,
        state_data: dict[str, Any] | BaseModel,
    ) -> None:
        """Stores the state of a flow that waits for a person, with what it asks."""
        state = _plain(state_data)
        pending = {"context": _json(context.to_dict()), "state": state}
        self._forge.save(flow_uuid, context.method_name, state, {"pending": pending})

    def load_pending_feedback(
        self, flow_uuid: str
    ) -> tuple[dict[str, Any], PendingFeedbackContext] | None:
        """The state of a flow that waits for a person and what it asks, or ``None``."""
        found = self._forge.get(_name(flow_uuid), "pending")
        if found is None:
            return None
        return found.value["state"], PendingFeedbackContext.from_dict(found.value["context"])

    def clear_pending_feedback(self, flow_uuid: str) -> None:
        """Removes what a flow asks, after it was answered."""
        name = _name(flow_uuid)
        if self._forge.get(name, "pending") is not None:
            self._forge.write(name, {}, ["pending"])

    def delete_state(self, flow_uuid: str) -> bool:
        """Deletes a flow; returns whether there was one."""
        return self._forge.drop(_name(flow_uuid))


class _Flows(Memories):
    """Flows in memories: an item ``flow``, a field of the state in each item ``state/FIELD``, and
    an item ``pending`` while a person is asked."""

    def save(
        self,
        flow: str,
        method: str,
        state: Mapping[str, Any],
        more: Mapping[str, Any] | None = None,
    ) -> None:
        name = _name(flow)
        fields = {_STATE + key: value for key, value in state.items()}
        while True:
            known = {one.key: one for one in self.items(name)}
            gone = [key for key in known if key.startswith(_STATE) and key not in fields]
            puts = {
                key: value
                for key, value in fields.items()
                if key not in known or _differ(known[key].value, value)
            }
            puts |= {"flow": {"id": flow, "method": method}, **(more or {})}
            head = known.get("flow")
            # A state is written by one process as a whole, never some fields by each.
            expected = {"flow": None if head is None else head.version}
            try:
                self.write(name, puts, gone, expected=expected, message=f"after {method}")
                return
            except Conflict:
                continue

    def state(self, name: str) -> dict[str, Any] | None:
        items = self.items(name)
        if not any(one.key == "flow" for one in items):
            return None
        fields = (one for one in items if one.key.startswith(_STATE))
        return {one.key[len(_STATE) :]: one.value for one in fields}


def _name(flow: str) -> str:
    return memory_name("crewai", flow)


def _differ(old: Any, new: Any) -> bool:
    # Not by ==, to which True, 1 and 1.0 are equal.
    return json.dumps(old, sort_keys=True) != json.dumps(new, sort_keys=True)


def _plain(state: dict[str, Any] | BaseModel) -> dict[str, Any]:
    """A state in JSON, in the form that CrewAI gives it in its own persistence."""
    plain = _json(state)
    if not isinstance(plain, dict):
        raise ValueError(f"a state is a map or a pydantic model, not {type(state).__name__}")
    return plain


def _json(value: Any) -> Any:
    return json.loads(json.dumps(value, default=_default))


def _default(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", fallback=str)
    if isinstance(value, (set, tuple)):
        return list(value)
    if isinstance(value, date):
        return value.isoformat()
    return str(value)
