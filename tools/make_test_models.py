#!/usr/bin/python3
"""Makes tests/data/onnx/: small models that exercise the ONNX reader.

Debian's python3-torch and python3-onnx are all it needs. The exported ones are real exports of PyTorch modules
(their parameter counts, printed here, stand in src/read/onnx/onnx_test.cc); the others are built node by node, for
what PyTorch 1.13 cannot export.

    tools/make_test_models.py [FOLDER]
"""

import os
import sys
import warnings

import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

warnings.filterwarnings("ignore")
FOLDER = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../tests/data/onnx")
FLOAT, INT64, INT8, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT8, TensorProto.BOOL


def export(name, module, *inputs, training=False, **options):
    torch.manual_seed(1)
    for parameter in module.parameters():  # equal initial values would be merged by the exporter
        nn.init.normal_(parameter)
    module.train(training)
    mode = torch.onnx.TrainingMode.TRAINING if training else torch.onnx.TrainingMode.EVAL
    path = os.path.join(FOLDER, name + ".onnx")
    torch.onnx.export(module, inputs, path, training=mode, **options)
    print(f"{name}: {sum(p.numel() for p in module.parameters())} parameters, {os.path.getsize(path)} bytes")


class Windows(nn.Module):
    """Grouped, dilated, depthwise, one- and three-dimensional, and transposed convolutions."""

    def __init__(self):
        super().__init__()
        self.grouped = nn.Conv2d(4, 8, 3, padding=2, dilation=2, groups=2)
        self.depthwise = nn.Conv2d(8, 8, (3, 1), stride=2, groups=8, bias=False)
        self.up = nn.ConvTranspose2d(8, 6, 4, stride=2, padding=1, output_padding=1, groups=2)
        self.line = nn.Conv1d(6, 5, 3)
        self.cube = nn.Conv3d(1, 2, 2, bias=False)

    def forward(self, x):
        x = torch.relu(self.grouped(x))
        x = self.up(self.depthwise(x))
        x = nn.functional.max_pool2d(x, 3, 2, ceil_mode=True)
        line = self.line(x.flatten(2))
        return line, self.cube(x.unsqueeze(1)).mean()


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.group_norm = nn.GroupNorm(2, 8)
        self.expand = nn.Conv2d(8, 8, 1, groups=4)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x = nn.functional.relu6(self.norm(self.conv(x)))
        x = nn.functional.hardswish(self.expand(self.group_norm(x)))
        x = nn.functional.interpolate(x, scale_factor=2.0)
        x = nn.functional.adaptive_avg_pool2d(x, 1)
        return self.head(self.drop(torch.flatten(x, 1)))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 5, num_layers=2, bidirectional=True)
        self.gru = nn.GRU(10, 4, batch_first=True)
        self.rnn = nn.RNN(4, 3)

    def forward(self, x):
        x, _ = self.lstm(x)
        x, _ = self.gru(x)
        return self.rnn(x)[0]


class Contraction(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2, 4, 3))

    def forward(self, q, k):
        scores = torch.einsum("bhid,bhjd->bhij", q, k)
        mixed = torch.einsum("bhid,hdo->bio", q, self.weight)
        return scores, mixed


class Tied(nn.Module):
    """A decoder whose output projection is its embedding table."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(11, 8)
        self.places = nn.Embedding(6, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        length = ids.shape[1]
        mask = torch.triu(torch.full((length, length), float("-inf")), diagonal=1)
        x = self.tokens(ids) + self.places(torch.arange(length, device=ids.device))
        return self.head(self.blocks(x, mask))


class VisionTokens(nn.Module):
    """A learned token and learned positions, which enter by Concat, Expand and Add."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, stride=4)
        self.token = nn.Parameter(torch.zeros(1, 1, 8))
        self.places = nn.Parameter(torch.zeros(1, 5, 8))
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = nn.LayerNorm(8)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.places
        y = self.norm(x)
        return x + self.attention(y, y, y, need_weights=False)[0]


def exported():
    image = torch.zeros(2, 3, 8, 8)
    export("windows", Windows(), torch.zeros(2, 4, 9, 9))
    for opset in (9, 11, 13, 16):
        export(f"cnn_opset{opset}", Cnn(), image, opset_version=opset)
    export("cnn_train", Cnn(), image, training=True, do_constant_folding=False, opset_version=13)
    export("cnn_unfolded", Cnn(), image, do_constant_folding=False, opset_version=13)
    export("cnn_dynamic", Cnn(), image, opset_version=13, input_names=["image"], dynamic_axes={"image": {0: "batch"}})
    export("cnn_open", Cnn(), image, opset_version=13, input_names=["image"],
           dynamic_axes={"image": {0: "batch", 2: "height", 3: "width"}})
    export("cnn_inputs", Cnn(), image, opset_version=9, keep_initializers_as_inputs=True)
    export("recurrent", Recurrent(), torch.zeros(7, 2, 6), opset_version=13)
    export("einsum", Contraction(), torch.zeros(2, 2, 5, 4), torch.zeros(2, 2, 6, 4), opset_version=13)
    export("tied", Tied(), torch.zeros(2, 6, dtype=torch.long), training=True, do_constant_folding=False, opset_version=14,
           input_names=["ids"], dynamic_axes={"ids": {0: "batch"}})
    export("vision_tokens", VisionTokens(), image, training=True, opset_version=13, input_names=["image"],
           dynamic_axes={"image": {0: "n"}})


def value(name, shape, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def weight(name, shape, dtype=FLOAT):
    """An initializer whose payload lies in a file that does not exist."""
    tensor = TensorProto(name=name, data_type=dtype, dims=shape, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="absent.bin")
    return tensor


def numbers(name, values, dtype=INT64):
    return helper.make_tensor(name, dtype, [len(values)], values)


def build(name, nodes, inputs, outputs, initializers=(), infos=(), opset=17, functions=(), domains=()):
    graph = helper.make_graph(nodes, name, inputs, outputs, list(initializers), value_info=list(infos))
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, 1) for d in domains]
    model = helper.make_model(graph, opset_imports=imports, functions=list(functions))
    model.ir_version = 8
    with open(os.path.join(FOLDER, name + ".onnx"), "wb") as file:
        file.write(model.SerializeToString())


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, **attributes)


def quantized():
    build("qdq", [
        node("QuantizeLinear", ["x", "s", "z"], ["xq"]), node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
        node("DequantizeLinear", ["w", "ws", "wz"], ["wd"]), node("Transpose", ["wd"], ["wt"], perm=[1, 0]),
        node("DequantizeLinear", ["b", "s"], ["bd"]), node("Gemm", ["xd", "wt", "bd"], ["y"])],
        [value("x", [4, 6])], [value("y", [4, 5])],
        [weight("w", [5, 6], INT8), weight("b", [5], TensorProto.INT32), weight("s", []), weight("ws", []),
         weight("z", [], TensorProto.UINT8), weight("wz", [], INT8)], opset=13)
    build("qlinear", [
        node("QLinearConv", ["x", "s", "z", "w", "s", "wz", "s", "z", "b"], ["c"], kernel_shape=[3, 3]),
        node("ConvInteger", ["x", "w"], ["i"]),
        node("MatMulInteger", ["m", "w2"], ["o"])],
        [value("x", [1, 2, 5, 5], TensorProto.UINT8), value("m", [3, 4], TensorProto.UINT8)],
        [value("c", None, TensorProto.UINT8), value("i", None, TensorProto.INT32), value("o", None, TensorProto.INT32)],
        [weight("w", [4, 2, 3, 3], INT8), weight("b", [4], TensorProto.INT32), weight("s", []),
         weight("z", [], TensorProto.UINT8), weight("wz", [], INT8), weight("w2", [4, 7], INT8)])


def newer():
    """Operators that changed or appeared after opset 17, without value_info."""
    build("opset23", [
        node("ReduceMean", ["x", "axes"], ["mean"], keepdims=1), node("Sub", ["x", "mean"], ["centred"]),
        node("RMSNormalization", ["centred", "scale"], ["n"], axis=-1),
        node("Split", ["n"], ["q", "k", "v"], axis=2, num_outputs=3),
        node("Attention", ["q", "k", "v"], ["a"], q_num_heads=2, kv_num_heads=2),
        node("Gelu", ["a"], ["g"], approximate="tanh"),
        node("Pad", ["g", "pads", "", "pad_axes"], ["p"]),
        node("GroupNormalization", ["p", "gs", "gb"], ["y"], num_groups=2)],
        [value("x", ["batch", 6, 24])], [value("y", None)],
        [numbers("axes", [-1]), weight("scale", [24]), numbers("pads", [0, 2]), numbers("pad_axes", [-1]),
         weight("gs", [6]), weight("gb", [6])], opset=23)
    build("opset23_unknown", [node("Relu", ["x"], ["r"]), node("Wobble", ["r"], ["y"])],
          [value("x", [2, 3])], [value("y", None)], opset=23)


def contrib():
    build("microsoft", [
        node("EmbedLayerNormalization", ["ids", "", "words", "places", "", "g", "b"], ["e", "m"],
             domain="com.microsoft"),
        node("Attention", ["e", "wqkv", "bqkv"], ["a"], num_heads=2, domain="com.microsoft"),
        node("MatMul", ["a", "wo"], ["p"]),
        node("SkipLayerNormalization", ["e", "p", "g2", "b2"], ["s"], domain="com.microsoft"),
        node("FusedMatMul", ["s", "wf"], ["f"], transB=1, domain="com.microsoft"),
        node("BiasGelu", ["f", "bf"], ["y"], domain="com.microsoft")],
        [value("ids", [2, 5], TensorProto.INT32)], [value("y", None)],
        [weight("words", [10, 8]), weight("places", [6, 8]), weight("g", [8]), weight("b", [8]),
         weight("wqkv", [8, 24]), weight("bqkv", [24]), weight("wo", [8, 8]), weight("g2", [8]), weight("b2", [8]),
         weight("wf", [12, 8]), weight("bf", [12])], domains=["com.microsoft"])
    build("custom", [node("MatMul", ["x", "w"], ["h"]), node("Swirl", ["h", "c"], ["s"], domain="my.ops"),
                     node("Swirl", ["s", "c"], ["y"], domain="my.ops")],
          [value("x", [2, 4])], [value("y", [2, 3])], [weight("w", [4, 3]), weight("c", [3, 3])],
          [value("s", [2, 3])], domains=["my.ops"])


def nested():
    branch = [helper.make_graph([node("MatMul", ["x", w], [o])], o, [], [value(o, [2, n])])
              for w, o, n in (("w1", "small", 4), ("w2", "large", 4))]
    branch[1].node.insert(0, node("MatMul", ["x", "w3"], ["extra"]))
    build("if", [node("ReduceSum", ["x"], ["sum"], keepdims=0), node("Greater", ["sum", "zero"], ["c"]),
                 node("If", ["c"], ["y"], then_branch=branch[0], else_branch=branch[1])],
          [value("x", [2, 4])], [value("y", None)],
          [weight("w1", [4, 4]), weight("w2", [4, 4]), weight("w3", [4, 9]), helper.make_tensor("zero", FLOAT, [], [0])])
    body = helper.make_graph([node("MatMul", ["h_in", "w"], ["m"]), node("Tanh", ["m"], ["h_out"]),
                              node("Identity", ["go"], ["go_out"])], "body",
                             [value("i", [], INT64), value("go", [], BOOL), value("h_in", [2, 4])],
                             [value("go_out", [], BOOL), value("h_out", [2, 4]), value("m", [2, 4])])
    loop = [node("Loop", ["trips", "", "x"], ["h", "all"], body=body)]
    build("loop", loop, [value("x", [2, 4])], [value("h", None), value("all", None)],
          [helper.make_tensor("trips", INT64, [], [5]), weight("w", [4, 4])])
    build("loop_data", loop, [value("x", [2, 4]), value("trips", [], INT64)], [value("h", None), value("all", None)],
          [weight("w", [4, 4])])
    scan = helper.make_graph([node("Concat", ["s_in", "x_in"], ["c"], axis=-1), node("MatMul", ["c", "w"], ["s_out"]),
                              node("Relu", ["s_out"], ["o"])], "scan", [value("s_in", None), value("x_in", None)],
                             [value("s_out", None), value("o", None)])
    build("scan", [node("Scan", ["s", "x"], ["last", "all"], body=scan, num_scan_inputs=1)],
          [value("s", [2, 4]), value("x", [7, 2, 3])], [value("last", None), value("all", None)], [weight("w", [7, 4])])
    sequence = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, [2, 4]))
    build("scan_sequence", [node("Scan", ["s", "x"], ["last", "all"], body=scan, num_scan_inputs=1)],
          [helper.make_value_info("s", sequence), value("x", [7, 2, 3])], [value("last", None), value("all", None)],
          [weight("w", [7, 4])])
    leaky = node("LeakyRelu", ["m"], ["b"])
    leaky.attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    block = helper.make_function("my.ops", "Block", ["a", "w"], ["b"], [node("MatMul", ["a", "w"], ["m"]), leaky],
                                 [helper.make_opsetid("", 17)], ["slope"])
    build("function", [node("Block", ["x", "w1"], ["h"], domain="my.ops", slope=0.1),
                       node("Block", ["h", "w2"], ["y"], domain="my.ops", slope=0.2)],
          [value("x", [3, 4])], [value("y", [3, 6])], [weight("w1", [4, 5]), weight("w2", [5, 6])],
          functions=[block], domains=["my.ops"])


def weights_in_disguise():
    """Weights from Constant nodes, behind Transpose and Cast, used twice; and constants that are no weights."""
    random = numpy_helper.from_array(torch.arange(24.0).reshape(4, 6).numpy(), "c")
    build("disguised", [
        node("Constant", [], ["c"], value=random), node("MatMul", ["x", "c"], ["h"]),
        node("Transpose", ["c"], ["ct"], perm=[1, 0]), node("MatMul", ["h", "ct"], ["k"]),
        node("Cast", ["half"], ["full"], to=FLOAT), node("MatMul", ["k", "full"], ["l"]),
        node("Constant", [], ["eighth"], value_float=0.125), node("Mul", ["l", "eighth"], ["m"]),
        node("Clip", ["m", "low", "high"], ["n"]), node("Add", ["n", "bias"], ["o"]),
        node("Where", ["mask", "o", "low"], ["p"]),
        node("Reshape", ["p", "shape"], ["y"])],
        [value("x", [3, 4])], [value("y", None)],
        [weight("half", [4, 5], TensorProto.FLOAT16), weight("low", []), weight("high", []), weight("bias", [5]),
         weight("mask", [3, 5], BOOL), numbers("shape", [5, -1])])
    build("low_rank", [node("MatMul", ["a", "b"], ["ab"]), node("Add", ["w", "ab"], ["sum"]),
                       node("MatMul", ["x", "sum"], ["y"])],
          [value("x", [3, 8])], [value("y", [3, 8])], [weight("w", [8, 8]), weight("a", [8, 2]), weight("b", [2, 8])])


def faulty():
    build("cycle", [node("Add", ["x", "b"], ["a"], name="first"), node("Relu", ["a"], ["b"], name="second"),
                    node("Relu", ["b"], ["y"])], [value("x", [2])], [value("y", [2])])
    build("undefined", [node("Relu", ["image_"], ["y"])], [value("image", [2])], [value("y", [2])])
    build("twice", [node("Relu", ["x"], ["y"]), node("Tanh", ["x"], ["y"])], [value("x", [2])], [value("y", [2])])
    build("unsorted", [node("Relu", ["h"], ["y"]), node("Tanh", ["x"], ["h"])], [value("x", [2])], [value("y", [2])])
    build("huge", [node("MatMul", ["x", "w"], ["y"])], [value("x", [2**31, 2**31])], [value("y", None)],
          [weight("w", [2**31, 2**31])])
    build("negative", [node("Relu", ["x"], ["y"])], [value("x", [-1, 3])], [value("y", None)])
    build("stale", [node("Relu", ["x"], ["h"]), node("Relu", ["h"], ["y"])], [value("x", [4, 3])], [value("y", None)],
          infos=[value("h", [1, 3])])


if __name__ == "__main__":
    os.makedirs(FOLDER, exist_ok=True)
    exported()
    quantized()
    newer()
    contrib()
    nested()
    weights_in_disguise()
    faulty()
