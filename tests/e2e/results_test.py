"""docs/results: each folder that keeps rows has its page, and the index is the one that the program makes of them.

usage: results_test.py ASSAY REPOSITORY
"""

import html
import pathlib
import re
import sys
import tempfile
import unittest
from urllib.parse import unquote

from program import ProgramTest


class Results(ProgramTest):
    program = pathlib.Path(sys.argv.pop(1)).resolve()
    kept = pathlib.Path(sys.argv.pop(1)).resolve() / "docs/results"

    def setUp(self):
        self.results = sorted({path.parents[1] for path in self.kept.glob("*/*/metrics.csv")})
        self.assertEqual(self.results, sorted(path for path in self.kept.iterdir() if path.is_dir()), "each folder keeps rows")
        self.index = (self.kept / "index.html").read_text()

    def test_the_index_is_what_the_program_makes(self):
        with tempfile.TemporaryDirectory(prefix="assay-results-") as scratch:
            # Beside the folders as the committed one is, so that its links are the same.
            self.folder = pathlib.Path(scratch)
            made = self.folder / "index.html"
            for result in self.results:
                (self.folder / result.name).symlink_to(result)
            self.succeed("report", "--index", *[result.name for result in self.results], "-o", "index.html")
            self.assertEqual(made.read_text(), self.index,
                             "in docs/results: assay report --index */ -o index.html")

    def test_the_index_lists_every_result_and_its_links_lead_somewhere(self):
        headings = re.findall(r'<h2><a href="\./([^"]+)/report\.html">([^<]+)</a></h2>\n<p>([^<]+)</p>\n<p class=mute>([^<]+)</p>', self.index)
        self.assertEqual(sorted(unquote(path) for path, *_ in headings), [result.name for result in self.results])
        for _, name, finding, measured in headings:
            self.assertRegex(html.unescape(finding), r"\A(prefill|kv_decode): .{20,}\.\Z", name)
            self.assertRegex(measured, r"NVIDIA H200.*; 2026-\d\d-\d\d\Z", name)
        for link in re.findall(r'href="\./([^"]+)"', self.index):
            self.assertTrue((self.kept / unquote(link)).is_file(), link)

    def test_each_result_has_its_page(self):
        for result in self.results:
            page = (result / "report.html").read_text()
            rows = sum(len(path.read_text().splitlines()) - 1 for path in result.glob("*/metrics.csv"))
            self.assertIn(f" {rows} rows", page, result.name)
            self.assertGreaterEqual(page.count("<figure"), 4, result.name)
            self.assertIn("content=\"default-src 'none'", page, result.name)

    def test_pages_of_rows_alone_say_so(self):
        for result in self.results:
            if (result / "analysis/findings.json").exists():
                continue  # its page was made of the whole bundle
            self.assertIn("rows_alone: these rows are kept without their bundle", (result / "report.html").read_text(), result.name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
