"""A server of the OpenAI API with known times on one event loop, for many requests at once, and the times at which it sent
tokens.

usage: load_truth.py [--first MS] [--step MS] [--slots N] [--pause EVERY_S FOR_S] [--cached TOKENS] [--remembers]

--slots: it computes so many requests at a time; others wait in a queue. --pause: in every EVERY_S seconds, counted from its
first request, it stands still for the last FOR_S. --cached: so many of a prompt's tokens come from its cache. --remembers: its
cache has each prompt and its answer, and a conversation's template adds no token. /sent answers {number: {"arrived", "begun",
"at"}} in ns of the monotonic clock; a request's number is the count of requests before it. /forget empties that.
"""

import argparse
import asyncio
import json
import time

options = argparse.Namespace()
sent = {}
remembered = []  # prompts with their answers, each a list of words


async def until_awake():
    """Waits out the pause that the present moment lies in."""
    if options.pause:
        every_s, for_s = options.pause
        left_s = every_s - (time.monotonic() - options.begun) % every_s
        if left_s <= for_s:
            await asyncio.sleep(left_s)


async def sleep_until(at_s):
    await asyncio.sleep(max(at_s - time.monotonic(), 0))
    await until_awake()


def event(body):
    data = f"data: {body if isinstance(body, str) else json.dumps(body)}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(data), data)


def answer(body):
    data = json.dumps(body).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(data), data)


async def generate(asked, writer):
    record = sent[len(sent)] = {"arrived": time.monotonic_ns(), "at": []}
    options.begun = options.begun or time.monotonic()
    count = asked["max_tokens"]
    async with options.free:
        await until_awake()
        record["begun"] = time.monotonic_ns()
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + event({"choices": [{"text": ""}]}))
        due_s = time.monotonic() + options.first / 1e3
        for _ in range(count):
            await sleep_until(due_s)
            due_s = time.monotonic() + options.step / 1e3
            record["at"].append(time.monotonic_ns())
            said = {"delta": {"content": " w"}} if "messages" in asked else {"text": " w"}
            writer.write(event({"choices": [said | {"finish_reason": None}]}))
    words = " ".join(one["content"] for one in asked["messages"]).split() if "messages" in asked else asked["prompt"].split()
    told = {"prompt_tokens": len(words) + 1, "completion_tokens": count}
    cached = options.cached
    if options.remembers:
        cached = max((len(one) + 1 for one in remembered if words[:len(one)] == one), default=0)
        remembered.append(words + ["w"] * count)
    if cached or options.remembers:
        told["prompt_tokens_details"] = {"cached_tokens": cached}
    writer.write(event({"choices": [{"text": "", "finish_reason": "length"}]}) + event({"choices": [], "usage": told}) +
                 event("[DONE]") + b"0\r\n\r\n")
    await writer.drain()


async def serve(reader, writer):
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            method, path, _ = head.split("\r\n", 1)[0].split()
            length = [int(line.split(":")[1]) for line in head.split("\r\n") if line.lower().startswith("content-length:")]
            body = await reader.readexactly(length[0]) if length else b""
            if method == "POST":
                await generate(json.loads(body), writer)
            elif path == "/v1/models":
                writer.write(answer({"data": [{"id": "truth", "owned_by": "truth", "max_model_len": 4096}]}))
            elif path == "/sent":
                writer.write(answer(sent))
            elif path == "/forget":
                sent.clear()
                writer.write(answer({}))
            else:
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    global options
    parser = argparse.ArgumentParser()
    for name, default in (("first", 20), ("step", 5)):
        parser.add_argument(f"--{name}", type=float, default=default)
    parser.add_argument("--slots", type=int, default=10_000)
    parser.add_argument("--pause", type=float, nargs=2)
    parser.add_argument("--cached", type=int, default=0)
    parser.add_argument("--remembers", action="store_true")
    options = parser.parse_args()
    options.free, options.begun = asyncio.Semaphore(options.slots), None
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=4096)
    print(f"listening on http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
