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
    def test_three_arms_give_the_same_tokens_in_one_precision(self):
        self.program = pathlib.Path(sys.argv[1]).resolve()
        with tempfile.TemporaryDirectory() as scratch:
            self.folder = pathlib.Path(scratch)
            (self.folder / "models").mkdir()
            (self.folder / "models" / "smollm2-135m").symlink_to(CHECKPOINT)
            (self.folder / "scripts").symlink_to(ROOT / "scripts")
            done = self.assay("run", ROOT / "studies" / "smoke" / "backend-matrix.yaml", "-o", "matrix")
            rows = rows_of(self.folder / "matrix")
            self.assertEqual({row["status"] for row in rows}, {"ok"}, done.stderr)
            self.assertEqual({row["phase"] for row in rows}, {"prefill", "kv_decode", "e2e_kv"})
            self.assertEqual({(row["dtype"], row["quantization"]) for row in rows}, {("bf16", "")})
            parities = [json.loads(path.read_text()) for path in (self.folder / "matrix").glob("cells/*llama.cpp*/parity.json")]
            self.assertEqual([one["passed"] for one in parities], [True] * 6, parities)
            kinds = {one["kind"] for one in json.loads(self.succeed("analyze", "matrix", "-o", "json"))["findings"]}
            self.assertNotIn("unlike_precision", kinds)
            self.succeed("verify", "matrix")


if __name__ == "__main__":
    made_by("server-env")
    CHECKPOINT = made_by("trained-checkpoint")[-1]
    unittest.main(argv=sys.argv[:1], verbosity=2)
