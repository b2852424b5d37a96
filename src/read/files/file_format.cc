#include "read/file_format.h"

#include <fmt/format.h>

#include <array>

namespace armilla {
namespace {

using Kind = FileKind;

constexpr std::string_view kModelUse = "armilla run, events, layers and translate take it";
constexpr std::string_view kExport =
    "export the model to ONNX (torch.onnx.export, tf2onnx), or give its config.json";
constexpr std::string_view kWeights =
    "it holds weights, which Armilla never needs: give the model's config.json";

constexpr std::array kFormats = {
    FileFormat{Kind::onnx, "onnx", "an ONNX model", kModelUse, true},
    FileFormat{Kind::description, "description", "a model description", kModelUse, true},
    FileFormat{Kind::huggingface, "huggingface", "a Hugging Face configuration", kModelUse, true},
    FileFormat{Kind::study, "study", "a study", "armilla run, events and check take it", true},
    FileFormat{Kind::machine, "machine", "a machine", "--machine takes it, and the key 'machine' of a study",
               true},
    FileFormat{Kind::device, "device", "a device", "--device takes it, and the key 'device' of a machine",
               true},
    FileFormat{Kind::profile, "profile", "a table of events", "--profile takes it", true},
    FileFormat{Kind::sweep, "sweep", "a sweep", "armilla sweep takes it", true},
    FileFormat{Kind::measurements, "measurements", "a table of measurements", "armilla validate takes it",
               true},
    FileFormat{Kind::nccl_tests, "nccl-tests", "an output of nccl-tests", "armilla profile import takes it",
               true},
    FileFormat{Kind::chakra, "chakra", "a Chakra execution trace",
               "armilla astra2 --workload-configuration takes the prefix of PREFIX.0.et, PREFIX.1.et ...; "
               "armilla translate takes one of them, too",
               true},
    FileFormat{
        Kind::chakra_json, "chakra-json", "a Chakra execution trace in JSON",
        "armilla astra2 --workload-configuration takes the prefix of PREFIX.0.json, PREFIX.1.json ...; "
        "armilla translate takes one of them, too",
        true},
    FileFormat{Kind::astra_text, "astra-text", "an ASTRA-sim text workload",
               "armilla astra1 --workload-configuration takes it, and armilla translate", true},
    FileFormat{Kind::flexflow, "flexflow", "a FlexFlow task graph", "armilla translate takes it", true},
    FileFormat{Kind::msccl, "msccl", "an MSCCL algorithm",
               "armilla translate takes it, and the keys *-implementation-custom of an ASTRA-sim 2 system",
               true},
    FileFormat{Kind::issue_log, "astra2-log", "an ASTRA-sim 2 log of nodes",
               "armilla translate makes a timeline of it", true},
    FileFormat{Kind::astra1_system, "astra1-system", "an ASTRA-sim 1.0 system file",
               "armilla astra1 --system-configuration takes it", true},
    FileFormat{Kind::astra1_network, "astra1-network", "an ASTRA-sim 1.0 network file",
               "armilla astra1 --network-configuration takes it", true},
    FileFormat{Kind::astra2_system, "astra2-system", "an ASTRA-sim 2 system file",
               "armilla astra2 --system-configuration takes it", true},
    FileFormat{Kind::astra2_network, "astra2-network", "an ASTRA-sim 2 network file",
               "armilla astra2 --network-configuration takes it", true},
    FileFormat{Kind::astra2_memory, "astra2-memory", "an ASTRA-sim 2 remote-memory file",
               "armilla astra2 --remote-memory-configuration takes it", true},
    FileFormat{Kind::communicators, "communicators", "a file of communicator groups",
               "armilla astra2 --comm-group-configuration takes it, and armilla translate --communicators",
               true},
    FileFormat{Kind::custom_table, "custom-table", "an ASTRA-sim 2 table of nodes with custom collectives",
               "the key 'per-node-custom-implementation' of an ASTRA-sim 2 system names it", true},
    FileFormat{Kind::scalesim_topology, "scalesim-topology", "a SCALE-Sim topology",
               "armilla scalesim -t takes it, and run and layers as a model", true},
    FileFormat{Kind::scalesim_config, "scalesim-config", "a SCALE-Sim configuration",
               "armilla scalesim -c takes it, and --compute of run and layers", true},
    FileFormat{Kind::booksim_config, "booksim", "a BookSim configuration",
               "armilla net takes it, and 'topology' of a machine", true},
    FileFormat{Kind::infragraph, "infragraph", "an InfraGraph infrastructure",
               "'topology' of a machine names it, and armilla net --traffic takes it", true},
    FileFormat{Kind::hpcc_topology, "hpcc-topology", "a topology of HPCC's or SimAI's ns-3",
               "'topology' of a machine names it, TOPOLOGY_FILE of a config.txt, and armilla net --traffic "
               "takes it",
               true},
    FileFormat{Kind::hpcc_flows, "hpcc-flows", "a file of flows of HPCC's ns-3",
               "--traffic of armilla net takes it, and FLOW_FILE of a config.txt names it", true},
    FileFormat{Kind::htsim_connections, "htsim-connections", "a connection matrix of htsim",
               "--traffic of armilla net takes it", true},
    FileFormat{Kind::astra_log, "astra-log", "an ASTRA-sim log", "it is a result; its input files can be run",
               false},
    FileFormat{Kind::ns3_topology, "ns3-topology", "a logical topology of ASTRA-sim's ns-3 network",
               "armilla astra2 --logical-topology-configuration takes it", true},
    FileFormat{Kind::ns3_config, "ns3-config", "a configuration of HPCC's or ASTRA-sim's ns-3",
               "armilla net takes it with its topology and flows, and astra2 as its network", true},
    FileFormat{
        Kind::htsim_topology, "htsim-topology", "an htsim topology",
        "armilla net --traffic takes it, 'topology' of a machine, and armilla astra2 --htsim_opts -topo",
        true},
    FileFormat{Kind::scalesim_layout, "scalesim-layout", "a SCALE-Sim memory layout",
               "layouts are not modelled; the topology beside it describes the layers", false},
    FileFormat{Kind::scalesim_report, "scalesim-report", "a SCALE-Sim report",
               "it is a result; the topology that it was made from describes the layers", false},
    FileFormat{Kind::armilla_result, "result", "a result that Armilla wrote", "it is there for other tools",
               false},
    FileFormat{Kind::kineto, "kineto", "a PyTorch profiler trace (Kineto)",
               "armilla profile import takes its times; make Chakra traces of it with chakra_trace_link and "
               "chakra_converter of mlcommons/chakra",
               true},
    FileFormat{Kind::pytorch_et, "pytorch-et", "a PyTorch execution trace",
               "make Chakra traces of it with chakra_trace_link and chakra_converter of mlcommons/chakra",
               false},
    FileFormat{Kind::chrome_trace, "chrome-trace", "a timeline in Chrome's trace format",
               "open it in ui.perfetto.dev", false},
    FileFormat{Kind::mscclpp, "mscclpp", "an MSCCL++ execution plan",
               "MSCCL's XML is read, the plans of MSCCL++ are not", false},
    FileFormat{Kind::nccl_topology, "nccl-topology", "an NCCL topology", "describe the node as a machine",
               false},
    FileFormat{Kind::nccl_graph, "nccl-graph", "an NCCL graph dump", "describe the node as a machine", false},
    FileFormat{Kind::tokenizer, "tokenizer", "a tokenizer of a Hugging Face model",
               "the config.json beside it describes the model", false},
    FileFormat{Kind::hugging_other, "huggingface-other",
               "a file of a Hugging Face model, but not the one that describes its shapes",
               "the config.json beside it does", false},
    FileFormat{Kind::meta_params, "meta-params", "a params.json of Meta's own Llama release",
               "the model's page on Hugging Face has the config.json that Armilla reads", false},
    FileFormat{Kind::safetensors, "safetensors", "a safetensors file", kWeights, false},
    FileFormat{Kind::gguf, "gguf", "a GGUF file", kWeights, false},
    FileFormat{
        Kind::zip, "zip", "a zip archive, perhaps a PyTorch checkpoint or a spreadsheet",
        "a spreadsheet: save its table as CSV; a checkpoint: export the model to ONNX (torch.onnx.export, "
        "tf2onnx), or give its config.json",
        false},
    FileFormat{Kind::pickle, "pickle", "a Python pickle, perhaps a PyTorch checkpoint", kExport, false},
    FileFormat{Kind::hdf5, "hdf5", "an HDF5 file, perhaps a Keras model", kExport, false},
    FileFormat{Kind::tflite, "tflite", "a TensorFlow Lite model", kExport, false},
    FileFormat{Kind::onnxruntime, "onnxruntime", "a model in onnxruntime's own format",
               "use the .onnx file it was made of", false},
    FileFormat{Kind::sqlite, "sqlite", "an SQLite database", "", false},
    FileFormat{Kind::numpy, "numpy", "a NumPy array", "", false},
    FileFormat{Kind::lfs_pointer, "lfs-pointer", "a Git LFS pointer in place of the file",
               "fetch the file itself: git lfs pull", false},
    FileFormat{Kind::gzip, "gzip", "compressed with gzip", "unpack it first: gunzip FILE", false},
    FileFormat{Kind::bzip2, "bzip2", "compressed with bzip2", "unpack it first: bunzip2 FILE", false},
    FileFormat{Kind::xz, "xz", "compressed with xz", "unpack it first: unxz FILE", false},
    FileFormat{Kind::zstd, "zstd", "compressed with zstd", "unpack it first: unzstd FILE", false},
    FileFormat{Kind::picture, "picture", "a picture", "", false},
    FileFormat{Kind::pdf, "pdf", "a PDF document", "", false},
    FileFormat{Kind::elf, "elf", "a program", "", false},
    FileFormat{Kind::graphviz, "graphviz", "a drawing for Graphviz", "", false},
    FileFormat{Kind::markup, "xml", "XML of an unknown kind", "of XML, MSCCL algorithms are read: <algo ...>",
               false},
    FileFormat{Kind::json, "json", "JSON of an unknown kind", "", false},
    FileFormat{Kind::yaml, "yaml", "YAML of an unknown kind", "", false},
    FileFormat{Kind::csv, "csv", "a table of an unknown kind", "", false},
    FileFormat{Kind::ini, "ini", "an INI file of an unknown kind", "", false},
    FileFormat{Kind::text, "text", "text of an unknown kind", "", false},
    FileFormat{Kind::binary, "binary", "a binary file of an unknown kind", "", false},
    FileFormat{Kind::empty, "empty", "empty", "", false}};

// The table is indexed by kind.
constexpr bool in_order() {
  for (std::size_t i = 0; i < kFormats.size(); ++i)
    if (kFormats[i].kind != static_cast<Kind>(i)) return false;
  return true;
}
static_assert(in_order() && kFormats.size() == static_cast<std::size_t>(Kind::empty) + 1);

}  // namespace

std::span<const FileFormat> file_formats() {
  return kFormats;
}

const FileFormat& file_format(FileKind kind) {
  return kFormats[static_cast<std::size_t>(kind)];
}

Error wrong_kind(const std::string& where, FileKind kind, std::string_view wanted) {
  const FileFormat& format = file_format(kind);
  return Error(where, fmt::format("is {}, not {}", format.what, wanted), std::string(format.use));
}

void require_kind(const std::string& path, std::span<const char> bytes, FileKind kind,
                  std::string_view wanted) {
  const FileKind is = sniff(bytes);
  // From json on the kinds are vague: such a file may be what is wanted, and its own reader explains better
  // what is wrong with it.
  if (is != kind && is < Kind::json) throw wrong_kind(path, is, wanted);
  if (is == Kind::empty) throw wrong_kind(path, is, wanted);
}

}  // namespace armilla
