"""Lines in, lines out: the channel of docs/worker-protocol.md, and typed access to a message's members."""

from __future__ import annotations

import json
import os
from typing import Any

from assay_torch.errors import LineTooLong, ProtocolError

VERSION = 1
MAX_LINE_BYTES = 16 << 20
MAX_DEPTH = 64
MAX_COUNT = 1 << 31
MAX_BATCH = 4096
MAX_POSITIONS = 1 << 24
MAX_REPETITIONS = 1_000_000
INT32_MAX = (1 << 31) - 1
INT64_MAX = (1 << 63) - 1


class Channel:
    """Requests from one descriptor, replies to another. The descriptors aren't inherited by what the worker starts."""

    def __init__(self, request_descriptor: int, reply_descriptor: int) -> None:
        self._requests, self._replies = request_descriptor, reply_descriptor
        for descriptor in (request_descriptor, reply_descriptor):
            os.set_inheritable(descriptor, False)
        self._pending = bytearray()

    def read_line(self) -> bytes | None:
        """The next line without its end; None when the harness has closed its side. LineTooLong."""
        searched = 0
        while (end := self._pending.find(b"\n", searched)) < 0:
            if len(self._pending) > MAX_LINE_BYTES:
                raise LineTooLong(f"request: expected at most {MAX_LINE_BYTES} bytes in a line")
            searched = len(self._pending)
            part = os.read(self._requests, 1 << 16)
            if not part:
                return None
            self._pending += part
        line = bytes(self._pending[:end])
        if len(line) > MAX_LINE_BYTES:
            raise LineTooLong(f"request: expected at most {MAX_LINE_BYTES} bytes in a line, found {len(line)}")
        del self._pending[:end + 1]
        return line

    def write(self, message: dict[str, Any]) -> None:
        """Raises BrokenPipeError when nobody reads any more."""
        line = json.dumps(message, allow_nan=False, separators=(",", ":"), default=str).encode() + b"\n"
        if len(line) > MAX_LINE_BYTES:
            raise ValueError(f"reply {message.get('type')}: expected at most {MAX_LINE_BYTES} bytes, found {len(line)}")
        view = memoryview(line)
        while view:
            view = view[os.write(self._replies, view):]


def _refuse_constant(name: str) -> None:
    raise ProtocolError(f"request: expected JSON, found {name}")


def _too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [child for one in level if isinstance(one, (dict, list))
                 for child in (one.values() if isinstance(one, dict) else one)]
        if not level:
            return False
    return any(isinstance(one, (dict, list)) for one in level)


def parse_line(line: bytes) -> dict[str, Any]:
    """One JSON object. ProtocolError."""
    try:
        message = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"request: expected one JSON object in UTF-8: {error}") from None
    if not isinstance(message, dict):
        raise ProtocolError("request: expected a JSON object")
    if _too_deep(message):
        raise ProtocolError(f"request: expected at most {MAX_DEPTH} levels")
    return message


class Members:
    """A message's members; each accessor refuses what is missing, of the wrong type or out of range."""

    def __init__(self, message: dict[str, Any], name: str) -> None:
        self._message, self._name = message, name

    def _wrong(self, key: str, expected: str) -> ProtocolError:
        value = self._message.get(key)
        found = "nothing" if value is None else json.dumps(value)[:80]
        return ProtocolError(f'{self._name}: expected {expected} at "{key}", found {found}')

    def has(self, key: str) -> bool:
        return self._message.get(key) is not None

    def integer(self, key: str, least: int, most: int) -> int:
        value = self._message.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self._wrong(key, f"an integer from {least} to {most}")
        return value

    def text(self, key: str, absent: str | None = None) -> str:
        value = self._message.get(key)
        if value is None and absent is not None:
            return absent
        if not isinstance(value, str):
            raise self._wrong(key, "a text")
        return value

    def word(self, key: str, words: tuple[str, ...]) -> str:
        if self._message.get(key) not in words:
            raise self._wrong(key, "one of " + ", ".join(words))
        return self._message[key]

    def boolean(self, key: str, absent: bool = False) -> bool:
        value = self._message.get(key)
        if value is None:
            return absent
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def object(self, key: str, absent: dict[str, Any] | None = None) -> dict[str, Any]:
        value = self._message.get(key)
        if value is None and absent is not None:
            return absent
        if not isinstance(value, dict):
            raise self._wrong(key, "an object")
        return value

    def objects(self, key: str, most: int) -> list[dict[str, Any]]:
        value = self._list(key, most)
        if not all(isinstance(element, dict) for element in value):
            raise self._wrong(key, "every element to be an object")
        return value

    def integers(self, key: str, least: int, most: int, size: int) -> list[int]:
        value = self._list(key, size)
        if not all(type(element) is int and least <= element <= most for element in value):
            raise self._wrong(key, f"every element to be an integer from {least} to {most}")
        return value

    def id_rows(self, key: str) -> list[list[int]]:
        rows = self._list(key, MAX_BATCH)
        for row in rows:
            if not isinstance(row, list) or not row or len(row) != len(rows[0]) or len(row) > MAX_POSITIONS:
                raise self._wrong(key, "rows of one length, not empty")
            if not all(type(token) is int and 0 <= token <= INT32_MAX for token in row):
                raise self._wrong(key, f"every id to be an integer from 0 to {INT32_MAX}")
        if not rows:
            raise self._wrong(key, "at least one row")
        return rows

    def _list(self, key: str, most: int) -> list[Any]:
        value = self._message.get(key)
        if not isinstance(value, list) or len(value) > most:
            raise self._wrong(key, f"a list of at most {most} elements")
        return value
