"""A cell's code doesn't depend on the cells beside it: all cells of a study in their order, in reverse, and each in a process of
its own run on the same kernels, launched alike, on both devices; and where one has become a symbol, a finding names it.

usage: order_test.py ASSAY FAKE_CUDA FAKE_NVML
"""

import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

from program import ProgramTest, quick_compiler, rows_of

ASSAY, FAKE_CUDA, FAKE_NVML = (Path(argument).resolve() for argument in sys.argv[1:4])
del sys.argv[1:]
BATCHES = [2, 8, 12]


class Order(ProgramTest):
    program = ASSAY

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="assay-order-")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        saved = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(saved)))
        os.environ.update(ASSAY_CUDA_DRIVER=str(FAKE_CUDA), ASSAY_NVRTC=str(FAKE_CUDA), ASSAY_NVML=str(FAKE_NVML),
                          ASSAY_CUBLASLT=str(FAKE_CUDA), ASSAY_CXX=quick_compiler(self.folder),
                          ASSAY_KERNEL_CACHE=str(self.folder / "kernels"))
        self.succeed("model", "make", "tiny-llama", "-o", "model")
        self.bundles = 0

    def evidence_of(self, batches, device, dynamic, **changes):
        """Evidence by phase and batch, of one process that measured the cells in the order of `batches`."""
        self.bundles += 1
        bundle = f"bundle-{self.bundles}"
        arm = {"name": "compiled", "backend": "native", "mode": "compiled", "cache": "static", "dynamic": dynamic, "threads": 1}
        study = {"models": [{"path": "model", "dtype": "bf16"}], "arms": [arm if device == "cpu" else {**arm, "device": device}],
                 "phases": ["prefill", "kv_decode"], "batch": batches, "order": "sequential", "repetitions": 1, "warmup": 0}
        self.write_study(**{**study, **changes})
        self.succeed("run", "study.yaml", "-o", bundle)
        found = {}
        for row in rows_of(self.folder / bundle):
            self.assertEqual(row["status"], "ok")
            evidence = json.loads((self.folder / bundle / "cells" / row["cell_id"] / "evidence.json").read_text())
            found[row["phase"], int(row["batch"])] = evidence["reported"]
        return found

    def in_all_orders(self, device, dynamic):
        forward = self.evidence_of(BATCHES, device, dynamic)
        backward = self.evidence_of(BATCHES[::-1], device, dynamic)
        alone = {}
        for batch in BATCHES:
            alone |= self.evidence_of([batch], device, dynamic)
        self.assertEqual(len(alone), 2 * len(BATCHES))
        self.assertEqual(forward.keys(), alone.keys())
        self.assertEqual(backward.keys(), alone.keys())
        return forward, backward, alone

    def test_kernels_and_launches_are_a_cells_own(self):
        for device in ("cpu", "cuda"):
            for dynamic in ("false", "true"):
                forward, backward, alone = self.in_all_orders(device, dynamic)
                for cell, evidence in alone.items():
                    with self.subTest(device=device, dynamic=dynamic, cell=cell):
                        self.assertEqual(evidence["became_symbols"], [])
                        self.assertRegex(evidence["code"]["decode" if cell[0] == "kv_decode" else "prefill"]["sha256"], r"\A\w{64}\Z")
                        self.assertEqual(forward[cell]["code"], evidence["code"])
                        self.assertEqual(backward[cell]["code"], evidence["code"])

    def test_a_size_that_became_a_symbol_keeps_the_form_and_is_named(self):
        for device in ("cpu", "cuda"):
            forward, backward, alone = self.in_all_orders(device, "auto")
            for cell, evidence in alone.items():
                with self.subTest(device=device, cell=cell):
                    self.assertEqual(evidence["became_symbols"], [])
                    for other, first in ((forward, BATCHES[0]), (backward, BATCHES[-1])):
                        names = other[cell]["became_symbols"]
                        self.assertEqual(names, [] if cell[1] == first else ["batch"])
                        for phase, code in evidence["code"].items():
                            self.assertEqual(other[cell]["code"][phase].get("forms"), code.get("forms"))
            found = json.loads(self.succeed("analyze", f"bundle-{self.bundles - len(BATCHES)}", "-o", "json"))["findings"]
            named = [one for one in found if one["kind"] == "form_depends_on_order"]
            self.assertEqual(len(named), 2 * (len(BATCHES) - 1))
            for one in named:
                self.assertEqual(one["severity"], "warning")
                self.assertRegex(one["text"], r"\Abatch became a symbol because the same process ran other sizes before")

    def test_a_form_goes_by_the_rows(self):
        forms = {cell[1]: evidence["code"]["decode"]["forms"]
                 for cell, evidence in self.evidence_of(BATCHES, "cuda", "true", phases=["kv_decode"]).items()}
        self.assertNotEqual(forms[2], forms[8])
        self.assertTrue(any("cuBLASLt" in form for form in forms[12]) or forms[12] != forms[8])

    def test_bench_specialises(self):
        self.succeed("bench", "model", "--device", "cuda", "-p", "0", "-n", "4", "-b", "2,4,8", "-r", "1", "--dtype", "bf16",
                     "--arms", "compiled", "--save", "benched")
        for row in rows_of(self.folder / "benched"):
            reported = json.loads((self.folder / "benched" / "cells" / row["cell_id"] / "evidence.json").read_text())["reported"]
            self.assertEqual(reported["became_symbols"], [])
            self.assertEqual({graph["guards"].partition(",")[0] for graph in reported["graphs"] if graph["frame"] == "decode"}
                             - {f"batch == {batch}" for batch in (2, 4, 8)}, set())


if __name__ == "__main__":
    unittest.main()
