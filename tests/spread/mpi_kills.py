#!/usr/bin/env python3
"""Sweeps, searches and scaling curves under mpirun, with four ranks, some of which are killed.

    mpi_kills.py --program build/release/armilla [--few]

 1. A sweep, a search and a scaling curve find what they find without MPI.
 2. Runners are killed: their runs are done again, and nothing else changes.
 3. A rank is killed, which ends the job: started again, it goes on with what was finished.
 4. A run of which whoever does it is killed fails by itself.

--few: one runner of six is killed, of two ninths of the runs, and the search has 36 points of 1,440, for a program that sanitizers
slow down.

Prints what was not as it should be. Exit code: 0 all is well, 1 something is not, 77 there is no MPI here.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

NO_MPI = 77
SWEEP = """
study:
  model: gpt2-345m
  machine: dgx-a100
  plan: {ranks: 16, global_batch: 256, micro_batch: 1, precision: fp16}
vary:
  plan.pipeline: [1, 2, 5, 4]
  plan.zero: [0, 1]
  plan.tensor: [TENSORS]
  machine.dimensions[1].bandwidth: [BANDWIDTHS]
"""
BANDWIDTHS = ["100Gbps", "200Gbps", "400Gbps"]
SEARCH = ["search", "bert-large", "--machine", "dgx-a100", "--ranks", "16", "--global-batch", "64", "--recompute", "full",
          "--brute-force", "--quiet"]
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "4"]
SCALE = ["scale", "bert-large", "--machine", "dgx-a100", "--ranks", "4,8", "--global-batch", "64", "--tp", "1,2", "--pp", "1,2",
         "--micro-batch", "4", "--zero", "1", "--recompute", "none,full", "--quiet"]
LIMIT_S = 300


class Failure(Exception):
    pass


def require(holds, what):
    if not holds:
        raise Failure(what)


def sweep_answer(path):
    """All that a sweep found, but for what tells how it got there."""
    found = json.loads(path.read_text())
    known = found.pop("known")
    del found["elapsed_s"]
    for run in found["runs"]:
        del run["elapsed_s"], run["known"]
    return found, known


def search_answer(path):
    found = json.loads(path.read_text())
    del found["elapsed_s"]
    return found


def scale_answer(path):
    """How many plans need not be simulated depends on which are first."""
    found = search_answer(path)
    for point in found["points"]:
        space = point["space"]
        space["not_refused"] = space.pop("bounded") + space.pop("simulated")
    return found


def processes():
    """Ids of parents by those of their children, of everything here that is alive."""
    parents = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if fields[0] != "Z":
            parents[int(folder.name)] = int(fields[1])
    return parents


def descendants(job, generation):
    """Of mpirun the first are ranks, the second keepers, the third runners."""
    parents, line = processes(), {job.pid}
    for _ in range(generation):
        line = {child for child, parent in parents.items() if parent in line}
    return sorted(line)


def start(program, *arguments, **options):
    environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    # What Open MPI itself leaves behind is not ours.
    environment["ASAN_OPTIONS"] = ":".join([os.environ.get("ASAN_OPTIONS", ""), "detect_leaks=0"])
    return subprocess.Popen([*MPIRUN, program, *arguments], env=environment, **options)


def wait(job):
    try:
        return job.wait(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        job.kill()
        raise Failure(f"a job goes on for more than {LIMIT_S} s") from None


def finished_runs(database):
    """How many a sweep has written so far: of a copy, since the sweep has the file for itself."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "copy.db"
        for end in ("", "-wal"):
            part = database.with_name(database.name + end)
            if part.exists():
                copy.with_name(copy.name + end).write_bytes(part.read_bytes())
        if not copy.exists():
            return 0
        try:
            with sqlite3.connect(copy) as opened:
                return opened.execute("SELECT count(*) FROM run WHERE state = 'done'").fetchone()[0]
        except sqlite3.DatabaseError:
            return 0  # copied while it was being made


def until(holds, job, what):
    end = time.monotonic() + LIMIT_S
    while not holds():
        require(job.poll() is None, f"the job ended before {what}")
        require(time.monotonic() < end, f"no {what}")
        time.sleep(0.01)


def same_answers(program, folder, sweep, few):
    search = [*SEARCH, *(["--tp", "4", "--zero", "1,3", "--micro-batch", "4", "--pp", "1..4"] if few else ["--tp", "1..4", "--zero", "any"])]
    subprocess.run([program, "sweep", sweep, "--quiet", "--save", folder / "alone.db", "--json", folder / "alone.json"], check=True)
    require(wait(start(program, "sweep", sweep, "--quiet", "--save", folder / "ranks.db", "--json", folder / "ranks.json")) == 0,
            "a sweep of four ranks fails")
    alone, _ = sweep_answer(folder / "alone.json")
    ranks, known = sweep_answer(folder / "ranks.json")
    require(known == 0 and ranks == alone, "four ranks find something else than threads")
    subprocess.run([program, *search, "--json", folder / "alone_plans.json"], check=True)
    require(wait(start(program, *search, "--json", folder / "plans.json")) == 0, "a search of four ranks fails")
    require(search_answer(folder / "plans.json") == search_answer(folder / "alone_plans.json"),
            "four ranks find other plans than threads")
    subprocess.run([program, *SCALE, "--json", folder / "alone_sizes.json"], check=True)
    require(wait(start(program, *SCALE, "--json", folder / "sizes.json")) == 0, "a scaling curve of four ranks fails")
    require(scale_answer(folder / "sizes.json") == scale_answer(folder / "alone_sizes.json"),
            "four ranks find another scaling curve than threads")
    return alone


def kill_runners(program, folder, sweep, alone, number):
    database = folder / "killed.db"
    job = start(program, "sweep", sweep, "--quiet", "--save", database, "--json", folder / "killed.json")
    kills = 0
    # Each after another few runs, so that no run is hit three times.
    while kills < number:
        until(lambda: finished_runs(database) >= 6 * kills + 2, job, f"run to be done after {kills} kills")
        runners = descendants(job, 3)
        if not runners:
            continue
        try:
            # The oldest, so that each place has its turn: those that follow the killed ones are younger.
            os.kill(runners[0], signal.SIGKILL if kills % 2 else signal.SIGTERM)
        except ProcessLookupError:
            continue
        kills += 1
    require(wait(job) == 0, f"a sweep fails after {kills} of its runners were killed")
    answer, _ = sweep_answer(folder / "killed.json")
    other = [f"{run} instead of {usual}" for run, usual in zip(answer["runs"], alone["runs"]) if run != usual]
    require(answer == alone, f"{kills} killed runners change what a sweep finds: {other[:2]}")
    return kills


def kill_rank(program, folder, sweep, alone):
    database = folder / "lost.db"
    arguments = ["sweep", sweep, "--quiet", "--save", database, "--json", folder / "lost.json"]
    job = start(program, *arguments, stderr=subprocess.DEVNULL)
    until(lambda: finished_runs(database) >= 5, job, "five runs to be done")
    os.kill(descendants(job, 1)[2], signal.SIGKILL)
    require(wait(job) != 0, "a job that lost a rank says that all is well")
    saved = finished_runs(database)
    require(saved >= 5, f"of five finished runs {saved} are left")
    require(wait(start(program, *arguments)) == 0, "a sweep does not go on after its job has lost a rank")
    answer, known = sweep_answer(folder / "lost.json")
    require(answer == alone, "a sweep that lost a rank and goes on finds something else")
    require(saved <= known < len(answer["runs"]), f"{saved} runs were saved, and {known} of them gone on with")
    return saved


def is_at_work(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "R"
    except OSError:
        return False


def deadly_run(program, folder):
    """Whoever works is killed once one run of two is done: the other takes far longer (jitter is played rank by rank)."""
    sweep = folder / "deadly.yaml"
    sweep.write_text("""
study:
  model: gpt2-345m
  machine: dgx-a100
  plan: {ranks: 512, global_batch: 65536, micro_batch: 1}
vary: {what_if.jitter.deviation: [0, 0.05]}
""")
    database = folder / "deadly.db"
    job = start(program, "sweep", sweep, "--quiet", "--save", database, "--json", folder / "deadly.json")
    until(lambda: finished_runs(database) == 1, job, "run to be done")
    end = time.monotonic() + LIMIT_S
    while job.poll() is None:
        require(time.monotonic() < end, "a run is begun again and again, whoever dies of it")
        for runner in filter(is_at_work, descendants(job, 3)):
            try:
                os.kill(runner, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.01)
    require(wait(job) == 0, f"a sweep of which one run dies ends with exit code {job.returncode}")
    found, _ = sweep_answer(folder / "deadly.json")
    harmless, deadly = found["runs"]
    require(harmless["state"] == "done", f"beside a run that dies: {harmless['message']}")
    require(deadly["state"] == "failed" and deadly["message"].startswith("3 processes died of this run: signal "),
            f"a run that dies: {deadly['message']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--few", action="store_true")
    arguments = parser.parse_args()
    if shutil.which("mpirun") is None:
        print("skipped: there is no mpirun here (tools/setup.sh --cluster installs it)")
        return NO_MPI
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        job = start(arguments.program, "sweep", folder / "nowhere.yaml", stderr=subprocess.PIPE, text=True)
        if "was built without MPI" in job.communicate(timeout=LIMIT_S)[1]:
            print("skipped: this program was built without MPI")
            return NO_MPI
        sweep = folder / "sweep.yaml"
        sweep.write_text(SWEEP.replace("BANDWIDTHS", ", ".join(BANDWIDTHS[:1] if arguments.few else BANDWIDTHS))
                         .replace("TENSORS", "1, 4" if arguments.few else "1, 2, 4"))
        try:
            require(job.returncode == 2, f"a sweep that is not there ends with exit code {job.returncode}")
            alone = same_answers(arguments.program, folder, sweep, arguments.few)
            kills = kill_runners(arguments.program, folder, sweep, alone, 1 if arguments.few else 6)
            saved = kill_rank(arguments.program, folder, sweep, alone)
            deadly_run(arguments.program, folder)
        except Failure as failure:
            print(failure)
            return 1
    print(f"{len(alone['runs'])} runs of four ranks as of threads; {kills} runners killed; a rank killed after {saved} runs; "
          "a run that kills fails")
    return 0


if __name__ == "__main__":
    sys.exit(main())
