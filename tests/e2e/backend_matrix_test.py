"""studies/smoke/backend-matrix.yaml: the native engine and llama.cpp's real server on one trained model in one precision.

usage: backend_matrix_test.py ASSAY
"""

import json
import pathlib
import sys
import tempfile
import unittest

from program import ProgramTest, made_by, rows_of

ROOT = pathlib.Path(__file__).resolve().parents[2]


class BackendMatrix(ProgramTest):
    def setUp(self):
        self.program = pathlib.Path(sys.argv[1]).resolve()
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        (self.folder / "models").mkdir()
        (self.folder / "models" / "smollm2-135m").symlink_to(CHECKPOINT)
        (self.folder / "scripts").symlink_to(ROOT / "scripts")

    def parities(self, bundle):
        return [json.loads(path.read_text()) for path in (self.folder / bundle).glob("cells/*llama.cpp*/parity.json")]

    def test_three_arms_give_the_same_tokens_in_one_precision(self):
        done = self.assay("run", ROOT / "studies" / "smoke" / "backend-matrix.yaml", "-o", "matrix")
        rows = rows_of(self.folder / "matrix")
        self.assertEqual({row["status"] for row in rows}, {"ok"}, done.stderr)
        self.assertEqual({row["phase"] for row in rows}, {"prefill", "kv_decode", "e2e_kv"})
        self.assertEqual({(row["dtype"], row["quantization"]) for row in rows}, {("bf16", "")})
        parities = self.parities("matrix")
        self.assertEqual([one["passed"] for one in parities], [True] * 6, parities)
        kinds = {one["kind"] for one in json.loads(self.succeed("analyze", "matrix", "-o", "json"))["findings"]}
        self.assertNotIn("unlike_precision", kinds)
        self.succeed("verify", "matrix")

    def test_parity_ends_where_the_servers_text_does(self):
        text = (ROOT / "studies" / "smoke" / "backend-matrix.yaml").read_text()
        for before, after in (("[prefill, kv_decode, e2e_kv]", "[kv_decode]"), ("[single_micro, stress_single]", "[single_long]"),
                              ("token_lengths: [8]", "token_lengths: [32]"), ("repetitions: 2", "repetitions: 1"), ("processes: 2", "processes: 1")):
            self.assertIn(before, text)
            text = text.replace(before, after)
        (self.folder / "long.yaml").write_text(text)
        done = self.assay("run", "long.yaml", "-o", "long", "--only", "arm=eager,llama.cpp")
        (parity,) = self.parities("long")
        self.assertIs(parity["passed"], True, f"{parity} {done.stderr}")
        (ended,) = parity["ended"]
        self.assertEqual(ended["token"], json.loads((pathlib.Path(CHECKPOINT) / "config.json").read_text())["eos_token_id"])
        self.assertEqual(parity["compared_tokens"], ended["position"] + 1)
        self.assertLess(parity["compared_tokens"], parity["generated_tokens"])
        self.succeed("verify", "long")


if __name__ == "__main__":
    made_by("server-env")
    CHECKPOINT = made_by("trained-checkpoint")[-1]
    unittest.main(argv=sys.argv[:1], verbosity=2)
