#!/usr/bin/env python3
"""Measures whole processes of a release build, from start to exit, against the goals of bench/README.md.

    bench/whole_process.py [--program build/bench/armilla] [--model vgg16_with_weights.onnx]

Without --model, VGG-16 with random weights (553 MB) is exported into a temporary folder, for which Debian's
python3-torchvision and python3-onnx must be installed; the comparison with onnx.load needs the latter anyway.
Exit code: 0 all goals met, 1 some missed, 2 it could not be measured.

Times are the median of RUNS runs after WARM_UP that do not count; a command that takes longer than SLOW_S runs
once. Resident memory is the kernel's figure for the process, which starts at what this script itself needs (some
14 MB) because processes inherit it.
"""

import argparse
import dataclasses
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEBIAN_PYTHON = "/usr/bin/python3"  # the one that Debian's packages of torch and onnx belong to
RUNS, WARM_UP = 21, 3
SLOW_S = 1.0
LOADS = 3  # of onnx.load
LOAD = "import sys, time, onnx; t = time.perf_counter(); onnx.load(sys.argv[1]); print(time.perf_counter() - t)"


@dataclasses.dataclass
class Measured:
    median_s: float
    best_s: float
    peak_mb: float


class CannotMeasure(Exception):
    pass


def run_once(command, folder):
    with open(os.devnull, "r+b") as null, tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, stdin=null, stdout=null, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            errors.seek(0)
            raise CannotMeasure(f"{' '.join(map(str, command))}: {errors.read().decode(errors='replace')}")
    return seconds, usage.ru_maxrss * 1024 / 1e6


def measure(command, folder):
    first = run_once(command, folder)
    if first[0] > SLOW_S:
        return Measured(first[0], first[0], first[1])
    for _ in range(WARM_UP - 1):
        run_once(command, folder)
    seconds, peaks = zip(*(run_once(command, folder) for _ in range(RUNS)))
    return Measured(statistics.median(seconds), min(seconds), max(peaks))


def onnx_load_seconds(model):
    done = subprocess.run([DEBIAN_PYTHON, "-c", LOAD, model], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CannotMeasure(f"onnx.load: {done.stderr}")
    return float(done.stdout)


def export_vgg16(folder):
    print("exporting VGG-16 with weights")
    path = pathlib.Path(folder) / "vgg16.onnx"
    command = [DEBIAN_PYTHON, ROOT / "tools/export_models.py", "--with-weights", "vgg16", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CannotMeasure(f"tools/export_models.py: {done.stderr or done.stdout}")
    return path


class Report:
    def __init__(self):
        self.met = True

    def line(self, what, measured, unit, goal=None, at_least=False):
        text = f"{what:<58} {measured:>9.1f} {unit}"
        if goal is not None:
            met = measured >= goal if at_least else measured < goal
            self.met = self.met and met
            text += f"   goal {'>=' if at_least else '<'} {goal:g} {unit}" + ("" if met else "   MISSED")
        print(text, flush=True)

    def process(self, what, measured, goal_ms=None, goal_mb=None):
        self.line(f"{what}: time", measured.median_s * 1e3, "ms", goal_ms)
        self.line(f"{what}: fastest run", measured.best_s * 1e3, "ms")
        self.line(f"{what}: resident", measured.peak_mb, "MB", goal_mb)


def measure_reading(program, model, folder, report):
    with open(model, "rb") as file:  # warm: the file is in the page cache
        buffer = bytearray(1 << 16)
        while file.readinto(buffer):
            pass
    print(f"\n{model.name}, {model.stat().st_size / 1e6:.0f} MB")
    layers = measure([program, "layers", model], folder)
    report.process("layers", layers, goal_ms=10, goal_mb=40)
    report.process("translate", measure([program, "translate", model, "-o", "vgg16.txt"], folder), goal_ms=10, goal_mb=40)
    load = min(onnx_load_seconds(model) for _ in range(LOADS))
    report.line(f"Python onnx.load of the same file, fastest of {LOADS}", load * 1e3, "ms")
    report.line("layers is faster than that", load / layers.median_s, "times", 50, at_least=True)


EVERYTHING = ["--no-fold", "--every-message"]


def measure_runs(program, folder, report):
    print("\nResNet-50 data-parallel on 1024 ranks, 32 samples each, ring all-reduce over all ranks")
    job = [program, "run", "resnet50", "--batch", "32", "--ranks", "1024", "--algorithm", "ring"]
    one_ring = [*job, "--machine", "ethernet-rack"]
    rings = [*job, "--machine", "dgx-a100"]
    report.process("run, one ring of 1024", measure(one_ring, folder), goal_ms=200)
    report.process("run, rings of 8 and 128", measure(rings, folder), goal_ms=200)
    report.process("run, rings of 8 and 128, every rank played", measure([*rings, *EVERYTHING], folder))
    report.process("run, one ring of 1024, every rank played", measure([*one_ring, *EVERYTHING], folder))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/bench/armilla", metavar="FILE")
    parser.add_argument("--model", type=pathlib.Path, metavar="FILE", help="VGG-16 with its weights inside")
    options = parser.parse_args()
    report = Report()
    try:
        if not os.access(options.program, os.X_OK):
            raise CannotMeasure(f"{options.program}: no program; tools/build.sh bench makes it")
        with tempfile.TemporaryDirectory() as folder:
            model = options.model or export_vgg16(folder)
            measure_reading(options.program.resolve(), model.resolve(), folder, report)
            measure_runs(options.program.resolve(), folder, report)
    except (CannotMeasure, OSError) as error:
        print(f"whole_process: {error}", file=sys.stderr)
        return 2
    print("\nall goals met" if report.met else "\nsome goals were missed")
    return 0 if report.met else 1


if __name__ == "__main__":
    sys.exit(main())
