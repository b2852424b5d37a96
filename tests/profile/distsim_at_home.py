#!/usr/bin/env python3
"""DistSim's experiment (Lu et al. 2023, section 5) at home: what PyTorch measures of a small transformer's events predicts
how long it trains, in two processes of the CPU with data, pipeline and tensor parallelism.

    distsim_at_home.py --program build/release/armilla [--rounds N]

For every way: the events that are missing are listed (armilla events), measured (tools/profile_events.py), put into a
database (armilla profile), the step is predicted from them (armilla run) and measured (the worker below, by gloo). Printed
are both and the error. The machine's link is what the measured all-reduces say: their slope and intercept over the bytes.

Each is the median of its repeats. A machine that is busy with other things measures nothing: where an error is above the
bound, events and steps of that way are measured again, at most `--rounds` times.

Exit code: 0, 1 when an error stays above the bound or a step is not predicted from measured times, 77 (skipped) where
PyTorch with gloo is missing, or where an error stays above the bound on a machine that others use.
"""

import argparse
import csv
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SKIPPED = 77
RANKS, LAYERS, HIDDEN, HEADS, VOCABULARY, SEQUENCE, MICRO_BATCH, GLOBAL_BATCH = 2, 2, 256, 4, 1024, 32, 2, 8
BOUND = 0.25  # DistSim's was 4 %, on GPUs that nothing else used
STEPS = 5
WAYS = {"data": "data: 2, zero: 0", "pipeline": "pipeline: 2, schedule: 1f1b", "tensor": "tensor: 2"}

MODEL = f"""family: gpt
layers: {LAYERS}
hidden: {HIDDEN}
heads: {HEADS}
vocabulary: {VOCABULARY}
sequence: {SEQUENCE}
activation: relu
attention: unfused
bias: false
dropout: false
tied_embeddings: false
"""
STUDY = """model: ./model.yaml
machine:
  name: home
  device: {{name: home-cpu, memory: 16GB, memory_bandwidth: 20GB/s, vector_rate: 100GFLOPS, matrix_rate: {{fp32: 100GFLOPS}}}}
  dimensions: [{{name: loopback, kind: Switch, size: {ranks}, bandwidth: {bandwidth:.0f}B/s, latency: {latency:.0f}ns}}]
plan: {{ranks: {ranks}, {way}, micro_batch: {micro_batch}, global_batch: {global_batch}, precision: fp32, optimizer: adam,
        overlap: false, host: compiled}}
"""


def spawn(python, arguments, folder):
    """The command in as many processes as there are ranks, as torchrun starts them. The output of rank 0."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = []
    for rank in range(RANKS):
        environment = os.environ | {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(RANKS), "OMP_NUM_THREADS": "1",
                                    "LOCAL_WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        processes.append(subprocess.Popen([python, *arguments], cwd=folder, env=environment, text=True, stdout=subprocess.PIPE,
                                          stderr=subprocess.PIPE))
    results = [process.communicate(timeout=600) for process in processes]
    for process, (_, error) in zip(processes, results):
        if process.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, arguments))} exits with {process.returncode}:\n{error}")
    return results[0][0]


class Experiment:
    def __init__(self, program, python, folder, way):
        self.program, self.python, self.folder, self.way = program, python, folder, way
        (folder / "model.yaml").write_text(MODEL)
        self.write_study(1e9, 20e-6)

    def write_study(self, bandwidth, latency):
        (self.folder / "study.yaml").write_text(STUDY.format(ranks=RANKS, bandwidth=bandwidth, latency=latency * 1e9, way=WAYS[self.way],
                                                             micro_batch=MICRO_BATCH, global_batch=GLOBAL_BATCH))

    def armilla(self, *arguments):
        done = subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"armilla {' '.join(arguments)}:\n{done.stderr}")
        return done.stdout

    def profile(self):
        """Measures what is missing, and gives the machine the link that was measured."""
        for name in ("times.db", "times.csv"):
            (self.folder / name).unlink(missing_ok=True)
        self.armilla("events", "study.yaml", "--missing", "--quiet", "--csv", "events.csv")
        # Processes compute at once in training; so they do here.
        tool = str(ROOT / "tools" / "profile_events.py")
        spawn(self.python, [tool, "events.csv", "-o", "times.csv", "--together", "--threads", "1", "--torch-device", "cpu", "--repeats", "7"],
              self.folder)
        self.armilla("profile", "import", "times.db", "times.csv")
        missing = self.armilla("events", "study.yaml", "--missing", "--profile", "times.db", "--quiet", "--csv", "-")
        if len(missing.splitlines()) != 1:
            raise RuntimeError(f"events are still missing:\n{missing}")
        with open(self.folder / "times.csv", newline="", encoding="utf-8") as table:
            points = [(int(row["bytes"]), float(row["time_s"])) for row in csv.DictReader(table) if row["event"] == "communication"]
        mean_bytes, mean_time = (statistics.fmean(values) for values in zip(*points))
        spread = sum((size - mean_bytes) ** 2 for size, _ in points)
        slope = sum((size - mean_bytes) * (seconds - mean_time) for size, seconds in points) / spread if spread > 0 else 0
        if slope <= 0:
            slope = mean_time / mean_bytes
        messages_per_call = 4
        self.write_study(1 / slope, max(1e-7, (mean_time - slope * mean_bytes) / messages_per_call))

    def predict(self):
        self.armilla("run", "study.yaml", "--profile", "times.db", "--json", "run.json", "--quiet")
        run = json.loads((self.folder / "run.json").read_text())
        if run["compute_sources"]["measured"] < 0.999:
            raise RuntimeError(f"not all of the computing time is measured: {run['compute_sources']}")
        return run["iteration_time_s"]

    def measure(self):
        return float(spawn(self.python, [str(pathlib.Path(__file__).resolve()), "--train", self.way], self.folder).split()[-1])


def experiment(program, python, rounds):
    failed = False
    for way in WAYS:
        for attempt in range(rounds):
            with tempfile.TemporaryDirectory() as folder:
                one = Experiment(program, python, pathlib.Path(folder), way)
                before = one.measure()
                one.profile()
                measured = statistics.fmean([before, one.measure()])
                predicted = one.predict()
            error = predicted / measured - 1
            print(f"{way} parallelism in {RANKS} processes: predicted {predicted * 1e3:.1f} ms, measured {measured * 1e3:.1f} ms, "
                  f"error {100 * error:+.1f} %", flush=True)
            if abs(error) <= BOUND:
                break
            print(f"  above {100 * BOUND:.0f} %" + (": measured again" if attempt + 1 < rounds else ""))
        failed = failed or abs(error) > BOUND
    if failed and os.getloadavg()[0] > RANKS + 1:
        print(f"skipped: the machine is busy with other things (load {os.getloadavg()[0]:.1f}), so that nothing was measured")
        return SKIPPED
    return 1 if failed else 0


# The worker: a transformer as the model above describes it, trained for some steps.


def train(way):
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F

    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    rank, share = dist.get_rank(), RANKS if way == "tensor" else 1
    heads, vocabulary = HEADS // share, VOCABULARY // share

    class Copy(torch.autograd.Function):
        """Megatron's f: the gradients of all shares add up."""

        @staticmethod
        def forward(_, x):
            return x.view_as(x)

        @staticmethod
        def backward(_, gradient):
            gradient = gradient.contiguous()
            dist.all_reduce(gradient)
            return gradient

    class Reduce(torch.autograd.Function):
        """Megatron's g: all shares add up."""

        @staticmethod
        def forward(_, x):
            dist.all_reduce(x)
            return x

        @staticmethod
        def backward(_, gradient):
            return gradient

    shared, added = (Copy.apply, Reduce.apply) if way == "tensor" else (lambda x: x, lambda x: x)

    def weight(rows, columns):
        return torch.nn.Parameter(torch.randn(rows, columns) * 0.02)

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = (torch.nn.LayerNorm(HIDDEN) for _ in range(2))
            self.qkv, self.out = weight(3 * HIDDEN // share, HIDDEN), weight(HIDDEN, HIDDEN // share)
            self.up, self.down = weight(4 * HIDDEN // share, HIDDEN), weight(HIDDEN, 4 * HIDDEN // share)

        def forward(self, x):
            q, k, v = F.linear(shared(self.first(x)), self.qkv).view(MICRO_BATCH, SEQUENCE, 3, heads, -1).permute(2, 0, 3, 1, 4)
            weights = torch.softmax(q @ k.transpose(-1, -2), -1)
            context = (weights @ v).transpose(1, 2).reshape(MICRO_BATCH, SEQUENCE, -1)
            x = x + added(F.linear(context, self.out))
            return x + added(F.linear(torch.relu(F.linear(shared(self.second(x)), self.up)), self.down))

    class Embedding(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = weight(vocabulary, HIDDEN), weight(SEQUENCE, HIDDEN)

        def forward(self, tokens):
            if share == 1:
                return F.embedding(tokens, self.tokens) + self.positions
            own = tokens - rank * vocabulary
            outside = (own < 0) | (own >= vocabulary)
            return added(F.embedding(own.clamp(0, vocabulary - 1), self.tokens).masked_fill(outside[..., None], 0)) + self.positions

    class Head(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.logits = torch.nn.LayerNorm(HIDDEN), weight(vocabulary, HIDDEN)

        def forward(self, x, targets):
            logits = F.linear(shared(self.norm(x)), self.logits).view(-1, vocabulary)
            if share == 1:
                return F.cross_entropy(logits, targets.view(-1))
            # Every rank has a part of the vocabulary (Megatron's vocab_parallel_cross_entropy).
            largest = logits.detach().max(-1).values
            dist.all_reduce(largest, dist.ReduceOp.MAX)
            exponents = added((logits - largest[:, None]).exp().sum(-1))
            own = targets.view(-1) - rank * vocabulary
            inside = (own >= 0) & (own < vocabulary)
            picked = logits.gather(-1, own.clamp(0, vocabulary - 1)[:, None])[:, 0] - largest
            return (exponents.log() - added(picked * inside)).mean()

    stages = RANKS if way == "pipeline" else 1
    stage = rank if way == "pipeline" else 0
    layers = torch.nn.ModuleList(Block() for _ in range(LAYERS // stages))
    parts = torch.nn.ModuleDict({"layers": layers})
    if stage == 0:
        parts["embedding"] = Embedding()
    if stage == stages - 1:
        parts["head"] = Head()
    optimizer = torch.optim.Adam(parts.parameters())
    micro_batches = GLOBAL_BATCH // MICRO_BATCH // (RANKS if way == "data" else 1)
    tokens = torch.randint(VOCABULARY, (MICRO_BATCH, SEQUENCE))
    sent = []

    def forward():
        if stage == 0:
            x = begin = parts["embedding"](tokens)
        else:
            begin = torch.empty(MICRO_BATCH, SEQUENCE, HIDDEN)
            dist.recv(begin, stage - 1)
            x = begin.requires_grad_()
        for layer in layers:
            x = layer(x)
        if stage < stages - 1:
            sent.append((dist.isend(x.detach(), stage + 1), x))
            return begin, x
        return begin, parts["head"](x, tokens)

    def backward(begin, end):
        gradient = None
        if stage < stages - 1:
            gradient = torch.empty_like(end)
            dist.recv(gradient, stage + 1)
        end.backward(gradient)
        if stage > 0:
            sent.append((dist.isend(begin.grad, stage - 1), begin))

    def step():
        waiting, ahead = [], stages - 1 - stage
        for micro_batch in range(micro_batches + ahead):
            if micro_batch < micro_batches:
                waiting.append(forward())
            if micro_batch >= ahead:
                backward(*waiting.pop(0))
        for request, _ in sent:
            request.wait()
        sent.clear()
        if way == "data":
            for parameter in parts.parameters():
                dist.all_reduce(parameter.grad)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)

    times = []
    for _ in range(2 + STEPS):
        dist.barrier()
        begin = time.perf_counter()
        step()
        dist.barrier()
        times.append(time.perf_counter() - begin)
    if rank == 0:
        print(statistics.median(times[2:]))
    dist.barrier()


def python_with_torch():
    """This Python, or Debian's: whichever has PyTorch with gloo."""
    for python in filter(None, (sys.executable, shutil.which("python3", path="/usr/bin"))):
        tried = subprocess.run([python, "-c", "import torch.distributed as d; assert d.is_gloo_available()"], capture_output=True, check=False)
        if tried.returncode == 0:
            return python
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--train", choices=list(WAYS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        train(options.train)
        return 0
    if options.program is None:
        parser.error("--program is missing")
    python = python_with_torch()
    if python is None:
        print("skipped: PyTorch with gloo is missing (Debian's python3-torch)")
        return SKIPPED
    return experiment(options.program.resolve(), python, options.rounds)


if __name__ == "__main__":
    sys.exit(main())
