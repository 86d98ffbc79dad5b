"""`assay stats`: the worked examples, every subcommand but audit (audit_test.py), and the four formats.

usage: stats_test.py ASSAY
"""

import csv
import io
import json
import pathlib
import sys
import tempfile
import unittest

from program import ProgramTest

WELCH = ["welch", "--a", "11.87,9.19,1620", "--b", "7.12,6.73,1620"]


class Stats(ProgramTest):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def figures(self, *arguments):
        """The rows of a subcommand, by name."""
        done = self.assay("stats", *arguments, "-o", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def figure(self, *arguments):
        (row,) = self.figures(*arguments)
        return row

    def refuse(self, *arguments):
        """The one line of a refusal."""
        done = self.assay("stats", *arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr

    def near(self, found, expected, digits=4):
        self.assertLess(abs(found - expected), abs(expected) * 10**-digits)

    def test_worked_example(self):
        row = self.figure(*WELCH)
        self.near(row["t"], 16.784140534064676, 9)
        self.near(row["p"], 1.799024216508787e-60, 8)  # scipy.stats.ttest_ind_from_stats(..., equal_var=False)
        effect = self.figure("effect", "--a", "7.12,6.73,1620", "--b", "11.87,9.19,1620")
        self.near(effect["d"], -0.5897, 3)
        self.assertTrue(effect["d_low"] < -0.5897 < effect["d_high"])

    def test_published_equivalence(self):
        published = ["tost", "--difference", "0.197", "--se", "0.254", "--df", "146.7"]
        self.near(self.figure(*published, "--margin", "1")["p"], 0.00096, 2)
        self.near(self.figure(*published, "--margin", "0.5")["p"], 0.118, 2)

    def test_formats(self):
        shown = self.assay("stats", *WELCH).stdout
        self.assertIn("16.784", shown)
        self.assertIn("1.799e-60", shown)
        self.assertIn("| 16.784 |", self.assay("stats", *WELCH, "-o", "md").stdout)
        (row,) = csv.DictReader(io.StringIO(self.assay("stats", *WELCH, "-o", "csv").stdout))
        self.near(float(row["t"]), 16.784140534064676, 9)

    def test_p_below_the_smallest_double(self):
        row = self.figure("welch", "--a", "100,1,5000", "--b", "1,1,5000")
        self.assertIsNone(row["p"])
        self.near(row["ln_p"], -39019.8, 5)
        self.assertIn("e-16947", self.assay("stats", "welch", "--a", "100,1,5000", "--b", "1,1,5000").stdout)

    def test_values_and_figures_agree(self):
        (self.folder / "a.txt").write_text("1\n2\n3.5\n4 7\n")
        by_values = self.figure("student", "--a-values", "a.txt", "--b-values", "2,2,9")
        by_figures = self.figure("student", "--a", "3.5,2.29128784747792,5", "--b", "4.333333333333333,4.041451884327381,3")
        for name in ("t", "df", "p"):
            self.near(by_values[name], by_figures[name], 9)

    def test_every_subcommand(self):
        (self.folder / "rows.csv").write_text(
            "size,arm,ms\n" + "".join(f"{s},{a},{i + j + k * k}\n" for i, s in enumerate("abc")
                                      for j, a in enumerate("xy") for k in range(3 + j)))
        (self.folder / "cells.csv").write_text("size,arm,mean,sd,n\na,x,1,1,5\na,y,2,1,6\nb,x,2,1,5\nb,y,5,1,4\n")
        for expected, arguments in [
            ({"d": 0.59}, ["effect", "--a", "11.87,9.19,1620", "--b", "7.12,6.73,1620"]),
            ({"A": 1 / 12, "p": 0.1142857}, ["mannwhitney", "--a", "1,2,3,4", "--b", "3.5,5,6"]),
            ({"pairs": 4, "t": -1.98680, "df": 3, "p": 0.141122, "ratio": 0.8}, ["paired", "--a", "1,2,3,4", "--b", "1.5,2.5,3,5.5"]),
            ({"F": 2.6667, "p": 0.15355}, ["levene", "--group-values", "1,2,4,9", "--group-values", "3,4,5,4"]),
            ({"F": 4.375}, ["oneway", "--group", "1,2,30", "--group", "2,2,30", "--group", "2.5,2,30"]),
            ({"power": 0.47789}, ["power", "--n", "30", "--difference", "0.5"]),
            ({"mde_in_sd": 0.73562}, ["mde", "--n", "30,30", "--sd", "5"]),
            ({"n_each": 64}, ["repetitions", "--d", "0.5"]),
            ({"n": 5, "median": 3, "mad": 1, "fence_high": 7}, ["describe", "--a", "1,2,3,4,100"]),
            ({"mean_a": 3.8}, ["bootstrap", "--a", "1,2,3,4,9", "--resamples", "500"]),
            ({"ratio": 1}, ["bootstrap", "--a", "1,2,3,4,9", "--b", "2,3,4,3,3", "--quantile", "0.5"]),
            ({"r1": 0.33457, "n": 10}, ["autocorrelation", "--a", "1,2,3,2,1,2,3,4,3,2"]),
            ({"S": 12, "slope": 0.75}, ["trend", "--a", "1,2,3,2,4,5"]),
            ({"mean": 1.025, "least_n": 4, "low": 0.57113, "high": 1.7122}, ["anytime", "--a", "1,1.2,0.9,1"]),
            ({"share": 1 / 6, "low": 0.073365}, ["wilson", "--a", "5/30"]),
            ({"design_effect": 8, "effective_n": 5, "low": 0.0362241, "n": 40}, ["clusters", "--a", "8/8,0/8,0/8,0/8,0/8"]),
            ({"design_effect": 1, "low": 0.0545950, "clusters": 5}, ["clusters", "--a", "1/8,1/8,1/8,1/8,1/8"]),
            ({"p": 0.052186}, ["fisher", "--a", "5/30", "--b", "0/30"]),
            ({"p": 0.0260928}, ["fisher", "--a", "5/30", "--b", "0/30", "--alternative", "greater"]),
            ({"p": 0.0137042}, ["boschloo", "--a", "5/30", "--b", "0/30", "--alternative", "greater"]),
            ({"statistic": 2.3355}, ["barnard", "--a", "5/30", "--b", "0/30"]),
            ({"difference": 1 / 6, "low": 0.0197299}, ["newcombe", "--a", "5/30", "--b", "0/30"]),
        ]:
            row = self.figure(*arguments)
            for name, value in expected.items():
                self.near(row[name], value, 3)
        none = self.figure("clusters", "--a", "0/8,0/8")
        self.assertEqual((none["share"], none["design_effect"], none["low"]), (0, None, None), "nothing shows it")
        for name, expected in (("holm", [.03, .06, .06]), ("bonferroni", [.03, .12, .09]), ("bh", [.03, .04, .04])):
            rows = self.figures(name, "--p", "0.01,0.04,0.03")
            for row, value in zip(rows, expected, strict=True):
                self.near(row["adjusted_p"], value, 9)
        self.assertEqual([r["share"] for r in self.figures("ecdf", "--a", "2,1,2,5")], [.25, .75, 1])
        series = ",".join(["1", "2"] * 10 + ["8", "9"] * 10)
        self.assertEqual([r["index"] for r in self.figures("changepoints", "--a", series)], [20])
        # The question is told even if nothing was found.
        nothing = self.figure("changepoints", "--a", "1,2,1,2,1,2,1,2", "--alpha", "0.02")
        self.assertEqual((nothing["index"], nothing["p"], nothing["alpha"]), (None, None, 0.02))
        self.assertEqual((nothing["inputs"]["a"]["n"], nothing["method"][:8]), (8, "Pettitt'"))
        for kind in ("2", "3"):
            terms = self.figures("anova", "rows.csv", "--a", "size", "--b", "arm", "--response", "ms", "--type", kind)
            self.assertEqual([t["df"] for t in terms], [2, 1, 2, 15])
        terms = self.figures("anova", "cells.csv", "--a", "size", "--b", "arm")
        self.assertEqual([t["df"] for t in terms], [1, 1, 1, 16])
        self.assertEqual(terms[3]["sum_of_squares"], 16)

    def test_what_values_cannot_give_is_absent(self):
        huge = ["bootstrap", "--a", "1.7e308,1.7e308", "--b", "1,2", "--resamples", "100"]
        row = self.figure(*huge)
        self.assertEqual([row[name] for name in ("mean_a", "a_bca_low", "ratio", "ratio_low")], [None] * 4)
        row = self.figure("bootstrap", "--a", "3")
        self.assertEqual((row["mean_a"], row["a_bca_low"]), (3, None))
        row = self.figure("describe", "--a", "3")
        self.assertEqual((row["median"], row["sd"], row["p90"], row["fence_low"]), (3, None, None, None))
        self.assertIn("variance is a number", self.refuse("welch", "--a-values", "1e200,3e200", "--b", "1,1,5"))
        row = self.figure("anytime", "--a", "1,2,3")
        self.assertEqual((row["mean"], row["low"], row["least_n"]), (2, None, 4))
        row = self.figure("trend", "--a=-1.7e308,1.7e308,-1.7e308,1.7e308,1.6e308")
        self.assertEqual((row["S"], row["slope"], row["slope_low"]), (2, None, None), "no double holds a slope")
        for name in ("trend", "autocorrelation"):
            self.assertIn("values that vary", self.refuse(name, "--a", "2,2,2,2,2"))

    def test_values_whose_squares_overflow_or_underflow(self):
        """Each figure moves with the values' scale or not at all, is absent, or the whole is refused in one line."""
        a, b = [1.5, 2.5, 1, 4, 3, 2, 3.5, 2.25], [2, 2.75, 1.25, 4.5, 3, 2.5, 3.25, 3]
        factors = ["x"] * 4 + ["y"] * 4, ["p", "q"] * 4

        def commands(scale):
            one, two = (",".join(repr(value * scale) for value in values) for values in (a, b))
            table = self.folder / "rows.csv"
            table.write_text("f,g,ms\n" + "".join(f"{f},{g},{value * scale!r}\n" for f, g, value in zip(*factors, a, strict=True)))
            moments = [f"{mean * scale!r},{0.5 * scale!r},9" for mean in (2, 3)]
            return {
                "anytime": ["--a", one], "describe": ["--a", one], "ecdf": ["--a", one], "trend": ["--a", one],
                "autocorrelation": ["--a", one], "changepoints": ["--a", one, "--alpha", "0.9"],
                "mannwhitney": ["--a", one, "--b", two], "bootstrap": ["--a", one, "--b", two, "--resamples", "200"],
                "bootstrap --quantile 0.5": ["--a", one, "--b", two, "--resamples", "200"],
                "welch": ["--a-values", one, "--b-values", two], "student": ["--a-values", one, "--b-values", two],
                "effect": ["--a-values", one, "--b-values", two], "levene": ["--group-values", one, "--group-values", two],
                "oneway": ["--group-values", one, "--group-values", two], "paired": ["--a", one, "--b", two, "--resamples", "200", "--ratio-margin", "0.1"],
                "welch of figures": ["--a", moments[0], "--b", moments[1]], "oneway of figures": ["--group", moments[0], "--group", moments[1]],
                "tost": ["--a-values", one, "--b-values", two, "--ratio-margin", "0.2"],
                "tost of figures": ["--a", moments[0], "--b", moments[1], "--margin", repr(2 * scale)],
                "power": ["--n", "9", "--sd", repr(scale), "--difference", repr(scale)], "mde": ["--n", "9", "--sd", repr(scale)],
                "anova": [table, "--a", "f", "--b", "g", "--response", "ms"],
            }

        def run(name, arguments):
            words = name.split(" of ")[0].split()
            return self.assay("stats", *words, *arguments, "-o", "json")

        base = {name: json.loads(run(name, arguments).stdout) for name, arguments in commands(1.0).items()}
        for scale in (2.0**-1000, 2.0**-664, 2.0**-400, 2.0**400, 2.0**664, 2.0**1020):
            for name, arguments in commands(scale).items():
                done = run(name, arguments)
                with self.subTest(name, scale=scale):
                    if done.returncode == 2:
                        self.assertRegex(done.stderr, r"\Aassay: [^\n]+: expected [^\n]+\n\Z")
                        self.assertNotIn(name.split()[0], {"anytime", "describe", "ecdf", "mannwhitney", "changepoints"})
                        continue
                    self.assertEqual(done.returncode, 0, done.stderr)
                    rows = json.loads(done.stdout)
                    self.assertEqual(len(rows), len(base[name]))
                    for row, row_of_base in zip(rows, base[name], strict=True):
                        for key, value in row.items():
                            known = row_of_base[key]
                            if not isinstance(known, float | int) or isinstance(known, bool) or value is None:
                                continue
                            alike = any(abs(value - known * by) <= 1e-6 * abs(known * by) for by in (1, scale, scale * scale))
                            self.assertTrue(alike, f"{key}: {known} at scale 1, {value} at {scale}")
        for scale in (2.0**664, 2.0**-664):
            row = self.figure("anytime", *commands(scale)["anytime"])
            self.near(row["high"], base["anytime"][0]["high"] * scale, 9)

    def test_json_says_what_a_figure_is(self):
        row = self.figure(*WELCH, "--confidence", "0.9")
        self.assertEqual((row["sides"], row["confidence"], row["sign_convention"]), ("two-sided", 0.9, "a - b"))
        self.assertIn("Welch", row["method"])
        self.assertEqual(row["inputs"]["a"], {"mean": 11.87, "sd": 9.19, "n": 1620})
        self.assertEqual(self.figure("welch", "--a", "1,1,9", "--b", "2,1,9")["confidence"], 0.95)
        for arguments in (["student", "--a-values", "1,2,4", "--b", "2,1,9"], ["effect", "--a", "1,1,9", "--b", "2,1,9"],
                          ["mannwhitney", "--a", "1,2,3", "--b", "2,4"], ["wilson", "--a", "1/3"], ["clusters", "--a", "1/3,2/3"],
                          ["fisher", "--a", "1/3", "--b", "2/3"], ["newcombe", "--a", "1/3", "--b", "2/3"],
                          ["power", "--n", "9", "--difference", "1"], ["describe", "--a", "1,2"],
                          ["oneway", "--group", "1,1,3", "--group-values", "1,2,4"],
                          ["bootstrap", "--a", "1,2,4", "--resamples", "100"], ["trend", "--a", "1,2,4,3"]):
            with self.subTest(arguments[0]):
                row = self.figure(*arguments)
                self.assertTrue(row["method"] and row["inputs"])
        self.assertEqual(self.figure("student", "--a-values", "1,2,4", "--b", "2,1,9")["inputs"]["a"]["values"], "1,2,4")
        for row in self.figures("holm", "--p", "0.01,0.04"):
            self.assertEqual(row["inputs"]["family"], 2)

    def test_equivalence_in_full(self):
        row = self.figure("tost", "--difference", "0.197", "--se", "0.254", "--df", "146.7", "--margin", "0.5")
        self.near(row["p_above_low"], 0.0034128, 4)
        self.near(row["p_below_high"], 0.11742, 4)
        self.assertEqual(row["p"], row["p_below_high"])
        self.assertEqual((row["verdict"], row["confidence"]), ("not shown to be equivalent", 0.95))
        self.assertTrue(row["interval_low"] < 0.197 < 0.5 < row["interval_high"])
        row = self.figure("tost", "--a", "10.1,0.2,9", "--b", "10,0.2,9", "--ratio-margin", "0.05")
        self.assertEqual(row["verdict"], "equivalent")
        self.assertTrue(1 / 1.05 < row["interval_low"] < 1.01 < row["interval_high"] < 1.05)
        self.assertIn("tost: expected one of --margin", self.refuse("tost", "--a", "1,1,9", "--b", "1,1,9"))
        groups = ["tost", "--a", "1,1,9", "--b", "1,1,9"]
        for margins in (["--margin", "5", "--ratio-margin", ".03"], ["--margin", "5", "--low", "-1"], ["--low", "-1"],
                        ["--margin", "5", "--low", "-1", "--high", "1"], ["--margin", "5", "--difference", "1"]):
            self.assertIn("tost: expected", self.refuse(*groups, *margins))
        self.refuse("tost", "--difference", "1", "--se", "1", "--margin", "3")
        self.refuse("tost", "--difference", "1", "--se", "1", "--df", "5", "--ratio-margin", ".1")

    def test_figures_and_values_of_groups_have_names_of_their_own(self):
        self.assertIn("found --group", self.refuse("levene", "--group", "1,2,4", "--group", "3,4,5"))
        by_figures = self.figure("oneway", "--group", "2,1,3", "--group", "5,1,3")
        by_values = self.figure("oneway", "--group-values", "1,2,3", "--group-values", "4,5,6")
        self.near(by_values["F"], by_figures["F"], 12)

    def test_options_are_numbers_in_range(self):
        for arguments in (
            ["power", "--n", "9", "--difference", "nan"], ["power", "--n", "9", "--difference", "1", "--sd", "inf"],
            ["power", "--n", "9223372036854775807", "--difference", "1"], ["power", "--n", "-9", "--difference", "1"],
            ["power", "--n", "9", "--difference", "1", "--alpha", "nan"], ["mde", "--n", "9", "--sd", "-1"],
            ["repetitions", "--d", "nan"], ["repetitions", "--d", "inf"],
            ["bootstrap", "--a", "1,2,3", "--seed", "-1"], ["bootstrap", "--a", "1,2,3", "--seed", "1.5"],
            ["bootstrap", "--a", "1,2,3", "--resamples", "9223372036854775807"],
            ["bootstrap", "--a", "1,2,3", "--resamples", "-5"], ["bootstrap", "--a", "1,2,3", "--quantile", "nan"],
            ["autocorrelation", "--a", "1,2,3,2,1,2", "--lags", "-1"], ["autocorrelation", "--a", "1,2,3,2,1,2", "--lags", "0"],
            ["tost", "--difference", "nan", "--se", "1", "--df", "3", "--margin", "1"],
            ["tost", "--difference", "1", "--se", "inf", "--df", "3", "--margin", "1"],
            ["tost", "--difference", "1", "--se", "1", "--df", "nan", "--margin", "1"],
            ["tost", "--difference", "1", "--se", "1", "--df", "3", "--margin", "nan"],
            ["tost", "--difference", "1", "--se", "1", "--df", "3", "--low=-inf", "--high", "1"],
            ["welch", "--a", "1,1e200,5", "--b", "1,1,5"], ["welch", "--a", "1,1,9223372036854775807", "--b", "1,1,5"],
            ["welch", "--a", "1.7e308,1,5", "--b", "-1.7e308,1,5"], ["wilson", "--a", "-1/3"], ["wilson", "--a", "1/3", "--confidence", "nan"],
        ):
            with self.subTest(arguments=arguments):
                self.assertRegex(self.refuse(*arguments), "expected .*found")

    def test_huge_groups(self):
        row = self.figure("effect", "--a", "1,1,100000000000000", "--b", "0,1,100000000000000")
        self.assertTrue(1 - 1e-13 < row["g"] <= row["d"] == 1, row)
        row = self.figure("welch", "--a", "0.00001,1,100000000000000", "--b", "0,1,100000000000000")
        self.near(row["ln_p"], -2504.484587817189, 11)  # mpmath

    def test_anova_of_many_levels_and_of_values_out_of_range(self):
        lines = [f"{a},{b},{(a * 7919 % 13) + b + (a + k) % 3}\n" for a in range(3000) for b in "12" for k in range(2)
                 for b in (int(b),)]
        (self.folder / "many.csv").write_text("a,b,y\n" + "".join(lines))
        terms = self.figures("anova", "many.csv", "--a", "a", "--b", "b", "--response", "y")
        self.assertEqual([term["df"] for term in terms], [2999, 1, 2999, 6000])
        (self.folder / "far.csv").write_text("a,b,y\n" + "".join(
            f"{a},{b},{y}\n" for a, b, y in [(1, 1, 1e200), (1, 1, 3e200), (1, 2, 1), (1, 2, 2), (2, 1, 3), (2, 1, 4),
                                             (2, 2, 5), (2, 2, 7)]))
        self.assertIn("variance", self.refuse("anova", "far.csv", "--a", "a", "--b", "b", "--response", "y"))
        (self.folder / "wide.csv").write_text("a,b,mean,sd,n\n" + "".join(
            f"{i},{j % 4000},1,1,3\n" for i in range(4000) for j in (i, i + 1)))
        self.assertIn("1,500 levels", self.refuse("anova", "wide.csv", "--a", "a", "--b", "b"))

    def test_bad_input(self):
        self.assertIn('--a: expected mean,sd,n, found "1,2"', self.refuse("welch", "--a", "1,2", "--b", "1,2,3"))
        self.assertIn("--a sd: expected a number", self.refuse("welch", "--a", "1,nan,3", "--b", "1,2,3"))
        self.assertIn("--a n: expected a whole number", self.refuse("welch", "--a", "1,2,2.5", "--b", "1,2,3"))
        self.assertIn("--a n: expected a whole number", self.refuse("welch", "--a", "1,2,1e300", "--b", "1,2,3"))
        self.assertIn("at least 2 values", self.refuse("welch", "--a", "1,0,5", "--b", "1,0,5"))
        self.assertIn("at least 2 values", self.refuse("effect", "--a", "1,2,1", "--b", "1,2,3"))
        self.assertIn("value 2: expected a number", self.refuse("describe", "--a", "1,x"))
        self.assertIn("expected a count of a total", self.refuse("clusters", "--a", "5/3,1/2"))
        self.assertIn("expected a count of a total", self.refuse("clusters", "--a", "1/2,"))
        self.assertIn("expected a count of a total", self.refuse("fisher", "--a", "5/3", "--b", "1/2"))
        self.assertIn("expected totals", self.refuse("barnard", "--a", "0/3", "--b", "0/2"))
        self.assertIn("between 0 and 1", self.refuse("wilson", "--a", "1/3", "--confidence", "95"))
        self.assertIn("from 0 to 1", self.refuse("holm", "--p", "0.5,2"))
        self.assertIn("above 0", self.refuse("tost", "--a", "1,1,9", "--b", "1,1,9", "--margin", "-1"))
        self.assertIn("whole numbers of at least 2", self.refuse("mde", "--n", "1"))
        self.assertIn('did you mean "welch"', self.refuse("wlch"))
        self.assertIn("found nothing", self.refuse())
        (self.folder / "one.csv").write_text("size,arm,ms\na,x,1\nb,x,2\n")
        self.assertIn("at least 2 levels", self.refuse("anova", "one.csv", "--a", "size", "--b", "arm", "--response", "ms"))
        self.assertIn("expected a column", self.refuse("anova", "one.csv", "--a", "size", "--b", "nope"))


if __name__ == "__main__":
    Stats.program = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
