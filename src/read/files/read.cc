#include "read/read.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/file_status.h"
#include "base/mapped_file.h"
#include "base/suggest.h"
#include "base/units_text.h"
#include "read/described/described_model.h"
#include "read/scalesim.h"
#include "read/study.h"
#include "zoo/embedded.h"
#include "zoo/namesake.h"
#include "zoo/zoo.h"

namespace armilla {
namespace {

constexpr std::array kModelFormats = {
    ModelFormat{FileKind::onnx, "weights are never read and may be absent", ".onnx", read_onnx, false},
    ModelFormat{FileKind::description, "numbers of an architecture in YAML", ".yaml", read_described_yaml,
                true},
    ModelFormat{FileKind::huggingface, "config.json of a Hugging Face model", ".json", read_huggingface_json,
                true},
    ModelFormat{FileKind::scalesim_topology, "topology of SCALE-Sim: a table of convolutions, or of products",
                ".csv", read_scalesim_model, false},
};

// What is known to be something else is refused; of the rest, the suffix says what it was meant to be.
const ModelFormat& format_of(const std::string& path, std::span<const char> bytes) {
  const FileKind kind = sniff(bytes);
  for (const ModelFormat& format : kModelFormats) {
    if (format.kind == kind) return format;
  }
  const bool unknown = kind == FileKind::binary || kind == FileKind::yaml || kind == FileKind::json;
  for (const ModelFormat& format : kModelFormats) {
    if (unknown && path.ends_with(format.suffix)) return format;
  }
  throw wrong_kind(path, kind, "a model");
}

const ModelFormat& suited(const ModelFormat& format, const std::string& name, const ModelOptions& options) {
  if (options.layers > 0 && !format.described) {
    throw Error(name, fmt::format("is a graph: it cannot be given {}", typed_count(options.layers, "layer")),
                "only models by description can");
  }
  if (options.lora_rank > 0 && !format.described)
    throw Error(name,
                fmt::format("is a graph, which can have no adapters (model.lora_rank {})", options.lora_rank),
                "leave model.lora_rank out, or take a model by description");
  return format;
}

// Where a model comes from: a file compiled in, or one on disk.
struct Origin {
  std::optional<EmbeddedFile> embedded;
  std::string path;
  std::string note;  // what the name hides
};

Origin find_model(const std::string& name_or_path) {
  std::vector<std::string> names;
  // The zoo goes before files, or a command would mean another model in another folder; a note tells of the
  // file that is hidden.
  for (const ZooModel& zoo : zoo_models()) {
    names.emplace_back(zoo.name);
    if (zoo.name != name_or_path) continue;
    const std::optional<EmbeddedFile> file = find_embedded(zoo.file);
    if (!file)
      throw Error(name_or_path, "this model of the zoo is missing from the program", "build it again");
    return {file, {}, namesake_note(name_or_path, "the model of the zoo")};
  }
  if (!is_path(name_or_path)) {
    if (const std::optional<std::string> cached = find_cached_model(name_or_path))
      return {std::nullopt, *cached, namesake_note(name_or_path, "the model that was fetched")};
  }
  if (is_folder(name_or_path)) return {std::nullopt, model_in_folder(name_or_path), {}};
  if (::access(name_or_path.c_str(), F_OK) == 0) return {std::nullopt, name_or_path, {}};
  if (const std::optional<std::string> cached = find_cached_model(name_or_path))
    return {std::nullopt, *cached, {}};
  if (is_path(name_or_path)) return {std::nullopt, name_or_path, {}};
  throw Error(name_or_path, "is neither a file nor a model of the zoo", suggest(name_or_path, names));
}

}  // namespace

std::span<const ModelFormat> model_formats() {
  return kModelFormats;
}

Model read_model(const std::string& name_or_path, const ModelOptions& options) {
  const Origin origin = find_model(name_or_path);
  if (!origin.embedded) {
    const MappedFile file(origin.path);
    Model model = suited(format_of(origin.path, file.bytes()), name_or_path, options)
                      .read(file.bytes(), origin.path, options);
    if (!origin.note.empty()) model.notes.insert(model.notes.begin(), origin.note);
    return model;
  }
  const std::span<const char> bytes = origin.embedded->bytes;
  Model model = suited(format_of(std::string(origin.embedded->path), bytes), name_or_path, options)
                    .read(bytes, name_or_path, options);
  if (!origin.note.empty()) model.notes.insert(model.notes.begin(), origin.note);
  return model;
}

Model read_model(const ModelSource& source, std::int64_t micro_batch) {
  const ModelOptions options{source.dimensions, micro_batch, source.sequence, source.layers,
                             source.lora_rank};
  if (source.text.empty()) return read_model(source.name, options);
  return read_described_yaml({source.text.data(), source.text.size()}, source.name, options);
}

bool is_described(const ModelSource& source) {
  return !source.text.empty() || is_described(source.name);
}

bool is_described(const std::string& name_or_path) {
  const Origin origin = find_model(name_or_path);
  if (origin.embedded) return format_of(std::string(origin.embedded->path), origin.embedded->bytes).described;
  const MappedFile file(origin.path);
  return format_of(origin.path, file.bytes()).described;
}

}  // namespace armilla
