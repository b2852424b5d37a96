#!/usr/bin/env python3
"""Runs the commands of .golden files and compares what they print with what the files say.

A file is a session in a shell. Lines that begin with "## " are remarks, with "$ " commands; below each command
stand its standard output as it is, its standard error with "! " before each line, and, unless it is 0, its
exit code as "? 2".

    ## What this shows.
    $ armilla list nonsense
    ! armilla: error: ...
    ? 2

Every file runs with bash in an empty folder of its own that holds copies of inputs/, with `armilla` being PROGRAM,
no terminal and an empty home. What is printed must not depend on anything else.

    run_golden.py --program PROGRAM FILE ...             print the differences, exit 1 if there are any
    run_golden.py --program PROGRAM --update FILE ...    write what is printed now into the files
"""

import argparse
import dataclasses
import difflib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

INPUTS = pathlib.Path(__file__).resolve().parent / "inputs"
LIMIT_S = 120
MARKS = ("$ ", "## ", "! ", "? ")


class Malformed(Exception):
    pass


@dataclasses.dataclass
class Step:
    remarks: list  # lines before the command: "## " and empty ones
    command: str


def parse(text):
    """The steps of a session; what is expected of them is compared as text, so it need not be understood."""
    steps, remarks = [], []
    for line in text.splitlines():
        if line.startswith("$ "):
            steps.append(Step(remarks, line.removeprefix("$ ")))
            remarks = []
        elif line.startswith("## ") or (not line and remarks) or not steps:
            if line and not line.startswith("## "):
                raise Malformed(f"'{line}' stands before the first command")
            remarks.append(line)
        elif remarks:
            raise Malformed(f"'{line}' follows a remark; only a command does")
    if remarks:
        raise Malformed("the last remark has no command")
    if not steps:
        raise Malformed("no command")
    return steps


def perform(step, folder, environment):
    """The step with what it printed, as lines."""
    try:
        done = subprocess.run(["bash", "-c", step.command], cwd=folder, env=environment, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise Malformed(f"'{step.command}' took more than {LIMIT_S} s") from error
    lines = [*step.remarks, "$ " + step.command]
    for line in done.stdout.decode("utf-8", "backslashreplace").splitlines():
        if line.startswith(MARKS):
            raise Malformed(f"'{step.command}' prints '{line}', which would be read as something else")
        lines.append(line)
    lines += ["! " + line for line in done.stderr.decode("utf-8", "backslashreplace").splitlines()]
    if done.returncode != 0:
        lines.append(f"? {done.returncode}")
    return lines


def perform_all(text, program, inputs=INPUTS):
    with tempfile.TemporaryDirectory() as top:
        top = pathlib.Path(top)
        for name in ("bin", "home", "work"):
            (top / name).mkdir()
        (top / "bin/armilla").symlink_to(pathlib.Path(program).resolve())
        if inputs.is_dir():
            shutil.copytree(inputs, top / "work", dirs_exist_ok=True)
        environment = {
            "PATH": f"{top / 'bin'}:{os.environ['PATH']}",
            "HOME": str(top / "home"),
            "LC_ALL": "C.UTF-8",
        }
        # Sanitizers are told through the environment what to do.
        environment |= {key: value for key, value in os.environ.items() if key.endswith("SAN_OPTIONS")}
        lines = []
        for step in parse(text):
            lines += perform(step, top / "work", environment)
        return "\n".join(lines) + "\n"


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, type=pathlib.Path)
    parser.add_argument("--update", action="store_true", help="write what is printed now into the files")
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args(arguments)
    failed = False
    for path in options.files:
        expected = path.read_text(encoding="utf-8")
        try:
            printed = perform_all(expected, options.program)
        except Malformed as error:
            print(f"{path}: {error}")
            failed = True
            continue
        if printed == expected:
            continue
        if options.update:
            path.write_text(printed, encoding="utf-8")
            print(f"updated {path}")
        else:
            sys.stdout.writelines(difflib.unified_diff(expected.splitlines(True), printed.splitlines(True),
                                                       f"{path} (expected)", f"{path} (printed)"))
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
