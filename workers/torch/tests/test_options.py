"""Options whose effect no other test would miss."""

import pytest
from assay_torch.evidence import collect
from assay_torch.requests import Prepare, Prompt, Shape
from conftest import CHEAP
from test_arms import AOT, STEPS, make_prompts, padded, run


def test_every_call_is_marked_as_a_step_where_that_is_asked_for(arm, monkeypatch):
    import torch
    marks = []
    monkeypatch.setattr(torch.compiler, "cudagraph_mark_step_begin", lambda: marks.append(1))
    engine = arm(CHEAP, cache="static", mark_step_begin=True, **AOT)
    prompt = padded(make_prompts()[:1])
    sample = run(engine, [prompt], "e2e_kv")[0]
    before = len(marks)
    engine.measure(Shape("e2e_kv", 1, STEPS, prompt.padded_len + STEPS), 1, prompt)
    assert len(marks) - before == STEPS + 1
    assert sample["counters"]["fallbacks"] == 0, "a marked call is compiled all the same"


@pytest.mark.parametrize("mask,graphs", [("auto", 1), ("always", 0)])
def test_masks_from_the_start_spare_the_graph_that_padding_costs(arm, mask, graphs):
    engine = arm(CHEAP, cache="static", attention_mask=mask, **AOT)
    ids = make_prompts()[0]
    samples = run(engine, [Prompt([ids], [0]), Prompt([[0, *ids[1:]]], [1])], "prefill")
    assert [sample["counters"]["recompiles"] for sample in samples] == [0, graphs]


def test_cudagraph_trees_reach_inductor(arm):
    from torch._inductor import config
    with config.patch({"triton.cudagraph_trees": True}):
        arm("llama", cache="static", mode="default", cudagraph_trees=False)
        assert config.triton.cudagraph_trees is False


def test_options_that_mean_nothing_to_a_mode_are_named(arm):
    engine = arm("llama", dynamic="true", fullgraph=True, recompile_limit=3, step_times=True)
    engine.prepare(Prepare(Shape("prefill", 1, 0, 8), [4], None))
    ignored = collect(engine, "prefill")["requested"]["ignored"]
    assert {"fullgraph", "recompile_limit", "dynamic"} <= set(ignored)
    assert "step_times" not in ignored
