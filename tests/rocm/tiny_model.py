"""Language models of random weights, small enough for a simulated GPU, as GGUF files."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

VOCABULARY = 512
_PLAIN = 259  # token ids below are the three special ones and the 256 bytes
_WIDTH, _LAYERS, _HEADS, _KV_HEADS, _FF = 256, 2, 4, 2, 512


def write_model(path: Path, experts: int = 0, seed: int = 1) -> None:
    """A llama of 2 layers with float16 weights; with `experts`, a mixture of that many, of which 2 are used.

    The ids of bytes are never the likeliest: their rows of the output matrix are zero, so that whatever is
    generated is text.
    """
    random = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(512)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(_LAYERS)
    writer.add_feed_forward_length(_FF)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)
    writer.add_vocab_size(VOCABULARY)
    if experts:
        writer.add_expert_count(experts)
        writer.add_expert_used_count(2)
    _add_vocabulary(writer)

    def matrix(name: str, *shape: int, scale: float | None = None) -> None:
        values = random.standard_normal(shape) * (shape[-1] ** -0.5 if scale is None else scale)
        if name == "output.weight":
            values[:_PLAIN] = 0
        writer.add_tensor(name, values.astype(np.float16))

    def norm(name: str) -> None:
        writer.add_tensor(name, (1 + 0.1 * random.standard_normal(_WIDTH)).astype(np.float32))

    matrix("token_embd.weight", VOCABULARY, _WIDTH, scale=1.0)
    matrix("output.weight", VOCABULARY, _WIDTH, scale=0.25)
    norm("output_norm.weight")
    kv_width = _WIDTH // _HEADS * _KV_HEADS
    for layer in range(_LAYERS):
        name = f"blk.{layer}."
        norm(name + "attn_norm.weight")
        norm(name + "ffn_norm.weight")
        matrix(name + "attn_q.weight", _WIDTH, _WIDTH)
        matrix(name + "attn_k.weight", kv_width, _WIDTH)
        matrix(name + "attn_v.weight", kv_width, _WIDTH)
        matrix(name + "attn_output.weight", _WIDTH, _WIDTH)
        if experts:
            matrix(name + "ffn_gate_inp.weight", experts, _WIDTH)
        each = (experts,) if experts else ()
        suffix = "_exps.weight" if experts else ".weight"
        matrix(f"{name}ffn_gate{suffix}", *each, _FF, _WIDTH)
        matrix(f"{name}ffn_up{suffix}", *each, _FF, _WIDTH)
        matrix(f"{name}ffn_down{suffix}", *each, _WIDTH, _FF)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_vocabulary(writer: gguf.GGUFWriter) -> None:
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    types = [gguf.TokenType.UNKNOWN, *[gguf.TokenType.CONTROL] * 2, *[gguf.TokenType.BYTE] * 256]
    tokens += [f"\u2581w{index}" for index in range(_PLAIN, VOCABULARY)]
    types += [gguf.TokenType.NORMAL] * (VOCABULARY - _PLAIN)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([-float(index) for index in range(VOCABULARY)])
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)


def write_exact(quantized: Path, path: Path) -> None:
    """The same weights as a quantised model's, in float32: nothing of its arithmetic is quantised."""
    reader = gguf.GGUFReader(quantized)
    writer = gguf.GGUFWriter(path, "llama")
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name in (
            gguf.Keys.General.ARCHITECTURE,
            "general.file_type",
        ):
            continue
        kind = field.types[0]
        writer.add_key_value(
            field.name, field.contents(), kind, field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        )
    for tensor in reader.tensors:
        writer.add_tensor(
            tensor.name, gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
