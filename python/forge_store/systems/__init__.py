"""Workflow runs, the progress of pipelines, programs of several agents, and message threads.

Each is kept in a session of its own kind, so it has a history, and no other session is affected. It
begins with its first write. Before that, there is nothing to resume or to load.

>>> run = Run(forge_store.in_memory(), "postings-7")
>>> run.save_checkpoint("posting-1", "summary", "Three paragraphs.", next="skills")
>>> run.checkpoint_exists("posting-1", "summary")
True
>>> [item["next"] for item in run.resume_from_checkpoints()]
['skills']
"""

from __future__ import annotations

import json
from datetime import tzinfo
from typing import Any, Callable, Iterable, Mapping

from .. import _forge
from .._store import Store, native_of
from .._values import Checkpoint, json_text, listed, refusal
from .importer import ImportedRows, PassedOver, import_progress_rows, import_run_rows

__all__ = ["ImportedRows", "PassedOver", "Program", "Progress", "Run", "Thread"]


def _name(known: str | int) -> str:
    """The name of an item or a step, which a number can be. ``None`` would be the name 'None'."""
    if known is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise TypeError("None is no name of an item or a step: give a text or a number")
    return str(known)


class Run:
    """A workflow run: many items, each taken through steps, with the output of every step.

    A finished step and its output are recorded in one write, so a resumed item has all outputs.
    """

    def __init__(self, store: Store, key: str) -> None:
        self._native = _forge.Run(native_of(store), key)

    def start(self, input: Any = None) -> None:
        """Starts the run, or continues one that had ended. An input that is a list of objects with
        an ``item`` creates these items."""
        self._native.start(None if input is None else {"input": input})

    def save_checkpoint(
        self,
        item: str | int,
        step: str | int,
        output: str,
        *,
        next: str | int | None = None,
        terminal: bool = False,
        order: int | None = None,
        name: str | None = None,
        data: dict[str, Any] | None = None,
    ) -> None:
        """Records that a step of an item is finished, and what the item does next (``terminal``:
        nothing). Repeating it changes nothing."""
        if terminal and next is not None:
            what = f"the step '{next}' is next, and with 'terminal' nothing is"
            raise refusal(_forge.Invalid, what, "give only one of 'next' or 'terminal'")
        after = None if next is None else str(next)
        self._native.record(_name(item), _name(step), output, after, terminal, order, name, data)

    def get_conversation_output(self, item: str | int, step: str | int) -> str:
        """The output of a step of an item; raises ``NotFound`` if it is not finished."""
        return self._native.output(_name(item), _name(step))

    def get_multiple_outputs(
        self, item: str | int, steps: Iterable[str | int]
    ) -> dict[str, str | None]:
        """The outputs of several steps, ``None`` for one that is not finished."""
        names = [_name(step) for step in listed("steps", steps)]
        return dict(zip(names, self._native.outputs(_name(item), names)))

    def get_all_outputs(self, item: str | int) -> dict[str, str]:
        """All outputs of an item by step, in the order of completion."""
        return dict(self._native.load(_name(item))["outputs"])

    def checkpoint_exists(self, item: str | int, step: str | int) -> bool:
        """Whether a step of an item is finished, so that it must not be done again."""
        return self._native.exists(_name(item), _name(step))

    def resume_from_checkpoints(self) -> list[dict[str, Any]]:
        """The items that have steps left, each with its position, data and all its outputs."""
        return [item for item in self._native.resume() if item["active"]]

    def end(self, error: str | None = None) -> None:
        """Ends the run: finished, or failed with this reason."""
        self._native.end(error)

    @staticmethod
    def import_rows(
        store: Store,
        rows: Iterable[Any],
        *,
        time_zone: tzinfo | None = None,
        report: Callable[[PassedOver], object] | None = None,
    ) -> ImportedRows:
        """Takes over rows of a table ``posting_state_checkpoints``, in the order of their
        ``checkpoint_id``. The key of a run is the ``workflow_run_id``, an item is a posting, and a
        step a conversation. Each row is one revision, at the time of the row.

        A row is a mapping or a named tuple. ``time_zone`` is that of times without one. What was
        imported before is left as it is. A row that lacks something, or contradicts itself, is
        passed over; ``report`` is called with each of these instead of collecting them.
        """
        return import_run_rows(store, rows, time_zone=time_zone, report=report)


class Progress:
    """How far one execution of a review's pipeline has come: one document, saved again and again.

    >>> progress = Progress(forge_store.in_memory(), "review-1", "monday")
    >>> progress.upsert({"batch_info": {"current_batch": 3, "total_batches": 9}}, stage="fetch")
    >>> progress.resume("fetch")["decision"]
    'go'
    """

    def __init__(self, store: Store, review: str, execution: str) -> None:
        self._native = _forge.Progress(native_of(store), review, execution)

    def upsert(self, document: dict[str, Any], *, stage: str | None = None) -> None:
        """Replaces the document; a malformed one is refused."""
        if stage is None and "stage" not in document:
            what = "the document names no stage"
            raise refusal(_forge.Invalid, what, "add a field 'stage', or give stage='...'")
        self._native.save(document, stage)

    @property
    def document(self) -> dict[str, Any] | None:
        """The current document."""
        return self._native.document()

    def validate(self) -> dict[str, list[str]]:
        """What prevents resuming (``refusals``), and what a person should know (``warnings``)."""
        return self._native.validate()

    def resume(self, stage: str, *, force: bool = False) -> dict[str, Any]:
        """Whether this stage resumes, and where: its ``decision`` is ``go``, ``nothing`` or
        ``refused``; ``force`` turns what prevents it into warnings."""
        return self._native.resume(stage, force)

    @staticmethod
    def import_rows(
        store: Store,
        rows: Iterable[Any],
        *,
        time_zone: tzinfo | None = None,
        report: Callable[[PassedOver], object] | None = None,
    ) -> ImportedRows:
        """Takes over rows of a table ``workflow_state``, in the order of their ``updated_at``. A
        row is the document of the execution with its ``review_id`` and ``execution_id``. The rest
        is as with `Run.import_rows`."""
        return import_progress_rows(store, rows, time_zone=time_zone, report=report)


class Program:
    """A program of several agents that save at different rates. An agent's name is that of its
    session."""

    def __init__(self, store: Store, name: str) -> None:
        self._native = _forge.Program(native_of(store), name)

    def save_checkpoint(
        self, agents: Mapping[str, str | Checkpoint], message: str | None = None
    ) -> None:
        """Records where these agents are, each as a moment of its session: ``HEAD`` is its last
        checkpoint or revision. Other agents keep theirs."""
        moments = {
            agent: at.id if isinstance(at, Checkpoint) else at
            for agent, at in dict(agents).items()
        }
        self._native.save(moments, message)

    def latest_checkpoints(self, *, exact: bool = False) -> dict[str, Any]:
        """Where each agent resumes: at its latest checkpoint, but never one older than the
        program's; with ``exact`` at the program's. ``missing`` has the agents that cannot."""
        return self._native.resume(exact)


def _message(known: Mapping[str, Any]) -> str:
    if not isinstance(known, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        what = f"a message is a dictionary, and not of type {type(known).__name__}"
        next = "append a list with append(*messages), and an SDK's object as object.model_dump()"
        raise TypeError(f"{what}: {next}")
    return json_text("a message", dict(known))


class Thread:
    """The messages of an LLM agent, in the form of its provider.

    >>> thread = Thread(forge_store.in_memory(), "chat-1")
    >>> call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    >>> thread.append({"role": "user", "content": "go"})
    1
    >>> thread.append({"role": "assistant", "content": None, "tool_calls": [call]})
    2
    >>> [message["role"] for message in thread.load()]  # as the provider accepts them
    ['user', 'assistant', 'tool']
    >>> len(thread.load(sanitize=False))
    2
    """

    def __init__(self, store: Store, name: str) -> None:
        self._native = _forge.Thread(native_of(store), name)

    def append(self, *messages: Mapping[str, Any]) -> int:
        """Appends messages, all or none; returns how many there are now."""
        return self._native.append([_message(message) for message in messages])

    def replace(self, *messages: Mapping[str, Any]) -> int:
        """Replaces all messages in one write, such as by a summary; returns how many there are.

        >>> thread = Thread(forge_store.in_memory(), "chat-1")
        >>> thread.append({"role": "user", "content": "go"}, {"role": "user", "content": "well?"})
        2
        >>> thread.replace({"role": "user", "content": "go; well?"})
        1
        """
        return self._native.append([_message(message) for message in messages], replace=True)

    def load(self, *, sanitize: bool = True) -> list[dict[str, Any]]:
        """The messages, repaired so that their provider accepts them; nothing is written."""
        texts = self._native.sanitized() if sanitize else self._native.messages()
        return [json.loads(text) for text in texts]

    def sanitize(self) -> list[dict[str, Any]]:
        """Repairs the thread itself; what it was before stays in its history."""
        return [json.loads(text) for text in self._native.sanitize()]
