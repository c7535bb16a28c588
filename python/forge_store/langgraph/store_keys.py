"""Namespaces and keys of a `BaseStore` as keys of a memory, and the conditions that choose them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from langgraph.store.base import InvalidNamespaceError, MatchCondition

from .. import Invalid
from .._values import refusal

#: Begins the keys of the values, of their times of expiry, and of their vectors.
ITEM, EXPIRY, VECTOR = "item", "expiry", "vector"

Address = tuple[tuple[str, ...], str]


def prefix_of(kind: str, namespace: Iterable[str]) -> str:
    """What the keys of this kind in a namespace begin with."""
    if isinstance(namespace, str):
        raise InvalidNamespaceError(f"the namespace {namespace!r} is a text; give a tuple of texts")
    for label in namespace:
        if not isinstance(label, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            what = f"the label {label!r} of the namespace {namespace} is a {type(label).__name__}"
            raise InvalidNamespaceError(f"{what}; give a text")
    return "/".join([kind, *map(_escaped, namespace), ""])


def key_of(kind: str, address: Address) -> str:
    """The key of this kind for an item."""
    return prefix_of(kind, address[0]) + _escaped(address[1])


def address_of(key: str) -> Address:
    """The namespace and the key of an item."""
    _, *labels, last = [part.replace("%2F", "/").replace("%25", "%") for part in key.split("/")]
    return tuple(labels), last


def _escaped(label: str) -> str:
    return label.replace("%", "%25").replace("/", "%2F")


def is_match(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    """Whether a namespace begins or ends as the condition says; ``*`` is any label."""
    path = tuple(condition.path)
    if condition.match_type not in ("prefix", "suffix"):
        what = f"the match type {condition.match_type!r} is unknown"
        raise refusal(Invalid, what, "use 'prefix' or 'suffix'")
    if len(namespace) < len(path):
        return False
    is_prefix = condition.match_type == "prefix"
    part = namespace[: len(path)] if is_prefix else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part))


def is_chosen(value: Any, wanted: Any) -> bool:
    """Whether a value is equal to this one, or fulfils its operators (``{"$gt": 3}``).

    A map compares only the fields that it names.
    """
    if isinstance(wanted, Mapping):
        fields = cast("Mapping[str, Any]", wanted)
        if any(name.startswith("$") for name in fields):
            return all(_is_compared(value, name, other) for name, other in fields.items())
        if not isinstance(value, Mapping):
            return False
        known = cast("Mapping[str, Any]", value)
        return all(is_chosen(known.get(name), other) for name, other in fields.items())
    if isinstance(wanted, (list, tuple)):
        if not isinstance(value, (list, tuple)):
            return False
        items, others = cast("list[Any]", value), cast("list[Any]", wanted)
        return len(items) == len(others) and all(map(is_chosen, items, others))
    return bool(value == wanted)


def _is_compared(value: Any, operator: str, other: Any) -> bool:
    if operator == "$eq":
        return bool(value == other)
    if operator == "$ne":
        return bool(value != other)
    if operator not in ("$gt", "$gte", "$lt", "$lte"):
        what = f"the operator {operator!r} is unknown"
        raise refusal(Invalid, what, "use $eq, $ne, $gt, $gte, $lt or $lte")
    numbers = all(isinstance(one, (int, float)) for one in (value, other))
    if not numbers and not (isinstance(value, str) and isinstance(other, str)):
        # Values of different types have no order.
        return False
    if operator in ("$gt", "$gte"):
        return bool(value > other or (operator == "$gte" and value == other))
    return bool(value < other or (operator == "$lte" and value == other))
