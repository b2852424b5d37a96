// What a file is, told by its content: the one table of everything that people hand to Armilla, both what it
// reads and what it only knows by name, and the one place that tells them apart.
//
// Suffixes are not looked at. Signatures and the wire form decide for binary files, the names of the
// top-level keys for JSON and YAML (read/outline.h), the header for tables, the root element for XML. Damaged
// files count as what they begin like, so that the reader of that format says what is wrong with them.
// Cost: the first 64 KiB, and of an ONNX model the first bytes of each of its top-level fields.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace armilla {

enum class FileKind : std::uint8_t {
  // Models.
  onnx,
  description,
  huggingface,
  // Armilla's own configuration, and a table that one of them names.
  study,
  machine,
  device,
  profile,
  sweep,
  measurements,
  nccl_tests,
  // Traces, workloads and schedules.
  chakra,
  chakra_json,
  astra_text,
  flexflow,
  msccl,
  issue_log,
  // What configures ASTRA-sim.
  astra1_system,
  astra1_network,
  astra2_system,
  astra2_network,
  astra2_memory,
  communicators,
  custom_table,
  // SCALE-Sim.
  scalesim_topology,
  scalesim_config,
  // Traffic on a network, and networks.
  booksim_config,
  infragraph,
  hpcc_topology,
  hpcc_flows,
  htsim_connections,
  // Only known by name.
  astra_log,
  ns3_topology,
  ns3_config,
  htsim_topology,
  scalesim_layout,
  scalesim_report,
  armilla_result,
  kineto,
  pytorch_et,
  chrome_trace,
  mscclpp,
  nccl_topology,
  nccl_graph,
  tokenizer,
  hugging_other,
  meta_params,
  safetensors,
  gguf,
  zip,
  pickle,
  hdf5,
  tflite,
  onnxruntime,
  sqlite,
  numpy,
  lfs_pointer,
  gzip,
  bzip2,
  xz,
  zstd,
  picture,
  pdf,
  elf,
  graphviz,
  markup,
  json,
  yaml,
  csv,
  ini,
  text,
  binary,
  empty
};

struct FileFormat {
  FileKind kind;
  std::string_view name;  // "onnx"
  std::string_view what;  // "an ONNX model"
  std::string_view use;   // which command takes it, or what else to do with it; may be empty
  bool read;              // by some command
};
std::span<const FileFormat> file_formats();
const FileFormat& file_format(FileKind kind);

// Of the whole file. A packed (gzip) trace is a trace.
FileKind sniff(std::span<const char> bytes);
// Throws Error for what cannot be opened.
FileKind sniff_file(const std::string& path);

// "is an ONNX model, not a study" with what to do with it as the hint. `wanted` has its article.
Error wrong_kind(const std::string& where, FileKind kind, std::string_view wanted);
// Throws it when the file is known to be something else than `wanted`; a file of an unknown kind passes, and
// its reader tells what it misses.
void require_kind(const std::string& path, std::span<const char> bytes, FileKind kind,
                  std::string_view wanted);

}  // namespace armilla
