// Files that are no usable model: one message each, whole; and whatever the fuzzer has found is replayed.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/source_path_testing.h"
#include "read/onnx/builder_testing.h"
#include "read/read.h"

namespace armilla {
namespace {

const std::string kRoot = source_path("");

std::string onnx_error(const std::string& bytes, const ModelOptions& options = {}) {
  try {
    read_onnx({bytes.data(), bytes.size()}, "m.onnx", options);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string bytes_of(const std::string& name) {
  const MappedFile file(kRoot + "/tests/data/onnx/" + name + ".onnx");
  return {file.bytes().data(), file.bytes().size()};
}

struct Fault {
  const char* name;
  std::string bytes;
  std::string message;
};
class OnnxFault : public testing::TestWithParam<Fault> {};

TEST_P(OnnxFault, HasOneClearMessage) {
  EXPECT_EQ(onnx_error(GetParam().bytes), GetParam().message);
}

const std::string kExportHint = "\n  hint: export the model with torch.onnx.export, tf2onnx or the like";
const std::string kConvertHint =
    "\n  hint: export the model to ONNX (torch.onnx.export, tf2onnx), or give its config.json";
const std::string kDamaged = "\n  hint: the file is damaged or no ONNX model; export or download it again";

INSTANTIATE_TEST_SUITE_P(
    Bytes, OnnxFault,
    testing::Values(
        Fault{"empty", "", "m.onnx: is empty, not an ONNX model"},
        Fault{"text", "layers:\n  - conv\n", "m.onnx: is YAML of an unknown kind, not an ONNX model"},
        Fault{"gzip", std::string("\x1f\x8b\x08\0\0\0", 6),
              "m.onnx: is compressed with gzip, not an ONNX model\n  hint: unpack it first: gunzip FILE"},
        Fault{
            "pytorch", std::string("PK\x03\x04zip", 7),
            "m.onnx: is a zip archive, perhaps a PyTorch checkpoint or a spreadsheet, not an ONNX model\n  "
            "hint: a "
            "spreadsheet: save its table as CSV; a checkpoint: export the model to ONNX (torch.onnx.export, "
            "tf2onnx), or give its config.json"},
        Fault{"hdf5", "\x89HDF\r\n\x1a\n",
              "m.onnx: is an HDF5 file, perhaps a Keras model, not an ONNX model" + kConvertHint},
        Fault{"lfs_pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
              "m.onnx: is a Git LFS pointer in place of the file, not an ONNX model\n  hint: fetch the file "
              "itself: git lfs "
              "pull"},
        Fault{"no_graph", std::string("\x08\x08", 2),
              "m.onnx: has no graph, so it is not an ONNX model" + kExportHint},
        Fault{"no_nodes", std::string("\x08\x08\x3a\x00", 4),
              "m.onnx: its graph has no operators" + kExportHint},
        Fault{"bad_wire_type", std::string("\x08\x08\x3b\x01\x02", 5),
              "m.onnx: byte 2: field 7 has the unsupported wire type 3" + kDamaged},
        Fault{"wrong_wire_type", std::string("\x08\x08\x38\x01", 4),
              "m.onnx: byte 2: field 7 has wire type 0 where 2 belongs" + kDamaged},
        Fault{"field_zero", std::string("\x00\x01\x02\x03", 4),
              "m.onnx: byte 0: no protobuf field starts here" + kDamaged},
        Fault{"giant_length", std::string("\x08\x08\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 12),
              "m.onnx: byte 2: field 7 needs 9223372036854775807 bytes, but only 0 are left" + kDamaged}),
    [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Graphs, OnnxFault,
    testing::Values(
        Fault{"cycle", bytes_of("cycle"),
              "m.onnx: the graph has a cycle: node 0 'first' (Add) -> node 1 'second' (Relu) -> node 0 "
              "'first' (Add)"},
        Fault{"undefined", bytes_of("undefined"),
              "m.onnx: node 0 (Relu): uses 'image_', which nothing defines\n  hint: did you mean 'image'?"},
        Fault{"twice", bytes_of("twice"),
              "m.onnx: tensor 'y' is produced twice: by node 0 (Relu) and by node 1 (Tanh)"},
        Fault{"huge", bytes_of("huge"),
              "m.onnx: initializer 'w': sizes overflow 64 bits\n  hint: check the dimensions"},
        Fault{"loop_data", bytes_of("loop_data"),
              "m.onnx: node 0 (Loop): its trip count depends on data\n  hint: give it, for example --dim "
              "trips=16"},
        Fault{
            "unknown_shape", bytes_of("opset23_unknown"),
            "m.onnx: node 1 (Wobble): the shape of its output 'y' cannot be inferred: Armilla has no shape "
            "rule for "
            "this operator\n  hint: put the shape into the file (run ONNX shape inference on it, for example "
            "onnxruntime's symbolic_shape_infer) and name dimensions that depend on data with --dim "
            "NAME=VALUE"},
        Fault{"open_dimensions", bytes_of("cnn_open"),
              "m.onnx: these dimensions have no value: 'height' (dimension 2 of input 'image'), 'width' "
              "(dimension 3 of "
              "input 'image')\n  hint: give each one, for example --dim height=128"},
        Fault{"shapes_do_not_fit",
              OnnxBuilder()
                  .input("x", {2, 3})
                  .weight("w", {4, 5})
                  .node("MatMul", {"x", "w"}, {"y"})
                  .output("y")
                  .bytes(),
              "m.onnx: node 0 (MatMul): cannot multiply the shapes 2x3 and 4x5"},
        Fault{"zero_stride",
              OnnxBuilder()
                  .input("x", {1, 3, 8, 8})
                  .weight("w", {4, 3, 3, 3})
                  .node("Conv", {"x", "w"}, {"y"}, {{"strides", std::vector<std::int64_t>{0, 1}}})
                  .output("y")
                  .bytes(),
              "m.onnx: node 0 (Conv): has strides of 0"}),
    [](const auto& test) { return test.param.name; });

TEST(OnnxOptions, UnknownDimensionsAreRefused) {
  EXPECT_EQ(onnx_error(bytes_of("cnn_open"), {{{"heigth", 16}}, {}}),
            "--dim heigth=16: the model has no dimension 'heigth'\n  hint: did you mean 'height'?");
  EXPECT_EQ(onnx_error(bytes_of("cnn_train"), {{{"batch", 16}}, {}}),
            "--dim batch=16: the model has no symbolic dimensions\n  hint: leave --dim out; --batch scales "
            "a fixed batch");
  EXPECT_EQ(onnx_error(bytes_of("cnn_dynamic"), {{{"batch", 0}}, {}}),
            "--dim batch=0: this dimension is the batch, which must be at least 1");
  EXPECT_EQ(onnx_error(bytes_of("cnn_dynamic"), {{}, -4}), "--batch -4: a batch must be at least 1");
  EXPECT_EQ(onnx_error(bytes_of("cnn_dynamic"), {{{"batch", 2}}, 4}),
            "a batch of 4: contradicts dimension batch=2, which is the batch\n  hint: give one of the two");
}

TEST(OnnxFaults, EveryTruncationIsRefused) {
  for (const char* name : {"cnn_opset13", "loop", "function"}) {
    const std::string whole = bytes_of(name);
    ASSERT_EQ(onnx_error(whole), "no error");
    // Behind the graph lie only opset imports and functions, which a cut may leave out unnoticed.
    const std::size_t graph_end = whole.size() * 9 / 10;
    for (std::size_t size = 0; size < graph_end; size += 7) {
      EXPECT_NE(onnx_error(whole.substr(0, size)), "no error") << name << " cut to " << size;
    }
  }
}

TEST(OnnxFaults, FunctionsThatMultiplyAreStopped) {
  // f0 calls f1 twice, f1 calls f2 twice ...: 2^30 operators from a file of a few kB.
  std::string model;
  protozero::pbf_writer writer(model);
  writer.add_int64(1, 8);
  const auto call = [](protozero::pbf_writer& in, protozero::pbf_tag_type field, int callee, const char* from,
                       const char* to) {
    protozero::pbf_writer node(in, field);
    node.add_string(1, from);
    node.add_string(2, to);
    node.add_string(4, "f" + std::to_string(callee));
    node.add_string(7, "d");
  };
  {
    protozero::pbf_writer graph(writer, 7);
    call(graph, 1, 0, "x", "y");
    protozero::pbf_writer input(graph, 11);
    input.add_string(1, "x");
    protozero::pbf_writer type(input, 2);
    protozero::pbf_writer tensor(type, 1);
    tensor.add_int32(1, 1);
    tensor.add_message(2, std::string());
  }
  constexpr int kLast = 30;
  for (int i = 0; i <= kLast; ++i) {
    protozero::pbf_writer function(writer, 25);
    function.add_string(1, "f" + std::to_string(i));
    function.add_string(4, "a");
    function.add_string(5, "c");
    if (i < kLast) {
      call(function, 7, i + 1, "a", "b");
      call(function, 7, i + 1, "b", "c");
    } else {
      protozero::pbf_writer node(function, 7);
      node.add_string(1, "a");
      node.add_string(2, "c");
      node.add_string(4, "Relu");
    }
    function.add_string(10, "d");
  }
  const std::string message = onnx_error(model);
  EXPECT_NE(message.find(
                ": the model's functions and subgraphs expand to too many operators\n  hint: they call each "
                "other again and again; inline or simplify the model first"),
            std::string::npos)
      << message;
}

TEST(OnnxFaults, AFunctionThatCallsItselfIsRefused) {
  std::string model;
  protozero::pbf_writer writer(model);
  const auto call = [](protozero::pbf_writer& in, protozero::pbf_tag_type field) {
    protozero::pbf_writer node(in, field);
    node.add_string(2, "y");
    node.add_string(4, "f");
    node.add_string(7, "d");
  };
  {
    protozero::pbf_writer graph(writer, 7);
    call(graph, 1);
  }
  {
    protozero::pbf_writer function(writer, 25);
    function.add_string(1, "f");
    function.add_string(5, "y");
    function.add_string(10, "d");
    call(function, 7);
  }
  const std::string message = onnx_error(model);
  EXPECT_NE(
      message.find(": functions call each other more than 32 deep\n  hint: a function must not call itself"),
      std::string::npos)
      << message;
}

TEST(OnnxFuzz, CorpusNeverCrashes) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot + "/tests/fuzz/onnx")) {
    const MappedFile file(entry.path());
    try {
      read_onnx(file.bytes(), "fuzz.onnx", {});
    } catch (const Error&) {
      // refused, as most of them should be
    }
    ++files;
  }
  EXPECT_GT(files, 20);
}

}  // namespace
}  // namespace armilla
