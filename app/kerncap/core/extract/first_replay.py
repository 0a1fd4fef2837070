"""The first replay of a fresh capture: the captured kernel's own, against the program's result.

Its process starts while the source is written. Filling memory, it holds every block of the memory files
against its checksum: they are not read once more for that.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any

from kerncap.core.capture.records import Capture
from kerncap.core.device.devices import Device
from kerncap.core.errors import DamagedCaptureError, KerncapError
from kerncap.core.judge.validate import Validator
from kerncap.core.replay.replayer import Replayer

_POLL_S = 0.05
_KEPT = (
    "verdict",
    "against",
    "compared_bytes",
    "written_bytes",
    "masked_bytes",
    "skipped_bytes",
    "seconds",
    "reason",
)


class FirstReplay:
    """`with FirstReplay(capture, device) as first:` starts it; the block's end ends it."""

    def __init__(self, capture: Capture, device: Device) -> None:
        self._capture = capture
        self._replayer: Replayer | None = None
        self._problem: BaseException | None = None
        try:
            self._replayer = Replayer(capture, device)
        except KerncapError as error:
            self._problem = error
        self._thread = threading.Thread(target=self._start, name="kerncap-first-replay")

    def __enter__(self) -> FirstReplay:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._thread.is_alive():  # given up; it may be about to start the process
            if self._replayer is not None:
                self._replayer.kill()
            self._thread.join(_POLL_S)
        if self._replayer is not None:
            self._replayer.close()

    def _start(self) -> None:
        try:
            if self._replayer is not None:
                self._replayer.start()
        except BaseException as error:  # raised where it is waited for
            self._problem = error

    def verify(self) -> None:
        """Waits until the memory files are known to be whole. Raises DamagedCaptureError."""
        self._thread.join()
        if isinstance(self._problem, DamagedCaptureError):
            raise self._problem
        if self._problem is not None:  # no replay here, so nobody has read them
            self._capture.verify()

    def baseline(self) -> dict[str, Any]:
        """The verdict and its figures, as the manifest keeps them. Raises DamagedCaptureError."""
        try:
            if self._problem is not None:
                raise self._problem
            assert self._replayer is not None
            with Validator(self._capture, replayer=self._replayer) as validator:
                result = validator.validate().to_json()
        except DamagedCaptureError:
            raise
        except KerncapError as error:
            # The capture is whole all the same; what it proves is open until it can be replayed.
            return {"verdict": "INCONCLUSIVE", "reason": error.message}
        baseline = {key: result[key] for key in _KEPT if key in result}
        bad = [region for region in result.get("regions", ()) if region.get("mismatches")]
        if bad:
            baseline["first_mismatch"] = bad[0]
        return baseline
