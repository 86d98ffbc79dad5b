"""Random checkpoints of every family, made and saved by transformers, that leave no two paths of a model alike."""

import torch
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig, Qwen2Config

LLAMA3_ROPE = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
               "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
LINEAR_ROPE = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.5}


def gpt2(**changes):
    return GPT2Config(**{"vocab_size": 211, "n_embd": 60, "n_layer": 3, "n_head": 3, "n_positions": 256,
                         "bos_token_id": 0, "eos_token_id": 0, **changes})


def llama(**changes):
    return LlamaConfig(**{"vocab_size": 211, "hidden_size": 72, "intermediate_size": 132, "num_hidden_layers": 3,
                          "num_attention_heads": 3, "num_key_value_heads": 3, "max_position_embeddings": 256,
                          "rms_norm_eps": 1e-5, "bos_token_id": 0, "eos_token_id": 0, **changes})


def qwen2(**changes):
    return Qwen2Config(**{"vocab_size": 211, "hidden_size": 70, "intermediate_size": 101, "num_hidden_layers": 3,
                          "num_attention_heads": 5, "num_key_value_heads": 5, "max_position_embeddings": 256,
                          "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0},
                          "bos_token_id": 0, "eos_token_id": 0, **changes})


FULL = {  # fp32
    "gpt2_tied": lambda: gpt2(),
    "gpt2_untied": lambda: gpt2(n_head=5, n_inner=97, tie_word_embeddings=False, activation_function="gelu"),
    "gpt2_one_head": lambda: gpt2(n_head=1, n_embd=33, n_layer=2),
    "llama_mha": lambda: llama(),
    "llama_gqa_tied": lambda: llama(num_attention_heads=6, num_key_value_heads=2, tie_word_embeddings=True),
    "llama_mqa_biases": lambda: llama(hidden_size=70, num_attention_heads=5, num_key_value_heads=1,
                                      attention_bias=True, mlp_bias=True),
    "llama_head_dim": lambda: llama(num_attention_heads=4, num_key_value_heads=2, head_dim=26),
    "llama_llama3_rope": lambda: llama(num_attention_heads=9, num_key_value_heads=3, head_dim=16,
                                       rope_parameters=LLAMA3_ROPE),
    "llama_linear_rope": lambda: llama(rope_parameters=LINEAR_ROPE),
    "qwen2_mha": lambda: qwen2(),
    "qwen2_gqa_tied": lambda: qwen2(hidden_size=112, num_attention_heads=14, num_key_value_heads=2,
                                    tie_word_embeddings=True),
    "qwen2_linear_rope": lambda: qwen2(num_key_value_heads=1, rope_parameters=LINEAR_ROPE),
}

HALF = {  # the dtype of the stored weights
    "gpt2_bf16": (lambda: gpt2(), torch.bfloat16),
    "llama_bf16": (lambda: llama(num_attention_heads=6, num_key_value_heads=2, rope_parameters=LLAMA3_ROPE),
                   torch.bfloat16),
    "llama_fp16": (lambda: llama(tie_word_embeddings=True), torch.float16),
    "qwen2_bf16": (lambda: qwen2(num_key_value_heads=1), torch.bfloat16),
}


def make(config, dtype, folder, seed=1):
    """Saves a model whose logits vary with every weight: transformers' own start leaves biases zero and norms one.

    A token's own embedding stays small in the sum that a tied head sees, or the model would say one word for ever.
    """
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config)
    table_scale = 0.1 if config.tie_word_embeddings else 0.5
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 1:
                weight.copy_(0.2 * torch.randn_like(weight) + (0 if name.endswith("bias") else 1))
            elif "embed" in name or "wte" in name or "wpe" in name:
                weight.copy_(table_scale * torch.randn_like(weight))
            else:
                weight.copy_(torch.randn_like(weight) * (1.5 / min(weight.shape) ** 0.5))
    model.tie_weights()
    model.to(dtype).save_pretrained(folder)
