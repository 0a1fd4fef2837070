"""The captured kernel's code object, to be read for types, arguments and variables."""

from __future__ import annotations

from kerncap.core.capture.records import Capture
from kerncap.core.code.codeobject import CodeObject
from kerncap.core.code.reading import read_code_object


def captured_code(capture: Capture) -> CodeObject:
    """Raises DamagedCaptureError where the file's hash is not that of what was captured: what is read out of
    other bytes would be wrong, or no error that says why. CodeObjectError where it is right and cannot be
    read.
    """
    capture.read_code()
    return read_code_object(capture.code_path())
