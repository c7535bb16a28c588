"""A temporal debugging state store with time travel.

A debugging effort is a session. It holds claims (hypotheses, evidence, beliefs, gaps, notes), which
change and can be undone, and facts (commands, messages, checks), which happened. Every write is
durable when it returns. Every moment can be read again, compared, restored, or continued on a
branch of its own.

>>> import forge_store
>>> with forge_store.in_memory() as store:
...     session = store.session("slow queue")
...     cause = session.hypothesis("the lease is judged on another clock")
...     before = session.checkpoint("one suspect", tags=["suspect"])
...     _ = session.evidence("the clocks differ by 1.8 s", cause, strength=0.7)
...     _ = session.confirm(cause, "it fails every time with a slow clock")
...     then = session.at("suspect").state[cause.id]
...     print(then.status, "->", session.head.claim(cause).status)
active -> confirmed
"""

from ._forge import (
    Conflict,
    Corrupt,
    Forged,
    ForgeError,
    Internal,
    Invalid,
    Locked,
    NotFound,
    Unavailable,
    Unkeyed,
    Unsupported,
    __version__,
)
from ._session import Moment, Session
from ._shards import Shards, open_shards
from ._store import Store, in_memory, open
from ._values import (
    Belief,
    Branch,
    Change,
    Checkpoint,
    Claim,
    Difference,
    Entity,
    Evidence,
    Fact,
    Finding,
    Gap,
    Hypothesis,
    LogEntry,
    Merged,
    Note,
    Operation,
    PrunePlan,
    SearchHit,
    SearchPage,
    SessionInfo,
    State,
    Step,
    Verdict,
    Verification,
    Why,
    Written,
)

__all__ = [
    "Belief",
    "Branch",
    "Change",
    "Checkpoint",
    "Claim",
    "Conflict",
    "Corrupt",
    "Difference",
    "Entity",
    "Evidence",
    "Fact",
    "Finding",
    "ForgeError",
    "Forged",
    "Gap",
    "Hypothesis",
    "Internal",
    "Invalid",
    "Locked",
    "LogEntry",
    "Merged",
    "Moment",
    "Note",
    "NotFound",
    "Operation",
    "PrunePlan",
    "SearchHit",
    "SearchPage",
    "Session",
    "SessionInfo",
    "Shards",
    "State",
    "Step",
    "Store",
    "Unavailable",
    "Unkeyed",
    "Unsupported",
    "Verdict",
    "Verification",
    "Why",
    "Written",
    "__version__",
    "in_memory",
    "open",
    "open_shards",
]
