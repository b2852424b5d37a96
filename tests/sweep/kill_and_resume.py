#!/usr/bin/env python3
"""Kills a sweep, again and again, and lets it go on: nothing that had finished is lost or run again, and the outcome is
the one of a sweep that nobody disturbs.

    kill_and_resume.py --program build/release/armilla [--kills 20] [--few]

--few: a tenth of the kills, or as many as it takes until something was saved, and a quarter of the runs: for a program that
sanitizers slow down.

Prints what was not as it should be. Exit code: 0 all is well, 1 something is not.
"""

import argparse
import json
import pathlib
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

SWEEP = """
study:
  model: gpt2-345m
  machine: dgx-a100
  plan: {ranks: 16, global_batch: 256, micro_batch: 1, precision: fp16}
vary:
  plan.pipeline: [1, 2, 5, 4]
  plan.zero: [0, 1]
  plan.tensor: [1, 2, 4]
  machine.dimensions[1].bandwidth: [BANDWIDTHS]
"""
BANDWIDTHS = ["100Gbps", "150Gbps", "200Gbps", "300Gbps", "400Gbps", "600Gbps", "800Gbps", "1600Gbps"]


def answer_of(path):
    """All that a sweep found, but for what tells how it got there."""
    found = json.loads(path.read_text())
    known = found.pop("known")
    del found["elapsed_s"]
    for run in found["runs"]:
        del run["elapsed_s"], run["known"]
    return found, known


def runs_in(path):
    """Rows by hash. Of a copy, so that the database stays as it was left."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "copy.db"
        for end in ("", "-wal"):
            part = path.with_name(path.name + end)
            if part.exists():
                copy.with_name(copy.name + end).write_bytes(part.read_bytes())
        if not copy.exists():
            return {}
        database = sqlite3.connect(copy)
        try:
            if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'run'").fetchone():
                return {}
            # Those refused before they could be run are written anew each time.
            return {row[1]: row for row in database.execute("SELECT * FROM run WHERE state = 'done'")}
        finally:
            database.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--few", action="store_true")
    arguments = parser.parse_args()
    if arguments.few:
        arguments.kills //= 10
    with tempfile.TemporaryDirectory() as folder:
        return run(arguments, pathlib.Path(folder))


def run(arguments, folder):
    sweep = folder / "sweep.yaml"
    bandwidths = BANDWIDTHS[:2] if arguments.few else BANDWIDTHS
    sweep.write_text(SWEEP.replace("BANDWIDTHS", ", ".join(bandwidths)))
    command = [arguments.program, "sweep", sweep, "--quiet", "--jobs", "2"]
    begin = time.monotonic()
    subprocess.run([*command, "--save", folder / "whole.db", "--json", folder / "whole.json"], check=True)
    whole = time.monotonic() - begin
    database = folder / "runs.db"
    saved, kills, slowness, ended = {}, 0, 1, 0
    while kills < arguments.kills or not saved:
        process = subprocess.Popen([*command, "--save", database, "--json", folder / "killed.json"])
        # Sooner and later: while the studies are read, while the database is made, between runs and within them.
        # Longer where the machine has become so slow since that none came as far as that.
        if kills % 5 == 0 and kills > 0 and not saved:
            slowness *= 2
        time.sleep(whole * slowness * (0.02 + 0.02 * (kills % 5)))
        if process.poll() is not None:
            # Faster than the sweep that was timed, as where the machine was busy then: over again, with less time for each.
            ended += 1
            if process.returncode != 0 or ended > 8:
                print(f"the sweep ended after {kills} kills with exit code {process.returncode}: too few to tell anything")
                return 1
            for end in ("", "-wal", "-shm"):
                database.with_name(database.name + end).unlink(missing_ok=True)
            saved, kills, slowness = {}, 0, slowness / 2
            continue
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
        now = runs_in(database)
        lost = [which for which, row in saved.items() if now.get(which) != row]
        if lost:
            print(f"kill {kills} lost or changed {len(lost)} of {len(saved)} runs")
            return 1
        saved = now
    last = subprocess.run([*command, "--save", database, "--json", folder / "resumed.json"])
    if last.returncode != 0:
        print(f"after {kills} kills the sweep ends with exit code {last.returncode}")
        return 1
    undisturbed, none = answer_of(folder / "whole.json")
    answer, known = answer_of(folder / "resumed.json")
    if none != 0 or known < len(saved) or known == 0:
        print(f"{len(saved)} runs were saved, and {known} of them gone on with")
        return 1
    if answer != undisturbed:
        print("the answer is not that of a sweep that nobody disturbs")
        return 1
    print(f"{kills} kills, {known} runs known before the last, of {len(answer['runs'])}; {answer['failed']} failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
