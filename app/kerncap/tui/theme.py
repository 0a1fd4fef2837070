"""kerncap's own themes; every theme of Textual can be named in the configuration as well.

Colours carry no meaning that is not also in a word or a sign: with NO_COLOR, on 8 colours and for
colour-blind eyes the screens say the same.
"""

from __future__ import annotations

from textual.theme import Theme

ANSI_THEME = "ansi-dark"

DARK = Theme(
    name="kerncap-dark",
    primary="#5fafd7",
    secondary="#87afaf",
    accent="#d7af5f",
    warning="#d7af5f",
    error="#ff6f6f",
    success="#87d787",
    foreground="#d0d0d0",
    background="#121212",
    surface="#1c1c1c",
    panel="#262626",
    dark=True,
    variables={
        "scrollbar": "#3a3a3a",
        "scrollbar-hover": "#5fafd7",
        "scrollbar-active": "#5fafd7",
        "scrollbar-background": "#1c1c1c",
        "scrollbar-background-hover": "#1c1c1c",
        "scrollbar-background-active": "#1c1c1c",
        "scrollbar-corner-color": "#1c1c1c",
    },
)

LIGHT = Theme(
    name="kerncap-light",
    primary="#005f87",
    secondary="#5f8787",
    accent="#875f00",
    warning="#875f00",
    error="#af0000",
    success="#005f00",
    foreground="#1c1c1c",
    background="#ffffff",
    surface="#eeeeee",
    panel="#e4e4e4",
    dark=False,
    variables={
        "scrollbar": "#bcbcbc",
        "scrollbar-hover": "#005f87",
        "scrollbar-active": "#005f87",
        "scrollbar-background": "#eeeeee",
        "scrollbar-background-hover": "#eeeeee",
        "scrollbar-background-active": "#eeeeee",
        "scrollbar-corner-color": "#eeeeee",
    },
)

THEMES = (DARK, LIGHT)
