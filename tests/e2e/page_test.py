"""The report's page in a real Chromium: nothing cut, nothing fetched, and all of it told to those who can't see it.

usage: page_test.py ASSAY SCREENSHOTS [PAGE]      PAGE: only what holds for any page, of that one
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import browser as chromium
from browser import TEXTS, cut, overlapping
from program import SKIPPED, SOAK, ProgramTest, only_where
from resume_test import write_checkpoint

OF_ANY_PAGE = ["test_nothing_is_fetched_or_complained_of_or_cut_or_lies_on_another", "test_every_figure_has_its_alternative_text",
               "test_a_screen_reader_reaches_verdict_figures_and_tables_in_order"]
HOSTILE = "<script>alert(1)</script>"
LONG = "compiled_with_everything_that_there_is_and_a_little_more"
VIEWS = {"380": {"width": 380}, "1280": {"width": 1280}, "dark": {"width": 1280, "dark": True},
         "800": {"width": 800}, "1600": {"width": 1600}, "print": {"width": 800, "media": "print"}}
LOOKED_AT = ("380", "1280", "dark")  # that a screenshot is left of; in the soak of all

JUDGED = {"portability.html": 4, "route.html": 2, "compare.html": 3, "gates.html": 0}  # and the least number of figures of each
POOR = ["index.html", "few/report.html", "lost/report.html"]  # one stratum and two arms; no row that isn't lost


class Page(ProgramTest):
    program = pathlib.Path(sys.argv.pop(1)).resolve()
    screenshots = pathlib.Path(sys.argv.pop(1)).resolve()
    given = pathlib.Path(sys.argv.pop(1)).resolve() if sys.argv[1:] and not sys.argv[1].startswith("-") else None

    @classmethod
    def setUpClass(cls):
        cls.screenshots.mkdir(parents=True, exist_ok=True)
        cls.browser = cls.enterClassContext(chromium.Browser())
        if cls.given:
            cls.folder, cls.names = cls.given.parent, [cls.given.name]
            return
        cls.names = ["bundle/report.html", "both.html"]
        scratch = tempfile.TemporaryDirectory(prefix="assay-page-")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        made = cls()
        write_checkpoint(cls.folder / "model", 1)
        arms = [{"name": "eager", "backend": "native", "mode": "eager", "cache": ["dynamic", "static"], "threads": 1},
                {"name": LONG, "backend": "native", "mode": "compiled", "cache": "static", "threads": 1},
                {"name": HOSTILE, "backend": "native", "mode": "eager", "cache": "static", "threads": 1}]
        scenarios = [{"name": name, "prompt_tokens": [tokens]} for name, tokens in (("short", 4), ("longer", 12))]
        made.write_study(arms=arms, scenarios=scenarios, repetitions=20, warmup=1, name="study.yaml", baseline="eager-dynamic")
        made.succeed("run", "study.yaml", "-o", "bundle")
        made.write_study(arms=arms, scenarios=scenarios, repetitions=6, warmup=1, name="shorter.yaml", baseline="eager-dynamic")
        made.succeed("run", "shorter.yaml", "-o", "again")
        made.succeed("report", "bundle", "again", "-o", "both.html")
        made.succeed("report", "--index", "bundle", "again", "-o", "index.html")
        made.judge("portability", "bundle", "again", "--html", "portability.html")
        made.judge("compare", "bundle", "again", "--html", "compare.html")
        made.judge("gate", "bundle", "again", "--html", "gates.html")
        made.succeed("route", "make-trace", "-o", "trace.csv", "-n", 100, "--prompt-least", 4, "--prompt-most", 12, "--new-median", 4)
        made.judge("route", "bundle", "--simulate", "trace.csv", "--replays", 40, "--html", "route.html")
        made.write_study(arms=arms[:1], phases=["prefill"], name="one.yaml", **{"repetitions": 6})
        made.succeed("run", "one.yaml", "-o", "few")
        made.write_study(arms=arms[:1], timeout_s=1e-3, name="lost.yaml")
        made.succeed("run", "lost.yaml", "-o", "lost")

    def judge(self, *arguments):
        """A judgement of rows of this minute, which may fail."""
        self.assertIn(self.assay(*arguments).returncode, (0, 1), arguments)

    def open_page(self, name, **view):
        self.browser.view(**view)
        self.browser.logs("browser")
        self.browser.logs("performance")
        self.browser.open((self.folder / name).as_uri())

    def fetched(self):
        """The addresses that were asked for since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.browser.logs("performance")]
        urls = {message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"}
        return {url for url in urls if not url.startswith("data:")}

    def expect_readable(self, page):
        texts, more = self.browser.script(TEXTS)
        self.assertGreater(len(texts) + more, 5 if page in POOR else 100)
        width = self.browser.script("return document.documentElement.scrollWidth - innerWidth")
        self.assertLessEqual(width, 0, "the page itself is as wide as the screen")
        self.assertEqual(cut(texts), [])
        self.assertEqual(overlapping(texts), [])

    def test_nothing_is_fetched_or_complained_of_or_cut_or_lies_on_another(self):
        """The page that has all that a page can have in every view, and the others in the narrowest; in the soak in every view too."""
        for page in (*self.names, *(() if self.given else (*POOR, *JUDGED))):
            every = page == self.names[0] or SOAK
            self.open_page(page, **VIEWS["380"])
            self.assertEqual(self.fetched(), {(self.folder / page).as_uri()})
            for name, view in VIEWS.items() if every else [("380", VIEWS["380"])]:
                with self.subTest(page=page, view=name):
                    self.browser.view(**view)
                    if every and (SOAK or name in LOOKED_AT):
                        self.browser.screenshot(self.screenshots / f"{page.replace('/', '-')}-{name}.png")
                    for opened in ("true", "false"):
                        self.expect_readable(page)
                        self.browser.script(f"for (const d of document.querySelectorAll('details')) d.open = {opened};")
                    self.assertEqual(self.browser.logs("browser"), [])
                    self.assertEqual(self.fetched(), set())

    def test_what_is_cut_or_lies_on_another_is_found(self):
        """The checks above can fail."""
        self.open_page("bundle/report.html", width=1280)
        self.browser.script("document.querySelector('h1').style.marginBottom = '-30px'")
        self.assertNotEqual(overlapping(self.browser.script(TEXTS)[0]), [])
        self.open_page("bundle/report.html", width=1280)
        self.browser.script("document.querySelector('.panels svg text').setAttribute('x', 335)")
        self.assertNotEqual(cut(self.browser.script(TEXTS)[0]), [])

    def test_every_figure_has_its_alternative_text(self):
        for page in (*self.names, *(() if self.given else JUDGED)):
            self.open_page(page, width=1280)
            figures = self.browser.script(
                "return [...document.querySelectorAll('figure')].map(f => ({id: f.id, "
                "finding: f.querySelector('h3').textContent, caption: f.querySelector('figcaption').textContent, "
                "tables: f.querySelectorAll('details table').length, "
                "panels: [...f.querySelectorAll('.panels svg')].map(s => [s.getAttribute('role'), "
                "s.getAttribute('aria-label')])}))")
            self.assertGreaterEqual(len(figures), JUDGED.get(page, 5), page)
            for figure in figures:
                self.assertGreater(len(figure["finding"]), 20, figure)
                self.assertGreater(len(figure["caption"]), 40, figure)
                self.assertGreaterEqual(figure["tables"], 1, figure)
                self.assertGreaterEqual(len(figure["panels"]), 1, figure)
                for role, alternative in figure["panels"]:
                    self.assertEqual(role, "img")
                    self.assertGreater(len(alternative), 20, figure)
            ids = [figure["id"] for figure in figures]
            self.assertEqual(len(ids), len(set(ids)), page)

    def test_the_legend_has_every_kind_of_mark(self):
        """But shapes and dashes, which are arms': remarks on rows, pale and hollow bars, and lines across the grid."""
        seen = set()
        for page in (*self.names, *JUDGED):
            self.open_page(page, width=1280)
            kinds = self.browser.script(
                "return [...document.querySelectorAll('figure:not(#headline)')].flatMap(f => ['o', 'x', 'b2', 'b3', 'r']"
                ".filter(kind => f.querySelector('.panels .' + kind))"
                ".map(kind => [f.id, kind, Boolean(f.querySelector('.legend .' + kind))]))")
            self.assertEqual([one for one in kinds if not one[2]], [], page)
            seen |= {kind for _, kind, _ in kinds}
        self.assertLessEqual({"o", "r"}, seen)

    def test_a_judgements_verdict_comes_first_and_its_figures_have_names(self):
        for page, figures in JUDGED.items():
            self.open_page(page, width=1280)
            self.browser.script("for (const d of document.querySelectorAll('details')) d.open = true;")
            nodes = self.browser.accessibility_tree()
            self.assertIn(("region", "Verdict"), nodes, page)
            self.assertIn(("navigation", "Parts of this page"), nodes, page)
            first = [role for role, _ in nodes].index("figure") if figures else len(nodes)
            self.assertLess(nodes.index(("columnheader", "verdict")), first, page)
            self.assertEqual([node for node in nodes if node[0] in ("figure", "image", "table", "region") and not node[1]], [], page)

    def test_bundles_side_by_side_are_judged(self):
        self.open_page("both.html", width=1280)
        titles = self.browser.script("return [...document.querySelectorAll('h2')].map(h => h.textContent)")
        for title in ("Portability", "Prefill gain and rows lost in decode", "What changed, and what is responsible", "Identity"):
            self.assertIn(title, titles)

    def test_a_screen_reader_reaches_verdict_figures_and_tables_in_order(self):
        self.open_page(self.names[0], width=1280)
        self.browser.script("for (const d of document.querySelectorAll('details')) d.open = true;")
        nodes = self.browser.accessibility_tree()
        (self.screenshots / f"{pathlib.Path(self.names[0]).stem}-accessibility-tree.txt").write_text("\n".join(f"{role}: {name}" for role, name in nodes))
        roles = [role for role, _ in nodes]
        verdict = nodes.index(("columnheader", "verdict"))
        first_figure = roles.index("figure")
        self.assertLess(roles.index("table"), first_figure)
        self.assertLess(verdict, first_figure, "the verdict comes first")
        figures = [i for i, role in enumerate(roles) if role == "figure"]
        for begin, end in zip(figures, [*figures[1:], len(nodes)]):
            name = nodes[begin][1]
            inside = nodes[begin + 1:end]
            order = [role for role, _ in inside if role in ("heading", "image", "table")]
            self.assertEqual(order[:2], ["heading", "image"], name)
            self.assertIn(("heading", name), inside)
            self.assertIn("table", order[2:], name)
            self.assertTrue(all(text for role, text in inside if role == "image"), name)
        self.assertEqual([node for node in nodes if node[0] in ("table", "region") and node[1] in ("", "table")], [], "each has a name")
        self.assertGreater(len(nodes) - [name for _, name in nodes].index("Identity"), 5, "identity comes last")

    def test_marks_that_share_a_colour_or_a_shape_look_unlike(self):
        """Twelve arms as the legend draws them, by eyes of every kind: their pixels."""
        made = self.write_study(name="twelve.yaml", baseline="arm-0", repetitions=2, warmup=0, phases=["prefill"], arms=[
            {"name": f"arm-{i}", "backend": "native", "mode": "eager", "cache": "static", "threads": 1} for i in range(12)])
        self.succeed("run", made, "-o", "twelve")
        for dark in (False, True):
            self.open_page("twelve/report.html", width=1280, dark=dark)
            marks = self.browser.script(
                "document.querySelector('#prefill-distributions').scrollIntoView();"
                "return [...document.querySelectorAll('#prefill-distributions .legend svg')].map(s => {"
                "const b = s.getBoundingClientRect(); return {x: Math.round(b.left) + 5, y: Math.round(b.top + scrollY)}})")
            self.assertEqual(len(marks), 12)
            left, top = (min(mark[side] for mark in marks) for side in "xy")
            legend = {"x": left, "y": top, "width": max(mark["x"] for mark in marks) - left + 12,
                      "height": max(mark["y"] for mark in marks) - top + 12}
            for eyes in ("none", "protanopia", "deuteranopia", "tritanopia"):
                self.browser.cdp("Emulation.setEmulatedVisionDeficiency", type=eyes)
                self.addCleanup(self.browser.cdp, "Emulation.setEmulatedVisionDeficiency", type="none")
                path = self.screenshots / "legend.png"
                self.browser.screenshot(path, clip=legend, whole=False)
                seen = chromium.pixels(path)
                line = 3 * legend["width"]
                self.assertEqual(len(seen), line * legend["height"])
                looks = []
                for mark in marks:  # 12 lines of 12 pixels
                    begin = (mark["y"] - top) * line + 3 * (mark["x"] - left)
                    looks.append(b"".join(seen[begin + y * line:begin + y * line + 36] for y in range(12)))
                for i, one in enumerate(looks):
                    for j, other in enumerate(looks[:i]):
                        differs = sum(abs(a - b) for a, b in zip(one, other)) / len(one)
                        self.assertGreater(differs, 3, f"arm-{j} and arm-{i}, dark: {dark}, eyes: {eyes}")

    def test_every_mark_over_order_is_in_the_table_behind_it(self):
        self.open_page("bundle/report.html", width=1280)
        rows = len((self.folder / "bundle/prefill/metrics.csv").read_text().splitlines()) - 1
        points = self.browser.script("return [...document.querySelectorAll('#prefill-order .points td')]"
                                     ".filter(cell => /^[0-9]+: /.test(cell.textContent)).length")
        self.assertEqual(points, rows)
        self.browser.view(800, media="print")
        self.assertFalse(self.browser.script("return document.querySelector('#prefill-order .points').checkVisibility()"))

    @only_where(SOAK)
    def test_a_large_study_has_a_page_of_six_megabytes_at_most(self):
        """400 strata and 52,410 rows, each of them drawn."""
        made = self.program.parent / "synthetic_study"
        self.assertTrue(made.exists(), "built without the benchmarks")
        subprocess.run([made, self.folder / "large", "52410"], check=True)
        self.succeed("report", "large")
        self.assertLess((self.folder / "large/report.html").stat().st_size, 6_000_000)
        self.browser.view(1280)
        self.browser.open((self.folder / "large/report.html").as_uri())
        self.assertEqual(self.browser.logs("browser"), [])
        panels = self.browser.script("return [...document.querySelectorAll('figure[id$=-order]')]"
                                     ".map(figure => figure.querySelectorAll('.panels svg').length)")
        self.assertEqual(sum(panels), 400)
        points = self.browser.script("return [...document.querySelectorAll('.points td')]"
                                     ".filter(cell => /^[0-9]+: /.test(cell.textContent)).length")
        self.assertEqual(points, 52410)
        # Panels out of sight aren't laid out yet; what they show is told all the same.
        figures = [name for role, name in self.browser.accessibility_tree() if role == "figure"]
        self.assertGreaterEqual(len(figures), 5)
        self.assertTrue(all(figures), figures)

    def test_names_of_anybody_are_text(self):
        self.open_page("bundle/report.html", width=1280)
        self.assertIn(HOSTILE, self.browser.script("return document.body.textContent"))
        self.assertEqual(self.browser.script("return document.querySelectorAll('script').length"), 1)
        for path in [self.folder / "bundle/report.html", *(self.folder / "bundle/plots").glob("*.svg")]:
            self.assertNotIn(HOSTILE, path.read_text())

    def test_the_identity_is_folded_and_its_hash_can_be_copied(self):
        self.open_page("bundle/report.html", width=1280)
        section = "const s = document.querySelector('#identity'); "
        self.assertFalse(self.browser.script(section + "return s.querySelector('details').open"))
        shown, copied, hidden = self.browser.script(
            section + "const b = s.querySelector('button');"
            "return [s.querySelector('.hash').textContent, b.dataset.copy, b.hidden]")
        self.assertRegex(shown, r"\A[0-9a-f]{64}\Z")
        self.assertEqual(shown, copied)
        self.assertFalse(hidden, "where scripts run there is a button")
        self.browser.cdp("Emulation.setScriptExecutionDisabled", value=True)
        self.addCleanup(self.browser.cdp, "Emulation.setScriptExecutionDisabled", value=False)
        self.browser.open((self.folder / "bundle/report.html").as_uri())
        nodes = self.browser.accessibility_tree()
        self.assertNotIn("button", [role for role, _ in nodes])
        self.assertIn(("columnheader", "verdict"), nodes, "nothing else needs a script")

    def test_the_report_in_markdown_has_its_figures_and_the_bundle_is_whole(self):
        text = (self.folder / "bundle/report.md").read_text()
        plots = re.findall(r"^!\[.+\]\((plots/[\w-]+\.svg)\)$", text, re.M)
        self.assertEqual(sorted(plots), sorted(f"plots/{path.name}" for path in (self.folder / "bundle/plots").iterdir()))
        self.assertGreaterEqual(len(plots), 5)
        self.succeed("verify", "bundle")
        for plot in plots:
            self.browser.open((self.folder / "bundle" / plot).as_uri())
            self.assertEqual(self.browser.script("return document.documentElement.tagName"), "svg", plot)


if __name__ == "__main__":
    if chromium.missing():
        print(f"no {' and no '.join(chromium.missing())}: scripts/install-deps test")
        sys.exit(SKIPPED)
    tests = [f"Page.{name}" for name in OF_ANY_PAGE] if Page.given else None
    unittest.main(verbosity=2, defaultTest=tests)
