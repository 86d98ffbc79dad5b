"""Arms of backend command: real commands that print, fail, flood and hang; revisions of a repository; two sides.

usage: command_test.py ASSAY
"""

import http.server
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

from program import ProgramTest, lives, rows_of, until

# Prints figures as gpt-fast does, at a rate of its own: deterministic, but for a spread that depends on the process.
BENCH = """
import os, sys
samples, new_tokens, rate = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
wobble = 1 + (os.getpid() % 7 - 3) / 1000
print("Compilation time: 1.00 seconds")
for i in range(samples):
    speed = rate * wobble * (1 + i / 10000)
    print(f"Time for inference {i + 1}: {new_tokens / speed:.6f} sec total, {speed:.4f} tokens/sec")
print("noise", file=sys.stderr)
"""
# Asks a server for completions and prints what it says of them.
CLIENT = """
import json, socket, sys
(host, port), samples, new_tokens = sys.argv[1].split(":"), int(sys.argv[2]), int(sys.argv[3])
for i in range(samples):
    asked = json.dumps({"n_predict": new_tokens, "seed": i})
    with socket.create_connection((host, int(port)), timeout=30) as server:
        server.sendall(f"POST /completion HTTP/1.0\\r\\nContent-Length: {len(asked)}\\r\\n\\r\\n{asked}".encode())
        answer = json.loads(server.makefile().read().partition("\\n\\n")[2])
    print(answer["timings"]["predicted_per_second"], "predicted a second")
"""
PATTERN = r"inference \d+: .*?, (?<tokens_per_s>[\d.]+) tokens/sec"
NEW_TOKENS = 50


class Command(ProgramTest):
    program = pathlib.Path(sys.argv.pop(1)).resolve()

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="assay-command-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        (self.folder / "bench.py").write_text(BENCH)
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()
        os.environ["TMPDIR"] = str(self.temporary)

    def arm(self, name, *command, pattern=PATTERN, **keys):
        return {"name": name, "backend": "command", "command": list(command), "patterns": [pattern], **keys}

    def bench(self, name, rate, **keys):
        return self.arm(name, sys.executable, "bench.py", "{samples}", "{new_tokens}", str(rate), **keys)

    def command_study(self, *arms, **changes):
        keys = {"models": [{"path": "any/gpt"}], "phases": ["e2e_kv"], "scenarios": ["prompt_16"],
                "token_lengths": [NEW_TOKENS], "warmup": 0, "processes": None, "repetitions": 6, **changes}
        return self.write_study(arms=list(arms), **keys)

    def git(self, *arguments):
        done = subprocess.run(["git", "-C", str(self.folder / "repo"), *arguments], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def make_repository(self):
        """Commits `slow`, `fast` (a fifth faster) and `broken`, which raises."""
        repo = self.folder / "repo"
        repo.mkdir()
        self.git("init", "-q")
        self.git("config", "user.email", "a@b")
        self.git("config", "user.name", "n")
        for tag, text in {
            "slow": BENCH,
            "fast": BENCH.replace("float(sys.argv[3])", "float(sys.argv[3]) * 1.2"),
            "broken": "import sys\nclass StackError(RuntimeError): pass\nraise StackError('no such kernel')\n",
        }.items():
            (repo / "bench.py").write_text(text)
            self.git("add", "bench.py")
            self.git("commit", "-qm", tag)
            self.git("tag", tag)
        return repo

    def assert_no_worktree_is_left(self):
        self.assertEqual(len(self.git("worktree", "list").splitlines()), 1)
        self.assertEqual(list(self.temporary.glob("assay-checkout-*")), [])

    def test_samples_of_an_invocation_share_its_process(self):
        study = self.command_study(self.bench("a", 100), self.bench("b", 130), repetitions=12, processes=4, warmup=2)
        self.succeed("run", study, "-o", "b")
        bundle = self.folder / "b"
        rows = rows_of(bundle, arm="a")
        self.assertEqual(len(rows), 4 * (2 + 3))
        by_process = {}
        for row in rows:
            self.assertEqual((row["status"], row["tokens"]), ("ok", str(NEW_TOKENS)))
            by_process.setdefault(row["process"], []).append(row)
        self.assertEqual(sorted(by_process), ["0", "1", "2", "3"])
        for process in by_process.values():
            self.assertEqual([row["cold"] for row in process], ["true"] * 2 + ["false"] * 3)
            self.assertEqual(len({row["started_at_ns"] for row in process}), 1, "one invocation")
            # The script's samples are 0.01 % apart, in their order.
            speeds = [float(row["tokens_per_s"]) for row in process]
            self.assertEqual(speeds, sorted(speeds))
        self.assertEqual(len({process[0]["started_at_ns"] for process in by_process.values()}), 4)

        found = json.loads(self.succeed("analyze", "b", "-o", "json"))
        contrast = found["contrasts"][0]
        self.assertEqual(contrast["unit"], "processes")
        self.assertAlmostEqual(contrast["ratio"], 100 / 130, delta=0.01)
        evidence = json.loads(next(bundle.glob("cells/*-a-*/evidence.json")).read_text())
        invocation = evidence["reported"]["actual"]["invocation"]
        self.assertEqual(invocation["argv"][2:], ["5", str(NEW_TOKENS), "100"])
        self.assertEqual(invocation["samples_printed"], 5)
        log = next(bundle.glob("cells/*-a-*/stderr.log")).read_text()
        self.assertEqual(log.count("noise\n"), 4, "all that every invocation printed is kept")
        self.assertEqual(log.count("Time for inference"), 20)
        self.succeed("verify", "b")

    def test_outcomes(self):
        python = lambda text: (sys.executable, "-c", text)
        ends = {
            "fails": (("sh", "-c", "echo 5 ms; exit 4"), "crash", "exit 4"),
            "dies": (("sh", "-c", "kill -SEGV $$"), "crash", "SIGSEGV"),
            "raises": (python("raise KeyError('x')"), "error", "KeyError"),
            "hungry": (python("raise MemoryError"), "oom", "MemoryError"),
            "mute": (("true",), "false_success", "no_match"),
            "nan": (("echo", "nan ms"), "false_success", "bad_figure"),
            "few": (("echo", "5 ms 3 tok"), "false_success", "too_few_tokens"),
            "sleeps": (("sh", "-c", "setsid sleep 1000 & echo $! > left; exec sleep 1000"), "timeout", "timeout"),
            "absent": (("./no-such-program",), "error", "no_program"),
        }
        pattern = r"(?<latency_ms>\S+) ms( (?<tokens>\d+) tok)?"
        arms = [self.arm(name, *command, pattern=pattern) for name, (command, _, _) in ends.items()]
        for bundle, seconds in (("late", 1), ("b", 60)):  # of the one that sleeps, and of those that take a moment
            of_bundle = [one for one in arms if (one["name"] == "sleeps") == (bundle == "late")]
            self.succeed("run", self.command_study(*of_bundle, repetitions=2, timeout_s=seconds), "-o", bundle)
            for name in (one["name"] for one in of_bundle):
                rows = rows_of(self.folder / bundle, arm=name)
                self.assertEqual([(row["status"], row["error_class"]) for row in rows], [ends[name][1:]] * 2, name)
        until(lambda: not lives(int((self.folder / "left").read_text())))
        raised = json.loads(next((self.folder / "b").glob("cells/*-raises-*/evidence.json")).read_text())
        self.assertIn("KeyError: 'x'", raised["failures"][0]["message"])
        self.succeed("verify", "b")

    def test_hostile_commands_end_and_leave_nothing(self):
        shell = {
            "flood": ("yes", "error", "output_flood"),
            "binary": ("head -c 3000000 /dev/urandom; printf '\\n7 ms\\n'", "ok", ""),
            "no_newline": ("printf '7 ms'", "ok", ""),
            "huge": ("head -c 30000000 /dev/zero | tr '\\0' x; echo; echo 7 ms", "ok", ""),
            "holds_pipe": ("sleep 1000 & echo 7 ms; echo $! > left.1", "ok", ""),
            "daemon": ("setsid sleep 1000 & echo 7 ms; echo $! > left.2", "ok", ""),
            "closes": ("exec >&- 2>&-; exit 0", "false_success", "no_match"),
            "backtracks": ("head -c 200000 /dev/zero | tr '\\0' x", "error", "pattern_limit"),
        }
        arms = []
        for name, (text, _, _) in shell.items():
            pattern = r"^(?<latency_ms>(x+)+)+[yz]" if name == "backtracks" else r"^(?<latency_ms>\d+) ms"
            arm = self.arm(name, pattern=pattern, shell=True)
            arms.append({**arm, "command": text})
        self.succeed("run", self.command_study(*arms, repetitions=1, processes=1, timeout_s=60), "-o", "b")
        for name, (_, status, error_class) in shell.items():
            row = rows_of(self.folder / "b", arm=name)[0]
            self.assertEqual((row["status"], row["error_class"]), (status, error_class), name)
        for left in self.folder.glob("left.*"):
            until(lambda: not lives(int(left.read_text())))

    def test_a_kill_of_the_program_ends_the_command_and_all_that_it_started(self):
        for victim in ("program", "worker"):
            left = self.folder / f"left.{victim}"
            begin = f"setsid sleep 1000 & echo $! > {left}.new; mv {left}.new {left}; exec sleep 1000"
            arm = self.arm("long", "sh", "-c", begin)
            study = self.command_study(arm, repetitions=1, processes=1, timeout_s=600)
            run = subprocess.Popen([self.program, "run", study, "-o", f"killed-{victim}"], cwd=self.folder, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
            until(left.exists)
            started = int(left.read_text())
            children = pathlib.Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
            os.kill(run.pid if victim == "program" else int(children[-1]), signal.SIGKILL)
            until(lambda: not lives(started))
            run.kill()
            run.wait()

    def test_revisions_are_arms_with_their_commit_and_go_when_it_ends(self):
        self.make_repository()
        arm = self.bench("gpt", 100, checkout={"repo": "repo", "revisions": ["slow", "fast", "broken"]})
        study = self.command_study(arm, repetitions=2)
        self.assertIn("not_asked", self.succeed("plan", study), "a plan makes no worktree")
        self.succeed("run", study, "-o", "b")
        bundle = self.folder / "b"
        identity = json.loads((bundle / "manifest.json").read_text())["identity"]["arms"]
        for tag in ("slow", "fast", "broken"):
            self.assertEqual(identity[f"gpt-{tag}"]["code_sha"], self.git("rev-parse", tag))
        broken = rows_of(bundle, arm="gpt-broken")
        self.assertEqual({(row["status"], row["error_class"]) for row in broken}, {("error", "StackError")})
        self.assertEqual({row["status"] for row in rows_of(bundle, arm="gpt-fast")}, {"ok"})
        evidence = json.loads(next(bundle.glob("cells/*-gpt-fast-*/evidence.json")).read_text())
        self.assertEqual(evidence["reported"]["actual"]["checkout"]["files_changed"], False)
        self.assert_no_worktree_is_left()
        missing = self.bench("gpt", 100, checkout={"repo": "repo", "revisions": ["slow", "nobody"]})
        self.succeed("run", self.command_study(missing, repetitions=2), "-o", "c")
        self.assertEqual({row["error_class"] for row in rows_of(self.folder / "c", arm="gpt-nobody")}, {"no_checkout"})

    def test_a_models_path_leads_to_it_from_a_revisions_folder_too(self):
        self.make_repository()
        (self.folder / "weights.pth").write_text("w")
        arm = self.arm("gpt", sys.executable, "-c", "import sys; open(sys.argv[1]); sys.argv[1:] = ['1', '20', '100'];"
                       "exec(open('bench.py').read())", "{model}", checkout={"repo": "repo", "revisions": ["slow", "fast"]},
                       samples=1)
        study = self.command_study(arm, models=[{"path": "weights.pth"}], repetitions=2)
        self.succeed("run", study, "-o", "b")
        self.assertEqual({row["status"] for row in rows_of(self.folder / "b")}, {"ok"})

    def test_a_revision_that_crashes_under_one_stack(self):
        repo = self.make_repository()
        (repo / "bench.py").write_text("import os\nclass GraphError(RuntimeError): pass\n"
                                       "if os.environ['STACK'] == 'new': raise GraphError('overwritten')\n" + BENCH)
        self.git("commit", "-qam", "pinned")
        checkout = {"repo": "repo", "revisions": ["fast", "HEAD"]}
        study = self.command_study(*(self.bench(f"{stack}-stack", 100, env={"STACK": stack}, checkout=checkout)
                                     for stack in ("old", "new")), repetitions=6, processes=2)
        self.succeed("run", study, "-o", "b")
        lost = {(row["arm"], row["error_class"]) for row in rows_of(self.folder / "b") if row["status"] != "ok"}
        self.assertEqual(lost, {("new-stack-HEAD", "GraphError")})
        found = json.loads(self.succeed("analyze", "b", "-o", "json"))
        contrast = next(one for one in found["contrasts"] if one["arm"] == "old-stack-HEAD")
        self.assertAlmostEqual(contrast["ratio"], 1.2, delta=0.01)

    def waiting_run(self):
        """A study of a revision that waits in its first invocation, its run, and a descriptor of the command's process. Once
        the file `go` is there, it prints."""
        repo = self.make_repository()
        (repo / "bench.py").write_text("import os, time\nopen(os.environ['DIARY'], 'a').write(f'{os.getpid()}\\n')\n"
                                       "if not os.path.exists(os.environ['DIARY'] + '.go'): time.sleep(1000)\n"
                                       "print('7 ms')\n")
        self.git("commit", "-qam", "waits")
        diary = self.folder / "diary"
        os.mkfifo(diary)
        arm = self.arm("waits", sys.executable, "bench.py", pattern=r"(?<latency_ms>\d+) ms",
                       env={"DIARY": str(diary)}, checkout={"repo": "repo", "revisions": "HEAD"})
        study = self.command_study(arm, repetitions=2)
        running = subprocess.Popen([self.program, "run", study, "-o", "b"], cwd=self.folder, stderr=subprocess.PIPE)
        with diary.open() as lines:  # opens once the command does
            command = os.pidfd_open(int(lines.readline()))
        self.addCleanup(os.close, command)
        diary.unlink()
        pathlib.Path(f"{diary}.go").touch()
        return study, running, command

    def test_ctrl_c_ends_the_command_and_the_worktree_and_the_run_goes_on(self):
        study, running, command = self.waiting_run()
        running.send_signal(signal.SIGINT)
        error = running.communicate(timeout=60)[1].decode()
        self.assertEqual(running.returncode, 130, error)
        self.assertTrue(select.select([command], [], [], 60)[0], "the command has ended too")
        self.assert_no_worktree_is_left()
        self.succeed("run", study, "-o", "b", "--resume")
        self.assertEqual([row["status"] for row in rows_of(self.folder / "b")], ["ok"] * 2)

    def test_what_a_killed_run_left_is_removed_when_it_goes_on(self):
        study, running, command = self.waiting_run()
        running.kill()
        running.communicate(timeout=60)
        self.assertTrue(select.select([command], [], [], 60)[0], "the command has ended too")
        left, = self.temporary.glob("assay-checkout-*")
        self.succeed("run", study, "-o", "b", "--resume")
        self.assertEqual([row["status"] for row in rows_of(self.folder / "b")], ["ok"] * 2)
        self.assertFalse(left.exists())
        self.assert_no_worktree_is_left()

    def test_two_revisions_side_by_side(self):
        self.make_repository()
        study = self.command_study(self.bench("gpt", 100, checkout={"repo": "repo"}), repetitions=8, processes=4)
        done = self.assay("compare", "--run", "fast", "slow", study, "--bundle", "b", "-o", "json", "--fail-on-regression")
        self.assertEqual(done.returncode, 1, done.stderr)
        cell = json.loads(done.stdout)["cells"][0]
        self.assertAlmostEqual(cell["typical_call"]["ratio"], 1.2, delta=0.01)
        self.assertEqual(cell["judged_by"], "pairs of processes")
        manifest = json.loads((self.folder / "b/manifest.json").read_text())
        self.assertEqual(manifest["study"]["sides"], {"base": "fast", "cand": "slow"})
        self.assertEqual(manifest["identity"]["arms"]["gpt@cand"]["code_sha"], self.git("rev-parse", "slow"))
        self.assertIn("slower: gpt on e2e_kv", self.assay("compare", "b").stdout)
        few = self.command_study(self.bench("gpt", 100, checkout={"repo": "repo"}), repetitions=4, processes=2)
        lost = self.assay("compare", "--run", "slow", "broken", few, "--bundle", "d", "--fail-on-regression")
        self.assertEqual(lost.returncode, 1, lost.stderr)
        self.assertIn("4 of 4 rows lost, 0 of 4 in the base", lost.stdout)
        lost_rows = rows_of(self.folder / "d", arm="gpt@cand")
        self.assertEqual({row["error_class"] for row in lost_rows}, {"StackError"})
        self.assert_no_worktree_is_left()
        nobody = self.assay("compare", "--run", "slow", "nobody", study, "--bundle", "e")
        self.assertEqual(nobody.returncode, 3)
        self.assertIn("expected a revision of repo, found \"nobody\"", nobody.stderr)
        self.assert_refused(["run", study, "-o", "f"], "expected revisions in its checkout")

    def test_the_folder_as_it_is_against_its_last_commit(self):
        repo = self.make_repository()
        (repo / "bench.py").write_text(BENCH.replace("float(sys.argv[3])", "float(sys.argv[3]) * 2"))
        study = self.command_study(self.bench("gpt", 100, checkout={"repo": "repo"}), repetitions=6, processes=2)
        done = self.assay("compare", "--run", "slow", ".", study, "--bundle", "b", "-o", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertAlmostEqual(json.loads(done.stdout)["cells"][0]["typical_call"]["ratio"], 0.5, delta=0.01)
        arms = json.loads((self.folder / "b/manifest.json").read_text())["identity"]["arms"]
        self.assertRegex(arms["gpt@cand"]["code_sha"], rf"\A{self.git('rev-parse', 'HEAD')}-[0-9a-f]{{12}}-dirty\Z")

    def test_two_commands_side_by_side(self):
        for name, rate in {"old": 100, "new": 125}.items():
            path = self.folder / name
            path.write_text(f"#!/bin/sh\nexec {sys.executable} bench.py $1 $2 {rate}\n")
            path.chmod(0o755)
        study = self.command_study(self.arm("any", "./{side}", "{samples}", "{new_tokens}"), repetitions=6, processes=2)
        done = self.assay("compare", "--run", "old", "new", study, "--bundle", "b", "-o", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertAlmostEqual(json.loads(done.stdout)["cells"][0]["typical_call"]["ratio"], 0.8, delta=0.01)
        self.assert_refused(["run", study, "-o", "c"], "{side}")

    def test_two_servers_side_by_side(self):
        addresses = [self.serve(rate) for rate in (100, 125)]
        (self.folder / "client.py").write_text(CLIENT)
        client = self.arm("server", sys.executable, "client.py", "{side}", "{samples}", "{new_tokens}",
                          pattern=r"(?<tokens_per_s>[\d.]+) predicted a second")
        study = self.command_study(client, repetitions=6, processes=3)
        done = self.assay("compare", "--run", *addresses, study, "--bundle", "b", "-o", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertAlmostEqual(json.loads(done.stdout)["cells"][0]["typical_call"]["ratio"], 0.8, delta=0.01)
        self.assertEqual({row["status"] for row in rows_of(self.folder / "b")}, {"ok"})
        with socket.create_server(("127.0.0.1", 0)) as closed:
            nobody = "127.0.0.1:%d" % closed.getsockname()[1]
        few = self.command_study(client, repetitions=4, processes=2)
        gone = self.assay("compare", "--run", addresses[0], nobody, few, "--bundle", "c", "--fail-on-regression")
        self.assertEqual(gone.returncode, 1, gone.stderr)
        self.assertEqual({row["error_class"] for row in rows_of(self.folder / "c", arm="server@cand")}, {"ConnectionRefusedError"})

    def serve(self, rate):
        """The address of a server that says of each completion how fast it was, as llama-server does."""
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                timings = {"predicted_n": asked["n_predict"], "predicted_per_second": rate * (1 + asked["seed"] / 10000)}
                answer = json.dumps({"timings": timings}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return "127.0.0.1:%d" % server.server_address[1]

    def test_bundles_of_two_commits_differ_in_their_code(self):
        self.make_repository()
        for tag in ("slow", "fast"):
            arm = self.bench("gpt", 100, checkout={"repo": "repo", "revisions": tag})
            self.succeed("run", self.command_study(arm, repetitions=4, processes=2), "-o", tag)
        self.assert_refused(["compare", "slow", "fast"], "code_sha")
        compared = self.assay("compare", "slow", "fast", "--vary", "code_sha", "-o", "json")
        self.assertEqual(compared.returncode, 0, compared.stderr)


if __name__ == "__main__":
    unittest.main()
