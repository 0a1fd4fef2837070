"""Finding a kernel's source and how it was compiled."""

from kerncap.core.errors import UsageError
from kerncap.source.finding import LANGUAGES, Definition, SourceFinding, SourceRequest
from kerncap.source.hip.find import find_hip

__all__ = ["LANGUAGES", "Definition", "SourceFinding", "SourceRequest", "find_source"]


def find_source(request: SourceRequest, language: str | None = None) -> SourceFinding:
    """The source of a kernel; `language` (one of LANGUAGES) is what the user says it is, else HIP is looked
    for.

    A finding without a command says why in `reason`. Raises UsageError on a language that has no finder.
    """
    if language is not None and language not in LANGUAGES:
        raise UsageError(f"language {language!r} is not supported; {', '.join(LANGUAGES)} is")
    finding = find_hip(request)
    if finding.command is None and language is None:
        return SourceFinding("unknown", None, finding.definition, reason=finding.reason, notes=finding.notes)
    return finding
