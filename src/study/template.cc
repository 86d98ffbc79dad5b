// The commented study file that `assay init` writes.
#include "study/study.h"

namespace assay {

std::string_view study_template() {
  return R"(# A study: its arms, conditions, repetitions and their order. Check it with `assay plan FILE`, run it with
# `assay run FILE -o BUNDLE`. Unknown keys are errors, so a typing error can't change a study.
name: my-study

# Checkpoint folders in the layout of Hugging Face: config.json, *.safetensors, tokenizer.json.
# dtype: fp32 | fp16 | bf16 (default: as stored). name (default: the last part of the folder's path).
# {arch: llama3.2-1b, dtype: fp16} stands for random weights without a file; only for backend torch.
models:
  - {path: models/gpt2-25m, dtype: fp32}

# The arms to compare. A list makes one arm of each of its values: here eager-dynamic and
# eager-static. backend: native | torch | command. mode of native: eager | compiled; of torch: eager | default |
# reduce-overhead | max-autotune | max-autotune-no-cudagraphs | manual-cudagraph. cache: dynamic | static.
# threads (default: as many as the process may run on). device of native arms: cpu (default), cuda or
# cuda:N. program of native arms: another assay executable that serves the arm. Keys of native and torch arms:
#   logits: last            # all: a prefill computes the logits of all positions (default: last)
#   dtype: fp8              # products of prompts in e4m3, on a GPU; beside it fp8_head, fp8_fast_sums
#                           # and fp8_always: true
#   quantization: FILE      # weights of the same model in other bits: a GGUF file (assay model quantize)
# Keys of compiled arms:
#   dynamic: auto           # false: compile for each size; true: sizes are symbols; auto (default): a
#                           # size becomes a symbol once it has changed
#   recompile_limit: 8      # most graphs of a phase (default 8); beyond them it stays eager
#   split: prefill          # compile only this phase, prefill or decode (default: both)
#   bucket: 16              # pad prompts to a multiple of this (default: no padding)
#   disabled_passes: "fuse_norm, merge_products"   # default: none
#   kernel_cache: true      # false: each process compiles its own kernels
#   weight_cache: false     # true: a processor's packed weights are kept on disk and mapped from there
# Keys of torch arms: python (an interpreter, or $NAME for the value of a variable), device: auto | cpu |
# cuda, attn_implementation, sdpa_kernel, step_times. Those that compile also have dynamic, recompile_limit,
# torch_backend, fullgraph, compile_target, compile_phases, cudagraph_trees, mark_step_begin, keep_cache
# and explain. docs/worker-protocol.md describes each key. backend: command is any benchmark program, whose
# figures patterns find; docs/commands.md describes its keys:
#   - {name: any, backend: command, command: [bench, -n, "{new_tokens}", -r, "{samples}"],
#      patterns: '(?<tokens_per_s>[\d.]+) tok/s'}
arms:
  - {name: eager, backend: native, mode: eager, cache: [dynamic, static]}
  - {name: compiled, backend: native, mode: compiled, cache: static}

# The arm that the others are compared with (default: the first).
baseline: eager-dynamic

# prefill: one pass over the prompt. kv_decode: generation over the cache, its prefill untimed.
# e2e_kv: both together.
phases: [prefill, kv_decode, e2e_kv]

# Built-in scenarios, with their prompt tokens: single_micro 10, single_short 30, single_medium 80,
# single_long 200, stress_single 400. prompt_N has N tokens: prompt_512. Write your own as maps:
#   - {name: ramp, prompt_tokens: [16, 32, 64]}   # repetitions cycle through the lengths
#   - {name: mine, text: "Once upon a time"}
#   - {name: prompt_512, phases: prefill}         # measured in these of the phases only
scenarios: [single_micro, single_short, single_medium, single_long, stress_single]

# token_lengths: new tokens in kv_decode and e2e_kv. batch: prompts at once. Each value is a condition
# of its own.
token_lengths: [64]
batch: [1]

# scope: none | scenario | global: whether prompts are padded to one length, for each scenario or
# for all of them, rounded up to multiple_of.
padding: {scope: none, multiple_of: 8}

# Measured repetitions of each cell, after warm-ups that are kept apart.
repetitions: 30
warmup: 3

# Worker processes of each arm. They run one after the other and share the repetitions of every cell; each
# prepares and warms up anew. Two processes of one arm differ by more than their repetitions show, so
# `assay compare` needs several processes in each bundle before it calls anything slower. If the key is
# absent, a study has 5 where every arm starts in under 5 s, and otherwise as many, 2 to 5, as its
# repetitions pay for; `assay plan` says how many and why.
# processes: 5

# Adds repetitions until the 95 % interval of the mean is within +- relative_ci. With `decide` it adds
# rounds of fresh processes until the fastest arm of a stratum is shown to be faster than every other arm
# or within `margin` of it. A stratum then ends, even before `repetitions`.
# stopping: {max_repetitions: 200, relative_ci: 0.01}
# stopping: {max_repetitions: 200, decide: true, margin: 0.03}

# sequential | shuffled | interleaved. Interleaved alternates the arms after every repetition, in random
# order, so that changes of the machine affect all of them alike.
order: interleaved

# together | free. Whether the processes that take turns compute on the same CPUs, so that a neighbour
# affects all of them. If the key is absent, native arms with the same number of `threads` do.
# cpus: together

# A server under load, in the place of phases and batch: docs/servers.md has every key.
# load: {concurrency: [1, 4], rate: [2], duration_s: 30, slo: {ttft_ms: 200, itl_ms: 30}}

# Seconds for one repetition, and for loading. compile_timeout_s is for preparing (default: timeout_s).
timeout_s: 120

# Arms with `quantization` choose other tokens than the model's own weights, so their tokens are compared
# with those of arms with the same weights, and their predictions with the model's once timing is over, on
# so many windows of so many tokens that the model draws, or of a text (false: not at all).
# quality: {windows: 8, window: 256, text: FILE}

# When to compare the arms' tokens: before timing, in separate processes, or after timing, in the processes
# that were timed.
parity: before
seed: 42

# Requirements of the stack (default: none). If one is not met, `assay analyze` prints FAILED and exits with
# 1. A criterion that nothing in the run could show is "not applicable here" and never counts as passed.
# require:
#   cuda: true            # every torch arm computed on a GPU
#   triton: 3             # its code came from Triton of at least this major version
#   compiler_real: true   # every arm that requests compilation provably ran compiled
#   graph_breaks: 0       # no more graph breaks than this
#   parity: true          # every arm's greedy tokens are the baseline's
#   logit_stats: true     # the bundle has statistics of the logits
#   deterministic: true   # every repetition of a prompt gave the same output
)";
}

}  // namespace assay
