"""Keys that come faster than they are acted on go where they are meant.

Textual hands a key to the widget that has the focus at that moment, and acts on it later: of "tab, 7" typed
at once, or sent in one piece over a slow link, the 7 would go to the widget before. Here a key waits until
the one before has been acted on, and until the screen that it opened is there.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from textual import events
from textual.app import App
from textual.message import Message

_LONGEST_WAIT_S = 1.0  # for a key that nobody says is done with
_LOOK_S = 0.005


class KeysInOrder(App[int]):
    """An application whose keys are acted on one after the other."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._typed_keys: deque[events.Key] = deque()
        self._key_under_way: events.Key | None = None
        self._key_comes_back = False  # from the widgets that had no use for it, and is not acted on yet
        self._key_since = 0.0
        self._key_timer_runs = False

    def post_message(self, message: Message) -> bool:
        """The screen hands a key on with its propagation stopped, as a widget leaves one that it took."""
        if message is self._key_under_way:
            self._key_comes_back = True
        return super().post_message(message)

    async def on_event(self, event: events.Event) -> None:
        """Keys wait for their turn; all else is as Textual has it."""
        if not isinstance(event, events.Key):
            await super().on_event(event)
        elif not event.is_forwarded:
            self._typed_keys.append(event)
            await self._take_up_keys()
        else:  # it has come up to us again: bindings are acted on here
            await super().on_event(event)
            if event is self._key_under_way:
                self._key_under_way = None
                await self._take_up_keys()

    async def _take_up_keys(self) -> None:
        while self._typed_keys and self._key_may_go():
            event = self._typed_keys.popleft()
            self._key_under_way, self._key_since = event, time.monotonic()
            self._key_comes_back = False
            await super().on_event(event)
            if not event.is_forwarded:  # a binding with priority: done with
                self._key_under_way = None
        if self._typed_keys and not self._key_timer_runs:
            self._key_timer_runs = True
            self.set_timer(_LOOK_S, self._look_at_keys)

    async def _look_at_keys(self) -> None:
        self._key_timer_runs = False
        await self._take_up_keys()

    def _key_may_go(self) -> bool:
        before = self._key_under_way
        if before is not None and before._stop_propagation and not self._key_comes_back:  # a widget took it
            before = self._key_under_way = None
        late = time.monotonic() - self._key_since > _LONGEST_WAIT_S
        return late or (before is None and self.screen.is_mounted)
