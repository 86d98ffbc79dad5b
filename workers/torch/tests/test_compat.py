"""Fakes the absence of parts that older versions of torch and transformers have elsewhere, otherwise or not at all."""

import logging
import sys
from types import SimpleNamespace

import pytest
import torch
import transformers
from assay_torch import compat
from assay_torch.errors import Unsupported
from assay_torch.evidence import collect
from conftest import CHEAP
from test_arms import INDUCTOR, STEPS, make_prompts, padded, run

PROMPT = padded(make_prompts()[:1])


def test_what_a_version_has_moved_is_found_and_what_it_lacks_is_none():
    assert compat.first_of("no.such.module:a", "json:no_such_name", "json:loads") is __import__("json").loads
    assert compat.first_of("no.such.module:a") is None
    assert compat.last_logits_only(lambda input_ids, logits_to_keep=0: None) == {"logits_to_keep": 1}
    assert compat.last_logits_only(lambda input_ids: None) == {}
    assert compat.recompile_limit_key(SimpleNamespace(cache_size_limit=8)) == "cache_size_limit"
    assert compat.recompile_limit_key(SimpleNamespace(cache_size_limit=8, recompile_limit=8)) == "recompile_limit"


def config_of_5(**rope):
    return SimpleNamespace(rope_parameters=rope, rope_theta=10000.0, rope_scaling=None)


def test_rope_as_transformers_5_writes_it_is_read_by_older_ones(monkeypatch):
    llama3 = {"rope_type": "llama3", "factor": 8.0}
    newer = config_of_5(rope_type="default", rope_theta=5e5)
    monkeypatch.setattr(compat, "transformers_version", lambda: "5.0.0")
    compat.read_rope_parameters(newer)
    assert newer.rope_theta == 10000.0, "a version that reads them itself is left alone"
    monkeypatch.setattr(compat, "transformers_version", lambda: "4.57.1")
    plain = config_of_5(rope_type="default", rope_theta=5e5, partial_rotary_factor=0.5)
    compat.read_rope_parameters(plain)
    assert (plain.rope_theta, plain.rope_scaling, plain.partial_rotary_factor) == (5e5, None, 0.5)
    scaled = config_of_5(rope_theta=5e5, **llama3)
    compat.read_rope_parameters(scaled)
    assert (scaled.rope_theta, scaled.rope_scaling) == (5e5, llama3)
    old = SimpleNamespace(rope_theta=7.0, rope_scaling=llama3)
    compat.read_rope_parameters(old)
    assert (old.rope_theta, old.rope_scaling) == (7.0, llama3)
    with pytest.raises(Unsupported, match="one for each kind of layer, which transformers 4.57.1 can't represent"):
        compat.read_rope_parameters(config_of_5(full_attention={"rope_theta": 5e5}))


@pytest.mark.parametrize("cache,flag", [("dynamic", "_supports_cache_class"), ("static", "_supports_static_cache")])
def test_a_model_that_takes_no_cache_objects_is_refused(arm, monkeypatch, cache, flag):
    monkeypatch.setattr(transformers.LlamaForCausalLM, flag, False, raising=False)
    with pytest.raises(Unsupported, match=f"expected a LlamaForCausalLM that takes a {cache} cache object, found that "
                                          f"of transformers {transformers.__version__}, which takes none"):
        arm("llama", cache=cache)


def test_caches_whose_constructor_allocates(monkeypatch):
    """Before transformers 4.56 their tensors lie in the cache, not in its layers."""
    class StaticCache:
        def __init__(self, **given):
            self.given = given
            self.key_cache, self.value_cache = ["k0", "k1"], ["v0", "v1"]
    monkeypatch.setattr("transformers.cache_utils.StaticCache", StaticCache)
    cache = compat.static_cache("config", 2, 16, 3, 8, torch.float16, "device")
    assert cache.given == {"config": "config", "max_batch_size": 2, "max_cache_len": 16, "device": "device",
                           "dtype": torch.float16}
    assert compat.static_tensors(cache) == ["k0", "v0", "k1", "v1"]


@pytest.mark.parametrize("masked", [False, True])
def test_models_that_are_told_where_keys_go_are_told_each_position_once(arm, masked):
    engine = arm("llama", cache="static")
    engine.model.takes_cache_position = True
    told = []

    def noting(call):
        def noted(cache_position, **given):
            told.append(cache_position.tolist())
            takes = compat.takes_cache_position(engine.model.module.forward)
            return call(**given, **({"cache_position": cache_position} if takes else {}))
        return noted
    engine.arm.calls = {part: noting(call) for part, call in engine.arm.calls.items()}
    run(engine, [padded(make_prompts()[:1], 8 if masked else 0)], padding=masked)
    length = 8 if masked else PROMPT.padded_len
    once = [list(range(length)), *([length + step] for step in range(STEPS))]
    assert told == 2 * once, "prepared and measured"
    told.clear()
    engine.model.takes_cache_position = False  # nobody is told
    with pytest.raises(TypeError, match="cache_position"):
        run(engine, [PROMPT])


@pytest.mark.soak
def test_kernels_that_a_torch_does_not_tell_of_are_absent(arm, monkeypatch):
    monkeypatch.setattr(compat, "after_compiling", lambda: None)
    engine = arm(CHEAP, cache="static", **INDUCTOR)
    run(engine, [PROMPT], "prefill")
    evidence = collect(engine, "prefill")
    kernels = evidence["kernels"]
    assert kernels["in_graphs"] is None
    assert any("kernels in graphs can't be counted" in one["text"] for one in evidence["warnings"])
    assert evidence["compiler_real"] == ("yes" if kernels["files_written"] else "unproven"), evidence["reasons"]
    assert "this torch doesn't count loaded kernels" in evidence["reasons"][1]


def test_a_reason_that_a_record_has_as_an_exception_is_kept(arm):
    watch = arm("llama", mode="default", torch_backend="aot_eager").watch
    try:
        raise ValueError("no such operator")
    except ValueError:
        watch.note(logging.LogRecord("torch._dynamo.symbolic_convert.__graph_breaks", logging.DEBUG, "", 0,
                                     "Graph break: from user code at: x", (), sys.exc_info()))
    assert watch.events.graph_breaks[-1]["text"] == "Graph break: from user code at: x\nValueError: no such operator"
