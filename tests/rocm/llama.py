"""Debian's llama.cpp on a model: its programs' command lines, and what its server answers."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kerncap.core.native import SIM_RUNTIME, native_path
from rocm.prefix import Prefix
from rocm.tiny_model import VOCABULARY

GPU = "ROCm0"
CPU = "none"
_START_LIMIT_S = 60.0


def program(prefix: Prefix, name: str, model: Path, device: str = GPU) -> list[str]:
    """The command of one of its programs with all layers on `device`."""
    words = [str(prefix.root / "usr/bin" / name), "-m", str(model), "-t", "1"]
    return [*words, "-dev", device, "-ngl", "99" if device == GPU else "0"]


def environment(prefix: Prefix) -> dict[str, str]:
    """Of a program on sim:gfx90a, without kerncap's interposer."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("KERNCAP_")}
    clean.pop("LD_PRELOAD", None)
    runtime = str(native_path(SIM_RUNTIME).parent)
    return {**clean, **prefix.environment(), "KERNCAP_SIM": "gfx90a", "LD_LIBRARY_PATH": runtime}


@dataclass
class Server:
    """A running llama-server."""

    port: int

    def _ask(self, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/completion",
            json.dumps({"temperature": 0, "cache_prompt": False, "return_tokens": True, **body}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            found = json.load(answer)
        assert isinstance(found, dict)
        return found

    def log_probabilities(self, prompt: Sequence[int]) -> NDArray[np.float64]:
        """Of every token after `prompt`: logits, up to a constant."""
        answer = self._ask({"prompt": list(prompt), "n_predict": 1, "n_probs": VOCABULARY})
        found = np.full(VOCABULARY, np.nan)
        for entry in answer["completion_probabilities"][0]["top_logprobs"]:
            found[entry["id"]] = entry["logprob"]
        assert not np.isnan(found).any()
        return found

    def greedy(self, prompt: Sequence[int], count: int) -> list[tuple[int, float]]:
        """The likeliest tokens one after the other, each with how far the second likeliest was behind."""
        answer = self._ask({"prompt": list(prompt), "n_predict": count, "n_probs": 2, "ignore_eos": True})
        found = []
        for step in answer["completion_probabilities"]:
            best, second = step["top_logprobs"][:2]
            found.append((int(step["id"]), float(best["logprob"] - second["logprob"])))
        return found


@contextmanager
def serve(prefix: Prefix, model: Path, device: str) -> Iterator[Server]:
    """llama-server with `model` on `device`, until the block ends."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = program(prefix, "llama-server", model, device)
    words += ["--port", str(port), "-c", "256", "-np", "1", "--no-warmup", "--no-webui"]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            words, env=environment(prefix), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            deadline = time.monotonic() + _START_LIMIT_S
            while not _healthy(port):
                log.seek(0)
                assert process.poll() is None, f"llama-server ended: {log.read()[-2000:]}"
                assert time.monotonic() < deadline, "llama-server is not ready"
                time.sleep(0.05)
            yield Server(port)
        finally:
            process.terminate()
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
