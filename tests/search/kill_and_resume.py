#!/usr/bin/env python3
"""Kills a search that saves its plans, again and again, and lets it go on: nothing that had finished is lost, and
the answer is the one of a search that nobody disturbs.

    kill_and_resume.py --program build/release/armilla [--kills 20] [--few]

--few: a tenth of the kills, or as many as it takes until something was saved, and an eleventh of the space: for a program that
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

SEARCH = ["search", "bert-large", "--machine", "dgx-a100", "--ranks", "16", "--global-batch", "128", "--zero", "any",
          "--set", "plan.sequence_parallel=false", "--threads", "1", "--brute-force", "--quiet"]


def answer_of(path):
    """All that a search found, but for what tells how it got there."""
    found = json.loads(path.read_text())
    del found["elapsed_s"]
    resumed = found["space"].pop("resumed")
    return found, resumed


def plans_in(path):
    """Outcomes by plan. Of a copy, so that the database stays as it was left."""
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
            if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'plan'").fetchone():
                return {}
            return {row[:2]: row[2:] for row in database.execute("SELECT * FROM plan")}
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


def interrupt(command, folder, whole, how):
    """Whether a signal ends a search with what it has found and its own exit code. Sooner and later until it comes in between."""
    found, wait = folder / "interrupted.json", 0.4 * whole
    for _ in range(12):
        found.unlink(missing_ok=True)
        process = subprocess.Popen([*command, "--json", found], stderr=subprocess.DEVNULL)
        time.sleep(wait)
        process.send_signal(how)
        code = process.wait()
        if code == 0:
            wait *= 0.6
        elif code != 128 + how:
            print(f"an interrupted search ended with exit code {code}")
            return False
        elif found.exists() and json.loads(found.read_text())["ranking"]:
            return True
        else:
            wait *= 1.5
    print("no search was interrupted that had found something")
    return False


def run(arguments, folder):
    space = ["--micro-batch", "8", "--recompute", "full" if arguments.few else "any"]
    command = [arguments.program, *SEARCH, *space]
    begin = time.monotonic()
    subprocess.run([*command, "--json", folder / "whole.json"], check=True)
    whole = time.monotonic() - begin
    if not all(interrupt(command, folder, whole, how) for how in (signal.SIGINT, signal.SIGTERM)):
        return 1
    database = folder / "plans.db"
    saved, kills, slowness, ended = {}, 0, 1, 0
    while kills < arguments.kills or not saved:
        process = subprocess.Popen([*command, "--save", database, "--resume", "--json", folder / "killed.json"])
        # Sooner and later: while the space is listed, while the database is made, between plans and within them.
        # Longer where the machine has become so slow since that none came as far as that.
        if kills % 5 == 0 and kills > 0 and not saved:
            slowness *= 2
        time.sleep(whole * slowness * (0.01 + 0.015 * (kills % 5)))
        if process.poll() is not None:
            # Faster than the search that was timed, as where the machine was busy then: over again, with less time for each.
            ended += 1
            if process.returncode != 0 or ended > 8:
                print(f"the search ended after {kills} kills with exit code {process.returncode}: too few to tell anything")
                return 1
            for end in ("", "-wal", "-shm"):
                database.with_name(database.name + end).unlink(missing_ok=True)
            saved, kills, slowness = {}, 0, slowness / 2
            continue
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
        now = plans_in(database)
        lost = [plan for plan, outcome in saved.items() if now.get(plan) != outcome]
        if lost:
            print(f"kill {kills} lost {len(lost)} of {len(saved)} plans")
            return 1
        saved = now
    last = subprocess.run([*command, "--save", database, "--resume", "--json", folder / "resumed.json"])
    if last.returncode != 0:
        print(f"after {kills} kills the search ends with exit code {last.returncode}")
        return 1
    undisturbed, none = answer_of(folder / "whole.json")
    answer, resumed = answer_of(folder / "resumed.json")
    if none != 0 or resumed == 0 or resumed > len(saved):
        print(f"{len(saved)} plans were saved, and {resumed} of them gone on with")
        return 1
    if answer != undisturbed:
        print("the answer is not that of a search that nobody disturbs")
        return 1
    print(f"{kills} kills, {resumed} plans simulated before the last, of {answer['space']['simulated']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
