"""The worker's loop: order of requests, errors as replies, samples streamed."""

from __future__ import annotations

import sys
from typing import Any

from assay_torch import requests
from assay_torch.errors import LineTooLong, ProtocolError, error_class, is_out_of_memory, whole_message
from assay_torch.protocol import INT64_MAX, VERSION, Channel, Members, parse_line
from assay_torch.session import Session

BEFORE_LOAD = ("hello", "load", "shutdown")


class Loop:
    """Serves one harness until `shutdown` or the end of its requests."""

    def __init__(self, channel: Channel, session: Session) -> None:
        self._channel, self._session = channel, session
        self._greeted = self._loaded = self._finished = False
        self._shape: requests.Shape | None = None  # prepared last

    def run(self) -> None:
        while not self._finished:
            line = self._channel.read_line()
            if line is None:
                return
            try:
                message = parse_line(line)
                request_id = Members(message, "request").integer("id", 0, INT64_MAX)
            except ProtocolError as error:
                self._error(0, error)
                continue
            try:
                self._serve(request_id, message)
            except BrokenPipeError:
                return
            except (Exception, SystemExit) as error:  # pylint: disable=broad-except
                self._error(request_id, error)

    def _serve(self, request_id: int, message: dict[str, Any]) -> None:
        kind = Members(message, "request").text("type")
        handler = getattr(self, f"_on_{kind}", None) if kind.isidentifier() else None
        if handler is None:
            raise ProtocolError(f'request: expected a known type, found "{kind[:80]}"')
        if kind == "hello" and self._greeted:
            raise ProtocolError("expected one hello, found another")
        if kind not in ("hello", "shutdown") and not self._greeted:
            raise ProtocolError("expected hello first")
        if kind == "load" and self._loaded:
            raise ProtocolError("expected one load, found another")
        if kind not in BEFORE_LOAD and not self._loaded:
            raise ProtocolError("expected load first")
        handler(request_id, message)

    def _reply(self, request_id: int, kind: str, body: dict[str, Any]) -> None:
        self._channel.write({"id": request_id, "type": kind, **body})

    def _error(self, request_id: int, error: BaseException) -> None:
        message = whole_message(error)
        print(f"assay-torch: {message}", file=sys.stderr, flush=True)
        self._reply(request_id, "error", {"class": error_class(error), "message": message,
                                          "out_of_memory": is_out_of_memory(error)})

    def _on_hello(self, request_id: int, message: dict[str, Any]) -> None:
        least, most = requests.parse_hello(message)
        if not least <= VERSION <= most:
            raise ProtocolError(f"expected protocol version {VERSION}, found {least} to {most}")
        self._greeted = True
        self._reply(request_id, "hello", {"protocol": VERSION, **self._session.describe()})

    def _on_load(self, request_id: int, message: dict[str, Any]) -> None:
        loaded = self._session.load(requests.parse_load(message))
        self._loaded = True
        self._reply(request_id, "loaded", loaded)

    def _on_prepare(self, request_id: int, message: dict[str, Any]) -> None:
        request = requests.parse_prepare(message)
        self._shape = None
        prepared = self._session.prepare(request)
        self._shape = request.shape
        self._reply(request_id, "prepared", prepared)

    def _on_measure(self, request_id: int, message: dict[str, Any]) -> None:
        request = requests.parse_measure(message)
        if self._shape != request.shape:
            raise ProtocolError("expected prepare with this shape before measure")
        for repetition, index in request.repetitions:
            self._reply(request_id, "sample", self._session.measure(request, repetition, request.prompts[index]))
        self._reply(request_id, "done", {"samples": len(request.repetitions)})

    def _on_parity(self, request_id: int, message: dict[str, Any]) -> None:
        shape, prompt = requests.parse_parity(message)
        self._shape = None
        self._reply(request_id, "parity", self._session.parity(shape, prompt))

    def _on_profile(self, request_id: int, message: dict[str, Any]) -> None:
        shape, prompt, trace_path = requests.parse_profile(message)
        if self._shape != shape:
            self._shape = None
        self._reply(request_id, "profile", self._session.profile(shape, prompt, trace_path))

    def _on_evidence(self, request_id: int, message: dict[str, Any]) -> None:
        self._reply(request_id, "evidence", self._session.evidence(requests.parse_evidence(message)))

    def _on_tokenize(self, request_id: int, message: dict[str, Any]) -> None:
        self._reply(request_id, "tokenized", self._session.tokenize(requests.parse_tokenize(message)))

    def _on_shutdown(self, request_id: int, _: dict[str, Any]) -> None:
        self._finished = True
        self._session.close()
        self._reply(request_id, "bye", {})


def serve_descriptors(request_descriptor: int, reply_descriptor: int) -> int:
    """Exit status: 0 after `shutdown` or the end of the requests, 1 after a line too long to read."""
    session = Session()
    try:
        channel = Channel(request_descriptor, reply_descriptor)
        try:
            Loop(channel, session).run()
        except LineTooLong as error:
            print(f"assay-torch: {error}", file=sys.stderr)
            return 1
        except BrokenPipeError:
            return 0
        return 0
    except OSError as error:
        print(f"assay-torch: descriptors 3 and 4: {error}", file=sys.stderr)
        return 2
    finally:
        session.close()
        sys.stdout.flush()
        sys.stderr.flush()
