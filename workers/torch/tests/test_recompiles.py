"""Shape churn: variable lengths, padding, symbolic shapes, the recompile limit, and where each cost is booked."""

import pytest
import torch
from assay_torch import compat
from assay_torch.evidence import collect
from assay_torch.requests import Shape

from conftest import CHEAP, SOAK
from test_arms import AOT, make_prompts, padded, run


# Under torch 2.5 a frame that hits the recompile limit is given up, for shapes with a graph too.
GIVEN_UP = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6)


def prefill_samples(engine, lengths, width=0):
    prompts = [padded([one], width) for one in make_prompts(lengths)]
    return run(engine, prompts, "prefill", padding=width > 0)


def test_each_new_length_recompiles_and_its_sample_says_so(arm):
    engine = arm(CHEAP, **AOT)
    samples = prefill_samples(engine, [4, 7, 7, 9, 4])
    assert [sample["counters"]["recompiles"] for sample in samples] == [0, 1, 0, 1, 0]
    assert [sample["counters"]["unique_graphs"] for sample in samples] == [0, 1, 0, 1, 0]
    slow = {index for index, sample in enumerate(samples) if sample["counters"]["compile_ns"] > 0}
    assert slow == {1, 3}
    assert min(samples[i]["latency_ns"] for i in slow) > max(samples[i]["latency_ns"] for i in (0, 2, 4))
    evidence = collect(engine, "prefill")
    assert evidence["counters"]["unique_graphs"] == 3
    first = evidence["recompiles"][0]
    assert "size mismatch at index 1" in first["guard"]
    assert (first["expected"], first["found"]) == ("4", "7")
    assert first["repetition"] == 1 and first["during"] == "measure" and first["seconds"] > 0


def test_padding_ends_the_churn(arm):
    engine = arm(CHEAP, **AOT)
    samples = prefill_samples(engine, [4, 7, 7, 9, 4, 16], width=16)
    assert all(sample["counters"]["recompiles"] == 0 for sample in samples)
    assert collect(engine, "prefill")["counters"]["unique_graphs"] == 1


def test_padding_that_was_not_announced_costs_one_graph(arm):
    engine = arm(CHEAP, **AOT)
    prompts = [padded([one], 16) for one in make_prompts([16, 7, 16, 9])]
    samples = run(engine, prompts, "prefill", first_len=16)
    # From the first padded prompt on a mask is always given: one recompile, whatever comes.
    assert [sample["counters"]["recompiles"] for sample in samples] == [0, 1, 0, 0]


def test_symbolic_shapes_end_the_churn(arm):
    engine = arm(CHEAP, **{**AOT, "dynamic": "true"})
    samples = prefill_samples(engine, [4, 7, 9, 12])
    assert sum(sample["counters"]["recompiles"] for sample in samples) == 0
    # Unset: the first miss makes the length symbolic.
    engine = arm(CHEAP, **{**AOT, "dynamic": "auto"})
    samples = prefill_samples(engine, [4, 7, 9, 12])
    assert [sample["counters"]["recompiles"] for sample in samples] == [0, 1, 0, 0]


def test_recompile_limit(arm):
    engine = arm(CHEAP, recompile_limit=2, **AOT)
    samples = prefill_samples(engine, [4, 5, 6, 7, 4])
    counters = [sample["counters"] for sample in samples]
    assert [one["unique_graphs"] for one in counters] == [0, 1, 0, 0, 0]
    assert [one["recompile_limit_hits"] for one in counters] == [0, 0, 1, 0, 0]
    assert [one["fallbacks"] for one in counters] == [0, 0, 1, 1, int(GIVEN_UP)]
    evidence = collect(engine, "prefill")
    assert evidence["compiler_real"] == "fallback"
    assert evidence["fallback"] == "eager"
    limit = compat.recompile_limit_key(torch._dynamo.config)
    assert f"torch._dynamo hit config.{limit} (2)" in evidence["fallback_error"]
    assert evidence["actual"]["mode"] == "default, then eager"
    assert evidence["recompiles"][-1]["refused"] == "recompile limit"


def test_decode_rows_do_not_carry_the_prefills_recompiles(arm):
    """kv_decode's prefill is untimed: a new prompt length recompiles in it, and the row shows none of that."""
    engine = arm(CHEAP, cache="static", **AOT)
    prompts = [padded([one]) for one in make_prompts([5, 8, 11])]
    samples = run(engine, prompts)
    assert all(sample["counters"]["recompiles"] == 0 for sample in samples)
    evidence = collect(engine, "kv_decode")
    assert evidence["counters"]["unique_graphs"] == 4  # three prefills and the step
    assert [one["repetition"] for one in evidence["recompiles"] if one["during"] == "measure"] == [1, 2]


# Torch's own limit is 8.
@pytest.mark.parametrize("limit,settings", [(3, {"recompile_limit": 3}), *([(8, {})] if SOAK else [])])
def test_growing_cache_under_static_shapes_reaches_the_limit(arm, limit, settings):
    engine = arm(CHEAP, cache="dynamic", **AOT, **settings)
    samples = run(engine, [padded(make_prompts()[:1])] * 2, steps=limit + 2)
    assert samples[-1]["counters"]["fallbacks"] > 0
    evidence = collect(engine, "kv_decode")
    assert evidence["counters"]["unique_graphs"] == limit
    assert evidence["counters"]["recompile_limit_hits"] >= 1
    assert evidence["compiler_real"] == "fallback"


def test_counts_are_of_the_arm_alone(arm):
    """Compilations of another arm of the process, and those that explain() traces, aren't counted."""
    prefill_samples(arm(CHEAP, **AOT), [4, 7])
    engine = arm(CHEAP, **{**AOT, "explain": True})
    assert collect(engine, "prefill")["counters"]["unique_graphs"] == 0
    prefill_samples(engine, [4])
    evidence = collect(engine, "prefill")
    assert evidence["counters"]["unique_graphs"] == 1
    assert [one["part"] for one in evidence["explain"]] == ["prefill", "decode"]
    assert all(one["graphs"] == 1 and one["graph_breaks"] == 0 for one in evidence["explain"])
    assert [one["compile_id"] for one in evidence["graphs"]] == ["0/0"]
    assert collect(engine, "kv_decode")["compiler_real"] == "unproven"
    assert Shape("prefill", 1, 0, 4).prefills


def test_units_do_not_use_up_each_others_recompile_limit(arm):
    """A static cache's capacity is a shape: without the reset the second of these would need a third graph."""
    lengths = [4, 5, 6]
    prompts = make_prompts(lengths)
    engine = arm(CHEAP, cache="static", recompile_limit=2, **AOT)
    for prompt in prompts:
        assert [one["counters"]["fallbacks"] for one in run(engine, [padded([prompt])] * 2)] == [0, 0]
        evidence = collect(engine, "kv_decode")
        assert evidence["counters"]["unique_graphs"] == 2 == len(evidence["graphs"]), "the prefill's and the step's"
        assert evidence["counters"]["recompiles"] == len(evidence["recompiles"]) == 1
        assert {one["unit"] for one in evidence["graphs"] + evidence["recompiles"]} == {evidence["unit"]}
        assert all(one["seconds"] > 0 for one in evidence["recompiles"])
        assert len(evidence["prepared"]) == 1
    assert evidence["unit"] == 2 == evidence["resets"] and evidence["counters"]["recompile_limit_hits"] == 0
    assert evidence["counters_of_process"]["unique_graphs"] == 6
    kept = arm(CHEAP, cache="static", reset="never", recompile_limit=2, **AOT)
    fallbacks = [sum(one["counters"]["fallbacks"] for one in run(kept, [padded([prompt])])) for prompt in prompts]
    assert fallbacks[0] == 0 and fallbacks[-1] > 0
    evidence = collect(kept, "kv_decode")
    assert evidence["compiler_real"] == "fallback" and evidence["unit"] == 2 and evidence["resets"] == 0
    assert "torch._dynamo hit config." in evidence["fallback_error"]
    assert evidence["counters"]["fallbacks"] == fallbacks[-1]
    assert evidence["counters_of_process"]["fallbacks"] == sum(fallbacks)


@pytest.mark.parametrize("reset", ["unit", "never"])
def test_evidence_is_of_the_unit_and_not_of_another_in_the_same_process(arm, reset):
    """A growing cache under static shapes: 4 steps hit the limit, and one doesn't; whichever comes first."""
    engine = arm(CHEAP, recompile_limit=2, reset=reset, step_times=True, **AOT)
    prompts = [padded(make_prompts()[:1])] * 2

    def unit(steps):
        fallbacks = [one["counters"]["fallbacks"] for one in run(engine, prompts, steps=steps)]
        return fallbacks, collect(engine, "kv_decode")
    fallbacks, clean = unit(1)
    assert fallbacks == [0, 0] and clean["compiler_real"] == "label_only" and clean["fallback"] is False
    assert clean["counters"]["recompile_limit_hits"] == 0 == len(clean["recompile_limits"])
    fallbacks, churned = unit(4)
    assert min(fallbacks) > 0 and churned["compiler_real"] == "fallback" and churned["fallback"] == "eager"
    assert churned["counters"]["fallbacks"] == sum(fallbacks) and churned["counters"]["calls"] == 2 * 4
    assert churned["reasons"][0].startswith(f"{0 if GIVEN_UP else 2} of 8 timed calls")
    assert churned["counters"]["recompile_limit_hits"] == len(churned["recompile_limits"]) > 0
    fallbacks, again = unit(1)
    if reset == "never":
        return
    assert fallbacks == [0, 0] and again["compiler_real"] == "label_only" and again["fallback"] is False
    assert again["reasons"][0] == "2 of 2 timed calls went through graphs, 0 ran eager"
    assert again["actual"]["mode"] == "default"
    for name in ("unique_graphs", "graph_breaks", "recompiles", "recompile_limit_hits", "fallbacks", "calls",
                 "graph_runs"):
        assert again["counters"][name] == clean["counters"][name], name
    assert [len(again[name]) for name in ("graphs", "recompiles", "recompile_limits", "step_times")] == [
        len(clean[name]) for name in ("graphs", "recompiles", "recompile_limits", "step_times")]
    assert len(again["step_times"]) == 2
    assert again["counters_of_process"]["fallbacks"] == churned["counters"]["fallbacks"]
    assert collect(engine, "prefill")["counters"]["calls"] == 0, "of no unit: nothing was prepared in that phase"


def test_an_earlier_unit_can_still_be_asked_for_by_its_phase(arm):
    engine = arm(CHEAP, recompile_limit=2, **AOT)
    prefill_samples(engine, [4, 5, 6])
    before = collect(engine, "prefill")
    assert before["compiler_real"] == "fallback"
    run(engine, [padded(make_prompts()[:1])] * 2, steps=1)
    after = collect(engine, "prefill")
    without = ("counters_of_process", "resets")
    assert {name: value for name, value in after.items() if name not in without} == {
        name: value for name, value in before.items() if name not in without}
    assert collect(engine, "kv_decode")["compiler_real"] == "label_only"


def test_explain_is_in_no_time_of_the_unit_and_once_a_process(arm, monkeypatch):
    import time
    from assay_torch.requests import Prepare
    engine = arm(CHEAP, explain=True, cache="static", **AOT)
    monotonic, ahead, during = time.monotonic, [0], []

    def slow(part, arguments):
        ahead[0] += 10_000
        during.append((part, engine.watch.context["during"]))
        return {"part": part, "graphs": 1}
    monkeypatch.setattr("assay_torch.engine.time.monotonic", lambda: monotonic() + ahead[0])
    monkeypatch.setattr(engine.arm, "explain", slow)
    prompt = padded(make_prompts()[:1])
    for phase, steps in (("kv_decode", 2), ("prefill", 0)):
        shape = Shape(phase, 1, steps, 8)
        prepared = engine.prepare(Prepare(shape, [prompt.padded_len], False))
        assert prepared["seconds"] < 10_000 and prepared["evidence"]["compile_seconds"] < 10_000
        assert prepared["evidence"]["explain_seconds"] == pytest.approx(20_000 if steps else 0, abs=1000)
        assert engine.measure(shape, 0, prompt)["counters"]["compile_ns"] == 0
        evidence = collect(engine, phase)
        assert [one["seconds"] < 10_000 for one in evidence["prepared"]] == [True]
        assert [one["part"] for one in evidence["explain"]] == ["prefill", "decode"], "told with every unit"
    assert during == [("prefill", "prepare"), ("decode", "prepare")]


def break_graphs(engine):
    """The last norm of the model ends the graph before it."""
    norm = engine.model.module.model.norm
    forward = type(norm).forward

    @torch._dynamo.disable
    def made_by_the_test():
        pass

    def breaking(*arguments):
        made_by_the_test()
        return forward(norm, *arguments)
    norm.forward = breaking


def test_graph_breaks_are_recorded_with_their_reason(arm):
    engine = arm(CHEAP, explain=True, **AOT)
    break_graphs(engine)
    samples = prefill_samples(engine, [4, 4])
    assert [sample["counters"]["fallbacks"] for sample in samples] == [0, 0]
    assert samples[1]["counters"]["graph_runs"] >= 2, "a call is several graphs now"
    evidence = collect(engine, "prefill")
    assert evidence["counters"]["graph_breaks"] >= 1
    assert any("made_by_the_test" in one["text"] for one in evidence["graph_breaks"])
    assert evidence["explain"][0]["graph_breaks"] >= 1
    assert any("made_by_the_test" in reason for reason in evidence["explain"][0]["break_reasons"])


def test_full_graphs_refuse_a_break(arm):
    from torch._dynamo.exc import Unsupported
    engine = arm(CHEAP, fullgraph=True, **AOT)
    break_graphs(engine)
    with pytest.raises(Unsupported, match="made_by_the_test"):
        prefill_samples(engine, [4])


def test_explain_where_the_model_has_no_room_for_a_step(arm):
    engine = arm(CHEAP, explain=True, **AOT)
    prompt = padded(make_prompts([256]))
    shape = Shape("prefill", 1, 0, 256)
    from assay_torch.requests import Prepare
    engine.prepare(Prepare(shape, [256], False))
    assert engine.measure(shape, 0, prompt)["counters"]["fallbacks"] == 0
    assert [(one["part"], one["graphs"]) for one in collect(engine, "prefill")["explain"]] == [("prefill", 1)]
