"""The results of a store: frozen objects with typed fields."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Iterable, Mapping, TypeVar, Union

from . import _forge

Fields = Mapping[str, Any]

T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class Entity:
    """Something recorded: a claim or a fact. ``fields`` has all of its fields."""

    kind: str
    id: str
    at: datetime
    fields: Fields = field(hash=False)

    @property
    def description(self) -> str:
        """What it says, in its main field."""
        for name in ("description", "text", "command", "name", "path"):
            text = self.fields.get(name)
            if isinstance(text, str):
                return text
        return ""

    def to_dict(self) -> dict[str, Any]:
        """All of it as a dictionary."""
        return {"id": self.id, "at": self.at, **self.fields}

    def __str__(self) -> str:
        return f"{self.id} {self.description}"

    def __repr__(self) -> str:
        return f"<{self.kind} {self.id} {self.description[:200]!r}>"


class Claim(Entity):
    """What a person or agent holds, on a branch, until it is changed."""


class Hypothesis(Claim):
    """What might explain the problem."""

    @property
    def status(self) -> str:
        """One of active, under_test, confirmed, rejected, archived."""
        return str(self.fields.get("status", "active"))

    @property
    def confidence(self) -> float | None:
        """How probable it is, from 0 to 1; ``None`` if it was not recorded."""
        return _number(self.fields, "confidence")

    @property
    def reason(self) -> str | None:
        """Why it has its status."""
        return _text(self.fields, "reason")

    @property
    def parent(self) -> str | None:
        """The id of the hypothesis that it is a special case of."""
        return _text(self.fields, "parent")

    @property
    def tags(self) -> tuple[str, ...]:
        """Words that find it."""
        return _texts(self.fields, "tags")


class Evidence(Claim):
    """What speaks for or against a hypothesis."""

    @property
    def hypothesis(self) -> str | None:
        """The id of the hypothesis that it is about."""
        return _text(self.fields, "hypothesis")

    @property
    def strength(self) -> float | None:
        """How strongly it speaks for (up to 1) or against (down to -1) it."""
        return _number(self.fields, "strength")

    @property
    def source(self) -> str | None:
        """Where it can be found."""
        return _text(self.fields, "source")


class Belief(Claim):
    """What is held to be true."""

    @property
    def confidence(self) -> float | None:
        """How probable it is, from 0 to 1; ``None`` if it was not recorded."""
        return _number(self.fields, "confidence")

    @property
    def in_doubt(self) -> bool:
        """Whether something that it rests on was removed or contradicted."""
        return self.fields.get("in_doubt") is True

    @property
    def doubt_reason(self) -> str | None:
        """Why it is in doubt."""
        return _text(self.fields, "doubt_reason")


class Gap(Claim):
    """What is not known and should be."""

    @property
    def status(self) -> str:
        """One of open, filling, filled, unfillable, obsolete."""
        return str(self.fields.get("status", "open"))

    @property
    def criticality(self) -> str | None:
        """One of low, medium, high, critical."""
        return _text(self.fields, "criticality")

    @property
    def resolution(self) -> str | None:
        """What was found out."""
        return _text(self.fields, "resolution")


class Note(Claim):
    """A free remark."""


@dataclass(frozen=True, repr=False)
class Fact(Entity):
    """Something that happened; the same on every branch."""

    recorded_at: datetime
    origin: str


@dataclass(frozen=True)
class Checkpoint:
    """A named moment."""

    id: str
    number: int
    time: datetime
    branch: str
    revision: int | None
    message: str
    tags: tuple[str, ...]
    trigger: str
    data: Fields | None = field(repr=False, hash=False)


@dataclass(frozen=True)
class Written:
    """What one call wrote. ``operation`` is what ``undo`` takes."""

    id: str | None
    operation: str
    session: str
    branch: str
    revision: int | None
    checkpoint: Checkpoint | None
    warnings: tuple[str, ...]
    spooled: bool

    def __str__(self) -> str:
        return self.id or self.operation


@dataclass(frozen=True)
class State:
    """The claims at a moment.

    >>> session = forge_store.in_memory().session("s")
    >>> _ = session.hypothesis("the cache is stale")
    >>> state = session.head.state
    >>> state["H1"].status
    'active'
    >>> list(state.to_dict())
    ['hypotheses']
    """

    claims: tuple[Claim, ...]

    KINDS: ClassVar[Mapping[str, str]] = {
        "hypothesis": "hypotheses",
        "evidence": "evidence",
        "belief": "beliefs",
        "dependency": "dependencies",
        "gap": "gaps",
        "note": "notes",
    }

    @property
    def hypotheses(self) -> tuple[Hypothesis, ...]:
        """The hypotheses."""
        return tuple(one for one in self.claims if isinstance(one, Hypothesis))

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The evidence."""
        return tuple(one for one in self.claims if isinstance(one, Evidence))

    @property
    def beliefs(self) -> tuple[Belief, ...]:
        """The beliefs."""
        return tuple(one for one in self.claims if isinstance(one, Belief))

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """The gaps."""
        return tuple(one for one in self.claims if isinstance(one, Gap))

    @property
    def notes(self) -> tuple[Note, ...]:
        """The notes."""
        return tuple(one for one in self.claims if isinstance(one, Note))

    def get(self, id: str) -> Claim | None:
        """The claim with this id, or ``None``."""
        return next((one for one in self.claims if one.id == id), None)

    def __getitem__(self, id: str) -> Claim:
        found = self.get(id)
        if found is None:
            raise KeyError(id)
        return found

    def __contains__(self, id: object) -> bool:
        return any(one.id == id for one in self.claims)

    def __len__(self) -> int:
        return len(self.claims)

    def to_dict(self) -> dict[str, list[dict[str, Any]]]:
        """All of it as dictionaries, by kind."""
        kinds: dict[str, list[dict[str, Any]]] = {}
        for claim in self.claims:
            kinds.setdefault(self.KINDS.get(claim.kind, claim.kind), []).append(claim.to_dict())
        return kinds


@dataclass(frozen=True)
class Change:
    """One change between two moments."""

    kind: str
    id: str
    change: str
    field: str | None
    old: Any = dataclasses.field(hash=False)
    new: Any = dataclasses.field(hash=False)


@dataclass(frozen=True)
class Difference:
    """What changed from one moment to another."""

    summary: str
    seconds: float | None
    changes: tuple[Change, ...]

    def __str__(self) -> str:
        return self.summary

    def __bool__(self) -> bool:
        return bool(self.changes)


@dataclass(frozen=True)
class LogEntry:
    """A revision, a checkpoint, or a revision that a repair could not save, in a log."""

    type: str
    number: int
    time: datetime
    branch: str
    details: Fields = field(repr=False, hash=False)

    def __str__(self) -> str:
        said = self.details.get("verb") or self.details.get("message") or "lost"
        return f"#{self.number} {said}"


@dataclass(frozen=True)
class Step:
    """One change of a claim in its history, with the revision that made it."""

    number: int
    time: datetime
    branch: str
    verb: str
    operation: str
    old: Fields | None = field(hash=False)
    new: Fields | None = field(hash=False)


@dataclass(frozen=True)
class Why:
    """A claim with its history, what speaks for and against it, and what it rests on directly.

    ``rests_on`` is without the evidence.
    """

    claim: Claim
    speaks_for: tuple[Evidence, ...]
    speaks_against: tuple[Evidence, ...]
    rests_on: tuple[Claim, ...]
    history: tuple[Step, ...]


@dataclass(frozen=True)
class Branch:
    """A branch at a moment."""

    name: str
    current: bool
    revision: int | None
    base: str | None
    base_revision: int | None
    status: str
    created_at: datetime
    changed_at: datetime
    hypothesis: str | None
    approach: str | None
    success_criteria: tuple[str, ...]
    results: tuple[str, ...]


@dataclass(frozen=True)
class Operation:
    """Everything that one verb did: the unit of ``undo``."""

    id: str
    verb: str
    time: datetime
    effects: tuple[str, ...]
    revision: int | None
    undone: bool


@dataclass(frozen=True)
class Merged:
    """What a merge did, or would do: ``merged``, ``fast_forward``, ``already_merged`` or
    ``conflicts``."""

    operation: str | None
    source: str
    target: str
    result: str
    conflicts: tuple[Fields, ...] = field(hash=False)
    changes: int
    revision: int | None


@dataclass(frozen=True)
class Verdict:
    """A checkpoint with the reasons to keep it; without any it is pruned."""

    checkpoint: Checkpoint
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class PrunePlan:
    """What pruning did, or would do."""

    operation: str | None
    verdicts: tuple[Verdict, ...] = field(repr=False)
    revisions: int
    bytes: int

    @property
    def pruned(self) -> tuple[Checkpoint, ...]:
        """The checkpoints that are pruned."""
        return tuple(one.checkpoint for one in self.verdicts if not one.reasons)

    @property
    def kept(self) -> tuple[Checkpoint, ...]:
        """The checkpoints that are kept."""
        return tuple(one.checkpoint for one in self.verdicts if one.reasons)


@dataclass(frozen=True)
class SearchHit:
    """Something that has all words of a search."""

    session: str
    kind: str
    id: str
    at: datetime
    revision: int | None
    snippet: str


@dataclass(frozen=True)
class SearchPage:
    """The latest hits of a search; ``cursor`` gives the next page, if there is one."""

    hits: tuple[SearchHit, ...]
    cursor: str | None
    total: int | None


@dataclass(frozen=True)
class SessionInfo:
    """A session in a list of sessions."""

    id: str
    name: str
    kind: str
    agent: str | None
    started_at: datetime
    current: bool
    branch: str
    branches: int
    last_number: int
    checkpoints: int
    claims: int
    facts: int
    first_event: datetime | None
    last_event: datetime | None


@dataclass(frozen=True)
class Finding:
    """Damage at one place of a store."""

    place: str
    problem: str
    rebuildable: bool


@dataclass(frozen=True)
class Verification:
    """What a check of a store found: ``clean``, ``repairable``, ``loss`` or ``forged``."""

    outcome: str
    findings: tuple[Finding, ...]
    records: int
    revisions: int

    def __bool__(self) -> bool:
        return self.outcome == "clean"


IdLike = Union[str, Claim, Written]

_CLAIMS: Mapping[str, type[Claim]] = {
    "hypothesis": Hypothesis,
    "evidence": Evidence,
    "belief": Belief,
    "gap": Gap,
    "note": Note,
}


def claim_of(known: Fields) -> Claim:
    return _CLAIMS.get(known["kind"], Claim)(**known)


def fact_of(known: Fields) -> Fact:
    return Fact(**known)


def checkpoint_of(known: Fields) -> Checkpoint:
    return Checkpoint(**_with(known, tags=tuple(known["tags"])))


def written_of(done: dict[str, Any]) -> Written:
    checkpoint = done["checkpoint"] and checkpoint_of(done["checkpoint"])
    return Written(**_with(done, checkpoint=checkpoint, warnings=tuple(done["warnings"])))


def operation_of(known: Fields) -> Operation:
    return Operation(**_with(known, effects=tuple(known["effects"])))


def branch_of(known: Fields) -> Branch:
    lists = {name: tuple(known[name]) for name in ("success_criteria", "results")}
    return Branch(**_with(known, **lists))


def prune_plan_of(done: Fields) -> PrunePlan:
    verdicts = tuple(
        Verdict(checkpoint_of(one["checkpoint"]), tuple(one["reasons"])) for one in done["verdicts"]
    )
    return PrunePlan(done["operation"], verdicts, done["revisions"], done["bytes"])


def merged_of(done: Fields) -> Merged:
    return Merged(**_with(done, conflicts=tuple(done["conflicts"])))


def log_entry_of(known: Fields) -> LogEntry:
    names = ("type", "number", "time", "branch")
    details = {name: value for name, value in known.items() if name not in names}
    return LogEntry(known["type"], known["number"], known["time"], known["branch"], details)


def verification_of(done: Fields) -> Verification:
    findings = tuple(Finding(**finding) for finding in done["findings"])
    return Verification(**_with(done, findings=findings))


def refusal(kind: type[_forge.ForgeError], what: str, next: str) -> _forge.ForgeError:
    """An error that says what is wrong, and what to do next."""
    error = kind(f"{what}; {next}")
    error.hint = next
    return error


def id_of(known: IdLike) -> str:
    if isinstance(known, str):
        return known
    if not isinstance(known, (Written, Claim)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"{known!r} is no claim: give its id, or what added it")
    if known.id is None:
        raise refusal(_forge.Invalid, "this write made no claim, so it has no id", "name the claim")
    return known.id


def listed(name: str, given: Iterable[T]) -> list[T]:
    """The items of an argument. Refuses a text, whose items would be its letters."""
    if isinstance(given, (str, bytes)):
        raise TypeError(f"{name} is a list, and not one text: write {name}=[...]")
    return list(given)


def json_text(what: str, value: Any) -> str:
    """A value as JSON text. Refuses one that JSON cannot hold; ``what`` names it."""
    import json  # Not at the top: programs without messages start without it.

    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        remedy = "give what json.dumps takes, without NaN and infinity"
        raise refusal(_forge.Invalid, f"{what} is not JSON: {error}", remedy) from error


def _with(known: Fields, **changed: Any) -> dict[str, Any]:
    return {**known, **changed}


def _number(fields: Fields, name: str) -> float | None:
    value = fields.get(name)
    return float(value) if isinstance(value, (int, float)) else None


def _text(fields: Fields, name: str) -> str | None:
    value = fields.get(name)
    return value if isinstance(value, str) else None


def _texts(fields: Fields, name: str) -> tuple[str, ...]:
    return tuple(fields.get(name) or ())
