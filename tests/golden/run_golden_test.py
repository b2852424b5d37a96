#!/usr/bin/env python3
"""Tests of run_golden.py with a shell script in the place of armilla."""

import contextlib
import io
import pathlib
import tempfile
import unittest

import run_golden

PROGRAM = """#!/bin/bash
case $1 in
  print) echo "one"; echo; echo "two" ;;
  fail) echo "wrong" >&2; exit 2 ;;
  mark) echo '$ armilla' ;;
  home) ls -A "$HOME" ;;
esac
"""
SESSION = """## A remark.

## Another one.
$ armilla print
one

two
$ armilla fail
! wrong
? 2
## Files stay from command to command.
$ armilla print > kept; grep -c . kept
2
$ armilla home; test -t 0 || echo "no terminal"
no terminal
"""


class Golden(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.program = self.folder / "program"
        self.program.write_text(PROGRAM)
        self.program.chmod(0o755)
        self.file = self.folder / "case.golden"

    def run_on(self, text, *options):
        self.file.write_text(text)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            code = run_golden.main(["--program", str(self.program), *options, str(self.file)])
        return code, printed.getvalue().replace(str(self.folder), "FOLDER")

    def test_agrees(self):
        self.assertEqual(self.run_on(SESSION), (0, ""))

    def test_every_difference_is_seen(self):
        changes = [("one\n", "One\n"), ("\n\ntwo", "\ntwo"), ("! wrong\n", ""), ("? 2\n", ""), ("? 2", "? 1"),
                   ("! wrong", "wrong")]
        for old, new in changes:
            with self.subTest(old=old, new=new):
                code, printed = self.run_on(SESSION.replace(old, new, 1))
                self.assertEqual(code, 1)
                self.assertIn("--- FOLDER/case.golden (expected)\n+++ FOLDER/case.golden (printed)\n", printed)

    def test_update(self):
        commands = "".join(line for line in SESSION.splitlines(True) if line.startswith(("$ ", "##")))
        self.assertEqual(self.run_on(commands, "--update"), (0, "updated FOLDER/case.golden\n"))
        self.assertEqual(self.file.read_text(), SESSION.replace(".\n\n##", ".\n##"))

    def test_malformed(self):
        for text, message in [
            ("", "no command"),
            ("armilla\n", "'armilla' stands before the first command"),
            ("$ armilla print\none\n\ntwo\n## End.\n", "the last remark has no command"),
            ("$ armilla mark\n", "'armilla mark' prints '$ armilla', which would be read as something else"),
        ]:
            with self.subTest(message=message):
                self.assertEqual(self.run_on(text, "--update"), (1, f"FOLDER/case.golden: {message}\n"))
                self.assertEqual(self.file.read_text(), text)

    def test_inputs(self):
        inputs = self.folder / "inputs"
        inputs.mkdir()
        (inputs / "a").write_text("x\n")
        self.assertEqual(run_golden.perform_all("$ cat a\n", self.program, inputs), "$ cat a\nx\n")


if __name__ == "__main__":
    unittest.main()
