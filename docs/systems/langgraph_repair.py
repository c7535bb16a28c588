"""Mend the message history of a LangGraph thread with `forge thread sanitize`."""

import json
import subprocess

from langchain_core.messages import RemoveMessage, messages_from_dict, messages_to_dict
from langgraph.graph.message import REMOVE_ALL_MESSAGES


def repair(graph, config, forge="forge", key="messages"):
    """Make the thread such that its provider takes it. Return the actions taken; none if nothing was wrong."""
    messages = graph.get_state(config).values.get(key, [])
    done = subprocess.run(
        [forge, "thread", "sanitize", "-", "--json"],
        input=json.dumps(messages_to_dict(messages)),
        capture_output=True,
        text=True,
        check=True,
    )
    mended = json.loads(done.stdout)
    if mended["actions"]:
        history = messages_from_dict(mended["messages"])
        graph.update_state(config, {key: [RemoveMessage(id=REMOVE_ALL_MESSAGES), *history]})
    return mended["actions"]
