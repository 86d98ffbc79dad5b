"""`assay import` of files that the real tools wrote (tests/import): each becomes a bundle that verify, analyze, report and
compare take, with the tool's own figures in it, and with what the file doesn't state listed by name.

usage: import_test.py ASSAY
"""

import csv
import json
import pathlib
import shutil
import sys
import tempfile
import unittest

from program import ProgramTest, rows_of

REAL = pathlib.Path(__file__).parents[1] / "import"


def number(text):
    return float(text) if text else None


class ImportTest(ProgramTest):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def imported(self, *names, options=(), bundle="bundle"):
        """The rows and the manifest of a bundle that every reader takes."""
        self.succeed("import", *(REAL / name for name in names), *options, "-o", bundle)
        self.assertIn("intact", self.succeed("verify", bundle))
        self.succeed("analyze", bundle)
        self.succeed("report", bundle)
        copy = self.folder / f"{bundle}-again"
        shutil.copytree(self.folder / bundle, copy)
        self.assertIn(self.assay("compare", bundle, copy.name).returncode, (0, 1))
        manifest = json.loads((self.folder / bundle / "manifest.json").read_text())
        return rows_of(self.folder / bundle), manifest

    def assert_times(self, rows, expected_ms):
        self.assertEqual(len(rows), len(expected_ms))
        for row, ms in zip(rows, expected_ms):
            self.assertAlmostEqual(number(row["latency_ms"]), ms, delta=1e-9 * max(1, ms))

    def document(self, name):
        return json.loads((REAL / name).read_text())

    def test_hyperfine(self):
        rows, manifest = self.imported("hyperfine.json")
        results = self.document("hyperfine.json")["results"]
        for result in results:
            of_command = [row for row in rows if row["arm"] == result["command"]]
            self.assert_times(of_command, [1e3 * time for time in result["times"]])
            self.assertEqual([row["cold"] for row in of_command], ["true"] + ["false"] * 9)
        self.assertEqual({row["status"] for row in rows}, {"ok"})
        for field in ("phase", "model", "device", "framework_build", "code_sha", "cache", "compile_mode"):
            self.assertIn(field, manifest["identity"]["unknown"])
            self.assertNotIn(field, manifest["identity"])

    def test_hyperfine_runs_that_took_no_time_or_failed(self):
        rows, _ = self.imported("hyperfine-impossible.json")
        self.assertEqual({(row["status"], row["error_class"]) for row in rows if row["arm"] == "true"},
                         {("false_success", "zero_latency")})
        self.assertEqual({(row["status"], row["error_class"]) for row in rows if row["arm"] == "exit 3"},
                         {("crash", "exit 3")})

    def test_pytest_benchmark(self):
        rows, manifest = self.imported("pytest-benchmark.json")
        document = self.document("pytest-benchmark.json")
        for benchmark in document["benchmarks"]:
            of_test = [row for row in rows if row["arm"] == benchmark["name"]]
            self.assert_times(of_test, [1e3 * time for time in benchmark["stats"]["data"]])
        hashes = [row for row in rows if row["arm"].startswith("test_sha256")]
        self.assertEqual({(row["phase"], row["model"], row["scenario"]) for row in hashes}, {("prefill", "sha", "hash")})
        self.assertEqual(manifest["identity"]["device"], document["machine_info"]["cpu"]["brand_raw"])
        environment = json.loads((self.folder / "bundle" / "environment.json").read_text())
        self.assertEqual(environment["imported"]["tool"], f"pytest-benchmark {document['version']}")
        self.assertEqual(manifest["started_at"][:10], document["datetime"][:10])

    def test_pytest_benchmark_without_rounds(self):
        rows, _ = self.imported("pytest-benchmark-means.json")
        document = self.document("pytest-benchmark-means.json")
        self.assertEqual(sorted(number(row["latency_ms"]) for row in rows),
                         sorted(1e3 * benchmark["stats"]["mean"] for benchmark in document["benchmarks"]))
        environment = json.loads((self.folder / "bundle" / "environment.json").read_text())
        self.assertEqual(environment["imported"]["means"], len(rows))
        self.assertTrue([text for text in environment["warnings"] if "the mean of several samples" in text])

    # Options

    def test_facts_that_the_user_states_are_recorded_as_asserted(self):
        rows, manifest = self.imported("hyperfine.json", options=[
            "--set", "phase=prefill", "--set", "model=zeros", "--set", "cache=static", "--first-samples", "warm",
            "--name", "zeros", "--baseline", "head -c 30000000 /dev/zero"])
        self.assertEqual({(row["phase"], row["model"], row["cache"], row["cold"]) for row in rows},
                         {("prefill", "zeros", "static", "false")})
        self.assertNotIn("phase", manifest["identity"]["unknown"])
        self.assertEqual(manifest["study"]["name"], "zeros")
        self.assertEqual(manifest["study"]["baseline"], "head -c 30000000 /dev/zero")
        environment = json.loads((self.folder / "bundle" / "environment.json").read_text())
        self.assertEqual(environment["imported"]["asserted"], {"phase": "prefill", "model": "zeros", "cache": "static"})

    def test_what_is_printed_has_the_four_formats(self):
        arguments = ["import", REAL / "hyperfine.json", "-o"]
        shown = {name: self.succeed(*arguments, name, "--output-format", name) for name in ("table", "json", "csv", "md")}
        table = {row["what"]: row["value"] for row in json.loads(shown["json"])}
        self.assertEqual(table["format"], "hyperfine")
        self.assertEqual(table["rows"], "20 of 2 cells")
        self.assertIn("phase", table["unknown"])
        self.assertEqual(next(csv.reader(shown["csv"].splitlines())), ["what", "value"])

    def test_files_of_two_formats_are_refused(self):
        error = self.assert_refused(["import", REAL / "hyperfine.json", REAL / "pytest-benchmark.json", "-o", "b"],
                                    "pytest-benchmark behind hyperfine")
        self.assertIn("expected files of one format", error)
        self.assertFalse((self.folder / "b").exists())

    def test_a_format_that_is_named_and_isnt_there(self):
        self.assert_refused(["import", REAL / "hyperfine.json", "--format", "pytest-benchmark", "-o", "b"], "benchmarks")


if __name__ == "__main__":
    ProgramTest.program = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
