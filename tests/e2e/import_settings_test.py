"""`assay import` keeps each fact that a file states: two files that differ in one, known or not, are unlike for `compare`,
`portability` and `gate`, unless `--vary` names it. Every member of the files in tests/import is changed in turn.

usage: import_settings_test.py ASSAY
"""

import json
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

from program import ProgramTest, rows_of

REAL = pathlib.Path(__file__).parents[1] / "import"
DATES = ("date", "datetime", "start_time", "end_time", "test_time")  # a text that is no time is refused
CONDITIONS = ("backend", "arm", "model", "dtype", "quantization", "cache", "compile_mode", "dynamic", "padding", "phase",
              "scenario", "batch", "prompt_tokens", "padded_tokens", "new_tokens", "cell_id")

# Members that are figures, dates, and names of hosts, addresses and outputs: what docs/import.md says isn't kept.
FIGURES = {
    "llama-bench/depth.json": "test_time|(avg|stddev)_(ns|ts)",
    "vllm-serve/means.json": "date|duration|completed|failed|total_(input|output)_tokens|request_throughput|output_throughput|"
                             "total_token_throughput|max_output_tokens_per_s|max_concurrent_requests|rtfx|"
                             "(mean|median|std|p99)_(ttft|tpot|itl|e2el)_ms",
    "aiperf/profile_export_aiperf.json": r"(?!input_config|aiperf_version).*|input_config\.(artifacts|endpoint\.urls).*",
    "optimum/benchmark.json": r"report\..*|config\.(name|print_report|log_report)",
    "nvbench/means.json": r".*\.summaries.*|.*\.(is_skipped|skip_reason|index|type_config_index|id|devices|device)|"
                          r"benchmarks\.states\.name|benchmarks\.axes.*|.*\.axis_values\.type|meta\.argv.*|"
                          r"benchmarks\.(min_samples|cold_\w+|batch_target_time|skip_time|timeout)",  # each state repeats them
    "pytest-benchmark-means.json": r"datetime|commit_info\.(time|author_time|project|branch|dirty)|machine_info\.node|"
                                   r"machine_info\.cpu\.hz_actual.*|benchmarks\.(stats.*|param)",
    "vllm-offline/throughput.json": "elapsed_time|(requests|tokens)_per_second",
    "guidellm/loads.json": r"benchmarks\.(?!config\.|requests\.successful\.(prompt|output)_tokens$).*|config\.benchmarks\..*|metadata\.timestamp|"
                           r"benchmarks\.config\.(id_|run_id|run_index|profile|environment|slo|confidence|warnings|"
                           r"prefer_response_metrics|backend\.(target|api_key|api_routes))\b.*|conclusions.*|"
                           r"config\.spec\.(backend|profile|rate|constraints|outputs|metrics|target)\b.*",
    "hyperfine.json": r"results\.(mean|stddev|median|user|system|min|max)",
}


def leaves(value, path=()):
    """Paths of all texts, numbers and words; of a list of objects the path is that of all its elements."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield from leaves(member, (*path, key))
    elif isinstance(value, list) and all(isinstance(element, dict) for element in value):
        seen = set()
        for element in value:
            for found in leaves(element, path):
                if found not in seen:
                    seen.add(found)
                    yield found
    elif value is not None and not isinstance(value, list):
        yield path


def changed(value, path):
    """The document with another value at the path, in all elements of each list on the way."""
    if isinstance(value, list):
        return [changed(element, path) for element in value]
    if path and isinstance(value, dict):
        return {key: changed(member, path[1:]) if key == path[0] else member for key, member in value.items()}
    if path or value is None:
        return value
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    return value + "x"


TIMES = ("samples_ns", "mean_e2el_ms", "mean_ttft_ms", "mean_tpot_ms", "mean_itl_ms", "avg", "values", "mean", "times", "value",
         "elapsed_time", "request_latency", "time_to_first_token_ms", "inter_token_latency_ms")


def slower(value, key=""):
    """The document with figures of another run."""
    if isinstance(value, dict):
        return {name: member if name == "input_config" else slower(member, name) for name, member in value.items()}
    if isinstance(value, list):
        return [slower(element, key) for element in value]
    if key not in TIMES or isinstance(value, bool) or value is None:
        return value
    if isinstance(value, str):
        return f"{float(value) * 1.001:.9g}" if "." in value or "e" in value else value
    return type(value)(value * 1.001)


class ImportSettingsTest(ProgramTest):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def put(self, document, bundle):
        """Imports the document; what is refused is seen too."""
        shutil.rmtree(self.folder / bundle, ignore_errors=True)
        (self.folder / f"{bundle}.json").write_text(json.dumps(document))
        return self.assay("import", f"{bundle}.json", "-o", bundle)

    def identity(self, bundle):
        """The parts of the bundle that `compare` holds against another's."""
        manifest = json.loads((self.folder / bundle / "manifest.json").read_text())
        rows = {tuple(row[column] for column in CONDITIONS) for row in rows_of(self.folder / bundle)}
        return manifest["identity"], sorted(rows)

    def document(self, name):
        return json.loads((REAL / name).read_text())

    def test_every_member_of_a_file_is_told_from_another_value(self):
        for name, figures in FIGURES.items():
            document = self.document(name)
            self.assertEqual(self.put(document, "plain").returncode, 0)
            before = self.identity("plain")
            looked_at = 0
            for path in leaves(document):
                if re.fullmatch(figures, ".".join(path)):
                    continue
                looked_at += 1
                with self.subTest(file=name, member=".".join(path)):
                    if self.put(changed(document, path), "other").returncode == 0:
                        self.assertTrue(self.identity("other") != before, "taken for like")
            self.assertGreater(looked_at, 0)

    def test_figures_are_no_settings(self):
        for name, figures in FIGURES.items():
            document = self.document(name)
            self.assertEqual(self.put(document, "plain").returncode, 0)
            before = self.identity("plain")
            # Those that no column is made of.
            left_out = ("is_skipped", "device", "id", "unit", "completed", "tag", *DATES)
            paths = [path for path in leaves(document) if re.fullmatch(figures, ".".join(path)) and path[-1] not in left_out
                     and path[0] != "input_sequence_length"  # the same kind many times, as the next
                     and not (path[0] in ("report", "benchmarks") and len(path) > 4)]
            self.assertGreater(len(paths), 0)
            with self.subTest(file=name):
                self.assertEqual(self.taken_for_settings(document, paths, before), [])

    def taken_for_settings(self, document, paths, before):
        """Those of the members that are refused or change the identity: all are changed at once, then each half of those that
        do."""
        other = document
        for path in paths:
            other = changed(other, path)
        done = self.put(other, "other")
        if done.returncode == 0 and self.identity("other") == before:
            return []
        if len(paths) == 1:
            return [(".".join(paths[0]), done.stderr)]
        half = len(paths) // 2
        return (self.taken_for_settings(document, paths[:half], before) + self.taken_for_settings(document, paths[half:], before)
                or [("together", done.stderr, paths)])

    def test_a_member_that_no_reader_knows_makes_two_files_unlike(self):
        places = {"llama-bench/depth.json": lambda document: document, "vllm-serve/means.json": lambda document: [document],
                  "aiperf/profile_export_aiperf.json": lambda document: [document["input_config"]],
                  "optimum/benchmark.json": lambda document: [document["config"]["backend"]],
                  "nvbench/means.json": lambda document: document["benchmarks"],
                  "pytest-benchmark-means.json": lambda document: document["benchmarks"],
                  "vllm-offline/throughput.json": lambda document: [document],
                  "guidellm/loads.json": lambda document: [each["config"] for each in document["benchmarks"]],
                  "hyperfine.json": lambda document: document["results"]}
        self.assertEqual(places.keys(), FIGURES.keys())
        for name, objects in places.items():
            with self.subTest(file=name):
                for bundle, value in (("a", "old"), ("b", "new")):
                    document = slower(self.document(name)) if bundle == "b" else self.document(name)
                    for each in objects(document):
                        each["knob_of_tomorrow"] = value
                    self.assertEqual(self.put(document, bundle).returncode, 0)
                axis = "setting." + ("backend." if name.startswith("optimum") else "") + "knob_of_tomorrow"
                error = self.assert_refused(["compare", "a", "b"], f'{axis}: expected "old", found "new"')
                self.assertIn("--vary", error)
                self.assertIn(self.assay("compare", "a", "b", "--vary", axis).returncode, (0, 1))

    def test_threads_are_named_by_compare_portability_and_gate(self):
        for bundle, threads, run in (("a", 2, lambda document: document), ("b", 1, slower)):
            document = [{**test, "n_threads": threads} for test in run(self.document("llama-bench/depth.json"))]
            self.assertEqual(self.put(document, bundle).returncode, 0)
        self.assert_refused(["compare", "a", "b"], 'setting.n_threads: expected "2", found "1" (--vary AXIS allows it)')
        self.assertIn("setting.n_threads", self.succeed("compare", "a", "b", "--vary", "setting.n_threads"))
        self.assert_refused(["compare", "a", "b", "--vary", "setting.n_thread"], "setting.n_threads")
        self.assertIn("setting.n_threads", self.assay("portability", "a", "b").stdout)
        self.assert_refused(["portability", "a", "b", "--vary", "code_sha"], 'setting.n_threads: expected "2", found "1"')
        self.assertIn("setting.n_threads", self.assay("portability", "a", "b", "--vary", "setting.n_threads").stdout)
        judged = json.loads(self.assay("gate", "a", "b", "-o", "json").stdout)
        self.assertIn("setting.n_threads", json.dumps(judged["pairs"] if "pairs" in judged else judged))

    def test_loads_are_held_scenario_by_scenario(self):
        document = self.document("vllm-serve/means.json")
        self.assertEqual(self.put(document, "a").returncode, 0)
        for bundle, change in (("b", {"num_prompts": 32}), ("c", {"max_concurrency": 4})):  # with times of their own
            self.assertEqual(self.put({**slower(document), **change}, bundle).returncode, 0)
        self.assert_refused(["compare", "a", "b"], 'setting.num_prompts: expected "16", found "32"')
        self.assert_refused(["compare", "a", "c"], 'setting.max_concurrency: expected "2", found "4"')
        # One import of several loads, of which the other has one.
        (self.folder / "second.json").write_text(json.dumps({**document, "max_concurrency": 4, "num_prompts": 64}))
        self.succeed("import", "a.json", "second.json", "-o", "sweep")
        self.assertEqual({row["arm"] for row in rows_of(self.folder / "sweep")}, {"vllm"})
        self.put(slower(document), "again")
        self.assertIn(self.assay("compare", "sweep", "again").returncode, (0, 1))

    def test_what_hyperfine_does_not_write_is_unknown_until_the_user_states_it(self):
        (self.folder / "again.json").write_text(json.dumps(slower(self.document("hyperfine.json"))))

        def imported(bundle, *settings, file=REAL / "hyperfine.json"):
            options = [text for setting in settings for text in ("--set", setting)]
            self.succeed("import", file, *options, "-o", bundle)
            return json.loads((self.folder / bundle / "manifest.json").read_text())["identity"]

        self.assertLessEqual({"setting.shell", "setting.warmup", "setting.prepare"}, set(imported("plain")["unknown"]))
        stated = imported("a", "setting.shell=none", "setting.warmup=2")
        self.assertNotIn("setting.shell", stated["unknown"])
        self.assertEqual(stated["settings"], {"shell": "none", "warmup": "2"})
        imported("b", "setting.shell=bash", "setting.warmup=2", file="again.json")
        self.assert_refused(["compare", "a", "b"], 'setting.shell: expected "none", found "bash"')
        self.succeed("import", "again.json", "-o", "again")
        self.assertIn("setting.shell", self.succeed("compare", "plain", "again"))
        self.assert_refused(["import", REAL / "hyperfine.json", "--set", "setting.=1", "-o", "x"], "setting.NAME=VALUE")
        self.put([{**test, "n_threads": 2} for test in self.document("llama-bench/depth.json")], "llama")
        self.assert_refused(["import", "llama.json", "--set", "setting.n_threads=3", "-o", "x"],
                            'expected a setting that the files don\'t state, found "2"')

    def test_formats_of_one_tool_state_the_same(self):
        for name in ("csv", "sql"):
            self.succeed("import", REAL / f"llama-bench/tests.{name}", "-o", name)
        self.succeed("import", REAL / "llama-bench/tests.json", "-o", "json")
        (csv, csv_rows), (sql, sql_rows), (of_json, json_rows) = map(self.identity, ("csv", "sql", "json"))
        self.assertEqual((csv, csv_rows), (sql, sql_rows))
        self.assertEqual((csv, csv_rows), (of_json, json_rows))


if __name__ == "__main__":
    ProgramTest.program = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
