"""Drives `assay cache` and what `assay doctor` says about compilers, on folders of its own.

usage: cache_test.py ASSAY
"""

import csv
import hashlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ASSAY = sys.argv.pop(1)


def entry(key, target, payload):
    """A kernel as the cache keeps it: see src/engine/codegen/kernel_cache.h."""
    content = payload + f"\nassay-kernel-1 {key} {target} ".encode()
    return content + hashlib.sha256(content).hexdigest().encode() + b"\n"


class Cache(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = Path(self.scratch.name) / "kernels"
        self.models = Path(self.scratch.name) / "models"
        self.addCleanup(self.scratch.cleanup)

    def assay(self, *arguments, **variables):
        # doctor imports torch where it is, which takes seconds.
        environment = {**os.environ, "ASSAY_KERNEL_CACHE": str(self.folder), "ASSAY_MODEL_CACHE": str(self.models),
                       "ASSAY_TORCH_PYTHON": "/nowhere/python", **variables}
        return subprocess.run([ASSAY, *arguments], capture_output=True, text=True, env=environment)

    def succeed(self, *arguments, **variables):
        done = self.assay(*arguments, **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def fill(self):
        self.folder.mkdir(mode=0o700)
        for number, target in enumerate(["cpu", "sm_90a"]):
            key = f"{number}" * 64
            path = self.folder / f"{key}.kernel"
            path.write_bytes(entry(key, target, b"x" * 1000))
            os.utime(path, (1700000000 + number, 1700000000 + number))

    def test_lists_most_recently_used_first_in_every_format(self):
        self.fill()
        listed = json.loads(self.succeed("cache", "list", "-o", "json"))
        self.assertEqual([row["target"] for row in listed], ["sm_90a", "cpu"])
        self.assertEqual(listed[0]["name"], "1" * 64)
        self.assertEqual(listed[0]["last_used"], "2023-11-14T22:13:21Z")
        self.assertGreater(listed[0]["size_bytes"], 1000)
        rows = list(csv.DictReader(io.StringIO(self.succeed("cache", "list", "-o", "csv"))))
        self.assertEqual([row["name"] for row in rows], ["1" * 64, "0" * 64])
        table = self.succeed("cache", "list")
        self.assertIn(f"{self.folder}: 2 kernels, 2.30 kB of at most", table)
        self.assertIn("536.87 MB", table)
        self.assertIn("| cpu", self.succeed("cache", "list", "-o", "md"))

    def test_damaged_kernels_have_no_target(self):
        self.folder.mkdir(mode=0o700)
        (self.folder / ("2" * 64 + ".kernel")).write_bytes(b"cut")
        self.assertEqual(json.loads(self.succeed("cache", "list", "-o", "json"))[0]["target"], None)

    def test_packed_weights_are_listed_and_cleared(self):
        self.fill()
        whole, cut = "a" * 64, "b" * 64
        (self.folder / f"{whole}.weights").write_bytes(b"x" * 5000 + f"\nassay-weights-1 {whole} 5000 my-model\n".encode())
        (self.folder / f"{cut}.weights").write_bytes(b"x" * 70)
        listed = {row["name"]: row for row in json.loads(self.succeed("cache", "list", "-o", "json")) if row["kind"] == "weights"}
        self.assertEqual(listed["my-model-" + "a" * 12]["target"], "cpu")
        self.assertGreater(listed["my-model-" + "a" * 12]["size_bytes"], 5000)
        self.assertIsNone(listed[cut]["target"])
        self.assertIn("; packed weights of 2 models, 5.17 kB of at most 34.36 GB", " ".join(self.succeed("cache", "list").split()))
        cleared = json.loads(self.succeed("cache", "clear", "-o", "json"))
        self.assertEqual((cleared[1]["kind"], cleared[1]["removed"]), ("weights", 2))
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_clear_removes_all_and_says_how_much(self):
        self.fill()
        (self.folder / "assay-tmp-kIll3d").write_bytes(b"12345")
        bytes_there = sum(path.stat().st_size for path in self.folder.iterdir())
        cleared = json.loads(self.succeed("cache", "clear", "-o", "json"))
        self.assertEqual(cleared, [{"kind": "kernels", "folder": str(self.folder), "removed": 2, "freed_bytes": bytes_there},
                                   {"kind": "weights", "folder": str(self.folder), "removed": 0, "freed_bytes": 0}])
        self.assertEqual(list(self.folder.iterdir()), [])
        self.assertEqual(json.loads(self.succeed("cache", "list", "-o", "json")), [])

    def keep_models(self):
        """Two that bench could have made, one that it was making, and what isn't its own."""
        for name, size in [("tiny-llama", 3000), ("gpt2-25m", 2000), ("tmp-17-tiny-llama", 500), ("my-own", 70)]:
            (self.models / name).mkdir(parents=True)
            (self.models / name / "model.safetensors").write_bytes(b"x" * size)
        (self.models / "tiny-gpt2").symlink_to(self.models / "my-own")
        (self.models / "notes.txt").write_text("mine")

    def test_models_that_bench_made_are_listed(self):
        self.fill()
        self.keep_models()
        listed = json.loads(self.succeed("cache", "list", "-o", "json"))
        self.assertEqual([(row["kind"], row["name"], row["size_bytes"]) for row in listed if row["kind"] != "kernel"],
                         [("model", "gpt2-25m", 2000), ("model", "tiny-llama", 3000), ("unfinished model", "tiny-llama", 500)])
        self.assertIn(f"{self.models}: 3 models, 5.50 kB", " ".join(self.succeed("cache", "list").split()))

    def test_clear_leaves_models_and_says_so(self):
        self.fill()
        self.keep_models()
        done = self.assay("cache", "clear", "-o", "json")
        self.assertEqual([row["kind"] for row in json.loads(done.stdout)], ["kernels", "weights"])
        self.assertIn(f"{self.models}: 3 models, 5.50 kB stay; `assay cache clear --models` removes them", " ".join(done.stderr.split()))
        self.assertTrue((self.models / "tiny-llama/model.safetensors").exists())

    def test_clear_removes_the_models_that_are_its_own(self):
        self.fill()
        self.keep_models()
        cleared = json.loads(self.succeed("cache", "clear", "--models", "-o", "json"))
        self.assertEqual(cleared[2], {"kind": "models", "folder": str(self.models), "removed": 3, "freed_bytes": 5500})
        self.assertEqual(sorted(path.name for path in self.models.iterdir()), ["my-own", "notes.txt", "tiny-gpt2"])
        self.assertTrue((self.models / "my-own/model.safetensors").exists())

    def test_a_folder_that_others_may_write_to_is_refused(self):
        self.fill()
        self.folder.chmod(0o777)
        for action in ["list", "clear"]:
            done = self.assay("cache", action)
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, r"\Aassay: .*: expected a folder that others can't write to.*found mode 777")
        self.assertEqual(len(list(self.folder.iterdir())), 2)

    def doctor(self, **variables):
        return {row["check"]: row for row in json.loads(self.succeed("doctor", "-o", "json", **variables))}

    def test_doctor_names_the_compiler_and_the_cache(self):
        self.fill()
        found = self.doctor()
        self.assertEqual(found["cxx_compiler"]["status"], "ok")
        self.assertRegex(found["cxx_compiler"]["finding"], r"\A/.*c\+\+.*: .*compiled arms use it")
        self.assertEqual(found["kernel_cache"]["finding"], f"{self.folder}: 2 kernels")

    def test_doctor_says_what_is_missing_and_what_to_do(self):
        self.fill()
        self.folder.chmod(0o770)
        found = self.doctor(ASSAY_CXX="/nowhere/c++")
        self.assertEqual(found["cxx_compiler"]["status"], "missing")
        self.assertRegex(found["cxx_compiler"]["finding"], r"/nowhere/c\+\+.*fall back to eager")
        self.assertRegex(found["cxx_compiler"]["fix"], r"install g\+\+")
        self.assertEqual(found["kernel_cache"]["status"], "limited")

    def test_doctor_says_a_fact_once(self):
        rows = json.loads(self.succeed("doctor", "-o", "json"))
        self.assertEqual(len({row["check"] for row in rows}), len(rows))
        torch = [row for row in rows if "/nowhere/python" in row["finding"] + str(row["fix"])]
        self.assertEqual([row["check"] for row in torch], ["torch"])

    def test_doctor_fits_a_terminal(self):
        shown = self.succeed("doctor", ASSAY_CXX="/nowhere/" + "longer" * 30 + "/c++")
        self.assertLessEqual(max(map(len, shown.splitlines())), 100)
        self.assertRegex(shown, r"(?m)^missing  cxx_compiler +\S")
        self.assertRegex(shown, r"(?m)^ +fix: install g\+\+")


unittest.main()
