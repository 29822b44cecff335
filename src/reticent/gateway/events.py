"""Events of a gateway, and those who subscribe to them."""

import threading
from collections.abc import Callable
from typing import Any

Event = dict[str, Any]


class Events:
    """Subscribers of one gateway, called in the thread where an event happens, under the gateway's lock.

    So once a subscription has ended no call of it is under way.
    """

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self._subscribers: list[Callable[[Event], None]] = []

    def subscribe(self, callback: Callable[[Event], None]) -> Callable[[], None]:
        """Call back on every event from now on; returns a function that ends the subscription."""
        with self._lock:
            self._subscribers.append(callback)

        def unsubscribe() -> None:
            with self._lock:
                if callback in self._subscribers:
                    self._subscribers.remove(callback)

        return unsubscribe

    def tell(self, event: Event) -> None:
        """Call every subscriber, one after the other."""
        for callback in tuple(self._subscribers):
            callback(event)
