"""The terminal UI: a front end over kerncap.core, on Textual. `kerncap.core` never imports it."""
