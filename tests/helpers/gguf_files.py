"""A Llama model written as a GGUF file, the way llama.cpp's converter lays it out."""

import json
from pathlib import Path

import gguf
import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from tests.helpers.tokenizers import tiny_tokenizer

_LAYER_NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def write_gguf(path: Path, model: LlamaForCausalLM) -> Path:
    """Weights in F32, the tiny tokenizer beside them."""
    writer = gguf.GGUFWriter(path, "llama")
    config = model.config
    writer.add_name("tiny")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    _add_tokenizer(writer)
    for name, tensor in model.state_dict().items():
        writer.add_tensor(_gguf_name(name), _permuted(name, tensor, model).numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_tokenizer(writer: gguf.GGUFWriter) -> None:
    tokenizer = tiny_tokenizer()
    tokens = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    merges = tokenizer.backend_tokenizer.to_str()
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in {"<s>", "</s>"} else 1 for token in tokens])
    writer.add_token_merges([" ".join(pair) for pair in json.loads(merges)["model"]["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)


def _gguf_name(name: str) -> str:
    outer = {
        "model.embed_tokens.weight": "token_embd.weight",
        "model.norm.weight": "output_norm.weight",
        "lm_head.weight": "output.weight",
    }
    if name in outer:
        return outer[name]
    _, _, layer, *inner, kind = name.split(".")
    return f"blk.{layer}.{_LAYER_NAMES['.'.join(inner)]}.{kind}"


def _permuted(name: str, tensor: torch.Tensor, model: LlamaForCausalLM) -> torch.Tensor:
    """llama.cpp interleaves the two halves of each rotary pair of queries and keys."""
    heads = {"q_proj": model.config.num_attention_heads, "k_proj": model.config.num_key_value_heads}
    for part, count in heads.items():
        if part in name:
            rows, columns = tensor.shape
            halves = tensor.view(count, 2, rows // count // 2, columns)
            return halves.transpose(1, 2).reshape(rows, columns).contiguous()
    return tensor.contiguous()


def random_llama(config: LlamaConfig) -> LlamaForCausalLM:
    """A random model in evaluation mode, with norms that are not all one."""
    torch.manual_seed(0)
    model = LlamaForCausalLM(config).eval()
    for name, parameter in model.named_parameters():
        if "norm" in name:
            parameter.data = torch.from_numpy(np.linspace(0.5, 1.5, len(parameter), dtype=np.float32))
    return model
