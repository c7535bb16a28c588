"""Answers tool calls that have no result, because with them every later request to a model fails.

A process that ends between a model's answer and its tools leaves such calls. In a thread that waits
before its tools, open calls are right. Therefore only calls before a later message are answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage, ToolMessage
from langchain_core.runnables import RunnableConfig

#: The id by which the reducer `add_messages` removes all messages.
REMOVE_ALL = "__remove_all__"

#: What an answer says if no result is given for its call.
UNKNOWN_RESULT = "The tool's result is unknown: the process ended before it was recorded."


def answered(
    messages: Sequence[BaseMessage], results: Mapping[str, str] | None = None
) -> list[BaseMessage] | None:
    """Returns the messages with an answer to every open call; `None` if there is none.

    An answer comes directly after the results that the message with the call has already. Calls of
    the last message, or of the one before the last results, are not open: they may still be run.
    `results` has what is known of calls, by their id.

    >>> from langchain_core.messages import AIMessage, HumanMessage
    >>> call = {"id": "c1", "name": "search", "args": {}}
    >>> waiting = [HumanMessage("find it"), AIMessage("", tool_calls=[call])]
    >>> answered(waiting) is None
    True
    >>> [one.type for one in answered([*waiting, HumanMessage("well?")]) or []]
    ['human', 'ai', 'tool', 'human']
    """
    known = results or {}
    mended: list[BaseMessage] = []
    place, changed = 0, False
    while place < len(messages):
        message = messages[place]
        mended.append(message)
        place += 1
        if not isinstance(message, AIMessage) or not message.tool_calls:
            continue
        given: set[str] = set()
        while place < len(messages):
            result = messages[place]
            if not isinstance(result, ToolMessage):
                break
            given.add(result.tool_call_id)
            mended.append(result)
            place += 1
        if place == len(messages):
            break
        for call in message.tool_calls:
            name = call["id"]
            if name is not None and name not in given:
                content = known.get(name, UNKNOWN_RESULT)
                status = "success" if name in known else "error"
                answer: Any = {"content": content, "tool_call_id": name, "status": status}
                mended.append(ToolMessage(name=call["name"], id=f"answer-{name}", **answer))
                changed = True
    return mended if changed else None


def repair(
    graph: Any,
    config: RunnableConfig,
    *,
    results: Mapping[str, str] | None = None,
    key: str = "messages",
) -> bool:
    """Answers the open tool calls of a thread by an update of its state. Returns whether it did.

    `graph` is compiled with a checkpointer, and `key` names its channel of messages, whose reducer
    is `add_messages`. A thread that waits before a node is not changed, because it may still run
    its calls.
    """
    state = graph.get_state(config)
    if state.next:
        return False
    messages = cast("Sequence[BaseMessage]", state.values.get(key) or ())
    mended = answered(messages, results)
    if mended is None:
        return False
    everything: Any = [RemoveMessage(id=REMOVE_ALL), *mended]
    graph.update_state(config, {key: everything})
    return True
