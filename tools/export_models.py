#!/usr/bin/python3
"""Exports the model zoo (models/*.onnx) from torchvision, without weights, and verifies what is committed.

Needs Debian's python3-torch, python3-torchvision and python3-onnx; no network: architectures only.

    tools/export_models.py                            write models/*.onnx (the same bytes on every run)
    tools/export_models.py resnet50 vgg16             only these
    tools/export_models.py --check                    verify the files that are there (needs only onnx)
    tools/export_models.py --with-weights vgg16 FILE  one model with its random weights inside the file

What a file holds: the forward graph of training (batch norms are operators of their own, dropout is gone),
a symbolic leading dimension "batch", the shape of every tensor, and every floating-point weight as ONNX
external data in NAME.weights, a file that is not shipped. models/README.md describes the choices per model.
"""

import argparse
import dataclasses
import io
import math
import os
import pathlib
import sys
import tempfile
import types
from typing import Callable, Optional

import onnx
from onnx import TensorProto, external_data_helper, helper, shape_inference

MODELS = pathlib.Path(__file__).resolve().parent.parent / "models"
OPSET = 17
BATCH = "batch"


@dataclasses.dataclass(frozen=True)
class Entry:
    parameters: int  # published by torchvision; for bert-large by Hugging Face transformers (BertModel)
    gmacs: float  # multiply-accumulates of one sample, in units of 1e9: torchvision's "GFLOPS" to two digits
    build: Callable
    image: Optional[int] = 224  # side of the square input; None: token ids


def from_torchvision(name, **options):
    def build():
        import torchvision

        return getattr(torchvision.models, name)(weights=None, **options)

    return build


def build_vit():
    """torchvision's vit_b_16 with batch and heads kept apart.

    torchvision merges batch and heads into one dimension (batch * 12) and computes the patch grid from the
    image's runtime size; ONNX cannot name the first, and the second only adds shape arithmetic. Parameters
    and mathematics are the same.
    """
    import torch
    import torchvision

    class Attention(torch.nn.Module):
        def __init__(self, original):
            super().__init__()
            self.in_proj_weight = original.in_proj_weight
            self.in_proj_bias = original.in_proj_bias
            self.out_proj = original.out_proj
            self.heads = original.num_heads

        def forward(self, query, key, value, need_weights):
            qkv = torch.nn.functional.linear(query, self.in_proj_weight, self.in_proj_bias)
            return self.out_proj(attend(*qkv.split(self.out_proj.in_features, dim=-1), self.heads)), None

    def process_input(self, image):
        patches = (self.image_size // self.patch_size) ** 2
        return self.conv_proj(image).reshape(-1, self.hidden_dim, patches).permute(0, 2, 1)

    model = torchvision.models.vit_b_16(weights=None)
    for block in model.encoder.layers:
        block.self_attention = Attention(block.self_attention)
    model._process_input = types.MethodType(process_input, model)
    return model


def attend(query, key, value, heads, bias=None):
    """Scaled dot-product attention over [batch, sequence, hidden]; `bias` is added to the scores."""
    sequence, hidden = int(query.shape[1]), int(query.shape[2])
    size = hidden // heads
    query, key, value = (
        x.reshape(-1, sequence, heads, size).transpose(1, 2) for x in (query, key, value)
    )
    scores = query.matmul(key.transpose(-1, -2)) / math.sqrt(size)
    if bias is not None:
        scores = scores + bias
    return scores.softmax(dim=-1).matmul(value).transpose(1, 2).reshape(-1, sequence, hidden)


def build_bert_large():
    """The encoder of Devlin et al. 2019 (BERT-large), section 3, with its pooler and no task head."""
    import torch
    from torch import nn

    layers, hidden, heads, feed_forward = 24, 1024, 16, 4096
    vocabulary, sequence, segments = 30522, 512, 2

    class Embeddings(nn.Module):
        def __init__(self):
            super().__init__()
            self.word = nn.Embedding(vocabulary, hidden)
            self.position = nn.Embedding(sequence, hidden)
            self.token_type = nn.Embedding(segments, hidden)
            self.norm = nn.LayerNorm(hidden, eps=1e-12)
            self.register_buffer("position_ids", torch.arange(sequence).unsqueeze(0))

        def forward(self, tokens, segment_ids):
            return self.norm(
                self.word(tokens) + self.token_type(segment_ids) + self.position(self.position_ids)
            )

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.query = nn.Linear(hidden, hidden)
            self.key = nn.Linear(hidden, hidden)
            self.value = nn.Linear(hidden, hidden)
            self.output = nn.Linear(hidden, hidden)

        def forward(self, x, bias):
            return self.output(attend(self.query(x), self.key(x), self.value(x), heads, bias))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = Attention()
            self.attention_norm = nn.LayerNorm(hidden, eps=1e-12)
            self.intermediate = nn.Linear(hidden, feed_forward)
            self.activation = nn.GELU()
            self.output = nn.Linear(feed_forward, hidden)
            self.output_norm = nn.LayerNorm(hidden, eps=1e-12)

        def forward(self, x, bias):
            x = self.attention_norm(x + self.attention(x, bias))
            return self.output_norm(x + self.output(self.activation(self.intermediate(x))))

    class Bert(nn.Module):
        def __init__(self):
            super().__init__()
            self.embeddings = Embeddings()
            self.encoder = nn.ModuleList([Block() for _ in range(layers)])
            self.pooler = nn.Linear(hidden, hidden)

        def forward(self, input_ids, token_type_ids, attention_mask):
            # A masked position gets a score so low that its softmax weight is zero.
            mask = attention_mask.unsqueeze(1).unsqueeze(2).to(torch.float32)
            bias = (1.0 - mask) * -10000.0
            x = self.embeddings(input_ids, token_type_ids)
            for block in self.encoder:
                x = block(x, bias)
            return x, torch.tanh(self.pooler(x[:, 0]))

    return Bert()


ZOO = {
    "alexnet": Entry(61_100_840, 0.71, from_torchvision("alexnet")),
    "bert-large": Entry(335_141_888, 167.50, build_bert_large, image=None),
    "densenet121": Entry(7_978_856, 2.83, from_torchvision("densenet121")),
    # torchvision publishes the parameters with the auxiliary classifier and the arithmetic without it (5.71).
    "inception_v3": Entry(
        27_161_264, 5.72, from_torchvision("inception_v3", init_weights=False), image=299
    ),
    "mobilenet_v2": Entry(3_504_872, 0.30, from_torchvision("mobilenet_v2")),
    "resnet101": Entry(44_549_160, 7.80, from_torchvision("resnet101")),
    "resnet152": Entry(60_192_808, 11.51, from_torchvision("resnet152")),
    "resnet18": Entry(11_689_512, 1.81, from_torchvision("resnet18")),
    "resnet34": Entry(21_797_672, 3.66, from_torchvision("resnet34")),
    "resnet50": Entry(25_557_032, 4.09, from_torchvision("resnet50")),
    "squeezenet": Entry(1_235_496, 0.35, from_torchvision("squeezenet1_1")),
    "vgg11": Entry(132_863_336, 7.61, from_torchvision("vgg11")),
    "vgg11_bn": Entry(132_868_840, 7.61, from_torchvision("vgg11_bn")),
    "vgg13": Entry(133_047_848, 11.31, from_torchvision("vgg13")),
    "vgg13_bn": Entry(133_053_736, 11.31, from_torchvision("vgg13_bn")),
    "vgg16": Entry(138_357_544, 15.47, from_torchvision("vgg16")),
    "vgg16_bn": Entry(138_365_992, 15.47, from_torchvision("vgg16_bn")),
    "vgg19": Entry(143_667_240, 19.63, from_torchvision("vgg19")),
    "vgg19_bn": Entry(143_678_248, 19.63, from_torchvision("vgg19_bn")),
    "vit_b_16": Entry(86_567_656, 17.56, build_vit),
}


def example_inputs(entry):
    import torch

    if entry.image is not None:
        return {"input": torch.zeros(2, 3, entry.image, entry.image)}
    ids = torch.zeros(2, 512, dtype=torch.int64)
    return {"input_ids": ids, "token_type_ids": ids, "attention_mask": torch.ones_like(ids)}


def export_graph(name):
    """The graph as torch exports it, and the module with its weights; weights are still graph inputs."""
    import torch

    entry = ZOO[name]
    torch.manual_seed(0)
    module = entry.build()
    # Only the root is in training mode. That turns on inception_v3's auxiliary classifier, and makes the
    # exporter take parameters for equal when they are the same tensor, not when they hold the same numbers
    # (all freshly initialised norms do). The children's evaluation mode removes dropout and keeps batch norms
    # single-output operators.
    module.eval()
    module.training = True
    counted = sum(p.numel() for p in module.parameters())
    require(name, counted == entry.parameters, f"{counted} parameters, published {entry.parameters}")

    inputs = example_inputs(entry)
    if name == "bert-large":
        outputs = ["last_hidden_state", "pooler_output"]
    else:
        outputs = ["output", "aux_output"] if name == "inception_v3" else ["output"]
    file = io.BytesIO()
    torch.onnx.export(
        module,
        tuple(inputs.values()),
        file,
        export_params=False,
        training=torch.onnx.TrainingMode.PRESERVE,
        do_constant_folding=False,
        opset_version=OPSET,
        input_names=list(inputs),
        output_names=outputs,
        dynamic_axes={tensor: {0: BATCH} for tensor in [*inputs, *outputs]},
    )
    return onnx.load_model_from_string(file.getvalue()), module


def readable(name):
    """From "/layer1/layer1.0/conv1/Conv" to "layer1.0.conv1/Conv": the module's path, then the operator."""
    if not name.startswith("/"):
        return name
    *scopes, operator = name[1:].split("/")
    path = []
    for scope in scopes:
        # torch names a child of a Sequential or ModuleList with its parent's name in front.
        if path and scope.startswith(path[-1] + "."):
            path[-1] = scope
        else:
            path.append(scope)
    return "/".join(filter(None, [".".join(path), operator]))


def rename(model):
    graph = model.graph
    tensors = {t for node in graph.node for t in [*node.input, *node.output] if t}
    nodes = [node.name for node in graph.node]
    for names in (tensors, nodes):
        require(graph.name, len({readable(n) for n in names}) == len(names), "two names fall together")
    for node in graph.node:
        node.name = readable(node.name)
        node.doc_string = ""
        node.input[:] = [readable(t) for t in node.input]
        node.output[:] = [readable(t) for t in node.output]


def move_weights(model, name, module):
    """Makes initializers of the graph inputs that are weights, the floating-point ones as external data."""
    state = module.state_dict()
    graph = model.graph
    offset = 0
    for value in list(graph.input):
        if value.name not in state:
            continue
        graph.input.remove(value)
        weight = state[value.name].numpy()
        tensor = graph.initializer.add()
        tensor.name = value.name
        tensor.data_type = value.type.tensor_type.elem_type
        tensor.dims.extend(weight.shape)
        if not state[value.name].is_floating_point():
            tensor.raw_data = weight.tobytes()
            continue
        tensor.data_location = TensorProto.EXTERNAL
        for key, text in (("location", f"{name}.weights"), ("offset", offset), ("length", weight.nbytes)):
            tensor.external_data.add(key=key, value=str(text))
        offset += weight.nbytes


def shapes_for(model, batch):
    """Name -> (element type, shape) of every tensor that nodes produce, for a fixed batch."""
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    for value in [*fixed.graph.input, *fixed.graph.value_info]:
        value.type.tensor_type.shape.dim[0].dim_value = batch
    # The declared output shapes contradict a fixed batch; inference fills them in.
    for value in fixed.graph.output:
        value.type.tensor_type.ClearField("shape")
    inferred = shape_inference.infer_shapes(fixed, check_type=True, strict_mode=True, data_prop=True).graph
    return {
        value.name: (
            value.type.tensor_type.elem_type,
            [d.dim_value if d.HasField("dim_value") else None for d in value.type.tensor_type.shape.dim],
        )
        for value in [*inferred.value_info, *inferred.output]
        if value.type.tensor_type.HasField("shape")
    }


def annotate_shapes(model, name):
    """Writes every tensor's shape into the file: dimensions that follow the batch are called "batch"."""
    graph = model.graph
    dims_of = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    for node in graph.node:
        # libonnx cannot follow the shape that torch computes for `expand`; the only one is vit_b_16's class
        # token, one per sample.
        if node.op_type == "Expand":
            dims = [BATCH, *dims_of[node.input[0]][1:]]
            graph.value_info.append(helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, dims))
    two, three = shapes_for(model, 2), shapes_for(model, 3)
    outputs = [value.name for value in graph.output]
    typed = {}
    for node in graph.node:
        for tensor in node.output:
            require(name, tensor in two and tensor in three, f"no shape for {tensor}")
            element, shape = two[tensor]
            dims = []
            for a, b in zip(shape, three[tensor][1]):
                known = a is not None and (a == b or (a, b) == (2, 3))
                require(name, known, f"{tensor}: dimension {a} or {b}")
                dims.append(a if a == b else BATCH)
            typed[tensor] = helper.make_tensor_value_info(tensor, element, dims)
    del graph.value_info[:]
    del graph.output[:]
    graph.output.extend(typed[tensor] for tensor in outputs)
    graph.value_info.extend(value for tensor, value in typed.items() if tensor not in outputs)


def export(name, inline=False):
    model, module = export_graph(name)
    rename(model)
    move_weights(model, name, module)
    annotate_shapes(model, name)
    if inline:
        state = module.state_dict()
        for tensor in model.graph.initializer:
            tensor.ClearField("data_location")
            tensor.ClearField("external_data")
            tensor.raw_data = state[tensor.name].numpy().tobytes()
    model.graph.name = name
    model.doc_string = ""
    model.graph.doc_string = ""
    return model


def require(name, holds, message):
    if not holds:
        sys.exit(f"export_models.py: {name}: {message}")


def count_macs(graph):
    """Multiply-accumulates of convolutions and matrix products for one sample."""
    shapes = {t.name: list(t.dims) for t in graph.initializer}
    for value in [*graph.input, *graph.value_info, *graph.output]:
        shapes[value.name] = [d.dim_value or 1 for d in value.type.tensor_type.shape.dim]
    total = 0
    for node in graph.node:
        out = math.prod(shapes[node.output[0]])
        if node.op_type == "Conv":
            total += out * math.prod(shapes[node.input[1]][1:])
        elif node.op_type == "Gemm":
            # torch writes every Gemm as A times a transposed B.
            total += out * shapes[node.input[1]][1]
        elif node.op_type == "MatMul":
            total += out * shapes[node.input[0]][-1]
    return total


def check_shapes(name, graph):
    known = [*graph.input, *graph.output, *graph.value_info]
    names = {value.name for value in known}
    for node in graph.node:
        for tensor in node.output:
            require(name, tensor in names, f"no shape for {tensor}")
    for value in known:
        for dim in value.type.tensor_type.shape.dim:
            require(name, dim.dim_value > 0 or dim.dim_param == BATCH, f"{value.name}: a dimension is open")
    for value in [*graph.input, *graph.output]:
        leading = value.type.tensor_type.shape.dim[0]
        require(name, leading.dim_param == BATCH, f"{value.name}: the batch is not symbolic")


def check_weights(name, weights):
    """Every weight is external and they fill the data file without gaps; returns its size."""
    end = 0
    for tensor in weights:
        require(name, tensor.data_location == TensorProto.EXTERNAL, f"{tensor.name} is inside the file")
        info = external_data_helper.ExternalDataInfo(tensor)
        placed = (info.location, info.offset, info.length)
        expected = (f"{name}.weights", end, 4 * math.prod(tensor.dims))
        require(name, placed == expected, f"{tensor.name}: external data {placed}, expected {expected}")
        end += info.length
    return end


def check_with_onnx(path, data_file, data_size):
    """onnx.checker with full type checks; it wants a data file, and a sparse one of its size will do."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, data_file), "wb") as file:
            file.truncate(data_size)
        copy = pathlib.Path(folder, path.name)
        copy.write_bytes(path.read_bytes())
        onnx.checker.check_model(str(copy), full_check=True)


def check(name, path):
    """What the rest of Armilla relies on; ends the program with a message where it does not hold."""
    entry = ZOO[name]
    graph = onnx.load(path, load_external_data=False).graph

    # Statistics of a batch norm are its fourth and fifth input; nothing learns them.
    buffers = {t for node in graph.node if node.op_type == "BatchNormalization" for t in node.input[3:5]}
    weights = [t for t in graph.initializer if t.data_type == TensorProto.FLOAT]
    parameters = sum(math.prod(t.dims) for t in weights if t.name not in buffers)
    require(name, parameters == entry.parameters, f"{parameters} parameters, published {entry.parameters}")
    check_shapes(name, graph)
    gmacs = count_macs(graph) / 1e9
    require(name, f"{gmacs:.2f}" == f"{entry.gmacs:.2f}", f"{gmacs:.4f} GMACs, expected {entry.gmacs:.2f}")
    check_with_onnx(path, f"{name}.weights", check_weights(name, weights))
    print(
        f"{name:14} {parameters:>12,} parameters {gmacs:8.3f} GMAC/sample {len(graph.node):5} nodes"
        f" {path.stat().st_size:>8,} bytes"
    )


def main():
    parser = argparse.ArgumentParser(description="Exports and verifies the model zoo (models/*.onnx).")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: all of {' '.join(ZOO)}")
    parser.add_argument(
        "--output", type=pathlib.Path, default=MODELS, metavar="FOLDER", help="another folder than models/"
    )
    parser.add_argument("--check", action="store_true", help="verify the files there, write nothing")
    parser.add_argument("--with-weights", nargs=2, metavar=("NAME", "FILE"), help="one model, weights inside")
    options = parser.parse_args()

    names = [options.with_weights[0]] if options.with_weights else options.names or list(ZOO)
    for name in names:
        require(name, name in ZOO, f"no such model; known: {' '.join(ZOO)}")
    if options.with_weights:
        model = export(names[0], inline=True)
        pathlib.Path(options.with_weights[1]).write_bytes(model.SerializeToString(deterministic=True))
        return
    if options.check and not options.names:
        found = {path.stem for path in options.output.glob("*.onnx")}
        require("models", found == set(ZOO), f"files and table differ: {sorted(found ^ set(ZOO))}")
    for name in names:
        path = options.output / f"{name}.onnx"
        if not options.check:
            path.write_bytes(export(name).SerializeToString(deterministic=True))
        require(name, path.exists(), f"{path} is missing")
        check(name, path)


if __name__ == "__main__":
    main()
