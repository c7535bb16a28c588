"""The times at which items of a store expire, and the thread that removes them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from datetime import datetime, timedelta, timezone
from typing import Any

_log = logging.getLogger(__name__)


def expiry_after(minutes: float) -> dict[str, Any]:
    """What is stored for an item that expires after these minutes."""
    at = datetime.now(timezone.utc) + timedelta(minutes=minutes)
    return {"at": at.isoformat(), "minutes": minutes}


def is_expired(expiry: Any) -> bool:
    """Whether this time has passed; an item without one never expires."""
    return expiry is not None and datetime.fromisoformat(expiry["at"]) <= datetime.now(timezone.utc)


class ExpirySweeper:
    """A thread that calls `sweep` repeatedly."""

    def __init__(self, sweep: Callable[[], int]) -> None:
        self._sweep = sweep
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._done: Future[None] = Future()

    def start(self, minutes: float) -> Future[None]:
        """Starts the thread; the future is done when the thread ends."""
        if self._thread is not None and self._thread.is_alive():
            return self._done
        self._stopped, self._done = threading.Event(), Future()
        arguments = (minutes, self._stopped, self._done)
        name = "forge-store-ttl"
        self._thread = threading.Thread(target=self._run, args=arguments, name=name, daemon=True)
        self._thread.start()
        return self._done

    def stop(self, timeout: float | None = None) -> bool:
        """Ends the thread; ``False`` if it has not ended by then."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(timeout)
            if self._thread.is_alive():
                return False
            self._thread = None
        return True

    def _run(self, minutes: float, stopped: threading.Event, done: Future[None]) -> None:
        while not stopped.wait(minutes * 60):
            try:
                self._sweep()
            except Exception as error:
                # The next turn may succeed, for example when the disk has room again.
                _log.warning("expired items were not removed: %s", error)
        done.set_result(None)
