"""Finding a kernel's source and how it was compiled."""

from kerncap.core.errors import UsageError
from kerncap.source.cuda.find import find_cuda
from kerncap.source.finding import LANGUAGES, Definition, SourceFinding, SourceRequest
from kerncap.source.hip.find import find_hip

# How Tensile names its kernels: by the indices of the contraction.
_TENSILE = "Cijk_"
_TENSILE_REASON = (
    "Tensile generated this kernel as assembly when the library (rocBLAS, hipBLASLt) was built: there is no "
    "HIP source of it. A code object of your own that defines the same kernel can be replayed and validated."
)
# How Inductor names its Triton kernels.
_INDUCTOR = "triton_"
_INDUCTOR_REASON = (
    "Inductor and Triton made this kernel of Python when the program ran. Its Python source was not seen: "
    "it was compiled before kerncap watched, or Inductor took the code object from a cache of its own. A "
    "code object of your own that defines the same kernel can be replayed and validated."
)

__all__ = ["LANGUAGES", "Definition", "SourceFinding", "SourceRequest", "find_source"]


def _language(finding: SourceFinding) -> str:
    return finding.language if finding.language == "library" else "unknown"


def find_source(request: SourceRequest, language: str | None = None) -> SourceFinding:
    """The source of a kernel; `language` (one of LANGUAGES) is what the user says it is, else the
    language of the device is looked for.

    A finding without a command says why in `reason`. Raises UsageError on a language that has no finder.
    """
    if language is not None and language not in LANGUAGES:
        raise UsageError(f"language {language!r} is not supported; {', '.join(LANGUAGES)} is")
    if language is None and request.symbol.startswith(_TENSILE):
        return SourceFinding("tensile", None, None, reason=_TENSILE_REASON)
    if language is None and request.symbol.startswith(_INDUCTOR):
        return SourceFinding("inductor", None, None, reason=_INDUCTOR_REASON)
    cuda = request.target.triple.startswith("nvptx")
    if language is not None and (language == "cuda") != cuda:
        made = "CUDA C++" if cuda else "HIP"
        raise UsageError(f"language {language!r}: a kernel for {request.target.arch} is made of {made}")
    finding = find_cuda(request) if cuda else find_hip(request)
    if finding.command is None and language is None:
        return SourceFinding(
            _language(finding), None, finding.definition, reason=finding.reason, notes=finding.notes
        )
    return finding
