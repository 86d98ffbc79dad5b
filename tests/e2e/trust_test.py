"""A real run's bundle, one thing in it changed and everything sealed anew: verify and gate 3 name it; and signatures, which show
what agrees with itself and was changed all the same.

usage: trust_test.py ASSAY
"""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from program import ProgramTest, rows_of

ARMS = [{"name": "eager", "backend": "native", "mode": "eager", "cache": "dynamic", "threads": 1},
        {"name": "compiled", "backend": "native", "mode": "compiled", "cache": "static", "threads": 1}]


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def text_of(value):
    """JSON as the program writes it."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def recommit(bundle, plan):
    """The commits of what lies there now, chained anew."""
    path = bundle / "commits.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    replaced = {name: i for i, record in enumerate(records) for name in record.get("replaced", {})}
    begin, chain, lines = {}, plan, []
    for i, record in enumerate(records):
        record.pop("chain")
        for name, added in record["files"].items():
            content = (bundle / name).read_bytes()[begin.get(name, 0):added["bytes"]]
            added["sha256"], begin[name] = sha256(content), added["bytes"]
        for name, entry in record.get("replaced", {}).items():
            if replaced[name] == i and (bundle / name).exists():
                content = (bundle / name).read_bytes()
                entry.update(bytes=len(content), sha256=sha256(content))
        if "replaced" in record:
            record["replaced"] = {name: entry for name, entry in record["replaced"].items() if (bundle / name).exists()}
            if not record["replaced"]:
                del record["replaced"]
                note = record.pop("note")
                record["note"] = note
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
        chain = sha256(f"{chain}\n{line}".encode())
        lines.append(line[:-1] + f',"chain":"{chain}"}}\n')
    path.write_text("".join(lines))


def reseal(bundle, change=lambda manifest: None):
    """The manifest of what lies there now, changed, with every hash in it."""
    path = bundle / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["sha256"]
    change(manifest)
    recommit(bundle, manifest["plan_sha256"])
    for name in list(manifest["files"]):
        if not (bundle / name).exists():
            del manifest["files"][name]
            continue
        content = (bundle / name).read_bytes()
        manifest["files"][name] = {"bytes": len(content), "sha256": sha256(content)}
    manifest["sha256"] = sha256(text_of(manifest).encode())
    path.write_text(text_of(manifest))


def edit(path, change):
    value = json.loads(path.read_text())
    change(value)
    path.write_text(text_of(value))


class Trust(ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = pathlib.Path(cls.scratch.name)
        test = cls()
        test.succeed("model", "make", "tiny-gpt2", "-o", "model")
        test.write_study(arms=ARMS, phases=["prefill", "kv_decode"], repetitions=4, processes=2)
        test.succeed("run", "study.yaml", "-o", "made")

    def setUp(self):
        self.bundle = self.folder / "bundle"
        shutil.rmtree(self.bundle, ignore_errors=True)
        shutil.copytree(self.folder / "made", self.bundle)
        self.cell = rows_of(self.bundle, arm="compiled", phase="kv_decode")[0]["cell_id"]

    def record(self, name, change):
        edit(self.bundle / "cells" / self.cell / name, change)

    def replace(self, name, old, new):
        path = self.bundle / name
        text = path.read_text()
        self.assertIn(old, text)
        path.write_text(text.replace(old, new, 1))

    def test_a_seal_made_anew_is_whole(self):
        reseal(self.bundle)
        self.assertIn("intact", self.succeed("verify", "bundle"))
        judged = json.loads(self.assay("gate", "bundle", "-o", "json").stdout)
        self.assertEqual(judged["gates"]["artifact_evidence"], "pass", judged)

    def test_one_change_that_is_sealed_anew_is_named_by_verify_and_by_the_gate(self):
        axis = lambda name, value: lambda manifest: manifest["identity"].update({name: value})
        started = rows_of(self.bundle, cell_id=self.cell, repetition="3")[0]["started_at_ns"]
        nothing = lambda: None
        cases = (
            ("identity.device", nothing, axis("device", "NVIDIA H200")),
            ("identity.code_sha", nothing, axis("code_sha", "f" * 40)),
            ("identity.device", lambda: edit(self.bundle / "environment.json",
                                             lambda it: it["host"]["cpu"].update(model="Other")), None),
            ("study.repetitions", lambda: self.replace("study.yaml", '"repetitions": 4', '"repetitions": 9'), None),
            ("plan_sha256", lambda: self.replace("study.yaml", '"timeout_s": 120', '"timeout_s": 121'), None),
            ("plan_sha256", nothing, lambda manifest: manifest.update(plan_sha256="0" * 64)),
            ("study.baseline", nothing, lambda manifest: manifest["study"].update(baseline="compiled")),
            ("requested.cache", lambda: self.record("evidence.json", lambda it: it["requested"].update(cache="dynamic")), None),
            ("worker.dtype", lambda: self.record("evidence.json", lambda it: it["worker"].update(dtype="bf16")), None),
            ("among its processes", lambda: self.record("evidence.json", lambda it: it["processes"].pop()), None),
            ("no first_difference", lambda: self.record("parity.json", lambda it: it.update(
                first_difference={"sequence": 0, "position": 1, "expected": 1, "found": 2})), None),
            ("missing, and", (self.bundle / "cells" / self.cell / "parity.json").unlink, None),
            ("missing, and", (self.bundle / "cells" / self.cell / "evidence.json").unlink, None),
            ("prompt_tokens 7", lambda: self.replace("kv_decode/metrics.csv", ",1,7,7,", ",1,9,9,"), None),
            ("expected a start", lambda: self.replace("kv_decode/metrics.csv", started, "1" + "0" * 18), None),
            ("finished_at", nothing, lambda manifest: manifest["completion"].update(finished_at="2020-01-01T00:00:00Z")),
        )
        for named, change, of_manifest in cases:
            with self.subTest(named=named):
                self.setUp()
                change()
                reseal(self.bundle, of_manifest or (lambda manifest: None))
                verified = self.assay("verify", "bundle")
                self.assertEqual(verified.returncode, 1, verified.stderr)
                self.assertIn(named, verified.stdout)
                judged = self.assay("gate", "bundle", "-o", "json")
                self.assertEqual(judged.returncode, 1, judged.stderr)
                self.assertEqual(json.loads(judged.stdout)["gates"]["artifact_evidence"], "fail")

    def forge(self):
        """Another device wherever it stands."""
        edit(self.bundle / "environment.json", lambda it: it["host"]["cpu"].update(model="NVIDIA H200"))

        def rename(manifest):
            device = manifest["identity"]["device"]
            manifest["identity"]["device"] = "NVIDIA H200" + device[device.index(" (family"):] \
                if " (family" in device else "NVIDIA H200" + device[device.rindex(" x "):]
        reseal(self.bundle, rename)

    def make_keys(self):
        for name in ("alice", "mallory"):
            if not (self.folder / name).exists():
                subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / name], check=True)
        (self.folder / "signers").write_text(
            f'alice@lab namespaces="assay-bundle" {(self.folder / "alice.pub").read_text()}')

    def test_a_signature_shows_what_hashes_cannot(self):
        self.make_keys()
        self.assertIn("expected a signature, found none", self.assay("verify", "bundle", "--signers", "signers").stdout)
        self.assertIn("intact", self.succeed("verify", "bundle", "--seal", "alice"))
        self.assertRegex(self.succeed("verify", "bundle", "--signers", "signers"),
                         r"intact: .*\nsigned by alice@lab \(Good .*ED25519")
        self.assertIn("--signers", self.succeed("verify", "bundle"), "nobody has looked at whose signature it is")
        self.succeed("analyze", "bundle")
        self.assertIn("intact", self.succeed("verify", "bundle", "--signers", "signers"))
        # The command in ssh-keygen's manual gives the same answer.
        by_hand = subprocess.run(
            ["ssh-keygen", "-Y", "verify", "-f", "signers", "-I", "alice@lab", "-n", "assay-bundle", "-s", "bundle/manifest.json.sig"],
            cwd=self.folder, stdin=(self.bundle / "manifest.json").open(), capture_output=True, text=True)
        self.assertEqual(by_hand.returncode, 0, by_hand.stderr)
        self.forge()
        self.assertIn("intact", self.succeed("verify", "bundle"), "everything agrees with everything else")
        forged = self.assay("verify", "bundle", "--signers", "signers")
        self.assertEqual(forged.returncode, 1, forged.stderr)
        self.assertIn("manifest.json.sig", forged.stdout)
        self.assertIn("expected alice@lab's signature of this manifest", forged.stdout)

    def test_a_signature_of_somebody_else_or_of_nobody_is_a_problem(self):
        self.make_keys()
        self.succeed("verify", "bundle", "--seal", "mallory")
        other = self.assay("verify", "bundle", "--signers", "signers")
        self.assertEqual(other.returncode, 1, other.stderr)
        self.assertIn("expected the signature of a signer in signers", other.stdout)
        for garbage in ("", "-----BEGIN SSH SIGNATURE-----\n", "\0" * 100, "x" * 100_000):
            (self.bundle / "manifest.json.sig").write_text(garbage)
            done = self.assay("verify", "bundle", "--signers", "signers")
            self.assertIn(done.returncode, (1, 2), done.stdout)
            self.assertLessEqual(done.stderr.count("\n"), 1)
        (self.bundle / "manifest.json.sig").unlink()
        self.succeed("verify", "bundle", "--seal", "alice")
        for text in ("", "nonsense\n", (self.folder / "mallory.pub").read_text()):
            (self.folder / "list").write_text(text)
            self.assertEqual(self.assay("verify", "bundle", "--signers", "list").returncode, 1)

    def test_what_cannot_be_signed_is_refused_in_one_line(self):
        self.make_keys()
        self.assert_refused(["verify", "bundle", "--seal", "nowhere"], "nowhere: expected a key's file")
        (self.folder / "text").write_text("no key\n")
        self.assert_refused(["verify", "bundle", "--seal", "text"], "text: expected a key that signs")
        self.assert_refused(["verify", "bundle", "--signers", "nowhere"], "nowhere")
        self.replace("study.yaml", '"repetitions": 4', '"repetitions": 9')
        reseal(self.bundle)
        self.assertEqual(self.assay("verify", "bundle", "--seal", "alice").returncode, 1, "nobody signs what isn't intact")
        self.assertFalse((self.bundle / "manifest.json.sig").exists())

    def test_a_run_signs_when_it_seals_and_asks_for_the_key_before_it_measures(self):
        self.make_keys()
        self.assert_refused(["run", "study.yaml", "-o", "out", "--seal", "nowhere"], "nowhere")
        self.assertFalse((self.folder / "out").exists())
        self.succeed("run", "study.yaml", "-o", "signed", "--seal", "alice")
        self.assertIn("signed by alice@lab", self.succeed("verify", "signed", "--signers", "signers"))

    def test_without_ssh_keygen_one_line_says_so(self):
        self.make_keys()
        self.succeed("verify", "bundle", "--seal", "alice")
        (self.folder / "empty").mkdir(exist_ok=True)
        for command in (["verify", "bundle", "--seal", "alice"], ["verify", "bundle", "--signers", "signers"]):
            done = subprocess.run([str(self.program), *command], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, env={**os.environ, "PATH": str(self.folder / "empty")}, timeout=300)
            self.assertEqual(done.returncode, 3, done.stdout)
            self.assertRegex(done.stderr, r"\Aassay: ssh-keygen: expected OpenSSH's program [^\n]*, found none\n\Z")
        self.assertIn("intact", self.succeed("verify", "bundle"))


if __name__ == "__main__":
    Trust.program = pathlib.Path(sys.argv[1]).resolve()
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
