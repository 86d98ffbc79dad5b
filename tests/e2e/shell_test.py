"""`assay completion` and `assay man`: run in the shells where they are installed, and complete: every command and option that
`--help` prints.

usage: shell_test.py ASSAY
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from program import ProgramTest

# Fills COMPREPLY as bash does before it shows what there is.
ASK_BASH = """
source {script}
COMP_WORDS=({words}) COMP_CWORD={at}
_assay
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
ASK_ZSH = """
compdef() {{ :; }}
_files() {{ print FILES; }}
_describe() {{ [[ $1 == -o ]] && shift; print -l -- "${{(@P)2}}"; }}
compadd() {{ shift; print -l -- "$@"; }}
source {script}
words=({words}) CURRENT={at} PREFIX={last}
_assay
"""


class Shells(ProgramTest):
    program = pathlib.Path(sys.argv.pop(1)).resolve()

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="assay-shell-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def helped(self, *command):
        """The subcommands and the options that --help names."""
        text = self.succeed(*command, "--help")
        below = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.M)
        commands = re.findall(r"^  (\S+)", below[1], re.M) if below else []
        options = [name for line in re.findall(r"^ +(-\S+)", text, re.M) for name in line.split(",")]
        return commands, options

    def every_command(self, *above):
        commands, options = self.helped(*above)
        yield list(above), commands, options
        for command in commands:
            yield from self.every_command(*above, command)

    def test_each_command_states_its_own_exit_status(self):
        for judgement in ("gate", "portability", "route", "probe"):
            self.assertIn("Exit status: 1 if", self.succeed(judgement, "--help"), judgement)
        trace = self.succeed("route", "make-trace", "--help")
        self.assertNotIn("Exit status", trace)
        self.assertIn("--simulate trace.csv", trace)

    def script(self, shell):
        path = self.folder / f"assay.{shell}"
        path.write_text(self.succeed("completion", shell))
        return path

    def bash(self, *words):
        quoted = " ".join(f"'{word}'" for word in ("assay", *words))
        asked = ASK_BASH.format(script=self.script("bash"), words=quoted, at=len(words))
        done = subprocess.run(["bash", "--norc", "-c", asked], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        return [line for line in done.stdout.splitlines() if line]

    def test_bash_completes_every_command_and_option(self):
        for command, below, options in self.every_command():
            self.assertEqual([word for word in self.bash(*command, "") if word in below], below, command)
            self.assertEqual(sorted(set(self.bash(*command, "-"))), sorted(set(options)), command)

    def test_bash_completes_words_and_files(self):
        (self.folder / "a study.yaml").write_text("")
        (self.folder / "bundle").mkdir()
        self.assertEqual(self.bash("run", "a study.yaml", "--output-format", ""), ["table", "json", "csv", "md"])
        self.assertEqual(self.bash("run", "x", "--output-format", "=", "j"), ["json"])
        self.assertEqual(self.bash("bench", "-o", "js"), ["json", "jsonl"])
        self.assertEqual(self.bash("generate", "x", "--mode", "c"), ["compiled"])
        self.assertEqual(self.bash("bench", "x", "--cache", ""), ["static", "dynamic"])
        self.assertEqual(self.bash("bench", "x", "--arms", "c"), ["compiled"])
        self.assertEqual(self.bash("plan", "a s"), ["a study.yaml"])
        self.assertEqual(self.bash("run", "x", "-o", "b"), ["bundle"])
        self.assertEqual(self.bash("bench", "tiny-l"), ["tiny-llama"])
        self.assertEqual(self.bash("model", "make", "tiny-q"), ["tiny-qwen2"])
        self.assertEqual(self.bash("bench", "x", "-r", ""), [], "a number is the user's own")
        self.assertEqual(self.bash("completion", ""), ["bash", "zsh", "fish"])
        self.assertEqual(self.bash("ca"), ["cache"])
        self.assertIn("run", self.bash("r"))

    def test_zsh_completes(self):
        script = self.script("zsh")
        if not shutil.which("zsh"):
            self.skipTest("no zsh")
        self.assertEqual(subprocess.run(["zsh", "-fn", script], capture_output=True, text=True).stderr, "")

        def ask(*words):
            quoted = " ".join(f"'{word}'" for word in ("assay", *words))
            asked = ASK_ZSH.format(script=script, words=quoted, at=len(words) + 1, last=f"'{words[-1]}'")
            done = subprocess.run(["zsh", "-f", "-c", asked], capture_output=True, text=True, cwd=self.folder)
            self.assertEqual(done.stderr, "")
            return done.stdout.splitlines()

        for command, below, options in self.every_command():
            self.assertEqual([line.split(":")[0] for line in ask(*command, "") if line.split(":")[0] in below], below, command)
            self.assertEqual(sorted({line.split(":")[0] for line in ask(*command, "-")}), sorted(set(options)), command)
        self.assertEqual(ask("bench", "-o", ""), ["table", "json", "jsonl", "csv", "md", "sql"])
        self.assertEqual(ask("run", "-o", ""), ["FILES"])
        self.assertEqual(ask("bench", "x", "-r", ""), [])

    def test_fish_completes(self):
        script = self.script("fish")
        if not shutil.which("fish"):
            self.skipTest("no fish")
        self.assertEqual(subprocess.run(["fish", "--no-config", "-n", script], capture_output=True, text=True).stderr, "")

        def ask(line):
            asked = f"source {script}; complete -C '{line}'"
            done = subprocess.run(["fish", "--no-config", "-c", asked], capture_output=True, text=True, cwd=self.folder)
            self.assertEqual(done.stderr, "")
            return [word.split("\t")[0] for word in done.stdout.splitlines()]

        for command, below, options in self.every_command():
            line = " ".join(["assay", *command])
            self.assertEqual(sorted(set(ask(line + " ")) & set(below)), sorted(below), command)
            long = {option for option in options if option.startswith("--")}
            self.assertEqual(set(ask(line + " --")) & long, long, command)
        self.assertEqual(ask("assay bench -o j"), ["json", "jsonl"])

    def test_man_pages_name_every_option(self):
        self.succeed("man", "--folder", "man1")
        pages = {path.stem: path.read_text() for path in (self.folder / "man1").iterdir()}
        self.assertEqual(pages["assay-run"], self.succeed("man", "run"))
        for command, below, options in self.every_command():
            page = pages["-".join(["assay", *command[:1]])]
            for option in options:
                self.assertIn("\\fB" + option.replace("-", "\\-") + "\\fR", page, command)
            for word in below:
                self.assertIn(word.replace("-", "\\-"), page, command)
        self.assertIn("\\fIMODEL\\fR ...\n", pages["assay-bench"], "several of them")
        self.assertIn("\\fISTUDY\\fR\n", pages["assay-run"], "one of them")
        self.assert_refused(["man", "rnu"], "did you mean")
        if not shutil.which("groff"):
            self.skipTest("no groff")
        for name, page in pages.items():
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-b", "-z"], input=page, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)

    def test_an_unknown_shell_is_named(self):
        self.assert_refused(["completion", "tcsh"], "bash, zsh, fish")


if __name__ == "__main__":
    unittest.main()
