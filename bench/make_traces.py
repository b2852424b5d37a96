#!/usr/bin/env python3
"""Makes large Chakra traces and the files beside them, to measure how long `armilla astra2` takes to read them.

    bench/make_traces.py FOLDER [--kind chain] [--ranks 8] [--nodes 1000000]

chain: computations of 1 to 7 us, each waiting for the one before: the case on which ASTRA-sim 2.x was measured
(bench/README.md). training: layers of three computations and an all-reduce with the attributes that Chakra's
converters write, each node waiting for two. Every rank's file differs from the others in the duration of its first
node, so that none is read for another. Written as wire format; no library is needed.
"""

import argparse
import json
import pathlib

COMPUTE, COLLECTIVE = 4, 7


def varint(value):
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def content(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def attribute(name, field, value):
    encoded = content(field, value) if isinstance(value, bytes) else number(field, value)
    return content(10, content(1, name.encode()) + encoded)


ON_DEVICE = attribute("is_cpu_op", 27, 0)


def chain_node(rank, i):
    duration = 1 + i % 7 + (rank if i == 0 else 0)
    waits = content(5, varint(i - 1)) if i > 0 else b""
    return (number(1, i), f"c{i}".encode(), number(3, COMPUTE) + waits + number(7, duration) + ON_DEVICE)


EXCHANGE = (ON_DEVICE + attribute("comm_type", 9, 0) + attribute("comm_size", 9, 1 << 20) + attribute("pg_name", 29, b"0"))
WORK = ON_DEVICE + attribute("rf_id", 9, 77) + attribute("num_ops", 9, 123456789) + attribute("tensor_size", 9, 1 << 24)
PHASES = ("forward", "input_gradient", "weight_gradient", "all_reduce")
LAYERS = 96


def training_node(rank, i):
    exchanges = i % 4 == 3
    waits = content(5, varint(i - 1) + (varint(i - 4) if i >= 4 else b"")) if i > 0 else b""
    name = f"layers.{i // 4 % LAYERS}.{PHASES[i % 4]}".encode()
    duration = 20 + i * 2654435761 % 200 + (rank if i == 0 else 0)
    kind, rest = (COLLECTIVE, EXCHANGE) if exchanges else (COMPUTE, WORK)
    return number(1, i), name, number(3, kind) + waits + number(6, i * 100) + number(7, duration) + rest


def record(rank, i, node):
    first, name, rest = node(rank, i)
    data = (first if i > 0 else b"") + content(2, name) + rest
    return varint(len(data)) + data


def write_traces(folder, ranks, nodes, node):
    others = bytearray()
    for i in range(1, nodes):
        others += record(0, i, node)
    metadata = content(1, b"1.0.0")
    for rank in range(ranks):
        with open(folder / f"trace.{rank}.et", "wb") as file:
            file.write(varint(len(metadata)) + metadata + record(rank, 0, node))
            file.write(others)


def write_configuration(folder, ranks):
    system = {
        "scheduling-policy": "LIFO",
        "endpoint-delay": 10,
        "active-chunks-per-dimension": 1,
        "preferred-dataset-splits": 1,
        "all-reduce-implementation": ["ring"],
        "all-gather-implementation": ["ring"],
        "reduce-scatter-implementation": ["ring"],
        "all-to-all-implementation": ["direct"],
        "collective-optimization": "localBWAware",
        "local-mem-bw": 1600,
        "boost-mode": 0,
    }
    (folder / "system.json").write_text(json.dumps(system, indent=2) + "\n")
    network = f"topology: [ Ring ]\nnpus_count: [ {ranks} ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n"
    (folder / "network.yml").write_text(network)
    (folder / "memory.json").write_text('{"memory-type": "NO_MEMORY_EXPANSION"}\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--kind", choices=["chain", "training"], default="chain")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    node = chain_node if options.kind == "chain" else training_node
    write_traces(options.folder, options.ranks, options.nodes, node)
    write_configuration(options.folder, options.ranks)


if __name__ == "__main__":
    main()
