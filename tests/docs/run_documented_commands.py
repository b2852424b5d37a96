#!/usr/bin/env python3
"""Runs what the documentation tells its readers to type, and every study under examples/.

A comment before a fenced block of README.md or docs/**/*.md says what becomes of it; the reader does not see it:

    <!-- run -->                 runs a ```sh block with bash (-e, pipefail); "armilla" is PROGRAM
    <!-- run: exit 2 -->         the same, and the block ends with this exit code
    <!-- not run: REASON -->     leaves a ```sh block alone
    <!-- file: NAME -->          writes a block of any other kind to the file NAME
    <!-- output -->              the block shows output of the block that ran last; "..." stands for lines left out
    <!-- quote: PATH -->         the block shows lines of a file of the repository, likewise

Every ```sh block needs one of the first three, so none is forgotten. The blocks of a page run in their order in one
empty folder, which has copies of examples/ and models/, with an empty home and no terminal. Relative links of these pages
and of the README files of other folders must lead to something.

    run_documented_commands.py --program PROGRAM [--few]

--few: the commands of one page in eleven and one study in eleven, for a program that sanitizers slow down.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LIMIT_S = 120
MARKER = re.compile(r"<!-- (run|run: exit \d+|not run: .+|file: [\w.-]+|output|quote: \S+) -->")
LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)(?:#[^)\s]*)?\)")


class Failure(Exception):
    pass


@dataclasses.dataclass
class Block:
    line: int
    kind: str  # of the fence: "sh", "yaml", ""
    marker: str  # without the comment's brackets, or ""
    text: str


def blocks_of(page):
    """The fenced blocks of a page; a marker stands on the line before its fence."""
    blocks, lines, i = [], page.splitlines(), 0
    while i < len(lines):
        fence = re.fullmatch(r"\s*(`{3,})(\w*)", lines[i])
        if not fence:
            if MARKER.fullmatch(lines[i]) and not "".join(lines[i + 1 : i + 2]).startswith("```"):
                raise Failure(f"line {i + 1}: no block follows '{lines[i]}'")
            i += 1
            continue
        marker = MARKER.fullmatch(lines[i - 1]) if i > 0 else None
        end = i + 1
        while end < len(lines) and lines[end].strip() != fence.group(1):
            end += 1
        if end == len(lines):
            raise Failure(f"line {i + 1}: the block has no end")
        text = "".join(line + "\n" for line in lines[i + 1 : end])
        blocks.append(Block(i + 1, fence.group(2), marker.group(1) if marker else "", text))
        i = end + 1
    return blocks


def require_shown(shown, printed):
    """The lines between two "..." must stand together in what was printed, in their order."""
    printed = [line.rstrip() for line in printed.splitlines()]
    position, part = 0, []
    for line in [*(line.rstrip() for line in shown.splitlines()), "..."]:
        if line.strip() != "...":
            part.append(line)
            continue
        while printed[position : position + len(part)] != part:
            position += 1
            if position > len(printed):
                raise Failure("is not there:\n" + "\n".join(part))
        position += len(part)
        part = []


class Folder:
    """Where the blocks of one page run."""

    def __init__(self, top, program):
        self.work = top / "work"
        self.work.mkdir()
        for name in ("examples", "models"):
            shutil.copytree(ROOT / name, self.work / name)
        for name in ("bin", "home"):
            (top / name).mkdir()
        (top / "bin/armilla").symlink_to(program)
        self.environment = {
            "PATH": f"{top / 'bin'}:{os.environ['PATH']}",
            "HOME": str(top / "home"),
            "LC_ALL": "C.UTF-8",
        }
        # Sanitizers are told through the environment what to do.
        self.environment |= {key: value for key, value in os.environ.items() if key.endswith("SAN_OPTIONS")}

    def run(self, text, exit_code=0):
        done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", text], cwd=self.work, env=self.environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S,
                              check=False)
        printed = done.stdout.decode("utf-8", "backslashreplace")
        if done.returncode != exit_code:
            raise Failure(f"exit code {done.returncode} instead of {exit_code}:\n{text}{printed}")
        return printed


def run_page(page, program):
    """Returns how many blocks ran."""
    blocks = blocks_of(page)
    if not any(block.marker or block.kind == "sh" for block in blocks):
        return 0
    ran, printed = 0, None
    with tempfile.TemporaryDirectory() as top:
        folder = Folder(pathlib.Path(top), program)
        for block in blocks:
            try:
                if block.kind == "sh" and not block.marker.startswith(("run", "not run")):
                    raise Failure("a block of commands without a mark: '<!-- run -->' or '<!-- not run: REASON -->'")
                if block.marker.startswith("run"):
                    exit_code = int(block.marker.rpartition(" ")[2]) if "exit" in block.marker else 0
                    printed = folder.run(block.text, exit_code)
                    ran += 1
                elif block.marker.startswith("file: "):
                    (folder.work / block.marker.removeprefix("file: ")).write_text(block.text, encoding="utf-8")
                elif block.marker == "output":
                    if printed is None:
                        raise Failure("no block has run before this output")
                    require_shown(block.text, printed)
                elif block.marker.startswith("quote: "):
                    require_shown(block.text, (ROOT / block.marker.removeprefix("quote: ")).read_text(encoding="utf-8"))
            except (Failure, subprocess.TimeoutExpired) as error:
                raise Failure(f"line {block.line}: {error}") from error
    return ran


def require_links(path):
    for target in LINK.findall(path.read_text(encoding="utf-8")):
        if not (path.parent / target).exists():
            raise Failure(f"the link '{target}' leads nowhere")


def run_example(path, program):
    """A study that ships must be valid, and its run must have nothing to warn of."""
    with tempfile.TemporaryDirectory() as top:
        folder = Folder(pathlib.Path(top), program)
        folder.run(f"armilla check examples/{path.name}")
        folder.run(f"armilla run examples/{path.name} --json run.json")
        run = json.loads((folder.work / "run.json").read_text(encoding="utf-8"))
        if not run["iteration_time_s"] > 0 or run["warnings"]:
            raise Failure(f"an iteration of {run['iteration_time_s']} s, warnings: {run['warnings']}")


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, type=pathlib.Path)
    parser.add_argument("--few", action="store_true")
    options = parser.parse_args(arguments)
    program = options.program.resolve()
    # Of few, pages that read traces, simulate packets and sweep: README's tables take longest of all.
    first, step = (7, 11) if options.few else (0, 1)
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    linked = [*pages, *sorted(ROOT.glob("[a-z]*/README.md"))]
    tasks = [(path, lambda path: run_page(path.read_text(encoding="utf-8"), program)) for path in pages[first::step]]
    tasks += [(path, require_links) for path in linked]
    tasks += [(path, lambda path: run_example(path, program)) for path in sorted((ROOT / "examples").glob("*.yaml"))[::step]]
    failures, ran = 0, 0
    for path, task in tasks:
        try:
            ran += task(path) or 0
        except Failure as failure:
            failures += 1
            print(f"{path.relative_to(ROOT)}: {failure}")
    print(f"{ran} blocks of commands ran, {failures} failures")
    return 1 if failures or ran == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
