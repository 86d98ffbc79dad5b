"""`assay serve` started again: its packed weights lie in a file that it maps, and that costs no start where it is amiss.

usage: serve_start_test.py ASSAY
"""

import concurrent.futures
import json
import os
import pathlib
import resource
import signal
import sys
import unittest

from program import quick_compiler
from serve_test import ServeTest


class ServeStart(ServeTest):
    def setUp(self):
        super().setUp()
        self.kernels = self.folder / "kernels"
        changed = {"ASSAY_KERNEL_CACHE": str(self.kernels), "ASSAY_CXX": quick_compiler(self.folder)}
        before = {name: os.environ.get(name) for name in changed}
        os.environ.update(changed)

        def restore():
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
        self.addCleanup(restore)

    def files(self):
        return sorted(self.kernels.glob("*.weights"))

    def start(self, *arguments):
        """A server of one slot, the text that it answers with, and whether it has mapped a file of weights."""
        url = self.serve("--slots", "1", "--threads", "2", *arguments)
        text = self.completion(url, [5, 6, 7], 12)["choices"][0]["text"]
        return url, text, ".weights" in pathlib.Path(f"/proc/{self.process.pid}/maps").read_text()

    def end(self):
        """Ends the server; the lines that it wrote meanwhile."""
        self.process.send_signal(signal.SIGTERM)
        told = self.process.communicate(timeout=60)[1]
        self.assertEqual(self.process.returncode, 0, told)
        return told

    def test_the_first_start_makes_a_file_and_the_next_maps_it(self):
        _, expected, maps = self.start("--no-weight-cache")
        self.assertFalse(maps)
        self.assertEqual(self.files(), [])
        self.assertNotIn("mapped", self.end())

        _, text, maps = self.start()
        self.assertEqual((text, maps), (expected, True))
        self.assertNotIn("mapped", self.end(), "it made the file")
        [file] = self.files()
        made = file.stat()
        self.assertEqual(made.st_mode & 0o777, 0o600)

        url, text, maps = self.start()
        self.assertEqual((text, maps), (expected, True))
        self.assertEqual(self.files(), [file])
        self.assertEqual(file.stat().st_ino, made.st_ino, "it is the same file")
        listed = [row for row in json.loads(self.succeed("cache", "list", "-o", "json")) if row["kind"] == "weights"]
        self.assertEqual([(row["name"], row["size_bytes"]) for row in listed], [(f"tiny-llama-{file.name[:12]}", made.st_size)])
        self.succeed("cache", "clear")
        self.assertEqual(self.files(), [])
        self.assertEqual(self.completion(url, [5, 6, 7], 12)["choices"][0]["text"], expected, "a server keeps what it has mapped")
        self.assertRegex(self.end(), r"ready after .*; [\d.]+ kB mapped\)")

        self.assertEqual(self.start("--dtype", "fp32")[2], True)
        self.assertEqual(self.start("--dtype", "bf16")[2], True)
        self.assertEqual(len(self.files()), 2, "each type has a file of its own")

    def test_a_damaged_file_is_made_anew(self):
        _, expected, _ = self.start()
        self.end()
        [file] = self.files()
        whole = file.read_bytes()
        for damaged in (b"", whole[:-1], whole[:5000], whole[:-30] + b"?" + whole[-29:], whole + b"\n"):
            file.write_bytes(damaged)
            _, text, maps = self.start()
            self.assertEqual((text, maps), (expected, True))
            self.assertNotIn("mapped", self.end())
            self.assertEqual(file.read_bytes(), whole)

    def test_a_full_disk_is_one_line(self):
        _, expected, _ = self.start("--no-weight-cache")
        self.end()
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
        try:
            _, text, maps = self.start()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        self.assertEqual((text, maps), (expected, False))
        self.assertRegex(self.end(), r"(?m)^serve    weight cache: not used: .*expected to write packed weights there, found: File too large$")
        self.assertEqual([path for path in self.kernels.iterdir() if path.suffix != ".kernel"], [])

    def test_two_at_once_serve_alike(self):
        _, expected, _ = self.start("--no-weight-cache")
        urls = [None, None]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            urls = list(pool.map(lambda _: self.serve("--slots", "1", "--threads", "1"), range(2)))
        self.assertEqual([self.completion(url, [5, 6, 7], 12)["choices"][0]["text"] for url in urls], [expected] * 2)
        self.assertEqual(len(self.files()), 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
