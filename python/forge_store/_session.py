"""Sessions and moments."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Callable, Generic, Iterable, TypeVar, Union

from . import _forge
from ._values import (
    Branch,
    Change,
    Checkpoint,
    Claim,
    Difference,
    Evidence,
    Fact,
    IdLike,
    LogEntry,
    Merged,
    Operation,
    PrunePlan,
    SearchPage,
    SessionInfo,
    State,
    Step,
    Why,
    Written,
    branch_of,
    checkpoint_of,
    claim_of,
    fact_of,
    id_of,
    listed,
    log_entry_of,
    merged_of,
    operation_of,
    prune_plan_of,
    refusal,
    written_of,
)

if TYPE_CHECKING:
    from ._store import Store

Progress = Callable[[float], Any]

#: The kinds of claims that have a description.
_DESCRIBED = frozenset(("hypothesis", "evidence", "belief", "gap", "note"))


T = TypeVar("T")


class Async(Generic[T]):
    """An object of ``forge_store.aio``, whose calls are awaited; ``sync`` is the object itself."""

    __slots__ = ("sync",)

    def __init__(self, sync: T) -> None:
        self.sync = sync

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.sync!r})"


class Moment:
    """A moment of a session: everything that was known then can be read.

    Later writes do not change it.
    """

    __slots__ = ("_about", "_native", "session")

    def __init__(self, session: Session, native: _forge.Moment) -> None:
        self.session = session
        self._native = native
        self._about: dict[str, Any] | None = None

    def _known(self) -> dict[str, Any]:
        if self._about is None:
            self._about = self._native.about()
        return self._about

    @property
    def revision(self) -> int | None:
        """The number of its revision; ``None`` before the first."""
        return self._native.revision

    @property
    def time(self) -> datetime | None:
        """Its time; ``None`` if nothing is recorded yet."""
        time: datetime | None = self._known()["time"]
        return time

    @property
    def branch(self) -> str:
        """The branch that it is on."""
        return str(self._known()["branch"])

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The checkpoint, if one was named."""
        known = self._known()["checkpoint"]
        return checkpoint_of(known) if known else None

    @property
    def state(self) -> State:
        """The claims at this moment."""
        return State(tuple(claim_of(known) for known in self._native.claims()))

    def claim(self, id: IdLike) -> Claim:
        """The claim with this id, without reading the rest of the state.

        Raises ``NotFound`` if it is not there.
        """
        kind, id = self._native.kind_of(id_of(id))
        found = self._native.claim(kind, id)
        if found is None:
            raise refusal(_forge.NotFound, f"there is no {kind} '{id}'", "name another")
        return claim_of(found)

    def facts(self, *kinds: str, full: bool = False) -> list[Fact]:
        """The facts up to this moment (commands, messages, ...), the earliest first.

        Long texts are cut to their beginnings unless ``full`` is true.
        """
        return [fact_of(known) for known in self._native.facts(list(kinds) or None, full)]

    @property
    def branches(self) -> list[Branch]:
        """The branches at this moment."""
        return [branch_of(known) for known in self._native.branches()]

    def log(self, limit: int = 100) -> list[LogEntry]:
        """Revisions and checkpoints up to this moment, the latest first."""
        return [log_entry_of(known) for known in self._native.log(limit)]

    def history(self, id: IdLike) -> list[Step]:
        """Every change of a claim up to this moment, the latest first."""
        kind, id = self._native.kind_of(id_of(id))
        names = ("number", "time", "branch", "verb", "operation", "old", "new")
        return [
            Step(**{name: known[name] for name in names})
            for known in self._native.history(kind, id)
        ]

    def why(self, id: IdLike) -> Why:
        """A claim with its history, what speaks for and against it, and what it rests on."""
        claim = self.claim(id)
        names = set(self._native.rests_on(claim.kind, claim.id))
        below = [one for one in self.state.claims if (one.kind, one.id) in names]
        evidence = [one for one in below if isinstance(one, Evidence)]
        return Why(
            claim,
            tuple(one for one in evidence if (one.strength or 0) >= 0),
            tuple(one for one in evidence if (one.strength or 0) < 0),
            tuple(one for one in below if not isinstance(one, Evidence)),
            tuple(self.history(claim)),
        )

    def brief(self) -> dict[str, Any]:
        """What is needed to continue from here, in short, as a dictionary of lists."""
        return self._native.brief()

    def __repr__(self) -> str:
        return f"<Moment #{self.revision or 0} of {self.session!r}>"


MomentLike = Union[str, int, datetime, Checkpoint, Moment, Async[Moment], None]


class Session:
    """A debugging effort: claims, which change and can be undone, and facts, which happened.

    >>> session = forge_store.in_memory().session("slow queue")
    >>> cause = session.hypothesis("the lease is judged on another clock")
    >>> _ = session.evidence("the clocks differ by 1.8 s", cause, strength=0.7)
    >>> round(session.head.claim(cause).confidence, 2)
    0.82
    """

    __slots__ = ("_native", "store")

    def __init__(self, store: Store, native: _forge.Session) -> None:
        if not isinstance(native, _forge.Session):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("store.session(name) makes a Session")
        self.store = store
        self._native = native

    # What it is.

    @property
    def id(self) -> str:
        """Its permanent id."""
        return self._native.id

    @property
    def info(self) -> SessionInfo:
        """Its name, kind, times and counts."""
        return SessionInfo(**self._native.summary())

    @property
    def name(self) -> str:
        """Its name."""
        return self.info.name

    def __repr__(self) -> str:
        return f"<Session {self.id}>"

    # Claims.

    def hypothesis(
        self,
        description: str,
        *,
        confidence: float | None = None,
        status: str | None = None,
        parent: IdLike | None = None,
        tags: Iterable[str] | None = None,
        source: str | None = None,
        id: str | None = None,
    ) -> Written:
        """Adds what might explain the problem.

        >>> session = forge_store.in_memory().session("s")
        >>> session.hypothesis("the cache is stale", confidence=0.4, tags=["cache"]).id
        'H1'
        """
        return self.add(
            "hypothesis",
            id,
            description=description,
            confidence=confidence,
            status=status,
            parent=None if parent is None else id_of(parent),
            tags=None if tags is None else listed("tags", tags),
            source=source,
        )

    def evidence(
        self,
        description: str,
        hypothesis: IdLike,
        strength: float,
        *,
        kind: str | None = None,
        source: str | None = None,
        id: str | None = None,
    ) -> Written:
        """Adds what speaks for (up to 1) or against (down to -1) a hypothesis, whose confidence
        follows."""
        return self.add(
            "evidence",
            id,
            description=description,
            hypothesis=id_of(hypothesis),
            strength=strength,
            kind=kind,
            source=source,
        )

    def belief(
        self,
        description: str,
        *,
        confidence: float | None = None,
        on: Iterable[IdLike] = (),
        hypothesis: IdLike | None = None,
        evidence: Iterable[IdLike] | None = None,
        kind: str | None = None,
        source: str | None = None,
        id: str | None = None,
    ) -> Written:
        """Adds what is held to be true. ``on``: the beliefs that it rests on."""
        return self.add(
            "belief",
            id,
            description=description,
            confidence=confidence,
            on=[id_of(one) for one in listed("on", on)] or None,
            hypothesis=None if hypothesis is None else id_of(hypothesis),
            evidence=None if evidence is None else [*map(id_of, listed("evidence", evidence))],
            kind=kind,
            source=source,
        )

    def gap(
        self,
        description: str,
        *,
        criticality: str | None = None,
        blocking: bool | Iterable[IdLike] | None = None,
        type: str | None = None,
        fill_strategy: str | None = None,
        effort: str | None = None,
        id: str | None = None,
    ) -> Written:
        """Adds what is not known and should be. ``blocking``: the hypotheses that it blocks, or
        ``True`` for all."""
        blocks: Any = blocking
        if blocking is not None and not isinstance(blocking, bool):
            blocks = [id_of(one) for one in listed("blocking", blocking)]
        return self.add(
            "gap",
            id,
            description=description,
            criticality=criticality,
            blocking=blocks,
            type=type,
            fill_strategy=fill_strategy,
            effort=effort,
        )

    def note(
        self, description: str, *, source: str | None = None, id: str | None = None
    ) -> Written:
        """Adds a free remark."""
        return self.add("note", id, description=description, source=source)

    def add(self, kind: str, id: str | None = None, /, **fields: Any) -> Written:
        """Adds a claim of any kind with these fields, under this id or the next free one."""
        if kind in _DESCRIBED:
            _refuse_empty("description", fields.get("description"))
        return written_of(self._native.add(kind, fields, id))

    def update(self, id: IdLike, /, **fields: Any) -> Written:
        """Changes fields of a claim; ``None`` removes one.

        >>> session = forge_store.in_memory().session("s")
        >>> note = session.note("seen once")
        >>> _ = session.update(note, description="seen twice")
        >>> session.head.claim(note).description
        'seen twice'
        """
        if "description" in fields:
            _refuse_empty("description", fields["description"])
        return written_of(self._native.update(id_of(id), fields))

    def confirm(self, id: IdLike, reason: str | None = None) -> Written:
        """Confirms a hypothesis."""
        if reason is not None:
            _refuse_empty("reason", reason)
        return written_of(self._native.settle(id_of(id), True, reason))

    def reject(self, id: IdLike, reason: str | None = None) -> Written:
        """Rejects a hypothesis and its parts; beliefs that rest on it are then in doubt."""
        if reason is not None:
            _refuse_empty("reason", reason)
        return written_of(self._native.settle(id_of(id), False, reason))

    def fill(self, id: IdLike, resolution: str) -> Written:
        """Fills a gap with what was found out."""
        _refuse_empty("resolution", resolution)
        return written_of(self._native.fill(id_of(id), resolution))

    def retract(self, id: IdLike) -> Written:
        """Removes a wrong evidence, belief or note, with the consequences for other claims."""
        return written_of(self._native.retract(id_of(id)))

    def depend(self, id: IdLike, on: IdLike, strength: float | None = None) -> Written:
        """Says that one belief rests on another."""
        return written_of(self._native.depend(id_of(id), id_of(on), strength))

    def contradict(self, id: IdLike, other: IdLike, reason: str | None = None) -> Written:
        """Says that two beliefs cannot both be true."""
        return written_of(self._native.contradict(id_of(id), id_of(other), reason))

    # Facts.

    def command(
        self,
        /,
        command: str,
        *,
        exit_code: int | None = None,
        output: str | None = None,
        working_dir: str | None = None,
        at: datetime | None = None,
        **fields: Any,
    ) -> Written:
        """Records a command that was run."""
        _refuse_empty("command", command)
        return self.record(
            "command",
            at=at,
            command=command,
            exit_code=exit_code,
            stdout_preview=output,
            working_dir=working_dir,
            **fields,
        )

    def message(
        self, /, text: str, *, role: str = "assistant", at: datetime | None = None, **fields: Any
    ) -> Written:
        """Records a message of a conversation."""
        return self.record("message", at=at, text=text, role=role, **fields)

    def verification(
        self,
        /,
        name: str,
        status: str,
        *,
        output: str | None = None,
        at: datetime | None = None,
        **fields: Any,
    ) -> Written:
        """Records a test, build or check: passed, failed, error, timed_out, skipped or unknown."""
        _refuse_empty("name", name)
        return self.record("verification", at=at, name=name, status=status, output=output, **fields)

    def measurement(
        self,
        name: str,
        value: float | str,
        *,
        unit: str | None = None,
        source: str | None = None,
        at: datetime | None = None,
    ) -> Written:
        """Records a named value."""
        _refuse_empty("name", name)
        _refuse_empty("value", value)
        return self.record(
            "measurement", at=at, name=name, value=value, unit=unit, source=source
        )

    def record(
        self, kind: str, id: str | None = None, /, *, at: datetime | None = None, **fields: Any
    ) -> Written:
        """Records a fact of any kind with these fields; ``at`` is when it happened, if not now."""
        return written_of(self._native.record(kind, fields, id, at))

    # Moments.

    def checkpoint(
        self,
        message: str,
        *,
        tags: Iterable[str] = (),
        at: datetime | None = None,
        data: dict[str, Any] | None = None,
    ) -> Checkpoint:
        """Names this moment.

        >>> session = forge_store.in_memory().session("s")
        >>> session.checkpoint("before the change", tags=["before"]).tags
        ('before',)
        """
        _refuse_empty("message", message)
        done = written_of(self._native.checkpoint(message, listed("tags", tags), at, data))
        if done.checkpoint is None:
            raise refusal(_forge.Internal, "no checkpoint was made", "report this bug in forge")
        return done.checkpoint

    def checkpoints(
        self,
        tag: str | None = None,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = None,
    ) -> list[Checkpoint]:
        """The checkpoints, the latest first."""
        return [checkpoint_of(one) for one in self._native.checkpoints(tag, since, until, limit)]

    @property
    def head(self) -> Moment:
        """The moment with everything that is recorded, on the current branch."""
        return Moment(self, self._native.head())

    def at(self, moment: MomentLike) -> Moment:
        """The moment with this name: a text (``"2 hours ago"``, a tag, ``"when H1 was
        confirmed"``), an aware ``datetime``, the number of a revision or checkpoint, a checkpoint;
        ``None`` for now."""
        if moment is None:
            return self.head
        if isinstance(moment, Async):
            moment = moment.sync
        if isinstance(moment, Moment):
            if moment.session.id != self.id:
                what = "this moment is of another session"
                raise refusal(_forge.Invalid, what, "resolve it in this one")
            return moment
        if isinstance(moment, Checkpoint):
            # Not by its number, which is also one of other sessions.
            return Moment(self, self._native.at(moment.id))
        if isinstance(moment, datetime):
            return Moment(self, self._native.at_time(moment))
        if isinstance(moment, int):
            if moment < 0:
                what = f"{moment} is no number of a revision or checkpoint"
                raise refusal(_forge.Invalid, what, "count back from the last with 'HEAD~1'")
            return Moment(self, self._native.at_number(moment))
        return Moment(self, self._native.at(moment))

    def diff(self, a: MomentLike, b: MomentLike = None) -> Difference:
        """What changed from one moment to another, by default to now.

        >>> session = forge_store.in_memory().session("s")
        >>> before = session.head
        >>> _ = session.note("seen once")
        >>> session.diff(before).changes[0].id
        'N1'
        """
        done = self._native.diff(self.at(a)._native, self.at(b)._native)
        changes = tuple(Change(**change) for change in done["changes"])
        return Difference(done["summary"], done["seconds"], changes)

    def restore(self, moment: MomentLike) -> Written:
        """Makes the claims equal to those of a moment. Nothing is lost, and ``undo`` reverts it."""
        return written_of(self._native.restore(self.at(moment)._native))

    def undo(self, operation: str | Written | None = None) -> Operation:
        """Undoes what one call did, by default the last; returns what was undone."""
        id = operation.operation if isinstance(operation, Written) else operation
        return operation_of(self._native.undo(id)["undone"])

    def redo(self) -> Operation:
        """Redoes what was undone last."""
        return operation_of(self._native.redo()["undone"])

    def operations(self, limit: int = 20) -> list[Operation]:
        """What was done, the latest first."""
        return [operation_of(known) for known in self._native.operations(limit)]

    def why(self, id: IdLike) -> Why:
        """A claim with its history, what speaks for and against it, and what it rests on, now."""
        return self.head.why(id)

    def log(self, limit: int = 100) -> list[LogEntry]:
        """Revisions and checkpoints, the latest first."""
        return self.head.log(limit)

    def brief(self) -> dict[str, Any]:
        """What is needed to continue, in short."""
        return self.head.brief()

    def search(self, /, words: str, **options: Any) -> SearchPage:
        """Searches this session: see ``Store.search``."""
        return self.store.search(words, sessions=[self], **options)

    # Branches.

    @property
    def branches(self) -> list[Branch]:
        """The branches."""
        return self.head.branches

    def branch(
        self,
        name: str,
        *,
        start: MomentLike = None,
        hypothesis: IdLike | None = None,
        approach: str | None = None,
        switch: bool = True,
    ) -> None:
        """Creates a branch at a moment, and checks it out unless ``switch`` is false."""
        begin = None if start is None else self.at(start)._native
        about = None if hypothesis is None else id_of(hypothesis)
        self._native.create_branch(name, begin, about, approach)
        if switch:
            self._native.switch(name)

    def switch(self, name: str) -> str | None:
        """Checks out a branch; returns the previous one, or ``None`` if nothing changes."""
        return self._native.switch(name)

    def merge(
        self,
        source: str,
        *,
        into: str | None = None,
        prefer: str | None = None,
        dry_run: bool = False,
    ) -> Merged:
        """Merges a branch into the current one, or into ``into``.

        ``prefer`` (``"ours"`` or ``"theirs"``) settles conflicts; without it a conflict raises
        ``Conflict`` and nothing is written. ``dry_run`` returns what a merge would do.
        """
        done = self._native.merge(source, into, prefer, dry_run)
        merged = merged_of(done)
        if merged.result == "conflicts" and not dry_run:
            places = [_place(one) for one in merged.conflicts if not one["settled"]]
            more = f" and {len(places) - 3} more" if len(places) > 3 else ""
            raise refusal(
                _forge.Conflict,
                f"'{source}' and '{merged.target}' both changed {', '.join(places[:3])}{more}: "
                "nothing was merged",
                "settle it with prefer='ours' or 'theirs', or look at it with dry_run=True",
            )
        return merged

    # Care.

    def prune(
        self,
        *,
        last: int = 0,
        within: timedelta | None = None,
        hourly: int = 0,
        daily: int = 0,
        weekly: int = 0,
        tags: Iterable[str] = (),
        manual: bool = True,
        significant: bool = True,
        revisions: timedelta | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> PrunePlan:
        """Hides checkpoints that no rule keeps, and folds unnamed revisions older than
        ``revisions`` (7 days). ``undo`` reverts it. ``dry_run`` returns the plan and changes
        nothing. ``progress`` is called with the seconds that it has taken so far. An exception
        from it, or Ctrl-C, ends only the wait; the work continues.
        """
        amounts: dict[str, float] = {
            "last": last,
            "hourly": hourly,
            "daily": daily,
            "weekly": weekly,
        }
        for name, span in (("within", within), ("revisions", revisions)):
            if span is not None:
                amounts[name] = span / timedelta(seconds=1)
        for name, amount in amounts.items():
            if amount < 0:
                raise refusal(_forge.Invalid, f"'{name}' is less than 0", "give 0 or more")
        policy: dict[str, Any] = {
            **amounts,
            "tags": listed("tags", tags),
            "manual": manual,
            "significant": significant,
        }
        return prune_plan_of(self._native.prune(policy, dry_run, progress))


def _refuse_empty(name: str, text: Any) -> None:
    """Refuses an empty text, as the command does."""
    if text is None or (isinstance(text, str) and not text.strip()):
        raise refusal(_forge.Invalid, f"the {name} is empty", "give a text")


def _place(conflict: Any) -> str:
    field = f" ({conflict['field']})" if conflict["field"] else ""
    return f"{conflict['kind']} {conflict['id']}{field}"

