#!/usr/bin/env python3
"""Wraps comments of C++ sources at 110 columns, where clang-format (ReflowComments: false) leaves them alone.

    tools/reflow_comments.py FILE ...          name the comments that are too long, exit 1 if there are any
    tools/reflow_comments.py --fix FILE ...    wrap them; name those that want a hand

Wrapped are paragraphs of prose, and entries of a list or table whose text continues under its own beginning. A
line that ends early was ended on purpose and stays so. Anything else, such as a comment behind code, is left as it is.
"""

import argparse
import re
import sys

LIMIT = 110
EARLY = 100  # a line ends on purpose if the next word would have ended before this column
WIDOW = 12  # a last line shorter than this
COMMENT = re.compile(r"(\s*)//(.*)")
# The words in front of an entry's text: "//   name       text", "//  1. text", "//  - text".
ENTRY = re.compile(r"( (?:\s+(?:[-*]|\d+\.) | {2,}\S+(?: \S+)*? {2,}|\S+(?: \S+)*? {2,}))(?=\S)")


def column_of(body):
    """Where the text of a comment's line begins, counted from behind the slashes; 1 for prose."""
    entry = ENTRY.match(body)
    return len(entry.group(1)) if entry else len(body) - len(body.lstrip(" "))


def is_text(body):
    """Whether it is words with single spaces between them, and not a line of a table, a drawing or code."""
    return "  " not in body[column_of(body):].rstrip()


def ends_early(line, following):
    return len(line) + 1 + len(following.split()[0]) < EARLY


def paragraphs(lines):
    """Ranges of lines that were wrapped from one text, with the column at which it continues."""
    at = 0
    while at < len(lines):
        first = COMMENT.fullmatch(lines[at])
        if not first or not first.group(2).startswith(" ") or not first.group(2).strip() or not is_text(first.group(2)):
            at += 1
            continue
        column, end = column_of(first.group(2)), at + 1
        while end < len(lines):
            line = COMMENT.fullmatch(lines[end])
            if not line or line.group(1) != first.group(1) or not line.group(2).strip():
                break
            body = line.group(2)
            if ENTRY.match(body) or len(body) - len(body.lstrip(" ")) != column or not is_text(body):
                break
            if ends_early(lines[end - 1], body):
                break
            end += 1
        yield at, end, first.group(1), first.group(2)[:column], column
        at = end


def filled(begin, then, words, limit):
    lines, line, empty = [], begin, True
    for word in words:
        if not empty and len(line) + 1 + len(word) > limit:
            lines.append(line)
            line, empty = then, True
        line += word if empty else " " + word
        empty = False
    return [*lines, line]


def wrapped(indent, head, column, words):
    """As few lines as possible; no word is left alone on the last one where narrower lines would take it along."""
    begin, then = indent + "//" + head, indent + "//" + " " * column
    lines = filled(begin, then, words, LIMIT)
    for limit in range(LIMIT - 1, EARLY - 1, -1):
        if len(lines[-1]) - len(then) >= WIDOW:
            break
        narrower = filled(begin, then, words, limit)
        if len(narrower) > len(lines):
            break
        lines = narrower
    return lines


def reflowed(lines):
    result, done = [], 0
    for begin, end, indent, head, column in paragraphs(lines):
        if all(len(line) <= LIMIT for line in lines[begin:end]):
            continue
        words = " ".join(COMMENT.fullmatch(line).group(2)[column:] for line in lines[begin:end]).split()
        result += lines[done:begin] + wrapped(indent, head, column, words)
        done = end
    return result + lines[done:]


def too_long(lines):
    """Numbers of lines, from 1, that are too long and have a comment, not a text with slashes in it."""
    return [number for number, line in enumerate(lines, 1)
            if len(line) > LIMIT and "//" in re.sub(r'"(\\.|[^"\\])*"', "", line)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("files", nargs="+", metavar="FILE")
    arguments = parser.parse_args()
    long = 0
    for path in arguments.files:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        lines = text.split("\n")
        if arguments.fix and (wrapped_lines := reflowed(lines)) != lines:
            lines = wrapped_lines
            with open(path, "w", encoding="utf-8") as file:
                file.write("\n".join(lines))
        for number in too_long(lines):
            print(f"{path}:{number}: a comment of {len(lines[number - 1])} columns; at most {LIMIT}")
            long += 1
    return 1 if long else 0


if __name__ == "__main__":
    sys.exit(main())
