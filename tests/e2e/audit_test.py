"""`assay stats audit`: exit statuses, formats, the template, Markdown, and what --method and --sides bind.

usage: audit_test.py ASSAY
"""

import csv
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from program import ProgramTest

HEADER = "label,mean_a,sd_a,n_a,mean_b,sd_b,n_b,t,d,p\n"
TR147 = 'TR147,11.87,9.19,"1,620",7.12,6.73,"1,620",16.8,−0.59,8.87 x 10^-61\n'


class Audit(ProgramTest):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def table(self, text, name="table.csv"):
        path = self.folder / name
        path.write_text(text)
        return path

    def audit(self, text, *options, status=0):
        """The figures of the first row by name."""
        done = self.assay("stats", "audit", self.table(text), *options, "-o", "json")
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return {row["figure"]: row for row in json.loads(done.stdout)}

    def refuse(self, *arguments):
        done = self.assay("stats", "audit", *arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr

    def test_worked_example(self):
        found = self.audit(HEADER + TR147)
        self.assertEqual([found[f]["verdict"] for f in "tdp"], ["consistent"] * 3)
        self.assertEqual(found["p"]["as"], "Student, two-sided")
        self.assertEqual(found["d"]["as"], "pooled sd, b - a")
        self.assertIsInstance(found["p"]["also"], list)
        self.assertNotIn("Welch, two-sided", found["p"]["also"])
        named = self.audit(HEADER + TR147, "--method", "welch", "--sides", "two", status=1)
        self.assertEqual(named["p"]["verdict"], "inconsistent")
        self.assertEqual(named["p"]["as"], "Welch, two-sided")
        self.assertEqual(named["p"]["also"], [])
        self.assertAlmostEqual(named["p"]["recomputed"] / 1.799024216508787e-60, 1, places=8)

    def test_a_declared_method_binds_by_column_and_option(self):
        row = "t,df,p\n2.10,38,0.0212\n"
        self.assertEqual(self.audit(row)["p"]["as"], "one-sided, a > b")
        self.audit(row, "--sides", "two", status=1)
        self.audit("sides,t,df,p\ntwo-sided,2.10,38,0.0212\n", status=1)
        # A row's own word stands against the option for the others.
        self.audit("sides,t,df,p\none,2.10,38,0.0212\n", "--sides", "two")
        self.assertIn('did you mean "welch"', self.refuse(self.table(row), "--method", "welhc"))
        self.assertIn("--sides: expected two", self.refuse(self.table(row), "--sides", "three"))

    def test_a_bound_is_a_bound(self):
        self.audit("t,df,p\n1.949,100,<0.05\n", "--sides", "two", status=1)
        self.assertEqual(self.audit("t,df,p\n1.949,100,<0.05\n")["p"]["verdict"], "not determined")
        self.audit("t,df,p\n2.1,38,≤ .05\n", "--sides", "two")

    def test_claims_of_a_row_are_held_against_one_another(self):
        # Welch's t, Student's df and Welch's one-sided p: each right by itself.
        mixed = "mean_a,sd_a,n_a,mean_b,sd_b,n_b,t,df,p\n10.000,4.000,12,8.000,2.500,28,1.603,38,0.0650\n"
        found = self.audit(mixed, status=1)
        self.assertEqual((found["p"]["verdict"], found["p"]["from"]), ("inconsistent", "t and df"))

    def test_pairs_odds_and_whole_numbers(self):
        # The differences' deviation, the mean difference and n are all that a paired t needs.
        pairs = "delta,n_a,sd_diff,t\n-1.00,20,2.865,"
        self.assertEqual(self.audit(pairs + "-1.56\n")["t"]["from"], "delta, sd_diff and n")
        self.assertEqual(self.audit(pairs + "-3.55\n", status=1)["t"]["verdict"], "inconsistent")
        odds = self.audit('count_a,count_b,odds_ratio,odds_ratio_ci,p\n12 of 40,5 of 38,2.83,"[0.89, 9.01]",0.0785\n')
        self.assertEqual({row["verdict"] for row in odds.values()}, {"consistent"})
        self.assertEqual(odds["odds_ratio_low"]["confidence"], 0.95)
        self.audit("count_a,count_b,odds_ratio\n12 of 40,5 of 38,2.28\n", status=1)
        # Sevenths, and what no seven whole numbers have for a mean.
        self.assertEqual(self.audit("mean_a,n_a,step\n3.43,7,1\n")["mean_a"]["verdict"], "consistent")
        self.assertEqual(self.audit("mean_a,n_a,step\n3.45,7,1\n", status=1)["mean_a"]["from"], "step and n")

    def test_what_stats_anova_prints_is_no_contradiction(self):
        (self.folder / "cells.csv").write_text(
            "size,arm,mean,sd,n\na,x,1,1,5\na,y,2,1,6\na,z,4,1,6\nb,x,2,1,5\nb,y,5,1,4\nb,z,5,1,6\n")
        printed = json.loads(self.succeed("stats", "anova", "cells.csv", "--a", "size", "--b", "arm", "-o", "json"))
        residual = printed[-1]["df"]
        for term in printed[:-1]:
            row = "f,df1,df2,eta_squared,partial_eta_squared\n" + ",".join(
                f"{x:.5g}" for x in (term["F"], term["df"], residual, term["eta_squared"], term["partial_eta_squared"]))
            found = self.audit(row + "\n")
            self.assertEqual(found["partial_eta_squared"]["verdict"], "consistent")
            self.assertNotEqual(found["eta_squared"]["verdict"], "inconsistent")

    def test_json_names_conventions_apart(self):
        found = self.audit(HEADER + TR147)
        self.assertEqual((found["p"]["method"], found["p"]["sides"]), ("Student", "two-sided"))
        self.assertEqual(found["p"]["conventions"]["deviations"], "n-1")
        self.assertEqual((found["d"]["sides"], found["d"]["conventions"]["sign_of_d"]), (None, "b - a"))
        self.assertIsNone(found["t"]["confidence"])
        rows = "method,confidence,mean_a,sd_a,n_a,mean_b,sd_b,n_b,ci\nwelch,99 %,11.87,9.19,1620,7.12,6.73,1620,"
        interval = self.audit(rows + '"[4.02, 5.48]"\n')["ci_low"]
        self.assertEqual((interval["confidence"], interval["method"]), (0.99, "Welch"))
        self.assertIn(interval["conventions"]["interval"], ("t interval", "z interval"))
        unknown = self.audit("mean_a,d\n1,0.5\n")["d"]
        self.assertEqual((unknown["method"], unknown["conventions"]), (None, {}))

    def test_labels_reach_no_terminal_raw(self):
        label = "a\u009b2J\u202eb\u2066\x7f"
        path = self.table(f"label,t,df,p\n{label},2.10,38,0.042\n")
        shown = self.succeed("stats", "audit", path, "-o", "json")
        self.assertEqual(json.loads(shown)[0]["label"], label)
        self.assertIn(r"a\u009b2J\u202eb\u2066\u007f", shown)
        piped = self.succeed("stats", "audit", path, "-o", "csv")
        self.assertEqual(next(csv.DictReader(io.StringIO(piped)))["label"], r"a\x9b2J\u202eb\u2066\x7f")
        master, terminal = os.openpty()
        done = subprocess.run([self.program, "stats", "audit", path, "-o", "csv"], stdout=terminal, timeout=60)
        os.close(terminal)
        seen = os.read(master, 65536).decode()
        os.close(master)
        self.assertEqual(done.returncode, 0)
        self.assertIn(r"a\x9b2J\u202eb\u2066\x7f", seen)

    def test_what_no_figures_determine_is_declared_as_other(self):
        interval = 'mean_a,sd_a,n_a,mean_a_ci,interval\n10.00,2.00,25,"[9.30, 10.95]",'
        self.audit(interval + "t\n", status=1)
        self.assertEqual(self.audit(interval + "other\n")["mean_a_low"]["verdict"], "not determined")
        self.assertEqual(self.audit(interval + "\n", "--method", "other")["mean_a_low"]["verdict"], "not determined")

    def test_template_is_a_table(self):
        template = self.succeed("stats", "audit", "--template")
        self.assertTrue(template.startswith("#"))
        found = self.audit(template)
        self.assertEqual({row["verdict"] for row in found.values()}, {"consistent"})
        self.assertIn("--template", self.refuse())
        self.assertIn("expected no TABLE", self.refuse("--template", self.table("t,df,p\n2.10,38,0.042\n")))
        self.assertIn("--method", self.refuse("--template", "--method", "welch"))
        for words in ("percent_by: b, a, mean, log, other", "interval: t, z, other", "adjustment: holm,"):
            self.assertIn("# " + words, template)

    def test_markdown_tables_are_read(self):
        text = "# Results\n\nAs, of, the paper.\n\n| label | t | df | p |\n|---|--:|--:|---|\n| one | 2.10 | 38 | .042 |\n"
        done = self.assay("stats", "audit", self.table(text, "paper.md"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 consistent, 0 inconsistent", done.stdout)

    def test_formats(self):
        path = self.table(HEADER + TR147 + "x,11.87,9.19,1620,7.12,6.73,1620,,,\n")
        shown = self.assay("stats", "audit", path, "--method", "student")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("3 consistent, 0 inconsistent, 0 not determined", shown.stdout)
        rows = list(csv.DictReader(io.StringIO(self.assay("stats", "audit", path, "-o", "csv").stdout)))
        self.assertEqual([row["figure"] for row in rows], ["t", "p", "d"])
        self.assertIn("     16.784 |", self.assay("stats", "audit", path, "-o", "md").stdout)
        alone = self.assay("stats", "audit", self.table("label,mean_a,d\nx,1,0.5\n"))
        self.assertEqual(alone.returncode, 0)
        self.assertIn("not determined", alone.stdout)

    def test_bad_input(self):
        self.assertIn("expected a readable file", self.refuse("nowhere.csv"))
        self.assertIn('did you mean "mean_a"', self.refuse(self.table("mean_1,t\n1,2\n")))
        self.assertIn("line 3 column t: expected", self.refuse(self.table("t,df\n1,2\nx,2\n")))
        self.assertIn("line 2", self.refuse(self.table('t,df\n"1,2\n')))
        self.assertIn("expected at most 300 numbers", self.refuse(self.table("parts,total\n" + "1;" * 400 + "1,2\n")))
        (self.folder / "bytes.csv").write_bytes(bytes(range(256)) * 50)
        self.refuse("bytes.csv")


if __name__ == "__main__":
    Audit.program = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
