"""A model's products in FP8: by torch's own scaled product, or by the modules of Transformer Engine."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import nn

from assay_torch.errors import Unsupported
from assay_torch.options import Options

E4M3 = torch.float8_e4m3fn
LARGEST = torch.finfo(E4M3).max
SMALLEST = 1e-30  # of the largest element of a row; below it the row is zeros
MULTIPLE = 16  # of a product's inputs and outputs, torch's
CAPABILITY = (8, 9)


def _rounded(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows in e4m3 and the scale of each, [rows, 1]: element = code * scale, the largest of a row 448."""
    wide = rows.float()
    scale = wide.abs().amax(-1, keepdim=True).clamp(min=SMALLEST) / LARGEST
    return (wide / scale).clamp(-LARGEST, LARGEST).to(E4M3), scale


class RowwiseLinear(nn.Module):
    """nn.Linear by torch._scaled_mm: both operands in e4m3, x by a scale for each row, the weight for each output."""

    def __init__(self, linear: nn.Linear, fast_sums: bool) -> None:
        super().__init__()
        self.fast_sums = fast_sums
        codes, scale = _rounded(linear.weight.detach())  # [out, in], [out, 1]
        self.weight = nn.Parameter(codes, requires_grad=False)
        self.scale = nn.Parameter(scale.t().contiguous(), requires_grad=False)  # [1, out]
        self.bias = linear.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, scale = _rounded(x.reshape(-1, x.shape[-1]))
        out = torch._scaled_mm(rows, self.weight.t(), scale_a=scale, scale_b=self.scale, bias=self.bias,
                               out_dtype=x.dtype, use_fast_accum=self.fast_sums)
        return out.reshape(*x.shape[:-1], -1)


def check_device(device: torch.device) -> None:
    found = torch.cuda.get_device_capability(device) if device.type == "cuda" else None
    if found is None or found < CAPABILITY:
        text = device.type if found is None else "{}.{}".format(*found)
        raise Unsupported("dtype fp8: expected a GPU of compute capability {}.{} or later, found {}".format(*CAPABILITY, text))


def convert(module: nn.Module, options: Options, device: torch.device) -> dict[str, Any]:
    """Replaces the model's linear layers, the head's only with fp8_head; says which."""
    check_device(device)
    head = getattr(module, "get_output_embeddings", lambda: None)()
    make = _of_transformer_engine() if options.fp8_products == "transformer_engine" else \
        lambda layer: RowwiseLinear(layer, options.fp8_fast_sums)
    converted, kept = 0, []
    for name, parent, child, layer in _linears(module):
        if layer is head and not options.fp8_head:
            kept.append(f"{name}: the head")
        elif layer.in_features % MULTIPLE or layer.out_features % MULTIPLE:
            kept.append(f"{name}: expected multiples of {MULTIPLE} inputs and outputs, found {layer.in_features} and "
                        f"{layer.out_features}")
        else:
            setattr(parent, child, make(layer))
            converted += 1
    if options.fp8_products == "transformer_engine":
        _run_in_fp8(module)
    return {"products": options.fp8_products, "fast_sums": options.fp8_fast_sums, "in_e4m3": converted, "kept": kept}


def _linears(module: nn.Module) -> list[tuple[str, nn.Module, str, nn.Linear]]:
    return [(f"{name}.{child}".lstrip("."), parent, child, layer) for name, parent in module.named_modules()
            for child, layer in parent.named_children() if isinstance(layer, nn.Linear)]


def _engine() -> Any:
    try:
        import transformer_engine.pytorch as engine
    except Exception as error:  # pylint: disable=broad-except
        raise Unsupported("fp8_products transformer_engine: expected the package transformer_engine in this interpreter, "
                          f"found {type(error).__name__}: {error}") from error
    return engine


def _of_transformer_engine() -> Any:
    engine = _engine()

    def make(layer: nn.Linear) -> nn.Module:
        made = engine.Linear(layer.in_features, layer.out_features, bias=layer.bias is not None,
                             params_dtype=layer.weight.dtype, device=layer.weight.device)
        made.weight.data.copy_(layer.weight)
        if layer.bias is not None:
            made.bias.data.copy_(layer.bias)
        return made.requires_grad_(False)
    return make


def _run_in_fp8(module: nn.Module) -> None:
    """Makes every forward pass one of Transformer Engine's FP8 contexts, with its own recipe."""
    engine, forward = _engine(), module.forward

    def in_fp8(*given: Any, **named: Any) -> Any:
        with engine.fp8_autocast(enabled=True):
            return forward(*given, **named)
    in_fp8.__signature__ = inspect.signature(forward)  # which says what the pass takes
    module.forward = in_fp8
