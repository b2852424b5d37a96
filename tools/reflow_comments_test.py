#!/usr/bin/env python3
"""Tests of reflow_comments.py on small comments made here."""

import unittest

import reflow_comments

WORDS = "four five seven eleven " * 8


def reflowed(*lines):
    return reflow_comments.reflowed(list(lines))


class Reflow(unittest.TestCase):
    def test_prose_is_wrapped_with_what_it_ran_into(self):
        lines = reflowed("  // " + WORDS.strip(), "  // and the rest.", "  int x;")
        self.assertTrue(all(len(line) <= reflow_comments.LIMIT for line in lines))
        self.assertEqual(lines[-1], "  int x;")
        self.assertEqual(" ".join(line.strip("/ ") for line in lines[:-1]), WORDS + "and the rest.")
        self.assertEqual(len(lines), 3)
        self.assertEqual(reflow_comments.reflowed(lines), lines)

    def test_lines_that_end_early_stay(self):
        lines = reflowed("// A short one.", "// " + WORDS.strip(), "// short again.", "// Another.")
        self.assertEqual(lines[0], "// A short one.")
        self.assertTrue(lines[-2].endswith("short again."))
        self.assertEqual(lines[-1], "// Another.")

    def test_short_paragraphs_stay_as_they_are(self):
        lines = ["// One " + "x" * 60, "// two", "//", "// three"]
        self.assertEqual(reflowed(*lines), lines)

    def test_entries_continue_under_their_text(self):
        lines = reflowed("//   name   " + WORDS.strip(), "//          more of it.", "//   other  short")
        self.assertTrue(lines[0].startswith("//   name   four"))
        self.assertTrue(lines[1].startswith("//          "))
        self.assertIn("more of it.", lines[1])
        self.assertEqual(lines[-1], "//   other  short")

    def test_tables_stay(self):
        lines = ["// " + "a   bcd   ef   " * 10]
        self.assertEqual(reflowed(*lines), lines)
        self.assertEqual(reflow_comments.too_long(lines), [1])

    def test_no_word_is_left_alone(self):
        lines = reflowed("// " + "word " * 20 + "other one last")
        self.assertGreaterEqual(len(lines[-1]), reflow_comments.WIDOW)

    def test_texts_are_no_comments(self):
        self.assertEqual(reflow_comments.too_long(['  call("http://' + "x" * 120 + '");']), [])
        self.assertEqual(reflow_comments.too_long(["  call();  // " + "x" * 120]), [1])


if __name__ == "__main__":
    unittest.main()
