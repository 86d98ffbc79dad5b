"""Foreign, cut and hostile files for `assay import`: an import, or exit 2 with one line and no bundle; never a crash, and
within bounded memory.

usage: import_hostile_test.py ASSAY
"""

import copy
import json
import os
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

from program import SOAK, ProgramTest

REAL = pathlib.Path(__file__).parents[1] / "import"
MAPPING = "columns: {arm: a, latencies: t_ms, tokens: n}\nconstants: {phase: kv_decode, new_tokens: 4}\n"
# Trials of each file that another tool wrote: cut, with changed bytes, with values of another type.
CUTS, CHANGES, TYPES = (12, 12, 30) if SOAK else (2, 2, 4)
# Bytes of memory of a whole import, with the program's own mappings.
MOST_MEMORY = 3 << 30


class ImportHostile(ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = pathlib.Path(cls.scratch.name)
        (cls.folder / "map.yaml").write_text(MAPPING)

    def tearDown(self):
        shutil.rmtree(self.folder / "out", ignore_errors=True)

    def bounded(self, *arguments):
        limits = [(resource.RLIMIT_AS, MOST_MEMORY)] if "ASAN" not in os.environ else []
        return subprocess.run(
            [str(self.program), *map(str, arguments)], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=120, errors="replace",
            preexec_fn=lambda: [resource.setrlimit(which, (value, value)) for which, value in limits])

    def assert_import_or_line(self, name, *options):
        """True if the file was imported, false if it was refused with one line."""
        done = self.bounded("import", name, "-o", "out", *options)
        out = self.folder / "out"
        if done.returncode == 0:
            self.assertIn("intact", self.succeed("verify", "out"))
            shutil.rmtree(out)
            return True
        self.assertEqual(done.returncode, 2, f"{name}: {done.stderr or done.stdout}")
        self.assertRegex(done.stderr, r"\Aassay: [^\n]+\n\Z")
        self.assertLess(len(done.stderr), 1000)
        self.assertFalse(out.exists(), "a refused import leaves no bundle")
        return False

    def write(self, content, name="file"):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    def real_files(self):
        files = sorted(path for path in REAL.rglob("*") if path.suffix in (".json", ".jsonl", ".csv", ".sql", ".md")
                       and path.name != "README.md")
        self.assertGreater(len(files), 10)
        return files

    def test_cut_files(self):
        rng = random.Random(1)
        for path in self.real_files():
            content = path.read_bytes()
            for _ in range(CUTS):
                self.assert_import_or_line(self.write(content[:rng.randrange(len(content))]))
            self.assertFalse(self.assert_import_or_line(self.write(b"")))

    def test_files_with_changed_bytes(self):
        rng = random.Random(2)
        for path in self.real_files():
            for _ in range(CHANGES):
                content = bytearray(path.read_bytes())
                for _ in range(rng.randrange(1, 6)):
                    content[rng.randrange(len(content))] = rng.choice(b"\x00\xff\"{}[],:019-eE.\n'\\")
                self.assert_import_or_line(self.write(bytes(content)))

    def test_values_of_another_type_or_size(self):
        rng = random.Random(3)
        wrong = [None, True, -1, 0, 1e308, -1e308, 10**30, "", "x", "\u0000", "\u202e", [], {}, [[]], [None], {"a": []},
                 "9" * 400, "-5", 1 << 62, [1] * 50]
        for path in self.real_files():
            if path.suffix != ".json":
                continue
            document = json.loads(path.read_text())
            for _ in range(TYPES):
                changed = copy.deepcopy(document)
                at = changed
                while True:
                    keys = list(at.keys() if isinstance(at, dict) else range(len(at)))
                    if not keys:
                        break
                    key = rng.choice(keys)
                    if isinstance(at[key], (dict, list)) and at[key] and rng.random() < 0.8:
                        at = at[key]
                        continue
                    at[key] = rng.choice(wrong)
                    break
                self.assert_import_or_line(self.write(json.dumps(changed)))

    def test_deep_nesting_and_bombs(self):
        for name, content in {
            "deep arrays": "[" * 1_000_000,
            "deep objects": '{"a":' * 1_000_000,
            "many values": '{"results": [{"command": "x", "mean": 1, "times": [' + "1," * 12_000_000 + "1]}]}",
            "many arrays": '{"results": [' + "[]," * 12_000_000 + "[]]}",
            "many members": "{" + ",".join(f'"{i}":1' for i in range(200_000)) + "}",
            "one line of text": "x" * (64 << 20),
        }.items():
            with self.subTest(name):
                self.assertFalse(self.assert_import_or_line(self.write(content)))
        for name, content in {
            "many columns": ",".join(f"c{i}" for i in range(1_000_000)) + "\n",
            "UTF-16": "a,t_ms,n\nx,1,4\n".encode("utf-16"),
            "old Mac's line ends": "a,t_ms,n\rx,1,4\r",
            "decimal commas": 'a,t_ms,n\nx,"0,19;0,21",4\n',
            "commas": "a,t_ms,n\n" + "," * (32 << 20) + "\n",
            "quotes": 'a,t_ms,n\n"' + '""' * (16 << 20) + "\n",
            "many conditions": "a,t_ms,n\n" + "".join(f"arm{i},1,4\n" for i in range(20_000)),
            "many samples": 'a,t_ms,n\nx,"' + "1 " * 2_500_000 + '",4\n',
        }.items():
            with self.subTest(name):
                self.assertFalse(self.assert_import_or_line(self.write(content), "--mapping", "map.yaml"))

    def test_a_large_honest_table(self):
        table = "a,t_ms,n\n" + "".join(f'arm{i % 3},"{"1.5 " * 100}",4\n' for i in range(1000))
        self.assertTrue(self.assert_import_or_line(self.write(table), "--mapping", "map.yaml"))

    def test_hostile_mappings(self):
        self.write("a,t_ms,n\nx,1,4\n", "table.csv")
        for mapping in ("", "[", "columns: &a {latency: t_ms}\nunits: *a\n", "columns: 5\n", "columns: {latency: [t_ms]}\n",
                        "columns: {latency: t_ms, latency: n}\n", "a: " * 50 + "1\n", "columns: {arm: a}\n", "\x00",
                        "columns: {latencies: t_ms}\nwords: {phase: {x: decode}}\n",
                        "columns: {latencies: t_ms}\ncompiler: [{arm: x, verdict: 'yes', reason: r}]\n"):
            with self.subTest(mapping=mapping):
                self.write(mapping, "bad.yaml")
                self.assertFalse(self.assert_import_or_line("table.csv", "--mapping", "bad.yaml"))

    def test_names_that_a_terminal_or_markdown_would_obey(self):
        name = "<script>alert(1)</script>|[x](y)\u009b2J"
        self.write("a,t_ms,n\n" + "".join(f'"{name}",{i + 1},4\n' for i in range(8)), "table.csv")
        self.write(MAPPING.replace("latencies", "latency"), "plain.yaml")
        done = self.bounded("import", "table.csv", "--mapping", "plain.yaml", "-o", "out")
        self.assertEqual(done.returncode, 0, done.stderr)
        shown = done.stdout + self.succeed("analyze", "out")
        self.assertNotIn("\u009b", shown)
        self.assertNotIn("<script>alert(1)", (self.folder / "out" / "report.html").read_text())
        self.assertNotIn("<script>alert(1)", (self.folder / "out" / "report.md").read_text())

    def test_what_is_no_file_and_what_is_no_place(self):
        self.write("a,t_ms,n\nx,1,4\n", "table.csv")
        os.mkfifo(self.folder / "pipe")
        (self.folder / "full").mkdir()
        (self.folder / "full" / "precious").write_text("mine\n")
        for arguments, word in (
            (["import", "pipe", "-o", "out"], "pipe"),
            (["import", "/dev/zero", "-o", "out"], "/dev/zero"),
            (["import", "full", "-o", "out"], "a folder"),
            (["import", "nowhere", "-o", "out"], "nowhere"),
            (["import", "table.csv", "--mapping", "nowhere", "-o", "out"], "nowhere"),
            (["import", "table.csv", "--mapping", "map.yaml", "-o", "full"], "full"),
            (["import", "table.csv", "--mapping", "map.yaml", "--format", "hyperfine", "-o", "out"], "mapped-csv"),
            (["import", "table.csv", "--format", "mapped-csv", "-o", "out"], "--mapping"),
            (["import", "table.csv", "table.csv", "--mapping", "map.yaml", "-o", "out"], "once"),
            (["import", "table.csv", "--mapping", "map.yaml", "--set", "cach=static", "-o", "out"], "cache"),
            (["import", "table.csv", "--mapping", "map.yaml", "--set", "phase=prefill", "-o", "out"], "kv_decode"),
            (["import", "table.csv", "--mapping", "map.yaml", "--baseline", "y", "-o", "out"], "baseline"),
            (["import", "table.csv", "--format", "hyperfin", "-o", "out"], "hyperfine"),
        ):
            with self.subTest(arguments=arguments):
                self.assert_refused(arguments, word)
        self.assertEqual((self.folder / "full" / "precious").read_text(), "mine\n")


if __name__ == "__main__":
    ProgramTest.program = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
