#!/usr/bin/env python3
"""Runs commands in too little memory and demands that they end as documented: with exit code 2 and one message, and without
the file that they were to write.

    out_of_memory.py --program build/release/armilla

Address space is limited, which is the only limit that makes an allocation fail. Exit code 77: nothing was run out of.
"""

import argparse
import pathlib
import resource
import subprocess
import sys
import tempfile

MEGABYTE = 1 << 20
# More than the program takes to start, less than these commands need.
LIMITS = [limit * MEGABYTE for limit in (220, 400)]
COMMANDS = [
    "run llama3-405b --machine dgx-h100 --ranks 2048 --tp 8 --pp 16 --vpp 4 --micro-batches 64 --json out.json",
    "search llama3-405b --machine dgx-h100 --ranks 2048 --global-batch 2048 --seq 8192 --precision bf16 --threads 2 --json out.json",
    # Threads that cannot be started are not needed.
    "search gpt2-124m --machine dgx-a100 --ranks 8 --threads 64 --json out.json",
]
MESSAGE = "armilla: error: not enough memory for this input\n  hint: check its sizes\n"


# A run of half a second in 300 MB.
SWEEP = """
study:
  model: llama3-405b
  machine: dgx-h100
  plan: {ranks: 524288, tensor: 8, pipeline: 16, virtual_stages: 4, micro_batch: 1, micro_batches: 64}
vary: {plan.zero: [1]}
"""


def limited(limit):
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def wrong_of_sweeps(program):
    """A run that was out of memory is not known of: with more it is done."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "sweep.yaml").write_text(SWEEP)
        command = [program, "sweep", "sweep.yaml", "--save", "runs.db", "--quiet"]
        poor = subprocess.run(command, cwd=folder, capture_output=True, text=True, preexec_fn=limited(150 * MEGABYTE))
        rich = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if poor.returncode == 2 and rich.returncode == 0:
        return []
    return [f"sweep: exit codes {poor.returncode} in little memory and {rich.returncode} in enough\n{poor.stderr}{rich.stderr}"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, type=pathlib.Path)
    program = parser.parse_args().program.resolve()
    refused, wrong = 0, wrong_of_sweeps(program)
    for command in COMMANDS:
        for limit in LIMITS:
            with tempfile.TemporaryDirectory() as folder:
                ended = subprocess.run(
                    [program, *command.split(), "--quiet"], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                    text=True, preexec_fn=limited(limit))
                written = sorted(path.name for path in pathlib.Path(folder).iterdir())
            fits = ended.returncode == 0 and written == ["out.json"]
            is_refused = ended.returncode == 2 and ended.stderr == MESSAGE and not written
            refused += is_refused
            if not fits and not is_refused:
                wrong.append(f"{command} in {limit // MEGABYTE} MiB: exit code {ended.returncode}, files {written}\n{ended.stderr}")
    print("\n".join(wrong) if wrong else f"{refused} of {len(COMMANDS) * len(LIMITS)} runs were out of memory")
    if wrong:
        return 1
    return 0 if refused else 77


if __name__ == "__main__":
    sys.exit(main())
