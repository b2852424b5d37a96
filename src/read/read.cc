#include "read/read.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/suggest.h"
#include "read/embedded.h"
#include "read/onnx_wire.h"
#include "read/zoo.h"

namespace armilla {
namespace {

constexpr std::array<std::string_view, 1> kOnnxSuffixes = {".onnx"};
constexpr std::array kModelFormats = {
    ModelFormat{"onnx", "ONNX model; weights are never read and may be absent", kOnnxSuffixes,
                looks_like_onnx, read_onnx},
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

Model read_file(const std::string& path, const ModelOptions& options) {
  const MappedFile file(path);
  return format_of(path, file.bytes()).read(file.bytes(), path, options);
}

}  // namespace

std::span<const ModelFormat> model_formats() {
  return kModelFormats;
}

Model read_model(const std::string& name_or_path, const ModelOptions& options) {
  std::vector<std::string> names;
  for (const ZooModel& zoo : zoo_models()) {
    names.emplace_back(zoo.name);
    if (zoo.name != name_or_path) continue;
    const std::optional<EmbeddedFile> file = find_embedded(zoo.file);
    if (!file)
      throw Error(name_or_path, "this model of the zoo is missing from the program", "build it again");
    return read_onnx(file->bytes, name_or_path, options);
  }
  if (::access(name_or_path.c_str(), F_OK) == 0) return read_file(name_or_path, options);
  if (const std::optional<std::string> cached = find_cached_model(name_or_path))
    return read_file(*cached, options);
  const bool is_path = name_or_path.find_first_of("/.") != std::string::npos;
  if (is_path) return read_file(name_or_path, options);
  throw Error(name_or_path, "is neither a file nor a model of the zoo", suggest(name_or_path, names));
}

}  // namespace armilla
