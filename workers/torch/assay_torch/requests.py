"""The requests as values, validated as docs/worker-protocol.md says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from assay_torch.errors import ProtocolError
from assay_torch.protocol import (INT32_MAX, MAX_BATCH, MAX_COUNT, MAX_POSITIONS, MAX_REPETITIONS, Members)

PHASES = ("prefill", "kv_decode", "e2e_kv")


@dataclass(frozen=True)
class Shape:
    phase: str
    batch: int
    new_tokens: int  # 0 in prefill
    capacity: int  # positions that the cache must hold

    @property
    def prefills(self) -> bool:
        """True if the timed region holds the prefill."""
        return self.phase != "kv_decode"


@dataclass(frozen=True)
class Prompt:
    ids: list[list[int]]  # [batch, padded_len], left-padded
    pad: list[int]  # [batch]: padding ids at the start of each row

    @property
    def padded_len(self) -> int:
        return len(self.ids[0])


@dataclass(frozen=True)
class Load:
    model: str
    dtype: str
    mode: str
    cache: str
    dynamic: str
    threads: int
    want_model_hash: bool
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Prepare:
    shape: Shape
    padded_lens: list[int]
    padding: bool | None  # whether prompts to come have padding ids; None: not said


@dataclass(frozen=True)
class Measure:
    shape: Shape
    prompts: list[Prompt]
    repetitions: list[tuple[int, int]]  # (repetition, index of its prompt)


def parse_hello(message: dict[str, Any]) -> tuple[int, int]:
    members = Members(message, "hello")
    least = members.integer("protocol_min", 1, MAX_COUNT)
    most = members.integer("protocol_max", least, MAX_COUNT)
    members.text("harness", "")
    return least, most


def parse_load(message: dict[str, Any]) -> Load:
    members = Members(message, "load")
    return Load(members.text("model"), members.text("dtype", ""), members.text("mode"), members.text("cache"),
                members.text("dynamic", ""), members.integer("threads", 0, 1 << 16),
                members.boolean("want_model_hash"), members.object("options", {}))


def parse_shape(members: Members, unfed: int = 0) -> Shape:
    """`unfed`: of the new tokens, those that are chosen and take no place in the cache: parity's last."""
    phase = members.word("phase", PHASES)
    batch = members.integer("batch", 1, MAX_BATCH)
    decodes = phase != "prefill"
    new_tokens = members.integer("new_tokens", 1 if decodes else 0, MAX_POSITIONS + unfed if decodes else 0)
    return Shape(phase, batch, new_tokens,
                 members.integer("capacity", new_tokens - unfed + 1, 2 * MAX_POSITIONS))


def parse_prepare(message: dict[str, Any]) -> Prepare:
    members = Members(message, "prepare")
    shape = parse_shape(members)
    lens = members.integers("padded_lens", 1, shape.capacity - shape.new_tokens, MAX_REPETITIONS)
    return Prepare(shape, lens, members.boolean("padding") if members.has("padding") else None)


def parse_prompt(prompt: dict[str, Any], name: str, shape: Shape, unfed: int = 0) -> Prompt:
    members = Members(prompt, name)
    ids = members.id_rows("ids")
    pad = members.integers("pad", 0, INT32_MAX, MAX_BATCH)
    if len(ids) != shape.batch or len(pad) != shape.batch:
        raise ProtocolError(f"{name}: expected {shape.batch} rows of ids and pads, found {len(ids)} and {len(pad)}")
    if max(pad) >= len(ids[0]):
        raise ProtocolError(f"{name}: expected fewer than {len(ids[0])} padding ids, found {max(pad)}")
    room = shape.capacity - shape.new_tokens + unfed
    if len(ids[0]) > room:
        raise ProtocolError(f"{name}: expected a prompt of at most {room} ids, found {len(ids[0])}")
    return Prompt(ids, pad)


def parse_measure(message: dict[str, Any]) -> Measure:
    members = Members(message, "measure")
    shape = parse_shape(members)
    prompts = [parse_prompt(one, "measure prompt", shape) for one in members.objects("prompts", MAX_REPETITIONS)]
    repetitions = []
    for one in members.objects("repetitions", MAX_REPETITIONS):
        item = Members(one, "measure repetition")
        repetitions.append((item.integer("repetition", -MAX_REPETITIONS, MAX_REPETITIONS),
                            item.integer("prompt", 0, len(prompts) - 1)))
    if not repetitions:
        raise ProtocolError("measure: expected at least one repetition")
    return Measure(shape, prompts, repetitions)


def parse_parity(message: dict[str, Any]) -> tuple[Shape, Prompt]:
    members = Members(message, "parity")
    shape = parse_shape(members, unfed=1)
    if shape.phase != "kv_decode":
        raise ProtocolError(f"parity: expected phase kv_decode, found {shape.phase}")
    return shape, parse_prompt(members.object("prompt"), "parity prompt", shape, unfed=1)


def parse_profile(message: dict[str, Any]) -> tuple[Shape, Prompt, str]:
    members = Members(message, "profile")
    shape = parse_shape(members)
    return shape, parse_prompt(members.object("prompt"), "profile prompt", shape), members.text("trace_path")


def parse_evidence(message: dict[str, Any]) -> str:
    return Members(message, "evidence").word("phase", PHASES)


def parse_tokenize(message: dict[str, Any]) -> str:
    return Members(message, "tokenize").text("text")
