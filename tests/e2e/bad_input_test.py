"""Bad input gets exit 2 and one line that names the object, what was expected and what was found.

usage: bad_input_test.py ASSAY
"""

import json
import pathlib
import shutil
import struct
import sys
import tempfile
import unittest

from program import ProgramTest


def rewrite_weights(path, change):
    """Applies change(header) to a safetensors file's header."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])


class BadInput(ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = pathlib.Path(cls.scratch.name)
        test = cls()
        test.succeed("model", "make", "tiny-gpt2", "-o", "model")

    def broken_model(self, break_it):
        """A copy of the checkpoint, broken; its name."""
        copy = self.folder / "broken"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.folder / "model", copy)
        break_it(copy)
        return copy.name

    def assert_model_refused(self, model, *words):
        """Every command that takes a model refuses this one, with these words."""
        self.write_study(models=[{"path": model}])
        self.assert_refused(["model", "info", model], *words)
        self.assert_refused(["generate", model, "hello"], *words)
        self.assert_refused(["run", "study.yaml", "-o", "out"], *words)
        self.assertFalse((self.folder / "out").exists(), "nothing may be left of a refused run")

    def assert_study_refused(self, *words, **changes):
        self.write_study(**changes)
        self.assert_refused(["plan", "study.yaml"], "study.yaml", *words)
        self.assert_refused(["run", "study.yaml", "-o", "out"], "study.yaml", *words)
        self.assertFalse((self.folder / "out").exists())

    # Files that aren't there

    def test_missing_files(self):
        self.assert_model_refused("nowhere", "nowhere")
        self.assert_refused(["plan", "nowhere.yaml"], "nowhere.yaml")
        self.assert_refused(["run", "nowhere.yaml", "-o", "out"], "nowhere.yaml")
        for command in ("verify", "analyze", "report"):
            self.assert_refused([command, "nowhere"], "nowhere")

    def test_missing_part_of_a_checkpoint(self):
        for part in ("config.json", "model.safetensors"):
            model = self.broken_model(lambda folder, name=part: (folder / name).unlink())
            self.assert_model_refused(model, part.split(".")[0])

    # Checkpoints

    def test_truncated_weights(self):
        size = (self.folder / "model/model.safetensors").stat().st_size
        for length in (0, 7, 8, 100, size // 2, size - 1):
            model = self.broken_model(
                lambda folder, cut=length: (folder / "model.safetensors").write_bytes(
                    (self.folder / "model/model.safetensors").read_bytes()[:cut]
                )
            )
            self.assert_model_refused(model, "model.safetensors")

    def test_wrong_dtype_of_the_weights(self):
        def change(header):
            name = next(name for name in header if name != "__metadata__")
            header[name]["dtype"] = "I64"

        model = self.broken_model(lambda folder: rewrite_weights(folder / "model.safetensors", change))
        self.assert_model_refused(model, "I64")

    def test_wrong_shape_of_the_weights(self):
        def change(header):
            tensor = header[next(name for name in header if len(header[name].get("shape", [])) == 2)]
            tensor["shape"] = [tensor["shape"][0] * 2, tensor["shape"][1] // 2]

        model = self.broken_model(lambda folder: rewrite_weights(folder / "model.safetensors", change))
        self.assert_model_refused(model, "expected")

    def test_unknown_architecture(self):
        def change(folder):
            config = json.loads((folder / "config.json").read_text())
            config.update(architectures=["MambaForCausalLM"], model_type="mamba")
            (folder / "config.json").write_text(json.dumps(config))

        self.assert_model_refused(self.broken_model(change), "config.json", "amba")
        self.assert_refused(["model", "make", "gpt3", "-o", "out"], "gpt3")

    def test_config_that_is_no_json(self):
        model = self.broken_model(lambda folder: (folder / "config.json").write_text('{"n_embd": '))
        self.assert_model_refused(model, "config.json")

    # Studies

    def test_wrong_dtype_in_a_study(self):
        self.assert_study_refused("fp12", models=[{"path": "model", "dtype": "fp12"}])

    def test_unknown_key(self):
        self.assert_study_refused("repetitons", "repetitions", repetitons=3)

    def test_zero_repetitions(self):
        self.assert_study_refused("repetitions", "0", repetitions=0)

    def test_what_is_no_study(self):
        for text in ("", "[", "- a\n- b\n", "name: [\n", "\x00\x01"):
            (self.folder / "study.yaml").write_text(text)
            self.assert_refused(["plan", "study.yaml"], "study.yaml")

    def test_prompt_longer_than_the_positions(self):
        self.write_study(scenarios=[{"name": "long", "prompt_tokens": [600]}])
        self.assert_refused(["run", "study.yaml", "-o", "out"], "600", "512")
        # A prompt that fits, but not with what it is to generate.
        self.write_study(scenarios=[{"name": "long", "prompt_tokens": [500]}], token_lengths=[64])
        self.assert_refused(["run", "study.yaml", "-o", "out"], "512")
        self.assertFalse((self.folder / "out").exists())

    # Outputs

    def test_unwritable_output_folder(self):
        self.write_study()
        (self.folder / "file").write_text("")
        for output in ("file", "file/below", "/proc/assay", "/dev/null/bundle"):
            self.assert_refused(["run", "study.yaml", "-o", output], output)
            self.assert_refused(["model", "make", "tiny-gpt2", "-o", output], output)

    def test_a_bundle_that_exists_already(self):
        self.write_study()
        self.succeed("run", "study.yaml", "-o", "bundle")
        self.assertIn("intact", self.succeed("verify", "bundle"))
        self.assert_refused(["run", "study.yaml", "-o", "bundle"], "bundle", "--resume")
        self.assert_refused(["run", "study.yaml", "-o", "bundle", "--resume"], "bundle", "complete")
        self.assertIn("intact", self.succeed("verify", "bundle"), "refusing must not touch it")

    # The command line

    def test_command_line(self):
        for arguments in ([], ["measure"], ["run"], ["run", "study.yaml"], ["verify", "model", "-o", "xml"]):
            done = self.assay(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertRegex(done.stderr, r"\Aassay: [^\n]+\n\Z", arguments)


if __name__ == "__main__":
    ProgramTest.program = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=2)
