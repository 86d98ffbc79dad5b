"""Products in FP8: how rows are rounded, which layers are converted, and what is refused. The product itself is a GPU's; a
stand-in multiplies what the codes and scales stand for."""

import sys
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from assay_torch import fp8, models
from assay_torch.errors import Unsupported
from assay_torch.options import Options, parse_options
from assay_torch.requests import Load, Shape
from test_arms import make_prompts, padded, run

CPU = torch.device("cpu")


def load_of(weights="bf16", **options):
    return Load("model", weights, "eager", "dynamic", "", 1, False, options)


@pytest.fixture
def gpu(monkeypatch):
    """A processor that passes for a GPU, and multiplies what the codes stand for."""
    def multiply(rows, weight, scale_a, scale_b, bias, out_dtype, use_fast_accum):
        assert rows.dtype == weight.dtype == fp8.E4M3
        assert scale_a.shape == (rows.shape[0], 1) and scale_b.shape == (1, weight.shape[1])
        out = (rows.float() * scale_a) @ (weight.float() * scale_b)
        return (out if bias is None else out + bias.float()).to(out_dtype)
    monkeypatch.setattr(torch, "_scaled_mm", multiply)
    monkeypatch.setattr(fp8, "check_device", lambda device: None)


def test_a_row_and_an_output_have_scales_of_their_own(gpu):
    torch.manual_seed(1)
    layer = nn.Linear(64, 32, dtype=torch.bfloat16)
    x = torch.randn(2, 5, 64, dtype=torch.bfloat16)
    x[1, 3] *= 1e4  # with one scale for all, the other rows would be lost
    layer.weight.data[7] *= 1e4
    expected = layer(x).float()
    found = fp8.RowwiseLinear(layer, False)(x).float()
    assert found.shape == expected.shape
    largest = (expected - layer.bias.float()).abs().amax(0, keepdim=True).amax(1, keepdim=True)
    for row in range(10):
        off = (found - expected).reshape(10, 32)[row].abs()
        scale = expected.reshape(10, 32)[row].abs()
        others = [at for at in range(32) if at != 7]
        assert off[others].max() < 0.15 * scale[others].max()
        assert off[7] < 0.15 * scale[7]
    assert not torch.equal(found, expected) and largest.shape == (1, 1, 32)


def test_zeros_stay_zeros_and_what_is_not_finite_shows():
    codes, scale = fp8._rounded(torch.tensor([[0.0] * 16, [1.0] * 15 + [float("nan")]]))
    assert not codes[0].float().any() and torch.isfinite(scale[0]).all()
    assert torch.isnan((codes.float() * scale)[1]).any()


def test_the_head_and_odd_sizes_are_kept(gpu):
    class Body(nn.Module):
        def __init__(self):
            super().__init__()
            self.even, self.odd, self.head = nn.Linear(32, 64), nn.Linear(30, 64), nn.Linear(32, 48)

        def get_output_embeddings(self):
            return self.head
    body = Body()
    told = fp8.convert(body, Options(dtype="fp8"), CPU)
    assert told["in_e4m3"] == 1 and isinstance(body.even, fp8.RowwiseLinear)
    assert told["kept"] == ["odd: expected multiples of 16 inputs and outputs, found 30 and 64", "head: the head"]
    assert fp8.convert(Body(), Options(dtype="fp8", fp8_head=True), CPU)["in_e4m3"] == 2


def test_what_can_not_be_is_refused_in_one_line(monkeypatch):
    with pytest.raises(Unsupported, match="^dtype fp8: expected a GPU of compute capability 8.9 or later, found cpu$"):
        fp8.convert(nn.Linear(16, 16), Options(dtype="fp8"), CPU)
    with pytest.raises(Unsupported, match="expected weights of fp16 or bf16 beside it, found fp32"):
        parse_options(load_of("fp32", dtype="fp8"))
    with pytest.raises(Unsupported, match="options.fp8_head: expected dtype fp8 beside it, found none"):
        parse_options(load_of(fp8_head=True))
    with pytest.raises(Unsupported, match="options.sdpa_kernel: expected attn_implementation sdpa, found eager"):
        parse_options(load_of(sdpa_kernel="cudnn", attn_implementation="eager"))
    with pytest.raises(Unsupported, match="expected device cuda beside cudnn, found cpu"):
        models.choose_sdpa_kernel("cudnn", CPU)
    monkeypatch.setattr(fp8, "check_device", lambda device: None)
    monkeypatch.setitem(sys.modules, "transformer_engine", None)
    with pytest.raises(Unsupported, match="expected the package transformer_engine in this interpreter, found ModuleNotFoundError"):
        fp8.convert(nn.Linear(16, 16), Options(dtype="fp8", fp8_products="transformer_engine"), CPU)


def test_transformer_engines_modules_take_the_weights_and_its_context(monkeypatch):
    """A package with the names that are used of the real one takes its place, which needs a GPU."""
    contexts = []

    class Linear(nn.Linear):
        def __init__(self, inputs, outputs, bias, params_dtype, device):
            super().__init__(inputs, outputs, bias=bias, dtype=params_dtype, device=device)

    class Autocast:
        def __init__(self, enabled):
            contexts.append(enabled)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            contexts.append("left")
    engine = SimpleNamespace(Linear=Linear, fp8_autocast=Autocast)
    monkeypatch.setitem(sys.modules, "transformer_engine", SimpleNamespace(pytorch=engine))
    monkeypatch.setitem(sys.modules, "transformer_engine.pytorch", engine)
    monkeypatch.setattr(fp8, "check_device", lambda device: None)
    module = nn.Sequential(nn.Linear(16, 32))
    x = torch.randn(3, 16)
    expected = module(x)
    told = fp8.convert(module, Options(dtype="fp8", fp8_products="transformer_engine"), CPU)
    assert told["in_e4m3"] == 1 and isinstance(module[0], Linear)
    assert torch.equal(module(x), expected) and contexts == [True, "left"]


def test_logits_of_all_positions_choose_the_same_tokens(arm):
    prompt = padded(make_prompts()[:2])
    last, every = arm("llama"), arm("llama", logits="all")
    assert last.model.fixed_arguments.get("logits_to_keep") == 1 and "logits_to_keep" not in every.model.fixed_arguments
    shape = Shape("prefill", 2, 0, prompt.padded_len)
    assert run(last, [prompt], "prefill")[0]["output_hash"] == run(every, [prompt], "prefill")[0]["output_hash"]
    call = every.arm.calls["prefill"]
    inputs = every._set_up(shape, prompt)
    assert call(input_ids=inputs[0].ids, past_key_values=inputs[1], **inputs[0].prefill).logits.shape[1] == prompt.padded_len
