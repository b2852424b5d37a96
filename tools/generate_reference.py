#!/usr/bin/env python3
"""Writes the pages and pictures under docs/ that the program makes itself, and the table of its accuracy.

    docs/reference/components.md   armilla list --markdown
    docs/reference/cli.md          the help of every command
    docs/images/run.svg            the report of the README's main job, as a terminal shows it
    docs/images/timeline.svg       the timeline of an example
    docs/images/sweep.svg          a plot of the runs of another
    docs/accuracy.md, its picture  armilla validate on the measurements in tests/reference
    src/study/run/measured_accuracy.h   the same by device and precision, which reports quote

    generate_reference.py --program PROGRAM            write them
    generate_reference.py --program PROGRAM --check    print what differs from them, exit 1 if anything does
"""

import argparse
import csv
import difflib
import functools
import io
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import terminal_svg
import timeline_svg

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
ORIGIN = "<!-- Written by tools/generate_reference.py; do not edit. -->\n\n"
TIMELINE = "vgg16-ethernet.yaml"
SWEEP = "sweeps/llama3-network.yaml"
MAIN_JOB = ["run", "resnet50", "--machine", "dgx-a100", "--ranks", "64", "--batch", "256"]


class Program:
    def __init__(self, path, home):
        self.path = path
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8", "TERM": "xterm"}
        # Sanitizers are told through the environment what to do.
        self.environment |= {key: value for key, value in os.environ.items() if key.endswith("SAN_OPTIONS")}

    def output(self, *arguments):
        done = subprocess.run([self.path, *arguments], env=self.environment, stdin=subprocess.DEVNULL, cwd=ROOT,
                              capture_output=True, timeout=900, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"armilla {' '.join(arguments)} exits with {done.returncode}:\n{done.stderr.decode()}")
        return done.stdout.decode("utf-8")

    def terminal_output(self, *arguments):
        return terminal_svg.terminal_output([self.path, *arguments], self.environment)


def subcommands(help_text):
    """Names under "Subcommands:", which begin in the third column."""
    names, inside = [], False
    for line in help_text.splitlines():
        if line == "Subcommands:":
            inside = True
        elif inside and not line.startswith("  "):
            break
        elif inside and not line.startswith("   "):
            names.append(line.split()[0])
    return names


def help_sections(program, path=()):
    text = program.output(*path, "--help")
    title = " ".join(["armilla", *path])
    sections = [f"{'#' * min(2 + max(len(path) - 1, 0), 6)} {title}\n\n```text\n{text.strip()}\n```\n"]
    for name in subcommands(text):
        sections += help_sections(program, (*path, name))
    return sections


def components(program):
    return (f"{ORIGIN}# Components\n\nEverything that has a name. `armilla list` prints the same, `armilla show NAME` one entry; "
            "the pages under [models](../models) give the equations.\n\n" + program.output("list", "--markdown").rstrip() + "\n")


def command_line(program):
    return (f"{ORIGIN}# The command line\n\nExit codes: 0 done, 1 a bug of Armilla, 2 something wrong with the input; then one message "
            "says where, what and what to do.\n\n" + "\n".join(help_sections(program)))


def timeline(program):
    with tempfile.TemporaryDirectory() as folder:
        program.output("run", str(ROOT / "examples" / TIMELINE), "--csv", folder, "--quiet")
        text = (pathlib.Path(folder) / "timeline.csv").read_text(encoding="utf-8")
    return timeline_svg.svg(text, f"One rank of examples/{TIMELINE}")


def sweep(program):
    with tempfile.TemporaryDirectory() as folder:
        plot = pathlib.Path(folder) / "sweep.svg"
        program.output("sweep", str(ROOT / "examples" / SWEEP), "--save", str(plot.with_suffix(".db")), "--svg", str(plot), "--plot",
                       "tokens_per_s", "--over", "machine.dimensions[1].bandwidth", "--quiet")
        return plot.read_text(encoding="utf-8")


def report(program):
    prompt = f"\x1b[2m$\x1b[0m \x1b[1marmilla {' '.join(MAIN_JOB)}\x1b[0m\n"
    return terminal_svg.svg(prompt + program.terminal_output(*MAIN_JOB))


MEASUREMENTS = [f"tests/reference/measurements/{kind}.csv" for kind in ("training", "memory", "collectives", "kernels")]
KINDS = {"training": "Steps of training", "memory": "Peaks of memory", "collectives": "Collectives", "kernels": "Kernels"}


@functools.lru_cache
def validation(program):
    """What `armilla validate` says of the measurements in the repository, and the plot."""
    with tempfile.TemporaryDirectory() as folder:
        found, plot, rows = (pathlib.Path(folder) / name for name in ("found.json", "plot.svg", "rows.csv"))
        program.output("validate", *MEASUREMENTS, "--json", str(found), "--svg", str(plot), "--csv", str(rows), "--quiet")
        return json.loads(found.read_text(encoding="utf-8")), plot.read_text(encoding="utf-8"), rows.read_text(encoding="utf-8")


WIDTHS = {"bf16": "16 bits", "fp16": "16 bits", "fp8": "fp8", "fp4": "fp4"}


def measured_device(machine):
    """The device of "dgx-a100" or "dgx-a100 with a100-40gb-sxm"."""
    if " with " in machine:
        return machine.split(" with ")[1]
    text = (ROOT / "machines" / "clusters" / f"{machine}.yaml").read_text(encoding="utf-8")
    return re.search(r"^device: *(\S+)", text, re.MULTILINE).group(1)


def measured_accuracy(program):
    """The errors of all measured steps on a device in a precision, for reports of runs like them."""
    groups = {}
    for row in csv.DictReader(io.StringIO(validation(program)[2])):
        study = re.fullmatch(r".* on (.*?): (tp .*), .*? x .*?, (\w+).*", row["study"])
        if "training.csv" not in row["where"] or study is None or not row["error"]:
            continue
        degrees = re.findall(r"(?:tp|pp|dp|cp) (\d+)", study.group(2))
        devices = math.prod(map(int, degrees))
        # Steps of one device say nothing about communication.
        key = (measured_device(study.group(1)), WIDTHS.get(study.group(3), "32 bits"), row["set"].endswith("MoE"), devices > 1)
        groups.setdefault(key, []).append((float(row["error"]), devices))
    lines = []
    for (device, width, experts, _), rows in sorted(groups.items()):
        errors = sorted(error for error, _ in rows)
        absolute = sorted(map(abs, errors))
        p90 = absolute[min(len(absolute) - 1, round(0.9 * (len(absolute) - 1)))]
        ranks = [count for _, count in rows]
        lines.append(f'    MeasuredAccuracy{{"{device}", "{width}", {str(experts).lower()}, {len(rows)}, {min(ranks)}, {max(ranks)}, '
                     f"{sum(absolute) / len(absolute):.3f}, {statistics.median(errors):.3f}, {p90:.3f}}},\n")
    return f"""// Written by tools/generate_reference.py from the errors behind docs/accuracy.md; do not edit.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace armilla {{

// How far off predictions of the measured steps on a device are, on one apart from on several: shares,
// bias signed.
struct MeasuredAccuracy {{
  std::string_view device, width;
  bool experts;                     // mixtures of experts
  std::int64_t rows, fewest, most;  // of steps; of devices
  double mape, bias, p90;
}};

// clang-format off
inline constexpr std::array kMeasuredAccuracy = {{
{"".join(lines)}}};
// clang-format on

}}  // namespace armilla
"""


def accuracy_row(figures):
    def percent(value):
        return f"{100 * value:.1f}"

    errors, ranking = figures["errors"], figures["ranking"]
    if errors["count"] == 0:
        return f"| {figures['name']} | 0 of {figures['rows']} | | | | | | | |\n"
    rows = str(figures["rows"]) if errors["count"] == figures["rows"] else f"{errors['count']} of {figures['rows']}"
    return (f"| {figures['name']} | {rows} | {percent(errors['mape'])} | {percent(errors['median'])} | {100 * errors['bias']:+.1f} | "
            f"{percent(errors['p90'])} | {percent(errors['largest'])} | {'' if figures['constant'] is None else percent(figures['constant']['mape'])} | "
            f"{'' if ranking is None else format(ranking['spearman'], '.2f')} |\n")


# What is aimed at, and why it is missed where it is. MAPE, but for kernels and memory the median; of the sets that the pattern finds.
GOALS = (
    ("training", "Korthikanti et al. 2022", r"korthikanti ", "mape", 3, "attention and its softmax are not fused there, and run at one rate for all sizes"),
    ("training", "vTrain, several nodes", r"vtrain-multi ", "mape", 7,
     "39 billion parameters with 2 and 4 tensor ranks: up to 36 % too fast, without a pattern that links or memory would explain"),
    ("training", "vTrain, one node", r"vtrain-single ", "mape", 12, "the host's time per operator is one number, whatever the operator"),
    ("training", "SC'21, Megatron-LM, Megatron-Core", r"(sc21|mlm-early|mcore|megatron-llama|megci-gpt) ", "mape", 5,
     "tests of Megatron-LM's own are small models, for which the host counts; micro-batches of Megatron-Core's table are not published"),
    ("training", "BLOOM", r"bloom ", "mape", 7, "steps on a cluster under repair that wait for every kernel: one plan, measured again, differs by 15 %; those of the weeks after it are 4 % off, those before 9"),
    ("training", "MPT", r"mpt ", "mape", 7, "optimizers and norms of gradients that are not fused, where a step has few tokens"),
    ("training", "InternEvo", r"internevo ", "mape", 7, "3 to 9 % too fast, most where states are sharded over all replicas, which broadcast their parts one after the other"),
    ("training", "H100, dense, 16 bits", r"(dgxc|mbridge|nemo2407|kempner) H[12]00\S* bf16$", "mape", 5, "KempnerForge between nodes, in pipelines above all"),
    ("training", "H100, dense, fp8", r"(dgxc|mbridge|nemo2407|ttitan) H[12]00\S* fp8", "mape", 6,
     "PyTorch's context parallelism; recipes that differ between releases"),
    ("training", "H100, mixtures of experts", r"\S+ H[12]00\S* .*MoE$", "mape", 10, "10.8 % on all published rows but three whose table has degrees of the release before, one of which is here; Nemotron too slow, gpt-oss and DeepSeek-V3 too fast (below)"),
    ("training", "Blackwell, dense", r"(?!mlperf)\S+ G?B[23]00 (?!.*MoE)", "mape", 8, "sustained rates are fitted to whole steps"),
    ("training", "Blackwell, mixtures of experts", r"\S+ G?B[23]00 .*MoE$", "mape", 15, "fused experts; Mamba's kernels, of which none is measured on Blackwell"),
    ("training", "MLPerf", r"mlperf ", "mape", 6, "8 billion parameters on 72 and 512 GB200 and GB300, steps of 85 to 150 ms, are 11 to 26 % too fast, which nothing published explains; 405 billion are within 4 % there, 2 to 12 % too slow on H100, H200 and B200"),
    ("training", "nanotron (ultrascale)", r"ultrascale ", "rank", 0.9, "0.82 on all 701 rows, 0.92 without 64 nodes: steps that wait for something that is no kernel and no message (below)"),
    ("training", "TPU, MI350X, MI355X", r"\S+ (TPU|MI3)", "mape", 12, "XLA's own scheduling; mixtures of experts with a capacity, and casts around their products in fp8"),
    ("memory", "peaks of memory", r"", "median", 3, "losses in fp32 and allocators that round up, outside Megatron; what a compiled backward pass gives back"),
    ("memory", "peaks of memory, 90 %", r"", "p90", 8, "losses in fp32 and allocators that round up, outside Megatron; what a compiled backward pass gives back"),
    ("collectives", "from 1 MiB, one node", r".* 1 node from", "mape", 8, "7.0 % on all 4,262 rows that we know; of those here many are of 1 to 4 MiB, where sources differ by a factor of 3 on the same machine"),
    ("collectives", "from 1 MiB, several nodes", r".* \d+ nodes from", "mape", 15, ""),
    ("collectives", "below 1 MiB", r".* below", "mape", 20, "sources that differ by a factor of 3 on the same machine"),
    ("kernels", "matrix products", r".* (grouped_)?gemm ", "median", 8, "PyTorch's and XLA's fp8 products on H100; grouped ones of PyTorch, which hide what they move"),
    ("kernels", "attention", r".* attention_", "median", 10, "kernels of 30 ms and more, whose clocks fall"),
    ("kernels", "memory-bound", r".* memory-bound", "median", 12, "norms differ by library"),
)

KINDS_OF_ROWS = {"training.csv": "training", "memory.csv": "memory", "collectives.csv": "collectives", "kernels.csv": "kernels"}


def predicted_rows(program):
    """Every predicted row of a kind: its set, signed error and study."""
    rows = {}
    for row in csv.DictReader(io.StringIO(validation(program)[2])):
        if row["error"]:
            kind = KINDS_OF_ROWS[row["where"].rsplit("/", 1)[-1].split(":")[0]]
            rows.setdefault(kind, []).append((row["set"], float(row["error"]), row["study"], row["id"]))
    return rows


def billions():
    """Of the parameters of the steps' models, by the row's id, where the table has them."""
    with open(ROOT / MEASUREMENTS[0], newline="", encoding="utf-8") as table:
        return {row["id"]: float(row["params_B"]) for row in csv.DictReader(table) if row["params_B"]}


def goals(program):
    rows, sets = predicted_rows(program), validation(program)[0]["sets"]
    text = ("\n## Goals\n\nWhat is aimed at, on the rows above. The reasons rest on all published rows of these kinds that we know, of which this page has an extract; their errors differ by some points.\n\n"
            "| kind | figure | goal | reached | met | why not |\n|---|---|---:|---:|---|---|\n")
    for kind, title, pattern, figure, goal, why in GOALS:
        if figure == "rank":
            ranks = [s["ranking"]["spearman"] for s in sets if s["kind"] == kind and re.match(pattern, s["name"]) and s["ranking"]]
            met = bool(ranks) and min(ranks) >= goal
            wanted, shown = f"{goal}", f"{min(ranks):.2f}" if ranks else "too few rows here"
        else:
            errors = sorted(100 * abs(error) for name, error, *_ in rows[kind] if re.match(pattern, name))
            if not errors:
                continue
            reached = {"mape": statistics.mean(errors), "median": statistics.median(errors), "p90": errors[round(0.9 * (len(errors) - 1))]}[figure]
            met, wanted, shown = reached <= goal, f"{goal} %", f"{reached:.1f} %"
        name = {"mape": "mean", "median": "median", "p90": "90 %", "rank": "rank correlation"}[figure]
        text += f"| {title} | {name} | {wanted} | {shown} | {'yes' if met else 'no'} | {'' if met else why} |\n"
    return text


def residuals(program):
    """Errors of steps by what was divided how, in which type."""
    groups = {}
    sizes = billions()
    for name, error, study, row in predicted_rows(program)["training"]:
        found = re.fullmatch(r".* on .*?: (tp .*), (\d+) x .*?, (\w+).*", study)
        if found is None or name.startswith("ultrascale"):
            continue
        degree = dict(re.findall(r"(tp|pp|cp|ep|dp) (\d+)", found.group(1)))
        devices = math.prod(int(degree.get(axis, 1)) for axis in ("tp", "pp", "cp", "dp"))
        for title, value in (("tensor parallelism", int(degree["tp"])), ("pipeline", int(degree["pp"])), ("expert parallelism", int(degree.get("ep", 1))),
                             ("samples of a micro-batch", int(found.group(2))), ("devices", 8 ** math.floor(math.log(devices, 8) + 1e-9)), ("type", found.group(3))):
            if title not in ("type", "devices"):
                value = 2 ** min(4, math.floor(math.log2(value)))
            groups.setdefault(title, {}).setdefault(value, []).append(error)
        if row in sizes:
            below = next(limit for limit in (1, 10, 100, 1000, 10000) if sizes[row] < limit)
            groups.setdefault("billion parameters, below", {}).setdefault(below, []).append(error)
    text = ("\n## Residuals of steps\n\nBy what was divided how (without nanotron's, whose errors are of another kind; \"4\": 4 to 7, \"16\": 16 and more; devices by "
            "powers of 8).\n\n| by | value | rows | MAPE | bias |\n|---|---|---:|---:|---:|\n")
    for title, values in groups.items():
        for value, errors in sorted(values.items(), key=lambda item: (isinstance(item[0], str), item[0])):
            text += (f"| {title} | {value} | {len(errors)} | {100 * statistics.mean(map(abs, errors)):.1f} | "
                     f"{100 * statistics.median(errors):+.1f} |\n")
    return text


def accuracy(program):
    found = validation(program)[0]
    text = (f"{ORIGIN}# Accuracy\n\nHow far predictions are off measurements, published ones and our own (`pytorch`): {sum(t['rows'] for t in found['totals'])} rows of "
            "[tests/reference/measurements](../tests/reference/measurements), which name their sources, by one rule for all "
            "([validation](validation.md)) and one set of parameters for every device and fabric ([rates](models/kernels.md)).\n\n"
            "![predicted over measured](images/accuracy.svg)\n\nErrors in per cent, (predicted - measured) / measured. MAPE: mean of the "
            "absolute errors; bias: the median of the signed ones, negative where predictions are too fast or too small; 90 %: what so many "
            "rows stay below; constant: MAPE of one constant efficiency, the median of the set, which knows the answers; rank: Spearman's "
            "correlation over the plans of one model.\n")
    for kind, title in KINDS.items():
        text += f"\n## {title}\n\n| set | rows | MAPE | median | bias | 90 % | largest | constant | rank |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
        for figures in [f for f in found["sets"] + found["totals"] if f["kind"] == kind]:
            text += accuracy_row(figures)
    text += goals(program) + residuals(program) + "\n" + NOT_MODELLED
    return text


NOT_MODELLED = """## Where it is off, and why

- Steps that wait for something that is no kernel and no message: nanotron on 64 nodes, at times on fewer, takes some 1 s more for every
  micro-batch of a pipeline of 4 and more stages and half of it with 2, whatever the model (up to 100 times slower than predicted). Its checks of collectives
  ([host](models/kernels.md#the-host)) are modelled alike within a node and across; with 16 and 32 tensor ranks predictions are 10 and 40 % too fast. Short runs on clusters under repair (BLOOM).
- vTrain's 39 billion on 512 A100: with 8 tensor ranks, a whole node, 26 plans are predicted nearly in their order (0.97); with 2 and 4
  predictions are from 36 % too fast to 5 % too slow, without a pattern in stages or micro-batches that links or memory would explain.
- MPT on H100: 1 to 9 % too fast at all lengths (optimizers and gradient norms that are not fused, products of the libraries of 2023), up to 17 % where a step
  has few tokens.
- Mixtures of experts on H100: gpt-oss is 11 to 14 % and DeepSeek-V3 25 % too fast, Nemotron 3 Nano in FP8 14 to 18 % too slow, whatever its host needs; under Megatron's
  FSDP Qwen3 235B is 35 % too slow (gathers and scatters of experts' weights between nodes would fill the adapters for longer than the step took). The same plan took 12 and 25 s, or 29 and 51 s, in two
  releases: three rows have degrees of an older table that their recipes no longer had ([validation](validation.md)).
- dgxc's Llama 4 Maverick is printed twice, with the model's 48 layers and, a release earlier, with 32 and the same times: both are predicted with 48.
- Llama 3 on TPU v5p and v5e over several slices: each doubling of the slices takes 1 to 4 % longer than predicted; what hosts and the data centre's network
  do there is not published.
- gpt-oss's sinks, and that Megatron-Core adds biases expert by expert (the passes are modelled, the kernels' number is not). Its steps of release 26.06.01 are
  60 % longer than those before and after, which the publisher calls a regression (cudnn-frontend's issue 256).
- KempnerForge's 70 billion and its pipelines, 21 to 28 % too fast: its own profile has gathers of weights and scatters of gradients between nodes at 14 and 19 GB/s, where adapters of 50 GB/s are assumed.
- torchtitan's context parallelism, 14 to 25 % too fast: PyTorch repeats keys and values for all heads and gathers them first, and adds up results in fp32 operator by operator; counted from its source that is a third of what is missing.
- Mamba-2's backward scan, whose rate follows from whole steps of one model, and chunks of 128 tokens (256 are taken).
- Exchanges beside one micro-batch alone (ZeRO-0 and 1) and collectives of tensor parallelism and computation do not slow each other down. NCCL's kernels hold multiprocessors, 16
  of 132 on an H100, which is counted under ZeRO-2 and 3. Rates in a loop (`sustained`), fitted to steps, have the average in them.
- Two A100 nodes are `hgx-staged`, a fit to such rows (NICs without GPUDirect). NCCL changes between rings and trees at the sizes that are predicted
  for two GPUs per node; with four and eight, trees begin at 4 and 13 MiB, not at 0.8 and 1.6, and calls in between are predicted up to twice too fast.
- A message between two nodes. In the pairwise servers' rows it is the sender's kernel that was timed, eleven in a row, which is done when buffers hold the
  bytes; from 1.5 to 6 MB, where these fill up, such rows are up to twice too fast or too slow. The same
  file was published for A100 and H100. Of H100 one message attains 36 of 50 GB/s (two channels), as many as there are NICs 46: 20 % too fast.
- A few microseconds: two sources that timed all-reduces of less than 1 MiB on the same machine differ by a factor of 3 (H100, two to four GPUs:
  predictions are 60 % below one, 20 % above the other).
- Small kernels: activations and rotations of few rows, whose launches are of 1 to 3 us (sources round to 1 us). Norms differ by library: on Blackwell cuDNN's
  move 0.8 of the bandwidth forward and 0.55 backward, PyTorch's 0.56 and 0.26; here all are alike.
- fp8 products of inference engines above 4 Tflop, 15 to 50 % too fast: they run at 0.35 to 0.4 of the peak on Blackwell and at 0.3 on H100, where long ones seem to be throttled. XLA's fp8 table of H100 has rates above the peak.
- Attention kernels of 30 ms and more, whose clocks fall as in a training loop; PyTorch's grouped products on H100, which hide what they move.
- Memory of frameworks other than Megatron: what their losses keep in fp32, and what their allocators round up; compiled steps with many
  parameters, 15 to 25 % too low (their backward passes seem to give little back before they end); tensors of nanotron that are freed late.
- Mixtures of experts on TPUs: slots of experts with a capacity that stay empty, casts around grouped products in fp8. How fast TPUs put tokens in the order of their experts is an assumption (a third of the attained bandwidth).
- TPUs: XLA's own scheduling, and the network between slices, whose rate is not published.

## More measurements

Any table of the [same columns](validation.md#the-tables) is predicted and judged the same way: `armilla validate FILE.csv`.
"""


def accuracy_plot(program):
    return validation(program)[1]


def differences(path, written, now):
    name = str(path.resolve().relative_to(ROOT))
    return list(difflib.unified_diff(written.splitlines(True), now.splitlines(True), name, "the program's"))


def check(program):
    found = []
    for name, make in PAGES.items():
        path = DOCS / name
        found += differences(path, path.read_text(encoding="utf-8") if path.exists() else "", make(program))
    # Of a terminal's picture only the text counts: drawing it needs a terminal and tells nothing new.
    for name in PICTURES:
        path = DOCS / name
        shown = terminal_svg.described(path.read_text(encoding="utf-8")) if path.exists() else ""
        found += differences(path, shown, f"$ armilla {' '.join(MAIN_JOB)}\n" + program.output(*MAIN_JOB))
    sys.stdout.writelines(found)
    if found:
        print("run tools/generate_reference.py --program build/release/armilla")
    return 1 if found else 0


PAGES = {"reference/components.md": components, "reference/cli.md": command_line, "images/timeline.svg": timeline,
         "images/sweep.svg": sweep, "accuracy.md": accuracy, "images/accuracy.svg": accuracy_plot,
         "../src/study/run/measured_accuracy.h": measured_accuracy}
PICTURES = {"images/run.svg": report}


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, type=pathlib.Path)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as home:
        program = Program(options.program.resolve(), home)
        if options.check:
            return check(program)
        for name, make in {**PAGES, **PICTURES}.items():
            (DOCS / name).parent.mkdir(parents=True, exist_ok=True)
            (DOCS / name).write_text(make(program), encoding="utf-8")
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
