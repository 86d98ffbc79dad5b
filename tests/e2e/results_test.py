"""docs/results: each folder that keeps rows has its page. One page is what the program makes of what is kept, to the last letter;
of the others, and of the index, all numbers are: a change of words alone doesn't make them anew.

usage: results_test.py ASSAY REPOSITORY
"""

import html
import pathlib
import re
import sys
import tempfile
import unittest
from itertools import zip_longest
from urllib.parse import unquote

from program import ProgramTest


WHOLE = "tr126-environment"


def numbers(page):
    """Every number of the tables' cells, in order, cell by cell; of a page without tables, of all its text."""
    cells = re.findall(r"<td\b[^>]*>(.*?)(?=<t[dhr]\b|</t)", page, re.S) or [re.sub(r"<(style|script).*?</\1>", "", page, flags=re.S)]
    found = [re.findall(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?", html.unescape(re.sub(r"<[^>]*>", " ", cell))) for cell in cells]
    return [cell for cell in found if cell]


class Results(ProgramTest):
    program = pathlib.Path(sys.argv.pop(1)).resolve()
    kept = pathlib.Path(sys.argv.pop(1)).resolve() / "docs/results"

    def setUp(self):
        self.results = sorted({path.parents[1] for path in self.kept.glob("*/*/metrics.csv")})
        self.assertEqual(self.results, sorted(path for path in self.kept.iterdir() if path.is_dir()), "each folder keeps rows")
        self.index = (self.kept / "index.html").read_text()

        scratch = tempfile.TemporaryDirectory(prefix="assay-results-")
        self.addCleanup(scratch.cleanup)
        # Beside the folders as the committed ones are, so that links are the same.
        self.folder = pathlib.Path(scratch.name)
        for result in self.results:
            (self.folder / result.name).symlink_to(result)

    def expect_made(self, made, committed, how):
        """Says the first line that differs: pages are long."""
        for number, lines in enumerate(zip_longest(made.splitlines(), committed.splitlines()), 1):
            if lines[0] != lines[1]:
                self.fail(f"line {number} differs: made {str(lines[0])[:200]!r}, committed {str(lines[1])[:200]!r}; "
                          f"in docs/results: {how}")

    def expect_numbers(self, made, committed, how):
        """Says the first cell whose numbers differ."""
        self.assertGreater(sum(map(len, numbers(committed))), 9, f"{how}: a page without numbers proves nothing")
        for number, cells in enumerate(zip_longest(numbers(made), numbers(committed)), 1):
            if cells[0] != cells[1]:
                self.fail(f"cell {number} with a number differs: made {cells[0]}, committed {cells[1]}; in docs/results: {how}")

    def test_the_index_has_the_numbers_that_the_program_finds(self):
        self.succeed("report", "--index", *[result.name for result in self.results], "-o", "index.html")
        self.expect_numbers((self.folder / "index.html").read_text(), self.index, "assay report --index */ -o index.html")

    def test_each_page_is_what_the_program_makes(self):
        self.assertIn(WHOLE, [result.name for result in self.results])
        for result in self.results:
            with self.subTest(result=result.name):
                self.succeed("report", result.name, "-o", "page.html")
                expect = self.expect_made if result.name == WHOLE else self.expect_numbers
                expect((self.folder / "page.html").read_text(), (result / "report.html").read_text(),
                       f"assay report {result.name} -o {result.name}/report.html")

    def test_each_page_of_several_results_has_the_numbers_that_the_program_finds(self):
        judged = {
            "stacks.html": "stack-torch-2.11 stack-torch-2.9 stack-torch-2.8 stack-torch-2.6 --vary stack",
            "processors.html": "stack-torch-2.11 stack-torch-2.11-xeon --vary device",
            "devices.html": "stack-torch-2.11 stack-torch-2.11-xeon stack-torch-2.11-h100 --vary device --vary stack --vary model",
        }
        for page, arguments in judged.items():
            with self.subTest(page=page):
                how = f"portability {arguments} --html {page}"
                self.succeed(*how.split())
                self.expect_numbers((self.folder / page).read_text(), (self.kept / page).read_text(), f"assay {how}")

    def test_numbers_that_differ_are_found(self):
        """The checks above can fail."""
        page = (self.results[0] / "report.html").read_text()
        cell = re.search(r"<td[^>]*>[^<]*\d", page)
        self.assertNotEqual(numbers(page[:cell.end()] + "7" + page[cell.end():]), numbers(page))
        self.assertEqual(numbers(page.replace("verdict", "judgement")), numbers(page))

    def test_the_index_lists_every_result_and_its_links_lead_somewhere(self):
        headings = re.findall(r'<h2><a href="\./([^"]+)/report\.html">([^<]+)</a></h2>\n<p>([^<]+)</p>\n<p class=mute>([^<]+)</p>', self.index)
        self.assertEqual(sorted(unquote(path) for path, *_ in headings), [result.name for result in self.results])
        for _, name, finding, measured in headings:
            self.assertRegex(html.unescape(finding), r"\A(prefill|kv_decode|e2e_kv|load): .{20,}\.\Z", name)
            self.assertRegex(measured, r"(NVIDIA H[12]00|AMD EPYC|Intel Xeon).*; 2026-\d\d-\d\d\Z", name)
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
            self.assertIn("rows_alone: these rows are kept without their bundle", (result / "report.html").read_text(), result.name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
