"""Debian's own build of llama.cpp on the simulated gfx90a: its results, and its kernels taken out of it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from rocm.llama import CPU, GPU, environment, program, serve
from rocm.prefix import Prefix
from rocm.tiny_model import VOCABULARY, write_exact, write_model
from rocm.watching import Kerncap

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

MODELS = [("dense", "q8_0"), ("dense", "q4_K"), ("experts", "q8_0"), ("experts", "q4_K")]


@pytest.fixture(scope="module")
def models(prefix: Prefix, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    """By kind and quantisation; beside NAME.gguf lies NAME.exact.gguf with the same weights in float32."""
    folder = tmp_path_factory.mktemp("models")
    found = {}
    for kind, experts in (("dense", 0), ("experts", 8)):
        write_model(folder / f"{kind}.gguf", experts)
        for quantisation in ("q8_0", "q4_K"):
            path = folder / f"{kind}-{quantisation}.gguf"
            words = [str(prefix.root / "usr/bin/llama-quantize"), str(folder / f"{kind}.gguf"), str(path)]
            done = subprocess.run(
                [*words, quantisation, "1"],
                env=environment(prefix),
                capture_output=True,
                text=True,
                timeout=120,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            write_exact(path, path.with_suffix(".exact.gguf"))
            found[kind, quantisation] = path
    return found


def prompts() -> list[list[int]]:
    random = np.random.default_rng(2)
    return [[1, *random.integers(3, VOCABULARY, length).tolist()] for length in (1, 4, 9, 17, 33)]


@pytest.mark.parametrize("model", MODELS, ids="-".join)
def test_logits_and_tokens_are_as_good_as_those_of_its_cpu_backend(
    prefix: Prefix, models: dict[tuple[str, str], Path], model: tuple[str, str]
) -> None:
    """Both backends quantise activations, each in its own way. What that costs the CPU's, against the same
    weights in float32, is the tolerance.
    """
    path = models[model]
    logits = {}
    tokens = {}
    for name, file, device in (
        ("exact", path.with_suffix(".exact.gguf"), CPU),
        ("cpu", path, CPU),
        ("gpu", path, GPU),
    ):
        with serve(prefix, file, device) as server:
            logits[name] = np.array([server.log_probabilities(prompt) for prompt in prompts()])
            tokens[name] = server.greedy(prompts()[2], 16)
    error = {name: np.sqrt(np.mean((logits[name] - logits["exact"]) ** 2)) for name in ("cpu", "gpu")}
    assert 0 < error["gpu"] < 2 * error["cpu"], error
    assert error["gpu"] < 0.05 * logits["exact"].std()
    # Until two tokens are so near to each other that the CPU's own error decides.
    for (on_cpu, lead), (on_gpu, _) in zip(tokens["cpu"], tokens["gpu"], strict=True):
        if on_cpu != on_gpu:
            assert lead < 10 * error["cpu"], (tokens["cpu"], tokens["gpu"])
            break


def test_its_benchmark_and_its_completion_run(prefix: Prefix, models: dict[tuple[str, str], Path]) -> None:
    bench = [*program(prefix, "llama-bench", models["dense", "q8_0"]), "-p", "8", "-n", "4", "-r", "1"]
    done = subprocess.run(
        [*bench, "-o", "json"], env=environment(prefix), capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [(row["n_prompt"], row["n_gen"]) for row in rows] == [(8, 0), (0, 4)]
    assert all(row["avg_ts"] > 0 and "ROCm" in row["backends"] for row in rows)
    complete = program(prefix, "llama-completion", models["experts", "q4_K"])
    done = subprocess.run(
        [*complete, "-p", "w300 w301", "-n", "8", "--temp", "0", "-no-cnv", "--no-warmup", "--ignore-eos"],
        env=environment(prefix),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) >= 8


# A model, and what a kernel of its token generation is named.
CASES = [
    (("dense", "q8_0"), "mul_mat_vec_q<(ggml_type)8, 1, true"),
    (("dense", "q8_0"), "quantize_q8_1"),
    (("dense", "q8_0"), "flash_attn_tile"),
    (("dense", "q4_K"), "mul_mat_vec_q<(ggml_type)12, 1, true"),
    (("experts", "q8_0"), "mul_mat_vec_q<(ggml_type)8"),
]


@pytest.mark.parametrize(("model", "wanted"), CASES)
def test_its_kernels_are_taken_out_of_it(
    prefix: Prefix,
    models: dict[tuple[str, str], Path],
    tmp_path: Path,
    model: tuple[str, str],
    wanted: str,
) -> None:
    kerncap = Kerncap(prefix, tmp_path, "sim:gfx90a")
    command = [*program(prefix, "llama-bench", models[model]), "-p", "0", "-n", "8", "-r", "1"]
    report = kerncap.document("profile", "--", *command)
    assert report["dispatches"] == report["timed"] > 300
    assert report["lost"] == report["rejected"] == report["pending"] == 0
    assert {kernel["kind"] for kernel in report["kernels"]} == {"hip", "runtime"}
    kernel = next(kernel for kernel in report["kernels"] if wanted in kernel["name"])
    last = str(kernel["calls"])
    extracted = kerncap.document("extract", kernel["id"], "--dispatch", last, "-o", "out", "--", *command)
    assert extracted["dispatch"] == kernel["calls"]
    assert extracted["changed_bytes"] > 0
    assert extracted["source"]["variant"] is None
    assert extracted["source"]["reason"]
    assert extracted["baseline"]["verdict"] == "IDENTICAL", extracted
    assert kerncap.document("validate", "out")["verdict"] == "IDENTICAL"
    assert kerncap.document("replay", "out", "--iterations", "3")["median_ns"] > 0
