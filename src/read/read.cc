#include "read/read.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/suggest.h"
#include "read/described_model.h"
#include "read/embedded.h"
#include "read/machine_yaml.h"
#include "read/onnx_wire.h"
#include "read/zoo.h"

namespace armilla {
namespace {

constexpr std::array<std::string_view, 1> kOnnxSuffixes = {".onnx"};
constexpr std::array<std::string_view, 2> kYamlSuffixes = {".yaml", ".yml"};
constexpr std::array<std::string_view, 1> kJsonSuffixes = {".json"};
constexpr std::array kModelFormats = {
    ModelFormat{"onnx", "ONNX model; weights are never read and may be absent", kOnnxSuffixes,
                looks_like_onnx, read_onnx, false},
    ModelFormat{"description", "numbers of an architecture in YAML", kYamlSuffixes, looks_like_description,
                read_described_yaml, true},
    ModelFormat{"huggingface", "config.json of a Hugging Face model", kJsonSuffixes, looks_like_huggingface,
                read_huggingface_json, true},
};

const ModelFormat& format_of(const std::string& path, std::span<const char> bytes) {
  for (const ModelFormat& format : kModelFormats) {
    const auto has = [&](std::string_view suffix) { return path.ends_with(suffix); };
    if (std::any_of(format.suffixes.begin(), format.suffixes.end(), has)) return format;
  }
  for (const ModelFormat& format : kModelFormats) {
    if (format.sniff(bytes.first(std::min<std::size_t>(bytes.size(), 4096)))) return format;
  }
  return kModelFormats.front();  // its errors say what the file is instead
}

// Where a model comes from: a file compiled in, or one on disk.
struct Origin {
  std::optional<EmbeddedFile> embedded;
  std::string path;
};

Origin find_model(const std::string& name_or_path) {
  std::vector<std::string> names;
  for (const ZooModel& zoo : zoo_models()) {
    names.emplace_back(zoo.name);
    if (zoo.name != name_or_path) continue;
    const std::optional<EmbeddedFile> file = find_embedded(zoo.file);
    if (!file)
      throw Error(name_or_path, "this model of the zoo is missing from the program", "build it again");
    return {file, {}};
  }
  if (::access(name_or_path.c_str(), F_OK) == 0) return {std::nullopt, name_or_path};
  if (const std::optional<std::string> cached = find_cached_model(name_or_path))
    return {std::nullopt, *cached};
  if (is_path(name_or_path)) return {std::nullopt, name_or_path};
  throw Error(name_or_path, "is neither a file nor a model of the zoo", suggest(name_or_path, names));
}

}  // namespace

std::span<const ModelFormat> model_formats() {
  return kModelFormats;
}

Model read_model(const std::string& name_or_path, const ModelOptions& options) {
  const Origin origin = find_model(name_or_path);
  if (origin.embedded) {
    const std::span<const char> bytes = origin.embedded->bytes;
    return format_of(std::string(origin.embedded->path), bytes).read(bytes, name_or_path, options);
  }
  const MappedFile file(origin.path);
  return format_of(origin.path, file.bytes()).read(file.bytes(), origin.path, options);
}

bool is_described(const std::string& name_or_path) {
  const Origin origin = find_model(name_or_path);
  if (origin.embedded) return format_of(std::string(origin.embedded->path), origin.embedded->bytes).described;
  const MappedFile file(origin.path);
  return format_of(origin.path, file.bytes()).described;
}

}  // namespace armilla
