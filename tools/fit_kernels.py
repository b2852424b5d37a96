#!/usr/bin/env python3
"""Fits the rates of machines/*.yaml to tables of measured kernels and collectives (docs/validation.md).

Matrix products (src/cost/device/kernels.h): launch, ramp, efficiencies of tiles and of memory, per device and type.
Fused attention (likewise): forward, backward and ramp, and the range of flops, per device and type.
Collectives (src/ir/machine.h, CollectiveProtocol): efficiency of the links, rate of the own block, and launch, step and
share of each protocol, from all but all-to-alls; launch and share of SendRecv from these.
All minimise the mean of |log(predicted / measured)| by a pattern search from several starts, over a sample that is
the same in every run; the residuals that are printed are over all rows.

    tools/fit_kernels.py products kernels.csv --device h100 --type bf16xbf16 --peak 989.4e12 --processors 132 --bandwidth 3.35e12
    tools/fit_kernels.py products kernels.csv --device H100 --type fp8xfp8 --peak 1979e12 --processors 132 --bandwidth 3.35e12
        --cast-launch 2e-6 --fixed launch=5e-6 --fixed memory=0.9 --fixed ramp=0 --fixed tile_128=0.98 --fixed tile_64=0.6
    tools/fit_kernels.py attention kernels.csv --device H200 --type bfloat16 --peak 989.4e12 --processors 132 --launch 5e-6
    tools/fit_kernels.py collectives collectives.csv --system H100-SXM --bandwidth 450e9 --in-switch-from 5

Exit code: 0; 2 for wrong arguments and when no row is left to fit.
"""

import argparse
import csv
import math
import random
import re
import sys

TILES = [(256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64)]
SPLITS = (1, 2, 4, 8)
LEAST_SPLIT_DEPTH = 256
SAMPLE = 300
ROUNDS = 60
SWITCH_LATENCY = 2 * 936e-9  # of a message over the switch of machines/clusters/*.yaml
NCCL_EXPECTS = ((6.6e-6, 0.6e-6, 0.38), (14e-6, 1.9e-6, 0.92), (8.4e-6, 3.4e-6, 1.0))  # as src/sim/plan/library.cc
LONGEST_LL_MESSAGE, LL_CHANNEL = 16384, 5e9  # of all-to-alls (likewise)


def search(parameters, shares, loss):
    """Pattern search; parameters whose index is in `shares` stay at most 1. Returns (loss, parameters)."""
    best, step = loss(parameters), [0.4] * len(parameters)
    for _ in range(ROUNDS):
        for i in range(len(parameters)):
            for factor in (1 + step[i], 1 / (1 + step[i])):
                tried = list(parameters)
                tried[i] *= factor
                if i in shares:
                    tried[i] = min(1.0, tried[i])
                value = loss(tried)
                if value < best:
                    best, parameters, step[i] = value, tried, step[i] * 1.2
                    break
            else:
                step[i] *= 0.6
        if max(step) < 0.005:
            break
    return best, parameters


def report(errors):
    errors = sorted(errors)
    absolute = sorted(abs(e) for e in errors)
    middle = len(errors) // 2
    return (f"{len(errors)} rows: MAPE {100 * sum(absolute) / len(errors):.1f} %, median {100 * absolute[middle]:.1f} %, "
            f"bias {100 * errors[middle]:+.1f} %")


def product_time(p, args, m, n, k, count, element):
    launch, ramp, efficiency, tile_128, tile_64, memory = p
    best = math.inf
    for tm, tn in TILES:
        area = tm * tn
        share = efficiency
        if area < 256 * 128:
            share *= tile_128 if area >= 128 * 128 else tile_64 if area >= 128 * 64 else tile_64 * tile_64 / tile_128
        tiles = -(-m // tm) * -(-n // tn) * count
        for splits in SPLITS:
            if splits > 1 and (tiles * splits > args.processors or k // splits < LEAST_SPLIT_DEPTH):
                break
            waves = -(-tiles * splits // args.processors)
            time = waves * 2 * area * (k / splits + ramp) * args.processors / (args.peak * share)
            if splits > 1:
                time += 8 * splits * m * n * count / (args.bandwidth * memory)
            best = min(best, time)
    moved = count * ((m * k + n * k) * element + 2 * m * n)
    cast = args.cast_launch + 3 * count * m * k / (args.bandwidth * memory) if args.cast_launch else 0
    return launch + max(best, moved / (args.bandwidth * memory)) + cast


def named_number(text):
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=VALUE")
    return name, float(value)


def fit_products(args):
    element = 1 if "8" in args.type else 2
    rows = []
    with open(args.table, newline="") as table:
        for r in csv.DictReader(table):
            if r["op"] != "gemm" or r["tier"] == "C" or not r["time_us"]:
                continue
            is_of_device = re.search(rf"\b{re.escape(args.device)}", r["gpu"], re.IGNORECASE)  # B200 is no GB200
            if not is_of_device or args.type not in r["dtype"] or args.source not in r["source"]:
                continue
            rows.append((int(r["m"]), int(r["n"]), int(r["k"]), int(r["batch"] or 1), float(r["time_us"]) * 1e-6))
    if not rows:
        return 2
    sample = random.Random(1).sample(rows, min(SAMPLE, len(rows)))

    p = {"launch": 4e-6, "ramp": 200, "efficiency": 0.8, "tile_128": 0.9, "tile_64": 0.75, "memory": 0.85}
    for name, value in args.fixed:
        if name not in p:
            print(f"fit_kernels: --fixed {name}: the parameters are {', '.join(p)}", file=sys.stderr)
            return 2
        p[name] = value
    fitted = [name for name in p if name not in dict(args.fixed)]

    def all_with(values):
        return list((p | dict(zip(fitted, values))).values())

    def loss(values):
        tried = all_with(values)
        return sum(abs(math.log(product_time(tried, args, *r[:4], element) / r[4])) for r in sample) / len(sample)

    shares = {i for i, name in enumerate(fitted) if name not in ("launch", "ramp")}
    p = all_with(search([p[name] for name in fitted], shares, loss)[1])
    print(f"launch {p[0] * 1e6:.1f} us, ramp {p[1]:.0f}, efficiency {p[2]:.3f}, tile_128 {p[3]:.2f}, tile_64 {p[4]:.2f}, "
          f"memory {p[5]:.2f}")
    print(report([product_time(p, args, *r[:4], element) / r[4] - 1 for r in rows]))
    return 0


def number_after(text, key):
    found = re.search(re.escape(key) + r"(\d+)", text)
    return int(found.group(1)) if found else 0


class Attention:
    """A row of the table: its flops as src/study/validate/row_study.cc counts them, and what else its time depends on."""

    def __init__(self, row):
        self.backward = "bwd" in row["op"]
        self.seconds = float(row["time_us"]) * 1e-6
        self.queries, keys, self.head = int(row["seq_q"]), int(row["seq_kv"]), int(row["head_dim"])
        values = max(number_after(row["notes"], "head_dim_v="), number_after(row["notes"], "v_head_dim=")) or self.head
        narrow, window = "8" in row["dtype"], number_after(row["notes"], "window=")
        seen = (keys + 1) // 2 if "causal" in row["op"] else keys
        if window and not (narrow and self.backward):
            seen = min(window, seen)
        self.keys, self.count = seen, int(row["batch"] or 1) * int(row["heads"])
        forward = 2 * self.count * self.queries * seen * (self.head + values)
        # Backward makes the scores again, and two products of each of the two.
        self.flops = forward * 2 + forward * self.head // (self.head + values) if self.backward else forward
        self.size = (self.head + values) / 2
        self.narrow = narrow

    def time(self, p, args):
        forward, backward, ramp = p
        used = self.head / (-(-self.head // 32) * 32)
        ratio = self.size / used / 128
        of_head = ratio ** (0.7 if self.narrow else 0.4 if ratio < 1 else 0.1) * used
        unseen = 350 if self.keys >= self.queries else 350 + (256 if 2 * self.keys < self.queries else 128)
        tasks = self.count * max(1.0, self.queries / 128)
        share = (backward if self.backward else forward) * of_head
        computed = self.flops * (1 + unseen / self.keys) / (args.peak * share)
        return args.launch + computed * (1 + ramp * args.processors / tasks)


def short(dtype):
    """A type's name, which some sources write out."""
    return {"bfloat16": "bf16", "float16": "fp16"}.get(dtype, dtype)


def fit_attention(args):
    rows = []
    types = [short(dtype) for dtype in args.type.split(",")]
    with open(args.table, newline="") as table:
        for r in csv.DictReader(table):
            if not r["op"].startswith("attention_") or r["tier"] == "C" or not r["time_us"]:
                continue
            if args.device == r["gpu"] and short(r["dtype"]) in types and args.source in r["source"]:
                rows.append(Attention(r))
    if not rows:
        return 2

    def loss(p):
        return sum(abs(math.log(r.time(p, args) / r.seconds)) for r in rows) / len(rows)

    _, p = min(search([0.6, 0.5, ramp], {0, 1}, loss) for ramp in (0.5, 3))
    flops = [r.flops for r in rows]
    print(f"forward {p[0]:.3f}, backward {p[1]:.3f}, ramp {p[2]:.1f}, range [{min(flops):.1e}, {max(flops):.1e}]")
    for name, some in (("forward", [r for r in rows if not r.backward]), ("backward", [r for r in rows if r.backward])):
        if some:
            print(name, report([r.time(p, args) / r.seconds - 1 for r in some]))
    return 0


def sent(kind, ranks):
    return {"all_reduce": 2 * (ranks - 1) / ranks}.get(kind, (ranks - 1) / ranks)


def library_steps(kind, ranks):
    return {"all_reduce": min(2 * (ranks - 1), 4 * math.log2(ranks))}.get(kind, ranks - 1)


def schedule_steps(kind, ranks):
    if kind == "all_to_all":
        return 1
    one_way = math.log2(ranks) if ranks & (ranks - 1) == 0 else ranks - 1
    return 2 * one_way if kind == "all_reduce" else one_way


def taken_by_nccl(bandwidth, kind, ranks, size):
    """Number of the protocol that takes least by NCCL's own figures (src/graph/tuning.cc), of `bandwidth` in use."""
    steps, wire = 2 * (ranks - 1) if kind == "all_reduce" else ranks - 1, sent(kind, ranks) * size / bandwidth
    expected = [launch + steps * step + wire / share for launch, step, share in NCCL_EXPECTS]
    return expected.index(min(expected))


def ring_time(p, bandwidth, kind, ranks, size):
    """p: rate of the own block, efficiency, then launch, step and share of LL, LL128 and Simple."""
    wire = sent(kind, ranks) * size / (bandwidth * p[1])
    launch, step, share = p[2 + 3 * taken_by_nccl(bandwidth * p[1], kind, ranks, size):][:3]
    return schedule_steps(kind, ranks) * SWITCH_LATENCY + wire / share + launch + step * library_steps(kind, ranks) + size / ranks / p[0]


def exchange_time(p, q, bandwidth, kind, ranks, size):
    """Of an all-to-all; q: launch and share of the protocol of its longer messages."""
    wire, message = sent(kind, ranks) * size / (bandwidth * p[1]), size / ranks
    by_ll = message <= LONGEST_LL_MESSAGE
    beyond = p[2] + p[3] + message / LL_CHANNEL if by_ll else q[0] + wire * (1 / q[1] - 1)
    return SWITCH_LATENCY + wire + beyond + message / p[0]


def fit_collectives(args):
    rows = []
    with open(args.table, newline="") as table:
        for r in csv.DictReader(table):
            row = r["collective"], int(r["gpus"]), int(r["bytes"]), float(r["time_us"] or 0) * 1e-6
            in_switch = args.in_switch_from and row[0] == "all_reduce" and row[1] >= args.in_switch_from
            if args.system in r["system"] and r["nodes"] == "1" and r["tier"] != "C" and row[3] > 0 and row[0] != "send_recv":
                if args.source in r["source"] and not in_switch:
                    rows.append(row)
    exchanges, rings = [r for r in rows if r[0] == "all_to_all"], [r for r in rows if r[0] != "all_to_all"]
    if not rings:
        return 2
    one_mib = 1 << 20
    rng = random.Random(1)

    def sample(of):
        large, small = [r for r in of if r[2] >= one_mib], [r for r in of if r[2] < one_mib]
        return rng.sample(large, min(SAMPLE // 2, len(large))) + rng.sample(small, min(SAMPLE // 2, len(small)))

    def loss(time, some):
        return sum(abs(math.log(time(*r[:3]) / r[3])) for r in some) / len(some)

    some, shares = sample(rings), {1, 4, 7, 10}
    starts = ([0.8, 5e-6, 4e-7, 0.3, 10e-6, 1e-6, 0.8, 20e-6, 1e-6, 1.0], [0.8, 4e-6, 6e-7, 0.4, 15e-6, 5e-7, 0.9, 10e-6, 3e-6, 1.0])
    _, p = min(search([2 * args.bandwidth] + start, shares, lambda p: loss(lambda *r: ring_time(p, args.bandwidth, *r), some))
               for start in starts)
    print(f"own_block {p[0] / 1e9:.0f} GB/s, efficiency {p[1]:.3f}")
    for name, i in (("LL", 2), ("LL128", 5), ("Simple", 8)):
        print(f"{name}: launch {p[i] * 1e6:.1f} us, step {p[i + 1] * 1e6:.2f} us, share {p[i + 2]:.3f}")
    q = [p[2], 1.0]
    if exchanges:
        some = sample(exchanges)
        _, q = search([14e-6, 0.9], {1}, lambda q: loss(lambda *r: exchange_time(p, q, args.bandwidth, *r), some))
        print(f"SendRecv: launch {q[0] * 1e6:.1f} us, share {q[1]:.3f}")

    def error(r):
        time = exchange_time(p, q, args.bandwidth, *r[:3]) if r[0] == "all_to_all" else ring_time(p, args.bandwidth, *r[:3])
        return time / r[3] - 1

    for name, some in (("from 1 MiB", [r for r in rows if r[2] >= one_mib]), ("below", [r for r in rows if r[2] < one_mib])):
        if some:
            print(name, report([error(r) for r in some]))
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_subparsers(required=True)
    products = what.add_parser("products")
    products.add_argument("table")
    products.add_argument("--device", required=True)
    products.add_argument("--type", required=True)
    products.add_argument("--source", default="")
    products.add_argument("--peak", type=float, required=True)
    products.add_argument("--processors", type=int, required=True)
    products.add_argument("--bandwidth", type=float, required=True)
    products.add_argument("--cast-launch", type=float, default=0,
                          help="of a kernel before each that casts its first operand from 16 to 8 bits, in seconds")
    products.add_argument("--fixed", type=named_number, action="append", default=[], metavar="NAME=VALUE",
                          help="a parameter that is not fitted, such as launch=5e-6; may be given again")
    products.set_defaults(run=fit_products)
    attention = what.add_parser("attention")
    attention.add_argument("table")
    attention.add_argument("--device", required=True, help="as the table's column gpu has it")
    attention.add_argument("--type", required=True, help="as the column dtype has it; several, such as fp8,mxfp8, are fitted as one")
    attention.add_argument("--source", default="")
    attention.add_argument("--peak", type=float, required=True)
    attention.add_argument("--processors", type=int, required=True)
    attention.add_argument("--launch", type=float, default=5e-6, help="of the device, in seconds")
    attention.set_defaults(run=fit_attention)
    collectives = what.add_parser("collectives")
    collectives.add_argument("table")
    collectives.add_argument("--system", required=True, help="what the table's column system contains")
    collectives.add_argument("--source", default="", help="likewise the column source")
    collectives.add_argument("--bandwidth", type=float, required=True)
    collectives.add_argument("--in-switch-from", type=int, default=0, help="all-reduces among so many and more reduce in the switch: left out")
    collectives.set_defaults(run=fit_collectives)
    args = parser.parse_args()
    return args.run(args)


if __name__ == "__main__":
    sys.exit(main())
