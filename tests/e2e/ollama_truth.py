"""A server of Ollama's API, as its documentation has it, whose every model is a known behaviour.

usage: ollama_truth.py      says where it listens
"""

import http.server
import json
import socketserver
import threading
import time

FIRST_S, STEP_S = 0.03, 0.01
TIRES_AFTER = 30  # equal tokens, as Ollama's runner does
MODELS = ["steady", "tires", "cached", "terse", "uncounted"]
prompts = []  # of each generation


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

    def do_GET(self):
        details = {"quantization_level": "Q4_K_M"}
        told = {"/": {}, "/api/version": {"version": "0.12.6"}, "/api/ps": {"models": []}, "/prompts": prompts,
                "/api/tags": {"models": [{"name": f"{name}:latest", "digest": "d", "size": 5, "details": details} for name in MODELS]}}
        self.answer(told.get(self.path, {"error": "not found"}), 200 if self.path in told else 404)

    def line(self, body):
        data = json.dumps(body).encode() + b"\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/api/show":
            return self.answer({"model_info": {"general.architecture": "llama", "llama.context_length": 4096}})
        if self.path != "/api/generate":
            return self.answer({"error": "not found"}, 404)
        model, wanted, words = asked["model"].split(":")[0], asked["options"]["num_predict"], len(asked["prompt"].split())
        prompts.append(asked["prompt"])
        count = min(wanted, TIRES_AFTER) if model == "tires" else wanted
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for token in range(count):
            time.sleep(FIRST_S if token == 0 else STEP_S)
            self.line({"model": model, "response": " w", "done": False})
        last = {"model": model, "response": "", "done": True, "done_reason": "length" if count == wanted else "stop"}
        if model != "uncounted":
            last |= {"prompt_eval_count": words + 1, "eval_count": count}
        if model not in ("terse", "uncounted"):  # half of what a client sees
            last |= {"prompt_eval_duration": int(FIRST_S / 2 * 1e9), "eval_duration": int((count - 1) * STEP_S / 2 * 1e9)}
        if model == "cached":
            last["prompt_eval_cached_count"] = words // 2
        self.line(last)
        self.wfile.write(b"0\r\n\r\n")


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


if __name__ == "__main__":
    server = Server(("127.0.0.1", 0), Handler)
    print(f"listening on http://127.0.0.1:{server.server_address[1]}", flush=True)
    threading.Thread(target=server.serve_forever).start()
