"""Sessions of Google's Agent Development Kit (ADK) on a forge store.

Each session is a memory ``adk/APP/USER/SESSION`` with one item for each event and each key of its
state. State that a user's sessions share is the memory ``adk/APP/USER``, and that of all sessions
of an app ``adk/APP``.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from ._forge import Conflict
from ._framework import Adapter, Memories, memory_name, missing
from ._store import Store
from .memory import Item

try:
    from google.adk.errors import StaleSessionError
    from google.adk.errors.already_exists_error import AlreadyExistsError
    from google.adk.errors.session_not_found_error import SessionNotFoundError
    from google.adk.events.event import Event
    from google.adk.sessions import Session
    from google.adk.sessions.base_session_service import (
        BaseSessionService,
        GetSessionConfig,
        ListSessionsResponse,
    )
    from google.adk.sessions.state import State
    from pydantic_core import PydanticSerializationError, to_jsonable_python
except ImportError as error:
    raise missing("adk", error) from error

_log = logging.getLogger(__name__)

#: The items of a memory that hold state, and those that hold events.
_STATE, _EVENT = "state/", "event/"

_Scoped = dict[str, dict[str, Any]]


class ForgeSessionService(Adapter["_Sessions"], BaseSessionService):
    """An ADK ``BaseSessionService`` that keeps sessions in a forge store.

    Any number of processes may use one store. An event for a session that has changed since it was
    read is refused with ``StaleSessionError``.

    >>> import asyncio
    >>> service = ForgeSessionService()
    >>> asyncio.run(service.create_session(app_name="tea", user_id="ann", session_id="s1")).id
    's1'
    """

    def __init__(self, store: Store | None = None) -> None:
        self._forge_use(_Sessions, store)

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Creates a session; raises ``AlreadyExistsError`` if its id is taken."""
        chosen = (session_id or "").strip() or str(uuid.uuid4())
        create = self._forge.create
        return await asyncio.to_thread(create, app_name, user_id, chosen, state or {})

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """A session with its events, or ``None``. It reads only the events that are asked for."""
        read = self._forge.read
        return await asyncio.to_thread(read, app_name, user_id, session_id.strip(), config)

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """The sessions of an app or of one user without their events, the latest last."""
        sessions = await asyncio.to_thread(self._forge.listed, app_name, user_id)
        return ListSessionsResponse(sessions=sessions)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Deletes a session, if it exists. The shared state stays."""
        name = _name(app_name, user_id, session_id.strip())
        await asyncio.to_thread(self._forge.drop, name)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """The state that a user's sessions share, by its keys without ``user:``."""
        return await asyncio.to_thread(self._forge.state, _name(app_name, user_id))

    async def append_event(self, session: Session, event: Event) -> Event:
        """Adds an event, and what it changes in the state, to a session."""
        if event.partial:
            return event
        # Temporary state is only in this session object, and is not stored.
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        await asyncio.to_thread(self._forge.append, session, event)
        return self._commit_event_to_session(session, event)


class _Sessions(Memories):
    """Sessions in memories. In addition to state and events, a session has an item ``session``, and an
    item ``shared`` with changes of the shared state that were not moved there yet."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        # Parallel branches of one run add events to one `Session` object, each in a thread.
        self._lock = threading.RLock()

    def create(self, app: str, user: str, id: str, state: Mapping[str, Any]) -> Session:
        name, now, scoped = _name(app, user, id), time.time(), _scoped(state)
        about = {"app_name": app, "user_id": user, "id": id, "last_update_time": now, "events": 0}
        puts = {"session": about, **_puts(scoped)}
        try:
            self.write(name, puts, expected={"session": None})
        except Conflict:
            raise AlreadyExistsError(f"Session with id {id} already exists.") from None
        self._share(name, app, user)
        session = self.read(app, user, id, GetSessionConfig(num_recent_events=0))
        if session is None:
            raise SessionNotFoundError(f"Session {id} was deleted while it was created.")
        return session

    def read(self, app: str, user: str, id: str, config: GetSessionConfig | None) -> Session | None:
        name = _name(app, user, id)
        found = self.get(name, "session")
        if found is None:
            return None
        recent = None if config is None else config.num_recent_events
        count = int(found.value["events"])
        events: list[Event] = []
        if recent != 0:
            after = None if recent is None or recent >= count else _event_key(count - recent)
            items = self.items(name, _EVENT, after=after)
            # An event that was added after the session was read belongs to a later version of it.
            events = [_event(one) for one in items if one.key <= _event_key(count)]
        if config is not None and config.after_timestamp is not None:
            events = [one for one in events if one.timestamp >= config.after_timestamp]
        return self._session(name, found, events)

    def listed(self, app: str, user: str | None) -> list[Session]:
        place = memory_name("adk", app) if user is None else _name(app, user)
        names = [one for one in self.names(place + "/") if one.count("/") == 3]
        found = ((name, self.get(name, "session")) for name in names)
        sessions = [self._session(name, one, []) for name, one in found if one is not None]
        return sorted(sessions, key=lambda one: (one.last_update_time, one.user_id, one.id))

    def append(self, session: Session, event: Event) -> None:
        name = _name(session.app_name, session.user_id, session.id)
        with self._lock:
            found = self.get(name, "session")
            if found is None:
                raise SessionNotFoundError(f"Session {session.id} not found.")
            self._check(name, session, found)
            # Changes that an ended process left are applied before those of this event.
            self._share(name, session.app_name, session.user_id)
            count = found.value["events"] + 1
            about = {**found.value, "last_update_time": event.timestamp, "events": count}
            value = json.loads(event.model_dump_json(exclude_none=True))
            puts = {"session": about, _event_key(count): value}
            puts |= _puts(_scoped(event.actions.state_delta if event.actions else {}))
            shared = self.get(name, "shared")
            expected = {"session": found.version, "shared": shared.version if shared else None}
            try:
                self.write(name, puts, expected=expected, message=f"event by {event.author}")
            except Conflict as error:
                raise _stale(session) from error
            session._storage_update_marker = _marker(found, later=1)
            session.last_update_time = event.timestamp
            self._share(name, session.app_name, session.user_id)

    def state(self, name: str) -> dict[str, Any]:
        """The state in a memory."""
        return {one.key[len(_STATE) :]: one.value for one in self.items(name, _STATE)}

    def _session(self, name: str, found: Item, events: Sequence[Event]) -> Session:
        about = found.value
        state = {**self.state(name), **self._shared(name, about["app_name"], about["user_id"])}
        session = Session(
            id=about["id"],
            app_name=about["app_name"],
            user_id=about["user_id"],
            state=state,
            events=list(events),
            last_update_time=about["last_update_time"],
        )
        session._storage_update_marker = _marker(found)
        return session

    def _shared(self, name: str, app: str, user: str) -> dict[str, Any]:
        """The state that a session shares with others, with their prefixes."""
        while True:
            waiting = self.get(name, "shared")
            scoped = {
                State.APP_PREFIX: self.state(_name(app)),
                State.USER_PREFIX: self.state(_name(app, user)),
            }
            if self.get(name, "shared") == waiting:
                break  # Otherwise it was moved while the others were read.
        for scope, changes in waiting.value.items() if waiting else ():
            scoped[scope] |= changes
        return {scope + key: value for scope, of in scoped.items() for key, value in of.items()}

    def _check(self, name: str, session: Session, found: Item) -> None:
        """Refuses a session object that is not of the latest version."""
        marker = session._storage_update_marker
        if marker is not None:
            if marker != _marker(found):
                raise _stale(session)
        elif found.value["last_update_time"] > session.last_update_time:
            # An object that was made by hand: its last event must be the last one.
            last = self.get(name, _event_key(found.value["events"]))
            known = session.events[-1].id if session.events else None
            if (None if last is None else last.value["id"]) != known:
                raise _stale(session)

    def _share(self, name: str, app: str, user: str) -> None:
        """Moves changes of shared state from a session's memory to the memories of that state.

        They are written with their event first, so that a process that ends in between loses
        none; readers see them there, and the next event of the session moves them.
        """
        while (waiting := self.get(name, "shared")) is not None and waiting.value:
            places = {State.APP_PREFIX: _name(app), State.USER_PREFIX: _name(app, user)}
            try:
                for scope, changes in waiting.value.items():
                    puts = {_STATE + key: value for key, value in changes.items()}
                    known = {key: self.get(places[scope], key) for key in puts}
                    if self.get(name, "shared") != waiting:
                        break  # Another process has moved them since: the last write fails.
                    # Other versions were written after this process had moved these.
                    expected = {key: one.version if one else None for key, one in known.items()}
                    self.write(places[scope], puts, expected=expected)
                # Emptied and not deleted, so that no version number is used twice.
                self.write(name, {"shared": {}}, expected={"shared": waiting.version})
            except Conflict:
                continue


def _name(*parts: str) -> str:
    return memory_name("adk", *parts)


def _event_key(number: int) -> str:
    return f"{_EVENT}{number:012}"


def _event(item: Item) -> Event:
    # As JSON, because bytes are base64 there and nowhere else.
    event: Event = Event.model_validate_json(json.dumps(item.value))
    return event


def _marker(found: Item, later: int = 0) -> str:
    # Versions begin again if a session is deleted and created again; its time does not.
    return f"{found.version + later} {found.created_at.isoformat()}"


def _stale(session: Session) -> StaleSessionError:
    what = f"Session {session.id} has changed in the store since it was read"
    return StaleSessionError(f"{what}; get it again with get_session.")


def _scoped(state: Mapping[str, Any]) -> _Scoped:
    """A state in JSON by scope: of the app, of the user, and of the session (without a prefix)."""
    try:
        plain: dict[str, Any] = to_jsonable_python(dict(state))
    except PydanticSerializationError as error:
        # As ADK's own services do: an agent may keep a function in its state.
        _log.warning("values that are not JSON are stored as their representation: %s", error)
        plain = to_jsonable_python(dict(state), serialize_unknown=True)
    scoped: _Scoped = {State.APP_PREFIX: {}, State.USER_PREFIX: {}, "": {}}
    for key, value in plain.items():
        if not key.startswith(State.TEMP_PREFIX):
            scope = next(one for one in scoped if key.startswith(one))
            scoped[scope][key.removeprefix(scope)] = value
    return scoped


def _puts(scoped: _Scoped) -> dict[str, Any]:
    """The items of a session's memory for what changes in the state."""
    puts = {_STATE + key: value for key, value in scoped[""].items()}
    shared = {scope: changes for scope, changes in scoped.items() if scope and changes}
    return puts | ({"shared": shared} if shared else {})
