"""The record's first finding, from a table shaped like TR117's: mixed quantisation, seven scenarios, an array of latencies a
run, three backends of which one is only called compiled.

The table is made here: the backend that is called compiled runs exactly the eager one's code, a hundredth slower, and is
never the first of a session, so that the eager one pays every cold call. The published reading (means over all samples) has it
ahead. assay has to name the label, the cold calls, and the mean and the median that disagree; and without the
first samples nothing of the advantage may be left.

usage: import_record_test.py ASSAY
"""

import csv
import json
import pathlib
import random
import sys
import tempfile
import unittest

from program import ProgramTest, rows_of

SCENARIOS = {"single_micro": 10, "single_short": 30, "single_medium": 80, "single_long": 200, "dual_short": 60,
             "dual_medium": 160, "stress_single": 400}
MODELS = {"tiny-gpt2": 4.0, "gpt2-25m": 9.0, "qwen2.5-0.5b": 30.0}
EAGER, COMPILE, OLLAMA = "transformers-gpu", "transformers-gpu-compile", "ollama"
QUANTIZATION = {EAGER: "none", COMPILE: "none", OLLAMA: "q4_0"}
RUNS, SAMPLES = 6, 8
TOKENS = 64
MAPPING = """
name: tr117
baseline: transformers-gpu
columns: {arm: backend, model: model, quantization: quantization, scenario: scenario, prompt_tokens: prompt_tokens,
          new_tokens: tokens_requested, tokens: tokens_generated, latencies: latencies_ms, status: status}
constants: {phase: e2e_kv, batch: 1, device: Example GPU 12 GB}
status: {ok: success, other: error}
"""
LABEL_ONLY = """
compiler:
  - {arm: transformers-gpu-compile, verdict: label_only, reason: the harness of that commit never calls torch.compile}
"""


def latencies(rng, backend, model, tokens):
    base = MODELS[model] * (1 + tokens / 400)
    if backend == OLLAMA:
        base /= 7
    elif backend == COMPILE:
        base *= 1.01
    times = [base * rng.lognormvariate(0, 0.002) for _ in range(SAMPLES)]
    if backend == EAGER:
        times[0] *= 6 * rng.lognormvariate(0, 0.05)
    return times


def write_tables(folder):
    """A file a run, as the record kept them; one row a backend, model and scenario."""
    rng = random.Random(117)
    names = []
    for run in range(RUNS):
        name = f"run{run}.csv"
        with (folder / name).open("w", newline="") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(["backend", "model", "quantization", "scenario", "prompt_tokens", "tokens_requested",
                            "tokens_generated", "latencies_ms", "status"])
            for backend in (EAGER, COMPILE, OLLAMA):
                for model in MODELS:
                    for scenario, tokens in SCENARIOS.items():
                        table.writerow([backend, model, QUANTIZATION[backend], scenario, tokens, TOKENS, TOKENS,
                                        json.dumps(latencies(rng, backend, model, tokens)), "success"])
            # Samples that the record counted as ok: no token, in no time.
            table.writerow([OLLAMA, "empty-answers", "q4_0", "single_micro", 10, TOKENS, 0, "[0.2, 0.3]", "success"])
        names.append(name)
    return names


class RecordTest(ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = pathlib.Path(cls.scratch.name)
        cls.tables = write_tables(cls.folder)
        (cls.folder / "plain.yaml").write_text(MAPPING)
        (cls.folder / "audited.yaml").write_text(MAPPING + LABEL_ONLY)
        test = cls()
        # The record read its tables so: every sample counts.
        test.succeed("import", *cls.tables, "--mapping", "plain.yaml", "--first-samples", "warm", "-o", "published")
        # assay reads them so.
        test.succeed("import", *cls.tables, "--mapping", "audited.yaml", "-o", "audited")
        cls.published = json.loads(test.succeed("analyze", "published", "-o", "json"))
        cls.audited = json.loads(test.succeed("analyze", "audited", "-o", "json"))

    def kinds(self, findings, kind, **wanted):
        return [one for one in findings["findings"]
                if one["kind"] == kind and all(one.get(key) == value for key, value in wanted.items())]

    def strata(self):
        return len(MODELS) * len(SCENARIOS)

    def contrasts(self, findings, arm):
        return [one for one in findings["contrasts"] if one["arm"] == arm]

    def test_the_bundles_verify(self):
        for bundle in ("published", "audited"):
            self.assertIn("intact", self.succeed("verify", bundle))
            self.succeed("report", bundle)
        self.assertEqual(len(rows_of(self.folder / "audited")), RUNS * (3 * self.strata() * SAMPLES + 2))

    def test_the_label_is_audited(self):
        # The name alone claims a compiler: unproven. The mapping's facts on the harness make it a label.
        self.assertEqual(len(self.kinds(self.published, "unproven_compiler", arm=COMPILE)), self.strata())
        label = self.kinds(self.audited, "label_only", arm=COMPILE)
        self.assertEqual(len(label), self.strata())
        self.assertIn("never calls torch.compile", label[0]["text"])
        for findings in (self.published, self.audited):
            self.assertFalse(self.kinds(findings, "label_only", arm=EAGER))
            self.assertFalse([one for one in findings["decisions"] if one.get("arm") == COMPILE],
                             "no decision takes an arm whose label isn't earned")

    def test_the_cold_calls_are_audited(self):
        counted = self.kinds(self.published, "cold_start_skew", severity="warning", arm=EAGER)
        self.assertEqual(len(counted), self.strata())
        left_out = self.kinds(self.audited, "cold_start_skew", severity="note", arm=EAGER)
        self.assertEqual(len(left_out), self.strata())
        self.assertFalse(self.kinds(self.audited, "cold_start_skew", severity="warning"))
        self.assertFalse(self.kinds(self.published, "cold_start_skew", arm=COMPILE), "it had no cold calls")
        rows = rows_of(self.folder / "audited")
        cold = [row for row in rows if row["cold"] == "true"]
        self.assertEqual(len(cold), RUNS * (3 * self.strata() + 1), "the first of each array of each file")
        self.assertEqual({int(row["repetition"]) % SAMPLES for row in cold}, {0})
        self.assertFalse([row for row in rows_of(self.folder / "published") if row["cold"] == "true"])

    def test_mean_and_median_disagree_until_the_first_samples_are_left_out(self):
        disagreements = [one for one in self.kinds(self.published, "mean_median_disagreement") if one["arm"] == EAGER]
        self.assertEqual(len(disagreements), self.strata())
        for one in disagreements:
            decisive = {repetition for rows in one["rows"] for repetition in rows["repetitions"]}
            self.assertEqual(decisive, {run * SAMPLES for run in range(RUNS)}, "the first samples decide the mean")
            self.assertRegex(one["text"], rf"slower than {COMPILE} by the mean .*, faster by the median")
        for one in self.contrasts(self.published, COMPILE):
            self.assertLess(one["ratio"], 1)
            self.assertGreater(one["median_ratio"], 1)
        self.assertFalse(self.kinds(self.audited, "mean_median_disagreement"))

    def test_the_means_advantage_is_gone_without_the_first_samples(self):
        before = self.contrasts(self.published, COMPILE)
        after = self.contrasts(self.audited, COMPILE)
        self.assertEqual(len(before), self.strata())
        self.assertEqual(len(after), self.strata())
        for one in before:
            self.assertLess(one["ratio"], 0.8, "by all samples the arm that is called compiled is ahead")
            self.assertEqual(one["verdict"], "faster", "and that is significant")
        for one in after:
            self.assertGreater(one["ratio"], 1, "by warm samples it is behind")
            self.assertEqual(one["verdict"], "equivalent", "by a hundredth, within the margin")
        combined = [next(one for one in findings["combined"] if one["arm"] == COMPILE)
                    for findings in (self.published, self.audited)]
        self.assertEqual([one["verdict"] for one in combined], ["faster", "equivalent"])

    def test_mixed_quantisation_is_named_and_zero_tokens_are_no_success(self):
        self.assertTrue(self.kinds(self.audited, "unlike_precision", arm=OLLAMA))
        empty = rows_of(self.folder / "audited", model="empty-answers")
        self.assertEqual(len(empty), RUNS * 2)
        self.assertEqual({(row["status"], row["error_class"]) for row in empty}, {("false_success", "too_few_tokens")})

    def test_the_screen_has_each_part_of_the_finding(self):
        published, audited = (self.succeed("analyze", bundle) for bundle in ("published", "audited"))
        for kind in ("unproven_compiler", "mean_median_disagreement", "cold_start_skew", "unlike_precision"):
            self.assertRegex(published, rf"(?m)^- {kind} \(21 of 64 cells")
        self.assertRegex(audited, r"(?m)^- label_only \(21 of 64 cells")
        self.assertNotIn("mean_median_disagreement", audited)
        self.assertIn(f"{COMPILE} is left out on 21 of 22 strata: label-only", audited)

    def test_gates_fail_by_name(self):
        done = self.assay("gate", "audited", "-o", "json")
        self.assertEqual(done.returncode, 1, done.stderr)
        failed = {check["name"]: check for gate in json.loads(done.stdout)["bundles"][0]["gates"]
                  for check in gate["checks"] if check["verdict"] == "fail"}
        named = {text.rsplit(".", 1)[1] for text in failed["identity"]["decided_by"]}
        self.assertEqual(named, {"cache", "code_generator", "code_sha", "compile_mode", "framework_build"},
                         "the mapping states the device")
        self.assertIn("label-only", failed["compiled_cells"]["found"])

    def test_the_identity_says_what_the_table_does_not(self):
        identity = json.loads((self.folder / "audited" / "manifest.json").read_text())["identity"]
        self.assertEqual(identity["device"], "Example GPU 12 GB")
        for field in ("cache", "code_generator", "code_sha", "compile_mode", "dtype", "framework_build", "padding"):
            self.assertIn(field, identity["unknown"])
            self.assertNotIn(field, identity)


if __name__ == "__main__":
    ProgramTest.program = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
