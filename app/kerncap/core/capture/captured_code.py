"""The captured kernel's code object, to be read for types, arguments and variables."""

from __future__ import annotations

from kerncap.core.capture.records import Capture
from kerncap.core.code.codeobject import CodeObject
from kerncap.core.code.reading import code_object_of


def captured_code(capture: Capture) -> CodeObject:
    """Raises DamagedCaptureError where the file's hash is not that of what was captured: what is read out of
    other bytes would be wrong, or no error that says why. CodeObjectError where it is right and cannot be
    read.
    """
    return code_object_of(memoryview(capture.read_code()), str(capture.code_path()))
