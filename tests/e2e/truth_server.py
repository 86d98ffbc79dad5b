"""A server of the OpenAI API whose every model is a known behaviour, with the times at which it sent tokens.

usage: truth_server.py [PORT [CERTIFICATE KEY]]      says where it listens; with a certificate by TLS

It answers nobody without the key in the variable TRUTH_KEY, if there is one, and says 503 to the first TRUTH_LOADING questions,
as a server that still loads its model. TRUTH_FAMILY names a file for its process's number and that of one that it starts, in
another session.
"""

import http.server
import json
import os
import signal
import socketserver
import ssl
import subprocess
import sys
import threading
import time

FIRST_S, STEP_S = 0.03, 0.01
MODELS = ["steady", "role_first", "pairs", "cached", "short", "uncounted", "silent", "error", "cut", "malformed", "stall",
          "busy", "elsewhere", "crash", "leaky", "boasts"]
sent = []  # [{"model", "prompt", "at": [ns of each event with tokens]}], as /sent tells them
loading = int(os.environ.get("TRUTH_LOADING", 0))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, body, status=200):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def refuses(self):
        global loading
        key = os.environ.get("TRUTH_KEY")
        if key and self.headers["Authorization"] != f"Bearer {key}":
            self.answer({"error": {"message": "Invalid API Key"}}, 401)
        elif loading > 0:
            loading -= 1
            self.answer({"error": {"message": "Loading model"}}, 503)
        else:
            return False
        return True

    def do_GET(self):
        if self.refuses():
            return
        if self.path == "/v1/models":
            self.answer({"data": [{"id": name, "owned_by": "truth", "max_model_len": 4096} for name in MODELS]})
        elif self.path == "/health":
            self.answer({})
        elif self.path == "/sent":
            self.answer(sent)
        else:
            self.answer({"error": "not found"}, 404)

    def event(self, body):
        data = f"data: {body if isinstance(body, str) else json.dumps(body)}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def text(self, text, finish=None):
        self.event({"choices": [{"text": text, "finish_reason": finish}]})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.refuses():
            return
        if self.path != "/v1/completions":
            return self.answer({"error": "not found"}, 404)
        model, count, words = asked["model"], asked["max_tokens"], len(asked["prompt"].split())
        if model == "leaky":
            return self.answer({"error": str(self.headers)}, 400)
        if model == "busy":
            return self.answer({"error": {"message": "no slot is free"}}, 503)
        if model == "elsewhere":
            self.send_response(307)
            self.send_header("Location", "http://127.0.0.1:9/v1/completions")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if model == "role_first":
            self.text("")
        record = {"model": model, "prompt": asked["prompt"], "at": []}
        sent.append(record)
        size = 2 if model == "pairs" else 1
        for token in range(0, 0 if model == "silent" else count, size):
            time.sleep(FIRST_S if token == 0 else STEP_S)
            if model == "malformed" and count > 1 and token > 0:
                return self.event('{"choices": [')
            if model == "error" and token > 0:
                return self.event({"error": {"message": "the graphics card is on fire"}})
            if model == "cut" and token > 0:
                self.close_connection = True
                return self.connection.close()
            if model == "stall" and token > 0:
                time.sleep(1000)
            if model == "crash" and token > 0:
                os.kill(os.getpid(), signal.SIGSEGV)
            record["at"].append(time.monotonic_ns())
            self.text(" w" * min(size, count - token))
        told = {"prompt_tokens": words + 1, "completion_tokens": count - (model == "short")}
        if model == "cached":
            told["prompt_tokens_details"] = {"cached_tokens": words // 2}
        self.text("", "length")
        timings = {}
        if model == "boasts":  # as llama.cpp tells its own time, of which a third is true
            timings = {"timings": {"cache_n": 0, "prompt_n": words + 1, "prompt_ms": FIRST_S * 1e3 / 3, "predicted_n": count,
                                   "predicted_ms": (count - 1) * STEP_S * 1e3 / 3}}
        if model != "uncounted":
            self.event({"choices": [], "usage": told} | timings)
        self.event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


if __name__ == "__main__":
    if "TRUTH_FAMILY" in os.environ:
        other = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        with open(os.environ["TRUTH_FAMILY"], "w") as file:
            file.write(f"{os.getpid()} {other.pid}")
    server = Server(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0), Handler)
    scheme = "http"
    if len(sys.argv) > 2:
        scheme, context = "https", ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[2], sys.argv[3])
        server.socket = context.wrap_socket(server.socket, server_side=True)
    print(f"listening on {scheme}://127.0.0.1:{server.server_address[1]}", flush=True)
    threading.Thread(target=server.serve_forever).start()
