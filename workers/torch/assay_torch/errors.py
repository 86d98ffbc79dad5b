"""Exceptions as the `error` reply has them: class, whole message, and whether memory ran out."""

from __future__ import annotations

import traceback

OUT_OF_MEMORY_TEXTS = ("CUDA out of memory", "CUDA error: out of memory", "DefaultCPUAllocator: can't allocate memory",
                       "DefaultCPUAllocator: not enough memory", "CUBLAS_STATUS_ALLOC_FAILED",
                       "CUDNN_STATUS_ALLOC_FAILED")


class ProtocolError(Exception):
    """A line that breaks docs/worker-protocol.md."""


class LineTooLong(ProtocolError):
    """The one broken rule after which the worker can't go on."""


class Unsupported(Exception):
    """An arm that this worker, torch or machine can't be."""


class WrongCacheLength(Exception):
    """A repetition after which its cache holds other than what was given to it: its tokens are of no worth."""


class NonFinite(Exception):
    """Logits of which a token was chosen hold NaN or an infinity: the token says nothing of the model."""


def chain(error: BaseException) -> list[BaseException]:
    """The error and what it came from, once each."""
    found: list[BaseException] = []
    pending: list[BaseException | None] = [error]
    while pending:
        one = pending.pop(0)
        if one is None or any(one is seen for seen in found):
            continue
        found.append(one)
        # Dynamo's BackendCompilerFailed keeps the compiler's own exception as a member.
        inner = getattr(one, "inner_exception", None)
        pending += [one.__cause__, one.__context__, inner if isinstance(inner, BaseException) else None]
    return found


def class_names(error: BaseException) -> set[str]:
    """Names of the classes of the chain, base classes included."""
    return {base.__name__ for one in chain(error) for base in type(one).__mro__}


def is_out_of_memory(error: BaseException) -> bool:
    if class_names(error) & {"OutOfMemoryError", "MemoryError"}:
        return True
    return any(text in str(one) for one in chain(error) for text in OUT_OF_MEMORY_TEXTS)


def error_class(error: BaseException) -> str:
    if isinstance(error, ProtocolError):
        return "protocol_error"
    return "non_finite" if isinstance(error, NonFinite) else type(error).__name__


def whole_message(error: BaseException) -> str:
    """The message first, then the traceback; a refusal needs no traceback."""
    text = str(error) or type(error).__name__
    if isinstance(error, (ProtocolError, Unsupported, NonFinite)):
        return text
    return text + "\n\n" + "".join(traceback.format_exception(error))
