"""`assay compare` of other tools' files, named as they are: the ratio, its interval, the verdict and the caveat; what may differ
and what is refused.

usage: import_compare_test.py ASSAY
"""

import csv
import io
import json
import pathlib
import shutil
import sys
import tempfile
import unittest

from program import ProgramTest

REAL = pathlib.Path(__file__).parents[1] / "import"
JITTER = (1.0, 1.012, 0.991, 1.004, 0.988)


def llama_bench(slower=1.0, **members):
    """llama-bench's default run: five samples of two tests, from the test's own fixture."""
    tests = []
    for test in json.loads((REAL / "llama-bench" / "tests.json").read_text()):
        if test["model_filename"] != "tiny-f16.gguf" or test["n_threads"] != 1 or (test["n_prompt"] and test["n_gen"]):
            continue
        times = [round(test["avg_ns"] * slower * jitter) for jitter in JITTER]
        tokens = test["n_prompt"] + test["n_gen"]
        rates = [1e9 * tokens / time for time in times]
        tests.append({**test, "samples_ns": times, "samples_ts": rates, "avg_ns": sum(times) // 5, "avg_ts": sum(rates) / 5, **members})
    return tests


def as_csv(tests):
    file = io.StringIO()
    rows = csv.DictWriter(file, [name for name in tests[0] if not name.startswith("samples")], extrasaction="ignore",
                          quoting=csv.QUOTE_ALL)
    rows.writeheader()
    rows.writerows(tests)
    return file.getvalue()


def as_markdown(tests):
    lines = ["| model | size | backend | threads | test | t/s |", "| --- | ---: | --- | ---: | ---: | ---: |"]
    for test in tests:
        name = f"pp{test['n_prompt']}" if test["n_prompt"] else f"tg{test['n_gen']}"
        lines.append(f"| {test['model_type']} | 1 MiB | CPU | {test['n_threads']} | {name} | {test['avg_ts']:.2f} ± 1.00 |")
    return "\n".join([*lines, "", f"build: {tests[0]['build_commit']} ({tests[0]['build_number']})", ""])


FORMS = {"json": json.dumps, "jsonl": lambda tests: "".join(json.dumps(test) + "\n" for test in tests), "csv": as_csv,
         "md": as_markdown}


class ImportCompare(ProgramTest):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return name

    def both(self, today, form="json", **members):
        self.write(f"yesterday.{form}", FORMS[form](llama_bench()))
        self.write(f"today.{form}", FORMS[form](llama_bench(today, **members)))
        return f"yesterday.{form}", f"today.{form}"

    def top(self, *command, status=0):
        done = self.assay("compare", *command)
        self.assertEqual(done.returncode, status, done.stderr)
        return " ".join(" ".join(done.stdout.splitlines()[:5]).split())

    def test_files_with_samples_have_ratio_interval_and_verdict(self):
        for form in ("json", "jsonl"):
            for today, verdict in ((1.2, "slower, 1.20"), (0.8, "faster, 0.800"), (1.001, "equivalent, 1.00"), (1.01, "inconclusive, 1.01")):
                with self.subTest(form=form, today=today):
                    said = self.top(*self.both(today, form))
                    self.assertRegex(said, rf"prefill {verdict} \[[\d.]+, [\d.]+\] of the base's time; kv_decode {verdict} \[")
                    self.assertIn("One process a side, one after the other", said)

    def test_files_of_means_have_a_ratio_and_say_why_no_more(self):
        for form in ("csv", "md"):
            with self.subTest(form=form):
                said = self.top(*self.both(1.2, form))
                self.assertIn("NOTHING JUDGED", said)
                self.assertIn("prefill not decided, 1.20 of the base's time; kv_decode not decided, 1.20.", said)
                self.assertIn("means without their samples, so there is no interval", said)

    def test_a_bundle_of_the_file_says_the_same(self):
        base, candidate = self.both(1.2)
        self.succeed("import", base, "-o", "b")
        self.succeed("import", candidate, "-o", "c")
        self.assertEqual(self.top("b", "c"), self.top(base, candidate))
        self.assertEqual(self.top("b", candidate), self.top(base, candidate))

    def test_the_caveat_is_in_every_format_and_with_several_files_a_side(self):
        between = "one after the other: what changed on the machine between is in this ratio."
        for form, one, several in (("json", f"One process a side, {between}", f"Measured {between}"),
                                   ("csv", "A file has means without their samples, so there is no interval and no verdict.", f"Measured {between}")):
            base, candidate = self.both(0.8, form)
            more = [self.write(f"{day}-2.{form}", FORMS[form](llama_bench(slower))) for day, slower in (("yesterday", 1.003), ("today", 0.802))]
            for caveat, files in ((one, [base, candidate]), (several, [base, more[0], "--", candidate, more[1]])):
                with self.subTest(form=form, files=files):
                    document = json.loads(self.succeed("compare", "-o", "json", "--html", "page.html", *files))
                    self.assertEqual(document["caveat"], caveat)
                    self.assertEqual((document["ref"], document["cmp"]),
                                     (base, candidate) if caveat == one else (f"{base}, {more[0]}", f"{candidate}, {more[1]}"))
                    self.assertIn(caveat, (self.folder / "page.html").read_text())
                    for output in ("table", "md", "junit", "github"):
                        self.assertIn(caveat, " ".join(self.succeed("compare", "-o", output, *files).split()), output)

    def test_builds_may_differ_and_are_named_and_so_may_a_setting_that_one_doesnt_know(self):
        base, candidate = self.both(1.2, build_commit="abcdef1", build_number=9, knob_of_tomorrow=1)
        self.write(base, json.dumps(llama_bench(build_commit="1234567", build_number=8)))
        said = self.succeed("compare", base, candidate)
        self.assertIn("varied: framework_build: llama.cpp 8 (1234567) -> llama.cpp 9 (abcdef1)", said.replace("\n  ", " "))
        self.assertIn("varied: setting.knob_of_tomorrow: nothing -> 1", said)

    def test_another_setting_is_refused(self):
        for members, axis in (({"n_batch": 64}, "setting.n_batch"), ({"cpu_info": "Other CPU"}, "device"),
                              ({"knob_of_tomorrow": 1}, "setting.knob_of_tomorrow")):
            with self.subTest(axis=axis):
                base, candidate = self.both(1.2, **members)
                self.assert_refused(["compare", base, candidate], f"{candidate}: identity unlike {base}'s: {axis}: expected")
                self.succeed("compare", base, candidate, "--vary", axis)

    def test_a_demand_isnt_met_by_rows_of_one_process_unless_it_is_told_so(self):
        base, candidate = self.both(1.2)
        self.assertIn("NOTHING JUDGED", self.top(base, candidate, "--fail-on-regression", status=1))
        self.assertIn("FAILS: slower", self.top(base, candidate, "--fail-on-regression", "--allow-single-process", status=1))
        base, candidate = self.both(0.8)
        self.assertIn("passes", self.top(base, candidate, "--fail-on-regression", "--allow-single-process"))

    def test_hyperfine_of_two_days(self):
        for name, times in (("old", [1.0 * jitter for jitter in JITTER * 2]), ("new", [0.5 * jitter for jitter in JITTER * 2])):
            self.write(f"{name}.json", json.dumps({"results": [{"command": "make compile", "mean": 1, "times": [2 * times[0], *times]}]}))
        said = self.top("old.json", "new.json")
        self.assertRegex(said, r"e2e_kv faster, 0\.500 \[[\d.]+, [\d.]+\] of the base's time")
        self.assertIn("Measured one after the other: what changed on the machine between is in this ratio.", said)

    def test_hyperfines_commands_of_one_file(self):
        both = self.write("both.json", json.dumps({"results": [
            {"command": name, "mean": 1, "times": [2 * level] + [level * jitter for jitter in JITTER * 2]}
            for name, level in (("make compile", 1.0), ("make again", 0.25))]}))
        self.succeed("import", both, "-o", "b")
        said = " ".join(self.succeed("analyze", "b").split())
        self.assertRegex(said, r"make again was faster than make compile \(4\.00 times as fast \[[\d.]+, [\d.]+\]\); measured one after "
                               r"the other: what changed on the machine between is in this ratio")
        self.assertNotIn("unproven", said)
        document = json.loads(self.succeed("analyze", "b", "-o", "json"))
        self.assertEqual({one["decision"] for one in document["decisions"]}, {"void"}, "no choice follows from it")
        self.assertIn("measured one after the other", (self.folder / "b" / "report.html").read_text())

    def test_loads_of_a_server_are_compared_phase_by_phase(self):
        served = json.loads((REAL / "guidellm" / "loads.json").read_text())
        self.write("old.json", json.dumps(served))
        for benchmark in served["benchmarks"]:
            for request in benchmark["requests"]["successful"]:
                for name in ("request_latency", "time_to_first_token_ms", "inter_token_latency_ms"):
                    request[name] *= 3
        self.write("new.json", json.dumps(served))
        said = self.top("old.json", "new.json")
        for phase in ("prefill", "kv_decode", "e2e_kv"):
            self.assertRegex(said, phase + r" [a-z0-9, ]+, 3\.00 \[")
        for benchmark in served["benchmarks"]:
            benchmark["config"]["strategy"]["streams"] += 6
        self.write("other.json", json.dumps(served))
        self.assert_refused(["compare", "old.json", "other.json"], "other.json", "expected")

    def test_criterions_folder(self):
        other = self.folder / "target" / "criterion"
        shutil.copytree(REAL / "criterion", other)
        for path in other.rglob("sample.json"):
            document = json.loads(path.read_text())
            path.write_text(json.dumps({**document, "times": [2 * time + i for i, time in enumerate(document["times"])]}))
        self.assertRegex(self.top(REAL / "criterion", "target/criterion"), r"e2e_kv slower, 2\.00")

    def test_what_is_no_result_is_one_line(self):
        base, _ = self.both(1.0)
        self.write("text.json", "{}")
        (self.folder / "folder").mkdir()
        self.assert_refused(["compare", base, "text.json"], "text.json: expected results of one of llama-bench")
        self.assert_refused(["compare", base, "folder"], "manifest.json")
        self.assert_refused(["compare", base, "nowhere"], "nowhere")
        self.assert_refused(["compare", base, base], "expected each bundle once")


if __name__ == "__main__":
    ProgramTest.program = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
