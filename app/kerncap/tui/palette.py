"""The command palette's entries: every action of the screen, and those that apply everywhere."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from kerncap.tui.actions import REGISTRY, Action, fitting, keys_of, shown_key

if TYPE_CHECKING:
    from kerncap.tui.app import KerncapApp


class ActionPalette(CommandPalette):
    """Textual's, for keys that come before its list was laid out, or where there is no room for it."""

    def _action_command_list(self, action: str) -> None:
        # Textual 8.2.8: OptionList looks the highlighted line up among those that it has laid out.
        with suppress(KeyError, IndexError):
            super()._action_command_list(action)


class ActionProvider(Provider):
    """Actions from the registry, with their keys."""

    def _entries(self) -> Iterator[tuple[str, str, partial[Coroutine[Any, Any, None]]]]:
        app = cast("KerncapApp", self.app)
        screen = self.screen
        for name, node in ((getattr(screen, "GROUP", ""), screen), ("app", app)):
            group = REGISTRY.get(name)
            for action in fitting(screen, group) if group else ():
                if action.name == "palette":
                    continue
                keys = ", ".join(map(shown_key, keys_of(group, action, app.keymap))) if group else ""
                title = f"{action.title}  ({keys})" if keys else action.title
                yield title, self._help(action), partial(self._run, action, node)

    @staticmethod
    def _help(action: Action) -> str:
        return action.help

    async def _run(self, action: Action, node: object) -> None:
        await self.app.run_action(action.method, cast("KerncapApp", node))

    async def discover(self) -> Hits:
        """All of them, while nothing is typed."""
        for title, text, command in self._entries():
            yield DiscoveryHit(Content(title), command, text=title, help=text)

    async def search(self, query: str) -> Hits:
        """Those that match."""
        matcher = self.matcher(query)
        for title, text, command in self._entries():
            score = max(matcher.match(title), matcher.match(text) * 0.8)
            if score > 0:
                yield Hit(score, matcher.highlight(title), command, text=title, help=text)
