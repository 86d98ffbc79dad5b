"""`assay serve` under hostile load: every good answer is what it is alone, memory stays, and others wait little longer.

Two processes load one server: one sends good requests all the time, the other, which yields to it (nice), hostile ones in every
second window of time. Quiet and hostile windows take turns, so that the machine's changes meet both.

usage: serve_hostile_test.py ASSAY      ASSAY_SOAK=1: 30 minutes and 10,000 hostile requests, or ASSAY_SOAK_SECONDS and as many as are
                                        due in them; else 12 s and 150
"""

import concurrent.futures
import functools
import http.client
import json
import multiprocessing
import os
import pathlib
import random
import signal
import socket
import statistics
import struct
import sys
import time
import unittest
import urllib.parse

from program import SOAK
from serve_test import ServeTest

WHOLE = 1800
SECONDS = int(os.environ.get("ASSAY_SOAK_SECONDS", WHOLE)) if SOAK else 12
HOSTILE, WINDOW = (10_000 * SECONDS // WHOLE, 10) if SOAK else (150, 1)
GOOD_CLIENTS = 2


def good_cases():
    """Bodies of requests of every kind of length, greedy and drawn."""
    rng = random.Random(1)
    cases = []
    for i in range(24):
        body = {"prompt": [rng.randrange(5, 300) for _ in range(rng.choice((1, 3, 20, 60)))], "max_tokens": rng.choice((1, 8, 40)),
                "ignore_eos": True, "stream": i % 3 == 0}
        cases.append(body | ({"temperature": 1.2, "seed": i, "top_k": 50} if i % 2 else {}))
    return cases


def answered(connection, body):
    """The text of a completion, read to its end."""
    connection.request("POST", "/v1/completions", json.dumps(body))
    answer = connection.getresponse()
    said = answer.read().decode()
    if answer.status != 200:
        raise AssertionError(f"status {answer.status}: {said}")
    if not body["stream"]:
        return json.loads(said)["choices"][0]["text"]
    lines = [line[6:] for line in said.splitlines() if line.startswith("data: ")]
    if lines[-1] != "[DONE]":
        raise AssertionError(f"expected a whole stream, found it to end with {lines[-1]}")
    return "".join(json.loads(line)["choices"][0]["text"] for line in lines[:-1])


def place_of(url):
    return urllib.parse.urlsplit(url).hostname, urllib.parse.urlsplit(url).port


def good_client(url, expected, end, number):
    """Sends good requests until `end`: (when it began, its seconds) of each, and the answers that differ."""
    rng, times, wrong = random.Random(number), [], []
    connection = http.client.HTTPConnection(*place_of(url), timeout=60)
    cases = good_cases()
    while time.monotonic() < end:
        i = rng.randrange(len(cases))
        begin = time.monotonic()
        text = answered(connection, cases[i])
        times.append((begin, time.monotonic() - begin))
        if text != expected[i]:
            wrong.append((cases[i], text, expected[i]))
    connection.close()
    return times, wrong


# Hostile requests: each takes a connected socket and a random number generator.

def send(client, path, body, further=b""):
    client.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n%s\r\n%s" % (path, len(body), further, body))


def random_bytes(client, rng):
    client.sendall(rng.randbytes(rng.randrange(1, 5000)))


def fuzzed_headers(client, rng):
    head = bytearray(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n")
    for _ in range(rng.randrange(1, 6)):
        head[rng.randrange(len(head))] = rng.randrange(256)
    client.sendall(bytes(head) + b'{"prompt":[5,6,7,8]}')


def large_headers(client, rng):
    client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"".join(b"X-%d: %s\r\n" % (i, b"y" * rng.randrange(9000)) for i in range(9)))


def wrong_chunks(client, rng):
    sizes = (b"ffffffffffffffff", b"-5", b"7fffffffffffffff", b"0x5", b"", b"5;a=b", b"00000000000000000000005", b"zz")
    client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                   + rng.choice(sizes) + b"\r\nhello\r\n" + rng.choice((b"0\r\n\r\n", b"0\r\n", b"")))


def two_lengths(client, rng):
    client.sendall(b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n"
                   b"3\r\n{}\n\r\n0\r\n\r\n" % rng.choice((0, 6, 2**63, 2**64)))


def lying_length(client, rng):
    client.sendall(b"POST /api/generate HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n{\"prompt\":" % rng.choice((100, 2**31, 2**62)))


def slow_bytes(client, rng):
    for byte in b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{\"prompt\"":
        client.sendall(bytes((byte,)))
        time.sleep(rng.random() * 0.03)


def deep_json(client, rng):
    deep = rng.choice((60, 70, 1000, 200_000))
    send(client, b"/v1/completions", rng.choice((b"[" * deep, b'{"prompt":' * deep, b'{"logit_bias":' + b"[" * deep + b"]" * deep + b"}")))


@functools.cache
def large_body(kind):
    inside = {"ids": b'{"prompt":[' + b"7," * 900_000 + b"7]}", "text": b'{"prompt":"' + b"a b " * 450_000 + b'"}',
              "keys": b"{" + b",".join(b'"k%d":1' % i for i in range(150_000)) + b"}"}
    return inside[kind]


def large_bodies(client, rng):
    send(client, b"/v1/completions", large_body(rng.choice(("ids", "text", "keys"))))


def too_large(client, _):
    send(client, b"/v1/completions", b'{"prompt":"' + b"x" * 5_000_000)


def huge_numbers(client, rng):
    number = rng.choice((b"1e999", b"-1e999", b"9223372036854775808", b"18446744073709551616", b"1e308", b"-0", b"0.1e-400", b"1" * 5000))
    members = ("max_tokens", "temperature", "top_k", "top_p", "seed", "n", "logprobs", "min_tokens", "presence_penalty")
    send(client, b"/v1/completions", b'{"prompt":[5],"%s":%s}' % (rng.choice(members).encode(), number))


def wrong_types(client, rng):
    values = [None, True, [], {}, "", "x" * 3000, -1, 1.5, [[[]]], {"a": {"b": 1}}, [None], "\ud800", 2**70]
    members = ("prompt", "messages", "max_tokens", "stop", "stream", "stream_options", "logit_bias", "n", "logprobs", "echo", "options",
               "system", "format", "model", "temperature", "content", "raw", "images", "tools")
    body = {"prompt": [5], "messages": [{"role": "user", "content": "x"}]}
    for _ in range(rng.randrange(1, 4)):
        body[rng.choice(members)] = rng.choice(values)
    path = rng.choice((b"/v1/completions", b"/v1/chat/completions", b"/api/generate", b"/api/chat", b"/api/show", b"/tokenize"))
    send(client, path, json.dumps(body).encode())


def wrong_utf8(client, rng):
    wrong = rng.choice((b"\xff\xfe", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x80" * 500, b"\xe2\x82"))
    send(client, b"/v1/completions", rng.choice((b'{"prompt":"%s","max_tokens":2}', b'{"%s":1}', b'{"prompt":[5],"stop":"%s"}')) % wrong)


def flipped_body(client, rng):
    body = bytearray(json.dumps(rng.choice(good_cases())).encode())
    for _ in range(rng.randrange(1, 5)):
        body[rng.randrange(len(body))] = rng.randrange(256)
    send(client, b"/v1/completions", bytes(body))


def other_protocols(client, rng):
    client.sendall(rng.choice((b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200), b"GET /health\r\n\r\n",
                               b"CONNECT evil.example:443 HTTP/1.1\r\n\r\n", b"SSH-2.0-OpenSSH_9\r\n", b"GET /health HTTP/9.9\r\n\r\n",
                               b"GET http://evil.example/v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n")))


def many_at_once(client, rng):
    client.sendall(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n" * rng.randrange(10, 200))


def stream_left(client, rng):
    body = {"prompt": [5, 6], "max_tokens": 100, "ignore_eos": True, "stream": True, "n": rng.choice((1, 3))}
    send(client, rng.choice((b"/v1/completions", b"/api/generate")), json.dumps(body).encode())
    client.recv(rng.randrange(1, 2000))
    if rng.random() < 0.5:  # its end is a reset
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False


def gone_at_once(client, rng):
    send(client, b"/v1/completions", json.dumps({"prompt": [5] * 90, "max_tokens": 30}).encode())
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False


def never_reads(client, rng):
    send(client, b"/v1/completions", json.dumps({"prompt": [5], "max_tokens": 100, "ignore_eos": True, "stream": True}).encode())
    time.sleep(rng.random())
    return False


KINDS = (random_bytes, fuzzed_headers, large_headers, wrong_chunks, two_lengths, lying_length, slow_bytes, deep_json, large_bodies, too_large,
         huge_numbers, wrong_types, wrong_utf8, flipped_body, other_protocols, many_at_once, stream_left, gone_at_once, never_reads)


def hostile_request(url, number):
    """Sends the hostile request of this number; the status that it was answered with, or 0."""
    rng = random.Random(number)
    kind = KINDS[number % len(KINDS)]
    try:
        with socket.create_connection(place_of(url), timeout=2) as client:
            if kind(client, rng) is False:
                return 0
            client.shutdown(socket.SHUT_WR) if rng.random() < 0.5 else client.settimeout(0.2)
            said = client.recv(65536)
            return int(said[9:12]) if said.startswith(b"HTTP/1.1 ") else 0
    except OSError:
        return 0


def hostile_client(url, begin, end):
    """Sends all hostile requests in every second window, evenly: how many, and their statuses."""
    os.nice(19)
    statuses = {}
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        waiting = []
        for number in range(HOSTILE):
            at = number / HOSTILE * (end - begin) / 2  # of hostile time
            at = begin + WINDOW + at // WINDOW * 2 * WINDOW + at % WINDOW
            time.sleep(max(0.0, at - time.monotonic()))
            waiting.append(pool.submit(hostile_request, url, number))
        for one in waiting:
            statuses[one.result()] = statuses.get(one.result(), 0) + 1
    return statuses


def warm_up(url):
    """Sends hostile requests of every kind: later ones find the memory that a server keeps for the largest already there."""
    for kind in ("ids", "text", "keys") * 2:
        with socket.create_connection(place_of(url), timeout=60) as client:
            send(client, b"/v1/completions", large_body(kind))
            client.recv(65536)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(functools.partial(hostile_request, url), range(HOSTILE, HOSTILE + 5 * len(KINDS))))


def p99(values):
    return statistics.quantiles(values, n=100)[98]


class ServeHostile(ServeTest):
    def resident_mb(self):
        return int(pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def test_others_get_their_answers_and_memory_stays(self):
        url = self.serve("--slots", "1", "--dtype", "fp32")
        connection = http.client.HTTPConnection(*place_of(url))
        expected = [answered(connection, body) for body in good_cases()]
        connection.close()
        self.process.kill()
        url = self.serve("--dtype", "fp32", "--threads", "1", "--body-mib", "4", "--connections", "128")
        descriptors = self.descriptors()
        resident = []
        with concurrent.futures.ProcessPoolExecutor(GOOD_CLIENTS + 1, multiprocessing.get_context("fork")) as pool:
            pool.submit(warm_up, url).result()
            begin = time.monotonic()
            end = begin + SECONDS
            good = [pool.submit(good_client, url, expected, end, number) for number in range(GOOD_CLIENTS)]
            hostile = pool.submit(hostile_client, url, begin, end)
            while not (hostile.done() and all(one.done() for one in good)):
                self.assertIsNone(self.process.poll(), "the server has ended")
                resident.append((time.monotonic() - begin, self.resident_mb()))
                time.sleep(0.1)
            times = [time for one in good for time in one.result()[0]]
            self.assertEqual([wrong for one in good for wrong in one.result()[1]], [])
            statuses = hostile.result()
        self.assertEqual(sum(statuses.values()), HOSTILE)
        for status in (400, 413, 431):  # the hostile requests were understood as such
            self.assertIn(status, statuses)
        self.assertEqual({status for status in statuses if status >= 500} - {503, 505}, set(), statuses)
        seconds = {kind: [took for at, took in times if begin <= at < end and (at - begin) // WINDOW % 2 == kind] for kind in (0, 1)}
        quiet, loaded = p99(seconds[0]), p99(seconds[1])
        sixths = [statistics.median(mb for at, mb in resident if i <= 6 * at / SECONDS < i + 1) for i in range(6)]
        early, late = sixths[2], sixths[5]
        print(f"good answers: {len(times)}; p99 {quiet * 1e3:.1f} ms quiet, {loaded * 1e3:.1f} ms beside hostile ones ({loaded / quiet:.2f} times); "
              f"resident MB by sixth of the time: {', '.join(f'{mb:.1f}' for mb in sixths)}; statuses {dict(sorted(statuses.items()))}")
        # A part is for the sanitizers, which take their own time; their allocator keeps more for each size that it has met,
        # and looks for leaks when the server ends.
        if not SOAK or SECONDS == WHOLE:
            self.assertLess(late, early * 1.1 + 4)
        if SOAK and SECONDS == WHOLE:
            self.assertLess(loaded, 2 * quiet)
        self.expect_idle(url, descriptors)

    def expect_idle(self, url, descriptors):
        """Nothing is left of anybody."""
        deadline = time.monotonic() + 60
        while True:
            metrics = self.ask(url, "/metrics")[1]
            if "running 0\n" in metrics and "waiting 0\n" in metrics and self.descriptors() <= descriptors + 1:
                break
            self.assertLess(time.monotonic(), deadline, f"{metrics}, {self.descriptors()} descriptors of {descriptors}")
            time.sleep(0.1)
        self.assertIn('outcome="failed"} 0', metrics)
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.process.wait(timeout=60), 0, self.process.stderr.read())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
