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
COMPREPLY=()
COMP_WORDS=({words}) COMP_CWORD={at}
_assay
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
ZSH = """
compdef() { :; }
_files() { print FILES; }
_describe() { [[ $1 == -o ]] && shift; print -l -- "${(@P)2}"; }
compadd() { shift; print -l -- "$@"; }
"""
ASK_ZSH = """
words=({words}) CURRENT={at} PREFIX={last}
_assay
"""
NEXT = "== next"  # printed between the answers to two questions


def quoted(words):
    return " ".join(f"'{word}'" for word in ("assay", *words))


class Shells(ProgramTest):
    program = pathlib.Path(sys.argv.pop(1)).resolve()
    known = {}  # what helped() found, by command

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="assay-shell-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def helped(self, *command):
        """The subcommands and the options that --help names; each command is asked once."""
        if command in self.known:
            return self.known[command]
        text = self.succeed(*command, "--help")
        below = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.M)
        commands = re.findall(r"^  (\S+)", below[1], re.M) if below else []
        options = [name for line in re.findall(r"^ +(-\S+)", text, re.M) for name in line.split(",")]
        self.known[command] = commands, options
        return commands, options

    def every_command(self, *above):
        commands, options = self.helped(*above)
        yield list(above), commands, options
        for command in commands:
            yield from self.every_command(*above, command)

    def answers(self, shell, begin, questions):
        """Lines that one process of the shell prints for each question, after `begin`; a command line and what follows."""
        asked = begin + "".join(f"{question}\nprintf '%s\\n' '{NEXT}'\n" for question in questions)
        done = subprocess.run([*shell, asked], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        answers = done.stdout.split(NEXT + "\n")
        self.assertEqual(len(answers), len(questions) + 1)
        return [[line for line in answer.splitlines() if line] for answer in answers[:-1]]

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

    def bash(self, *asked):
        """The words offered for each list of words."""
        questions = [ASK_BASH.format(words=quoted(words), at=len(words)) for words in asked]
        return self.answers(["bash", "--norc", "-c"], f"source {self.script('bash')}\n", questions)

    def test_bash_completes_every_command_and_option(self):
        commands = list(self.every_command())
        offered = self.bash(*((*command, begin) for command, _, _ in commands for begin in ("", "-")))
        for (command, below, options), words, dashed in zip(commands, offered[::2], offered[1::2], strict=True):
            self.assertEqual([word for word in words if word in below], below, command)
            self.assertEqual(sorted(set(dashed)), sorted(set(options)), command)

    def test_bash_completes_words_and_files(self):
        (self.folder / "a study.yaml").write_text("")
        (self.folder / "bundle").mkdir()
        expected = {
            ("run", "a study.yaml", "--output-format", ""): ["table", "json", "csv", "md"],
            ("run", "x", "--output-format", "=", "j"): ["json"],
            ("bench", "-o", "js"): ["json", "jsonl"],
            ("generate", "x", "--mode", "c"): ["compiled"],
            ("bench", "x", "--cache", ""): ["static", "dynamic"],
            ("bench", "x", "--arms", "c"): ["compiled"],
            ("plan", "a s"): ["a study.yaml"],
            ("run", "x", "-o", "b"): ["bundle"],
            ("bench", "tiny-l"): ["tiny-llama"],
            ("model", "make", "tiny-q"): ["tiny-qwen2"],
            ("bench", "x", "-r", ""): [],  # a number is the user's own
            ("completion", ""): ["bash", "zsh", "fish"],
            ("ca",): ["cache"],
        }
        *offered, all_with_r = self.bash(*expected, ("r",))
        self.assertEqual(dict(zip(expected, offered, strict=True)), expected)
        self.assertIn("run", all_with_r)

    def test_zsh_completes(self):
        script = self.script("zsh")
        self.assertTrue(shutil.which("zsh"), "scripts/install-deps test")
        self.assertEqual(subprocess.run(["zsh", "-fn", script], capture_output=True, text=True).stderr, "")

        def ask(*asked):
            questions = [ASK_ZSH.format(words=quoted(words), at=len(words) + 1, last=f"'{words[-1]}'") for words in asked]
            return self.answers(["zsh", "-f", "-c"], f"{ZSH}source {script}\n", questions)

        commands = list(self.every_command())
        offered = ask(*((*command, begin) for command, _, _ in commands for begin in ("", "-")))
        for (command, below, options), words, dashed in zip(commands, offered[::2], offered[1::2], strict=True):
            self.assertEqual([line.split(":")[0] for line in words if line.split(":")[0] in below], below, command)
            self.assertEqual(sorted({line.split(":")[0] for line in dashed}), sorted(set(options)), command)
        self.assertEqual(ask(("bench", "-o", ""), ("run", "-o", ""), ("bench", "x", "-r", "")),
                         [["table", "json", "jsonl", "csv", "md", "sql"], ["FILES"], []])

    def test_fish_completes(self):
        script = self.script("fish")
        self.assertTrue(shutil.which("fish"), "scripts/install-deps test")
        self.assertEqual(subprocess.run(["fish", "--no-config", "-n", script], capture_output=True, text=True).stderr, "")

        def ask(*lines):
            answers = self.answers(["fish", "--no-config", "-c"], f"source {script}\n", [f"complete -C '{line}'" for line in lines])
            return [[word.split("\t")[0] for word in words] for words in answers]

        commands = list(self.every_command())
        lines = [" ".join(["assay", *command]) for command, _, _ in commands]
        offered = ask(*(line + begin for line in lines for begin in (" ", " --")))
        for (command, below, options), words, dashed in zip(commands, offered[::2], offered[1::2], strict=True):
            self.assertEqual(sorted(set(words) & set(below)), sorted(below), command)
            long = {option for option in options if option.startswith("--")}
            self.assertEqual(set(dashed) & long, long, command)
        self.assertEqual(ask("assay bench -o j"), [["json", "jsonl"]])

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
        self.assertIn("[\\fIMODEL\\fR] ...\n", pages["assay-bench"], "several of them, or a server")
        self.assertIn("\\fISTUDY\\fR\n", pages["assay-run"], "one of them")
        self.assert_refused(["man", "rnu"], "did you mean")
        self.assertTrue(shutil.which("groff"), "scripts/install-deps test")
        for name, page in pages.items():
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-b", "-z"], input=page, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)

    def test_an_unknown_shell_is_named(self):
        self.assert_refused(["completion", "tcsh"], "bash, zsh, fish")


if __name__ == "__main__":
    unittest.main()
