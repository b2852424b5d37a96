#!/usr/bin/env python3
"""Tests of run_documented_commands.py with a shell script in the place of armilla."""

import pathlib
import tempfile
import unittest

import run_documented_commands as docs

PROGRAM = """#!/bin/bash
case $1 in
  count) printf 'one\\ntwo\\n\\nthree\\nfour\\n' ;;
  fail) echo "wrong" >&2; exit 2 ;;
esac
"""


class Pages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.program = pathlib.Path(folder.name) / "armilla"
        self.program.write_text(PROGRAM, encoding="utf-8")
        self.program.chmod(0o755)

    def run_page(self, page):
        return docs.run_page(page, self.program)

    def message_of(self, page):
        with self.assertRaises(docs.Failure) as caught:
            self.run_page(page)
        return str(caught.exception)

    def test_runs_blocks_in_one_folder(self):
        page = ("<!-- file: kept.txt -->\n```text\nheld\n```\n<!-- run -->\n```sh\ngrep held kept.txt > copy\n```\n"
                "<!-- not run: needs a network -->\n```sh\nfalse\n```\n<!-- run -->\n```sh\ntest -s copy; ls examples/*.yaml\n```\n")
        self.assertEqual(self.run_page(page), 2)

    def test_an_unmarked_block_of_commands_is_a_failure(self):
        self.assertEqual(self.message_of("text\n\n```sh\ntrue\n```\n"),
                         "line 3: a block of commands without a mark: '<!-- run -->' or '<!-- not run: REASON -->'")

    def test_a_failing_command_is_a_failure(self):
        self.assertEqual(self.message_of("<!-- run -->\n```sh\narmilla fail\narmilla count\n```\n"),
                         "line 2: exit code 2 instead of 0:\narmilla fail\narmilla count\nwrong\n")
        self.assertEqual(self.run_page("<!-- run: exit 2 -->\n```sh\narmilla fail\n```\n<!-- output -->\n```text\nwrong\n```\n"), 1)
        self.assertIn("exit code 0 instead of 2", self.message_of("<!-- run: exit 2 -->\n```sh\narmilla count\n```\n"))

    def test_output_is_compared(self):
        def shown(text):
            return f"<!-- run -->\n```sh\narmilla count\n```\n<!-- output -->\n```text\n{text}```\n"

        for text in ("one\ntwo\n", "two\n\nthree\n", "one\n...\nfour\n", "...\nthree\n...\n"):
            self.assertEqual(self.run_page(shown(text)), 1)
        for text in ("one\nthree\n", "four\n...\none\n", "on\n", "four\nfive\n", "one\n...\nfour\n...\nfour\n"):
            self.assertIn("line 6: is not there:", self.message_of(shown(text)))

    def test_quotes_are_compared(self):
        page = "<!-- quote: .clang-format -->\n```yaml\n{}\n```\n"
        self.assertEqual(self.run_page(page.format("...\nColumnLimit: 110\n...")), 0)
        self.assertIn("is not there:\nColumnLimit: 111", self.message_of(page.format("ColumnLimit: 111")))

    def test_marks_and_fences_must_match(self):
        self.assertEqual(self.message_of("<!-- run -->\n\n```sh\ntrue\n```\n"), "line 1: no block follows '<!-- run -->'")
        self.assertEqual(self.message_of("```sh\ntrue\n"), "line 1: the block has no end")
        self.assertEqual(self.message_of("<!-- output -->\n```text\none\n```\n"),
                         "line 2: no block has run before this output")

    def test_links_must_lead_somewhere(self):
        page = self.program.parent / "page.md"
        page.write_text("[a](page.md#part) [b](https://example.org/x) [c](#here)", encoding="utf-8")
        docs.require_links(page)
        page.write_text("[a](page.md) [b](gone.md#part)", encoding="utf-8")
        with self.assertRaisesRegex(docs.Failure, "the link 'gone.md' leads nowhere"):
            docs.require_links(page)


if __name__ == "__main__":
    unittest.main()
