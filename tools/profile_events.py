#!/usr/bin/env python3
"""Measures the events of a training job (`armilla events`) with PyTorch, on a CUDA device or on the CPU.

    armilla events STUDY --missing --csv events.csv
    python3 tools/profile_events.py events.csv -o times.csv                          computations
    torchrun --nproc-per-node 8 tools/profile_events.py events.csv -o times.csv      and communications
    armilla profile import times.db times.csv

Every event is warmed up and repeated; its time is the median, its spread the distance between the quartiles, by CUDA
events or by the clock. What is run for an event:

    matrix products       C = A B of the listed sizes; several of one event one after the other, count > 1 as a batch
    fused attention       scaled_dot_product_attention where this PyTorch has it, forward or backward; else its products
    norms                 layer_norm, forward or backward, over rows of 1024 elements
    softmax               of rows of 1024 elements
    optimizer             Adam in place over as many elements as the listed bytes are passes of four fp32 tensors
    everything else       an element-wise kernel that reads and writes the listed bytes

Communications are measured among the first ranks of the group's size, those beyond a node with ranks of several nodes;
messages as the smaller of the times of sender and receiver, since the other one also waits. Groups of more ranks than
there are get the time among as many as there are, at most 8, times 2(N-1)/N over the same of those (DistSim, Lu et al.
2023, section 4.2). Loads and stores to remote memory and what the passes gave a time themselves are left out.

Exit code: 0, 1 when some event could not be measured (each is named), 2 for wrong input.
"""

import argparse
import csv
import os
import statistics
import sys
import time

TYPES = {"fp64": "float64", "fp32": "float32", "tf32": "float32", "bf16": "bfloat16", "fp16": "float16"}
NORM_ROW = 1024
MOST_MEASURED = 8  # ranks of a group; more are scaled
FIELDS = ["event", "name", "phase", "shapes", "type", "flops", "bytes", "ranks", "inter_node", "device", "repeats", "spread_s",
          "time_s", "source"]


def products_of(text):
    """[(m, n, k, count)] of "2 x 64x32x16, 8x8x8"."""
    found = []
    for part in filter(None, text.split(", ")):
        count, _, sizes = part.rpartition(" x ")
        m, n, k = (int(size) for size in sizes.split("x"))
        found.append((m, n, k, int(count or 1)))
    return found


def ring_factor(ranks):
    return 2 * (ranks - 1) / ranks


class Bench:
    def __init__(self, torch, args):
        self.torch, self.args = torch, args
        self.cuda = args.torch_device.startswith("cuda")
        self.device = torch.device(args.torch_device)

    def tensor(self, *shape, dtype):
        values = self.torch.rand(shape, device=self.device, dtype=self.torch.float32) if dtype.is_floating_point else \
            self.torch.ones(shape, device=self.device)
        return values.to(dtype)

    def dtype(self, name):
        if name not in TYPES:
            raise ValueError(f"PyTorch has no products in {name} that are called alike on all devices")
        self.torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
        return getattr(self.torch, TYPES[name])

    def synchronize(self):
        if self.cuda:
            self.torch.cuda.synchronize()

    def once(self, run):
        """Seconds of one call."""
        if self.cuda:
            begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            run()
            end.record()
            end.synchronize()
            return begin.elapsed_time(end) * 1e-3
        begin = time.perf_counter()
        run()
        return time.perf_counter() - begin

    def times(self, run):
        for _ in range(self.args.warmup):
            run()
        self.synchronize()
        return [self.once(run) for _ in range(self.args.repeats)]

    def computation(self, event):
        """What to call for the event."""
        torch, kernel = self.torch, event.get("kernel") or "any"
        dtype, products, size = self.dtype(event["type"]), products_of(event["shapes"]), int(event["bytes"])
        if products and kernel.startswith(("attention", "flash-2")) and hasattr(torch.nn.functional, "scaled_dot_product_attention"):
            return self.attention(products, dtype, "backward" in kernel)
        if products:
            return self.products(products, dtype)
        element = torch.empty((), dtype=dtype).element_size()
        if event["phase"] == "optimizer":
            return self.optimizer(size)
        if kernel.startswith("norm"):
            return self.norm(size // element, dtype, "backward" in kernel)
        elements = max(1, size // (2 * element))  # each is read and written
        if "softmax" in event["name"] and event["phase"] == "forward":
            scores = self.tensor(max(1, elements // NORM_ROW), NORM_ROW, dtype=dtype)
            return lambda: torch.softmax(scores, -1)
        source, target = self.tensor(elements, dtype=dtype), self.tensor(elements, dtype=dtype)
        return lambda: torch.mul(source, 2, out=target)

    def products(self, products, dtype):
        torch, calls = self.torch, []
        for m, n, k, count in products:
            shape = (count,) if count > 1 else ()
            a, b, c = (self.tensor(*shape, *size, dtype=dtype) for size in ((m, k), (k, n), (m, n)))
            calls.append((torch.bmm if count > 1 else torch.mm, a, b, c))

        def run():
            for product, a, b, c in calls:
                product(a, b, out=c)
        return run

    def attention(self, products, dtype, backward):
        # Of the scores: queries x keys x head, or its gradient queries x head x keys; half of the keys where a mask hides the others.
        m, n, k, count = products[0]
        head, keys = min(n, k), max(n, k)
        causal = 2 * keys <= m + 2
        keys = m if causal else keys
        q, key, value = (self.tensor(1, count, length, head, dtype=dtype) for length in (m, keys, keys))
        attend = self.torch.nn.functional.scaled_dot_product_attention
        if not backward:
            return lambda: attend(q, key, value, is_causal=causal)
        for one in (q, key, value):
            one.requires_grad_(True)
        out = attend(q, key, value, is_causal=causal)
        gradient = self.torch.ones_like(out)
        return lambda: out.backward(gradient, retain_graph=True)

    def norm(self, elements, dtype, backward):
        # Forward reads and writes every element, backward reads the input and the gradient besides.
        rows = max(1, elements // ((3 if backward else 2) * NORM_ROW))
        x = self.tensor(rows, NORM_ROW, dtype=dtype)
        weight, bias = (self.tensor(NORM_ROW, dtype=dtype) for _ in range(2))
        norm = self.torch.nn.functional.layer_norm
        if not backward:
            return lambda: norm(x, (NORM_ROW,), weight, bias)
        for one in (x, weight, bias):
            one.requires_grad_(True)
        out = norm(x, (NORM_ROW,), weight, bias)
        gradient = self.torch.ones_like(out)
        return lambda: out.backward(gradient, retain_graph=True)

    def optimizer(self, size):
        # Adam reads parameter, gradient and two moments, and writes all but the gradient: seven passes of 4 bytes.
        elements = max(1, size // 28)
        p, g, first, second = (self.tensor(elements, dtype=self.torch.float32) for _ in range(4))

        def run():
            first.mul_(0.9).add_(g, alpha=0.1)
            second.mul_(0.999).addcmul_(g, g, value=0.001)
            p.addcdiv_(first, second.sqrt().add_(1e-8), value=-0.001)
        return run


class Group:
    """Communication among processes that torchrun started."""

    def __init__(self, bench):
        import torch.distributed as distributed
        self.bench, self.dist = bench, distributed
        distributed.init_process_group("nccl" if bench.cuda else "gloo")
        self.rank, self.size = distributed.get_rank(), distributed.get_world_size()
        self.local = int(os.environ.get("LOCAL_WORLD_SIZE", self.size))
        self.groups = {}

    def members(self, ranks, inter_node):
        """Ranks of a group of that size; all call this in the same order."""
        if inter_node and self.size == self.local:
            raise ValueError("needs processes on several nodes")
        step = self.local if inter_node and ranks <= self.size // self.local else 1
        chosen = tuple(range(0, ranks * step, step))
        if chosen not in self.groups:
            self.groups[chosen] = self.dist.new_group(list(chosen))
        return chosen, self.groups[chosen]

    def measure(self, event):
        """(times, factor) on every rank."""
        name, size, ranks = event["name"], int(event["bytes"]), int(event["ranks"])
        among = min(ranks, self.size, MOST_MEASURED if ranks > MOST_MEASURED else ranks)
        if among < 2:
            raise ValueError("needs at least two processes: start it with torchrun")
        members, group = self.members(2 if name == "send" else among, event["inter_node"] == "true")
        run = self.call(name, max(1, size // 4), members, group)
        times = []
        self.dist.barrier()
        if self.rank in members:
            for repeat in range(self.bench.args.warmup + self.bench.args.repeats):
                self.dist.barrier(group=group)
                self.bench.synchronize()
                seconds = self.bench.once(run)
                if repeat >= self.bench.args.warmup:
                    times.append(seconds)
        gathered = [None] * self.size
        self.dist.all_gather_object(gathered, times)
        # Whoever begins first also waits: the smallest of an occurrence is the event's own.
        return [min(of_one) for of_one in zip(*(one for one in gathered if one))], ring_factor(ranks) / ring_factor(among)

    def call(self, name, elements, members, group):
        torch, dist, count = self.bench.torch, self.dist, len(members)
        data = self.bench.tensor(elements, dtype=torch.float32)
        parts = list(self.bench.tensor(max(1, elements // count) * count, dtype=torch.float32).chunk(count))
        if name == "send":
            return (lambda: dist.send(data, members[1])) if self.rank == members[0] else (lambda: dist.recv(data, members[0]))
        if name == "all-reduce":
            return lambda: dist.all_reduce(data, group=group)
        if name == "broadcast":
            return lambda: dist.broadcast(data, members[0], group=group)
        if name == "reduce":
            return lambda: dist.reduce(data, members[0], group=group)
        if name == "all-gather":
            part = self.bench.tensor(parts[0].numel(), dtype=torch.float32)
            return lambda: dist.all_gather(parts, part, group=group)
        if name == "reduce-scatter":
            part = self.bench.tensor(parts[0].numel(), dtype=torch.float32)
            return lambda: dist.reduce_scatter(part, parts, group=group)
        if name == "all-to-all":
            out = [torch.empty_like(part) for part in parts]
            return lambda: dist.all_to_all(out, parts, group=group)
        raise ValueError(f"'{name}' is not measured")


def row_of(event, args, times, factor=1.0):
    ordered = sorted(times)
    quarter = len(ordered) // 4
    row = {field: event.get(field, "") for field in FIELDS}
    row |= {"device": args.device or event.get("device", ""), "repeats": len(times), "source": "measured",
            "time_s": f"{statistics.median(ordered) * factor:.12f}",
            "spread_s": f"{(ordered[-1 - quarter] - ordered[quarter]) * factor:.12f}"}
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("events", help="the CSV of armilla events")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the CSV that armilla profile import takes")
    parser.add_argument("--device", default="", metavar="NAME", help="what machines call the device (default: as the events say)")
    parser.add_argument("--torch-device", default="", metavar="NAME", help="default: cuda where there is one, else cpu")
    parser.add_argument("--threads", type=int, default=0, metavar="N", help="of the CPU (default: PyTorch's)")
    parser.add_argument("--warmup", type=int, default=3, metavar="N")
    parser.add_argument("--repeats", type=int, default=11, metavar="N")
    parser.add_argument("--together", action="store_true",
                        help="all processes measure computations at once: for devices that share a host's cores and memory")
    parser.add_argument("--only", choices=["computation", "communication"], help="events of one kind")
    args = parser.parse_args()
    if args.repeats < 1 or args.warmup < 0:
        parser.error("at least one repeat, and no fewer than 0 to warm up")
    try:
        import torch
    except ImportError:
        sys.exit("profile_events.py: error: PyTorch is missing (python3-torch, or pip's torch)")
    local_rank = os.environ.get("LOCAL_RANK", "0")
    args.torch_device = args.torch_device or (f"cuda:{local_rank}" if torch.cuda.is_available() else "cpu")
    if args.torch_device.startswith("cuda"):
        torch.cuda.set_device(args.torch_device)
    if args.threads > 0:
        torch.set_num_threads(args.threads)
    try:
        with open(args.events, newline="", encoding="utf-8") as table:
            events = [event for event in csv.DictReader(table) if args.only in (None, event["event"])]
    except (OSError, KeyError) as error:
        print(f"profile_events.py: error: {args.events} is no table of events: {error}", file=sys.stderr)
        return 2
    bench = Bench(torch, args)
    group = Group(bench) if "RANK" in os.environ else None
    rows, failed = [], 0
    for event in events:
        communication = event["event"] == "communication"
        if event["name"] in ("load", "store") or event["source"] == "given":
            continue
        try:
            if communication and group is None:
                raise ValueError("needs processes: start it with torchrun")
            if communication:
                rows.append(row_of(event, args, *group.measure(event)))
            elif group is None or group.rank == 0 or args.together:
                if args.together and group is not None:
                    group.dist.barrier()
                rows.append(row_of(event, args, bench.times(bench.computation(event))))
        except (ValueError, RuntimeError) as error:
            failed += 1
            message = str(error).splitlines()[0]
            print(f"profile_events.py: {event['name']} {event['shapes'] or event['bytes']}: not measured: {message}", file=sys.stderr)
    if group is None or group.rank == 0:
        with open(args.output, "w", newline="", encoding="utf-8") as table:
            writer = csv.DictWriter(table, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    if group is not None:
        group.dist.barrier()
        group.dist.destroy_process_group()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
