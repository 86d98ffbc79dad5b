"""Arms of tiny models on the CPU: the same tokens from all of them, and evidence that says what ran."""

import json
import random
from dataclasses import replace

import pytest
from assay_torch import compat
from assay_torch.engine import RIVALS
from assay_torch.errors import NonFinite
from assay_torch.evidence import collect
from assay_torch.requests import Prepare, Prompt, Shape

from conftest import CHEAP, FAMILIES, SOAK, TOY, native_tokens

STEPS = 4
LENGTHS = (5, 9, 3)
SAME_PROMPTS_PADDED = 12
AOT = {"mode": "default", "dynamic": "false", "torch_backend": "aot_eager"}
INDUCTOR = {"mode": "default", "dynamic": "false"}
DYNAMIC = {"mode": "default", "dynamic": "true"}
AUTO = {"mode": "default", "dynamic": "auto"}
TUNED = {"mode": "max-autotune-no-cudagraphs", "dynamic": "false"}
MODULE = {**INDUCTOR, "compile_target": "module"}
FULLGRAPH = {**INDUCTOR, "fullgraph": True}


def make_prompts(lengths=LENGTHS, vocabulary=200):
    rng = random.Random(7)
    return [[rng.randrange(1, vocabulary) for _ in range(n)] for n in lengths]


def padded(prompts, width=0):
    width = max(width, *map(len, prompts))
    return Prompt([[0] * (width - len(one)) + one for one in prompts], [width - len(one) for one in prompts])


def run(engine, prompts, phase="kv_decode", steps=STEPS, padding=None, first_len=None):
    """Prepares for the first prompt and measures each; the samples."""
    widest = max(prompt.padded_len for prompt in prompts)
    shape = Shape(phase, len(prompts[0].ids), 0 if phase == "prefill" else steps, widest + steps)
    engine.prepare(Prepare(shape, [first_len or prompts[0].padded_len], padding))
    return [engine.measure(shape, index, prompt) for index, prompt in enumerate(prompts)]


def check_against_native(engine, folder):
    """Parity's tokens of single prompts, padded ones, and a padded batch."""
    prompts = make_prompts()
    expected = native_tokens(folder, prompts, STEPS)
    assert len({token for row in expected for token in row}) > 3, "a degenerate model proves nothing"
    for case, rows in ((padded(prompts[:1]), expected[:1]), (padded(prompts[:1], 8), expected[:1]),
                       (padded(prompts), expected)):
        shape = Shape("kv_decode", len(rows), STEPS, case.padded_len + STEPS)
        assert engine.parity(shape, case)["tokens"] == rows, case
    return expected


@pytest.mark.parametrize("cache", [pytest.param("dynamic", marks=pytest.mark.soak), "static"])
def test_parity_of_the_prepared_shape_compiles_nothing(arm, cache):
    engine = arm(CHEAP, cache=cache, **(AOT | {"recompile_limit": 16}))
    case = padded(make_prompts()[:1])
    run(engine, [case])
    before = collect(engine, "kv_decode")["counters"]
    assert before["unique_graphs"] > 1
    engine.parity(Shape("kv_decode", 1, STEPS + 1, case.padded_len + STEPS), case)
    after = collect(engine, "kv_decode")["counters"]
    for name in ("unique_graphs", "recompiles", "compile_ns"):
        assert after[name] == before[name], name


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_eager_says_what_the_native_engine_says(arm, checkpoints_of, family, cache):
    engine = arm(family, cache=cache)
    expected = check_against_native(engine, checkpoints_of(family))
    sample = run(engine, [padded(make_prompts()[:1])])[0]
    # The prefill's own token isn't among those of the steps.
    shape = Shape("kv_decode", 1, STEPS, LENGTHS[0] + STEPS)
    steps = engine.parity(Shape("kv_decode", 1, STEPS + 1, LENGTHS[0] + STEPS + 1), padded(make_prompts()[:1]))["tokens"][0][1:]
    assert steps[:STEPS - 1] == expected[0][1:]
    from assay_torch.phases import output_hash
    assert sample["output_hash"] == output_hash([steps])
    assert sample["tokens"] == shape.new_tokens
    assert sample["counters"] == {}
    assert collect(engine, "kv_decode")["compiler_real"] == "not_applicable"


CAPTURED = [("llama", "static", "aot_eager"), ("gpt2", "dynamic", "eager")]
CAPTURED_TOO = [(family, cache, "aot_eager") for family, cache in
                (("gpt2", "dynamic"), ("gpt2", "static"), ("llama", "dynamic"), ("qwen2", "dynamic"), ("qwen2", "static"))]
CAPTURED_TOO += [("gpt2", "static", "eager"), ("llama", "dynamic", "eager")]


@pytest.mark.parametrize("family,cache,backend", CAPTURED + CAPTURED_TOO if SOAK else CAPTURED)
def test_a_backend_that_captures_and_generates_nothing(arm, checkpoints_of, family, cache, backend):
    engine = arm(family, cache=cache, mode="default", dynamic="auto", torch_backend=backend)
    prompts = make_prompts()
    samples = run(engine, [padded(prompts)] * 2, padding=True)
    assert samples[1]["counters"]["fallbacks"] == 0
    assert samples[1]["counters"]["graph_runs"] >= STEPS
    evidence = collect(engine, "kv_decode")
    assert evidence["compiler_real"] == "label_only", evidence["reasons"]
    assert evidence["actual"]["backend"] == backend
    assert evidence["counters"]["unique_graphs"] >= 2
    assert evidence["counters"]["kernels_compiled"] == 0
    # The shape that was prepared, so that nothing more is compiled.
    shape = Shape("kv_decode", 3, STEPS, max(LENGTHS) + STEPS)
    assert engine.parity(shape, padded(prompts))["tokens"] == native_tokens(checkpoints_of(family), prompts, STEPS)


def check_compiled(arm, checkpoints_of, family, cache, settings, batch=1):
    """Against eager's output and, of a family, the native engine's tokens; a batch of several prompts is padded."""
    engine = arm(family, cache=cache, **settings)
    eager = arm(family, cache=cache)
    prompt = padded(make_prompts()[:batch])
    samples = run(engine, [prompt] * 3, "e2e_kv", padding=batch > 1)
    assert samples[-1]["output_hash"] == run(eager, [prompt] * 3, "e2e_kv", padding=batch > 1)[0]["output_hash"]
    assert samples[0]["ttft_ns"] < samples[0]["latency_ns"]
    evidence = collect(engine, "e2e_kv")
    # The shape that was prepared, so that nothing more is compiled.
    shape = Shape("kv_decode", batch, STEPS, prompt.padded_len + STEPS)
    tokens = engine.parity(shape, prompt)["tokens"]
    if family != TOY:
        assert tokens == native_tokens(checkpoints_of(family), make_prompts()[:batch], STEPS)
    assert evidence["counters"]["unique_graphs"] >= 2
    assert evidence["kernels"]["in_graphs"] > 0
    return samples, evidence


# Symbolic lengths aren't padded over a growing cache: what Inductor of torch 2.11 makes of a mask of symbolic width is no
# C++ where the processor has AVX-512.
SETTINGS = [(INDUCTOR, 1), (INDUCTOR, 3), (DYNAMIC, 1), (AUTO, 1), (TUNED, 3), (MODULE, 3), (FULLGRAPH, 3)]
CACHES = ("dynamic", "static")
ALL_CELLS = [(family, cache, *setting) for family in FAMILIES for cache in CACHES for setting in SETTINGS]


# Most of its time goes into compiling C++. tests/e2e/torch_test.py holds generated code of a GPT-2 against the native engine.
@pytest.mark.soak
@pytest.mark.parametrize("family,cache,settings,batch", ALL_CELLS)
def test_inductor_is_real(arm, checkpoints_of, family, cache, settings, batch):
    samples, evidence = check_compiled(arm, checkpoints_of, family, cache, settings, batch)
    assert evidence["compiler_real"] == "yes", evidence["reasons"]
    assert evidence["counters"]["graph_breaks"] == 0
    for sample in samples:
        assert sample["counters"]["fallbacks"] == 0
        assert sample["counters"]["unique_graphs"] == 0, "preparing left nothing to compile"
        assert sample["counters"]["graph_runs"] == STEPS + 1


@pytest.mark.soak
@pytest.mark.parametrize("family,cache", [(family, cache) for family in FAMILIES for cache in CACHES])
def test_reduce_overhead_on_a_processor_is_default(arm, checkpoints_of, family, cache):
    _, evidence = check_compiled(arm, checkpoints_of, family, cache, {**INDUCTOR, "mode": "reduce-overhead"}, 3)
    assert evidence["compiler_real"] == "fallback" and "no CUDA graph: the device is cpu" in evidence["reasons"]
    assert evidence["actual"]["mode"] == "reduce-overhead without CUDA graphs"
    assert evidence["fallback"] == "default"


# A GPU's values are put there by hand: a graph's kernels are the same, but nothing is replayed on a processor.
@pytest.mark.parametrize("mode,device,replays,messages,fallback,error", [
    ("reduce-overhead", "cpu", 0, [], "default", "no CUDA graph: the device is cpu"),
    ("max-autotune", "cpu", 0, [], "max-autotune-no-cudagraphs", "no CUDA graph: the device is cpu"),
    ("reduce-overhead", "cuda", 0, ["skipping cudagraphs due to mutated inputs (2 instances)"], "default",
     "skipping cudagraphs due to mutated inputs (2 instances)"),
    ("reduce-overhead", "cuda", 0, [], "default", "no CUDA graph was replayed"),
    ("reduce-overhead", "cuda", 4, ["Recording cudagraph tree", "skipping cudagraphs due to cpu device (x)"], False, None),
    ("default", "cpu", 0, [], False, None)])
def test_a_mode_without_the_cuda_graphs_it_promises_is_the_mode_below(arm, monkeypatch, mode, device, replays, messages,
                                                                      fallback, error):
    import torch
    from assay_torch.evidence import _verdict
    engine = arm(CHEAP, mode="default", cache="static", dynamic="false", torch_backend="aot_eager")
    run(engine, [padded(make_prompts()[:1])], "prefill")
    unit = engine.unit_of("prefill")
    monkeypatch.setattr("assay_torch.evidence._kernels_known", lambda *_: ("yes", "kernels"))
    monkeypatch.setattr(engine, "options", replace(engine.options, torch_backend="inductor"))
    monkeypatch.setattr(engine, "load", replace(engine.load, mode=mode))
    engine.device = torch.device(device)
    unit.runs.graph_replays = replays
    engine.watch.events.cudagraphs += [{"text": one, "unit": unit.number} for one in messages]
    engine.watch.events.cudagraphs.append({"text": "skipping cudagraphs of another unit", "unit": unit.number + 1})
    found = _verdict(engine, unit)
    assert found["compiler_real"] == ("fallback" if fallback else "yes"), found
    assert found.get("fallback", False) == fallback and found.get("fallback_error") == error
    skipped = [one for one in messages if "skipping" in one]
    assert [one for one in found["reasons"] if "skipping" in one] == (skipped if mode != "default" else [])


@pytest.mark.parametrize("phases,phase,verdict", [("prefill", "kv_decode", "not_applicable"),
                                                  ("decode", "prefill", "not_applicable"),
                                                  ("decode", "kv_decode", "label_only")])
def test_split_compilation(arm, phases, phase, verdict):
    """Only the part that was asked for is compiled; the other is no fallback."""
    engine = arm(CHEAP, cache="static", compile_phases=phases, **AOT)
    samples = run(engine, [padded(make_prompts()[:1])] * 2, phase)
    assert all(sample["counters"]["fallbacks"] == 0 for sample in samples)
    assert (samples[0]["counters"]["graph_runs"] > 0) == (verdict != "not_applicable")
    assert collect(engine, phase)["compiler_real"] == verdict


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("batch", [1, 3])
def test_what_a_call_is_given_is_no_view(arm, cache, batch):
    from assay_torch.phases import Inputs
    case = padded(make_prompts()[:batch], 8)
    shape = Shape("kv_decode", batch, STEPS, case.padded_len + STEPS)
    inputs = Inputs.of(case, shape, cache, True, arm("qwen2", cache=cache).model)
    for given in (inputs.prefill, *inputs.decode):
        assert {"attention_mask", "position_ids"} <= given.keys()
        for name in ("attention_mask", "position_ids"):
            assert not given[name]._is_view() and given[name].stride() == (given[name].shape[1], 1), name


def test_static_cache_is_allocated_once(arm):
    engine = arm("llama", cache="static")
    addresses = [one.data_ptr() for one in compat.static_tensors(engine.caches.empty(1, 16))]
    run(engine, [padded(make_prompts()[:1])] * 2, steps=16 - LENGTHS[0])
    again = compat.static_tensors(engine.caches.empty(1, 16))
    assert [one.data_ptr() for one in again] == addresses
    assert not any(one.any() for one in again)


def test_a_step_that_ran_twice_is_an_error_and_no_sample(arm):
    """A step ran twice in the first call of a graph that Inductor captures without cudagraph_trees."""
    from assay_torch.errors import WrongCacheLength
    engine = arm("llama", cache="static")
    if engine.model.takes_cache_position:
        pytest.skip("the caches of this transformers don't count their content")
    prompt, shape = padded(make_prompts()[:1]), Shape("kv_decode", 1, STEPS, LENGTHS[0] + 2 * STEPS)
    engine.prepare(Prepare(shape, [prompt.padded_len], None))
    assert engine.measure(shape, 0, prompt)["tokens"] == STEPS
    once = engine.arm.calls["decode"]
    engine.arm.calls["decode"] = lambda **given: once(**given) and once(**given)
    with pytest.raises(WrongCacheLength, match=f"expected {LENGTHS[0] + STEPS} positions after the repetition, found {LENGTHS[0] + 2 * STEPS}"):
        engine.measure(shape, 1, prompt)


def test_manual_cudagraph_needs_a_device(arm):
    from assay_torch.errors import Unsupported
    with pytest.raises(Unsupported, match="expected device cuda, found cpu"):
        arm("llama", mode="manual-cudagraph", cache="static")
    with pytest.raises(Unsupported, match="expected cache static, found dynamic"):
        arm("llama", mode="manual-cudagraph", cache="dynamic")


def test_step_times_add_up_to_the_region(arm):
    engine = arm("llama", step_times=True)
    prompts = [padded(make_prompts()[:1])]
    for phase in ("kv_decode", "e2e_kv"):
        sample = run(engine, prompts, phase)[0]
        steps = collect(engine, phase)["step_times"][-1]["step_ns"]
        assert len(steps) == STEPS and min(steps) > 0
        assert sum(steps) <= sample["latency_ns"] - sample.get("ttft_ns", 0)


def test_read_bytes_are_those_of_the_weights_and_the_cache(arm):
    engine = arm("llama")
    model = engine.model
    table = model.module.get_input_embeddings().weight
    once = model.weight_bytes() - table.nbytes + table[0].nbytes
    per_position = 2 * model.decoder.num_hidden_layers * model.kv_heads() * model.head_dim() * 4
    prompt = [padded(make_prompts()[:1])]
    assert run(engine, prompt, "prefill")[0]["read_bytes"] == once
    lens = sum(LENGTHS[0] + step + 1 for step in range(STEPS))
    assert run(engine, prompt, "kv_decode")[0]["read_bytes"] == STEPS * once + lens * per_position


def test_the_read_bandwidth_is_measured_before_the_model_is_there(arm, monkeypatch):
    import torch

    from assay_torch import bandwidth, models
    monkeypatch.setattr(bandwidth, "BYTES", {"cpu": 1 << 20})
    bandwidth.measure.cache_clear()
    order = []
    seconds, open_model = bandwidth._seconds, models.open_model
    monkeypatch.setattr(bandwidth, "_seconds", lambda *given: order.append("pass") or seconds(*given))
    monkeypatch.setattr(models, "open_model", lambda *given: order.append("model") or open_model(*given))
    engine = arm("llama")
    assert order == ["pass"] * 2 * bandwidth.PASSES + ["model"]
    run(engine, [padded(make_prompts()[:1])])
    found = collect(engine, "kv_decode")["read_bandwidth"]
    assert found["bytes_per_s"] > 0 and found["bytes"] == 1 << 20
    assert len(order) == 2 * bandwidth.PASSES + 1, "once a process"
    bandwidth.measure.cache_clear()
    monkeypatch.setattr(torch, "ones", lambda *_, **__: (_ for _ in ()).throw(RuntimeError("no memory")))
    assert bandwidth.measure(torch.device("cpu")) == {"error": "RuntimeError: no memory"}
    bandwidth.measure.cache_clear()


def test_the_buffer_of_the_read_bandwidth_is_not_in_the_peak(monkeypatch):
    import resource

    import torch

    from assay_torch import bandwidth
    monkeypatch.setattr(bandwidth, "BYTES", {"cpu": 1 << 29})
    bandwidth.measure.cache_clear()
    bandwidth._forget_peak()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert bandwidth.measure(torch.device("cpu"))["bytes"] == 1 << 29
    bandwidth.measure.cache_clear()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < before + (1 << 28)


def test_logit_statistics_are_those_of_the_first_token(arm):
    import torch
    engine = arm("llama")
    prompts = make_prompts()
    found = engine.parity(Shape("kv_decode", 3, 1, max(LENGTHS) + 1), padded(prompts))
    for prompt, tokens, stats in zip(prompts, found["tokens"], found["logit_stats"]):
        with torch.no_grad():
            logits = engine.model.module(input_ids=torch.tensor([prompt])).logits[0, -1]
        assert stats["argmax"] == tokens[0] == int(logits.argmax())
        assert stats["top1"] == stats["max"] > stats["top2"] > stats["mean"] > stats["min"]
        for name, value in (("mean", logits.mean()), ("std", logits.std()), ("max", logits.max())):
            assert abs(stats[name] - float(value)) < 1e-4, name
        assert stats["eps"] == torch.finfo(torch.float32).eps
        best = logits.topk(RIVALS + 1)
        assert stats["steps"]["others"] == [best.indices[1:].tolist()]
        assert torch.allclose(torch.tensor(stats["steps"]["margins"][0]), best.values[0] - best.values[1:], atol=1e-4)
        assert abs(stats["steps"]["logit"][0] - stats["top1"]) < 1e-4


def test_the_first_token_is_told_of_an_arm_that_cannot_decode(arm):
    prompts = padded(make_prompts())
    shape = Shape("kv_decode", 3, 1, prompts.padded_len + 1)
    expected = arm(CHEAP).parity(shape, prompts)["tokens"]
    engine = arm(CHEAP, **AOT)

    def cannot(**inputs):
        raise RuntimeError("no step")

    engine.arm.calls["decode"] = cannot
    assert engine.parity(shape, prompts)["tokens"] == expected
    with pytest.raises(RuntimeError, match="no step"):
        engine.parity(replace(shape, new_tokens=2), prompts)


def test_every_choice_is_told_with_those_next_to_it(arm):
    engine = arm("qwen2", cache="static")
    prompts = make_prompts()
    found = engine.parity(Shape("kv_decode", 3, 5, max(LENGTHS) + 4), padded(prompts))  # the last isn't fed
    for tokens, stats in zip(found["tokens"], found["logit_stats"]):
        steps = stats["steps"]
        assert [len(steps[name]) for name in ("others", "margins", "logit")] == [5, 5, 5]
        for token, others, margins in zip(tokens, steps["others"], steps["margins"]):
            assert len(others) == len(margins) == len(set(others)) == RIVALS and token not in others
            assert margins == sorted(margins) and margins[0] >= 0, "fp32: the eager pass makes the same choices"


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_half_precision_and_eager_attention(arm, dtype):
    engine = arm("qwen2", cache="static", dtype=dtype, attn_implementation="eager")
    sample = run(engine, [padded(make_prompts())])[0]
    assert sample["tokens"] == 3 * STEPS
    assert engine.loaded()["dtype"] == dtype
    assert collect(engine, "kv_decode")["actual"]["attn_implementation"] == "eager"


@pytest.mark.soak
def test_kernels_out_of_the_cache_are_loaded_not_compiled(arm, checkpoints_of):
    check_compiled(arm, checkpoints_of, CHEAP, "static", INDUCTOR, 3)
    _, evidence = check_compiled(arm, checkpoints_of, CHEAP, "static", INDUCTOR, 3)
    assert evidence["kernels"]["files_written"] == 0 < evidence["kernels"]["in_graphs"]
    assert "wrote 0 files of machine code, so a cache had them all" in evidence["reasons"][1]
    assert evidence["counters"]["fx_cache_hits"] > 0
    assert evidence["cache_folders"]["fresh"] is False
    assert evidence["compiler_real"] == "yes"


def test_random_weights_are_of_the_seed(arm):
    from assay_torch.cachedirs import CacheFolders
    from assay_torch.engine import Engine
    from assay_torch.options import parse_options
    from assay_torch.requests import Load
    config = {"model_type": "llama", "vocab_size": 64, "hidden_size": 16, "intermediate_size": 24,
              "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "dtype": "bfloat16",
              "rope_theta": 500000.0, "rope_scaling": {"rope_type": "linear", "factor": 2.0}}
    given, hashes = json.dumps(config), []
    for seed, dtype in ((1, ""), (1, ""), ((1 << 64) - 1, ""), (1, "fp32")):
        load = Load("an-architecture", dtype, "eager", "dynamic", "", 1, True,
                    {"config": config, "seed": seed, "device": "cpu", "keep_cache": True})
        engine = Engine(load, parse_options(load), CacheFolders(keep=True))
        loaded = engine.loaded()
        assert loaded["dtype"] == (dtype or "bf16")
        hashes.append(loaded["model_hash"])
        engine.model.config.of_a_later_version = True
        assert engine.loaded()["model_hash"] == hashes[-1], "the same under every version of transformers"
    assert hashes[0] == hashes[1] and len(set(hashes)) == 3
    assert json.dumps(config) == given, "what was asked for stays as it was"


@pytest.mark.parametrize("settings", [{}, pytest.param(AOT, marks=pytest.mark.soak)])
def test_tokens_of_a_model_that_is_not_finite_are_no_evidence(arm, settings):
    engine = arm(CHEAP, cache="static", **settings)  # a growing one compiles every step
    case = padded(make_prompts()[:1])
    assert all("non_finite" not in sample for sample in run(engine, [case]))
    for weight in engine.model.module.parameters():
        weight.data.fill_(float("nan"))
    for phase in ("prefill", "kv_decode", "e2e_kv") if SOAK or not settings else ("kv_decode",):
        assert [sample["non_finite"] for sample in run(engine, [case], phase)] == [True]
    for steps in (1, STEPS):
        with pytest.raises(NonFinite, match="expected finite values"):
            engine.parity(Shape("kv_decode", 1, steps, case.padded_len + steps), case)


def test_more_positions_than_the_model_has_are_refused(arm):
    from assay_torch.errors import Unsupported
    engine = arm("llama")
    with pytest.raises(Unsupported, match="expected at most the model's 256 positions, found 257"):
        engine.prepare(Prepare(Shape("prefill", 1, 0, 257), [4], None))
