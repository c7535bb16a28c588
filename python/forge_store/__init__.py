"""A temporal debugging state store with time travel."""

from ._forge import (
    Conflict,
    Corrupt,
    Forged,
    ForgeError,
    Internal,
    Invalid,
    Locked,
    NotFound,
    Store,
    Unavailable,
    Unkeyed,
    Unsupported,
    __version__,
)

open = Store.open
