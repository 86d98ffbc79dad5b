"""The model: a local checkpoint, or an architecture's config with random weights made on the device."""

from __future__ import annotations

import copy
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from assay_torch import compat, fp8
from assay_torch.errors import Unsupported
from assay_torch.options import Options
from assay_torch.requests import Load

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
NOOP_VOCABULARY = 256


class NoopModel(nn.Module):
    """Answers the same logits whatever it is asked: what is left of a timed region is the worker's own."""

    def __init__(self) -> None:
        super().__init__()
        self.config = SimpleNamespace(vocab_size=NOOP_VOCABULARY, bos_token_id=0, eos_token_id=0,
                                      max_position_embeddings=None)
        self.answers: dict[int, Any] = {}

    def forward(self, input_ids: torch.Tensor, **_: Any) -> Any:
        batch = input_ids.shape[0]
        if batch not in self.answers:
            self.answers[batch] = SimpleNamespace(logits=torch.zeros(batch, 1, NOOP_VOCABULARY))
        return self.answers[batch]


@dataclass
class Model:
    """A causal language model on its device, in evaluation mode."""

    module: nn.Module
    config: Any
    device: torch.device
    dtype: str
    noop: bool = False
    all_logits: bool = False  # of all positions, not of the last one alone
    fp8: dict[str, Any] | None = None  # what of it computes in FP8

    def __post_init__(self) -> None:
        # Arguments of every forward pass: it fills the cache.
        last = {} if self.all_logits else compat.last_logits_only(self.module.forward)
        self.fixed_arguments = {"use_cache": True, **last}
        # True for a forward pass over a StaticCache that takes the positions.
        self.takes_cache_position = compat.takes_cache_position(self.module.forward)

    @property
    def decoder(self) -> Any:
        """The part of the config that describes the language model; of most models, all of it."""
        pick = getattr(self.config, "get_text_config", None)
        return pick(decoder=True) if pick else self.config

    @property
    def vocab_size(self) -> int:
        return int(self.decoder.vocab_size)

    @property
    def max_positions(self) -> int | None:
        return getattr(self.decoder, "max_position_embeddings", None)

    def special_ids(self) -> list[int]:
        ids: set[int] = set()
        for name in ("bos_token_id", "eos_token_id"):
            value = getattr(self.decoder, name, None)
            ids.update(value if isinstance(value, list) else [value])
        return sorted(one for one in ids if isinstance(one, int) and 0 <= one < self.vocab_size)

    def kv_heads(self) -> int:
        heads = getattr(self.decoder, "num_key_value_heads", None)
        return int(heads or self.decoder.num_attention_heads)

    def head_dim(self) -> int:
        stated = getattr(self.decoder, "head_dim", None)
        return int(stated or self.decoder.hidden_size // self.decoder.num_attention_heads)

    def weight_bytes(self) -> int:
        return sum(one.nbytes for one in self.module.parameters())  # tied ones once


def pick_device(name: str) -> torch.device:
    if name == "cpu":
        return torch.device("cpu")
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    if name == "cuda":
        raise Unsupported(f"device cuda: expected a CUDA device, found none (torch {torch.__version__}, built for "
                          f"CUDA {torch.version.cuda})")
    return torch.device("cpu")


def choose_sdpa_kernel(name: str, device: torch.device) -> None:
    """Leaves this kernel alone to torch's attention; a call that it can't serve then raises."""
    if name == "auto":
        return
    if device.type != "cuda":
        raise Unsupported(f"options.sdpa_kernel: expected device cuda beside {name}, found {device.type}")
    switches = {"cudnn": torch.backends.cuda.enable_cudnn_sdp, "flash": torch.backends.cuda.enable_flash_sdp,
                "efficient": torch.backends.cuda.enable_mem_efficient_sdp, "math": torch.backends.cuda.enable_math_sdp}
    for kernel, switch in switches.items():
        switch(kernel == name)


def open_model(load: Load, options: Options, device: torch.device) -> Model:
    torch.manual_seed(options.seed)
    if options.noop:
        return Model(NoopModel().eval(), NoopModel().config, device, "fp32", noop=True)
    module = _built(load, options, device) if options.config else _read(load, options, device)
    module = module.eval().requires_grad_(False)
    if not compat.takes_caches(module, load.cache):
        raise Unsupported(f"model {load.model}: expected a {type(module).__name__} that takes a {load.cache} cache "
                          f"object, found that of transformers {compat.transformers_version()}, which takes none")
    names = {dtype: name for name, dtype in DTYPES.items()}
    if module.dtype not in names:
        raise Unsupported(f"model {load.model}: expected weights of {', '.join(DTYPES)}, found {module.dtype}")
    dtype = names[module.dtype]
    if options.dtype == "fp8" and dtype == "fp32":
        raise Unsupported(f"dtype fp8: expected a model {load.model} of fp16 or bf16, found {dtype}")
    converted = fp8.convert(module, options, device) if options.dtype == "fp8" else None
    return Model(module, module.config, device, dtype, all_logits=options.logits == "all", fp8=converted)


def _read(load: Load, options: Options, device: torch.device) -> nn.Module:
    from transformers import AutoConfig, AutoModelForCausalLM
    folder = Path(load.model)
    if not (folder / "config.json").is_file():
        raise Unsupported(f'model {load.model}: expected a checkpoint folder (with config.json) or options.config')
    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    compat.read_rope_parameters(config)
    module = AutoModelForCausalLM.from_pretrained(
        folder, config=config, attn_implementation=options.attn_implementation, local_files_only=True,
        **{compat.load_dtype_key(): DTYPES.get(load.dtype, "auto")})
    return module.to(device)


def _built(load: Load, options: Options, device: torch.device) -> nn.Module:
    from transformers import AutoConfig, AutoModelForCausalLM
    values = copy.deepcopy(options.config or {})  # transformers writes into what lies in it
    stored = str(values.get("dtype", values.get("torch_dtype", "float32"))).removeprefix("torch.")
    dtype = DTYPES[load.dtype] if load.dtype else getattr(torch, stored, torch.float32)
    config = AutoConfig.for_model(values.pop("model_type"), **values)
    compat.read_rope_parameters(config)
    with torch.device(device):  # weights are drawn where they stay: an 8B model needs no host copy
        return AutoModelForCausalLM.from_config(config, attn_implementation=options.attn_implementation,
                                                **{compat.load_dtype_key(): dtype})


def model_hash(load: Load, model: Model) -> str:
    """Hash of the model. A folder: as the native engine's, config.json and then the weight files by name. A built
    model: the config as it was given, which unlike transformers' own form of it is the same under every version, and
    the weights' bytes."""
    digest = hashlib.sha256()
    folder = Path(load.model)
    if (folder / "config.json").is_file():
        for path in [folder / "config.json", *sorted(folder.glob("*.safetensors"))]:
            with open(path, "rb") as file:
                while part := file.read(1 << 22):
                    digest.update(part)
        return digest.hexdigest()
    digest.update(json.dumps(load.options.get("config"), sort_keys=True).encode())
    for name, weight in sorted(model.module.named_parameters()):
        digest.update(name.encode())
        digest.update(weight.detach().reshape(-1).view(torch.uint8).cpu().numpy().tobytes())
    return digest.hexdigest()


def read_bytes(model: Model, batch: int, kv_lens: list[int]) -> int | None:
    """Bytes that forward passes over these many cached positions (0: a prefill) can't have done without reading.

    Each weight once a pass, but of a table that is only looked up a row for each row of the batch. None where not
    every weight takes part in a pass (experts).
    """
    if model.noop or any("expert" in name for name, _ in model.module.named_modules()):
        return None
    tables = {id(module.weight) for module in model.module.modules() if isinstance(module, nn.Embedding)}
    used_whole = {id(module.weight) for module in model.module.modules() if isinstance(module, (nn.Linear, fp8.RowwiseLinear))}
    weights = 0
    for weight in model.module.parameters():
        rows_only = id(weight) in tables - used_whole
        weights += min(batch, weight.shape[0]) * weight[0].nbytes if rows_only else weight.nbytes
    per_position = (2 * model.decoder.num_hidden_layers * batch * model.kv_heads() * model.head_dim()
                    * DTYPES[model.dtype].itemsize)
    return weights * len(kv_lens) + per_position * sum(kv_lens)
