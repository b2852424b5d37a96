// Readers: files into nouns. One table of formats with name, suffixes, sniffer and reader; each format is one
// source file.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ir/machine.h"
#include "ir/model.h"
#include "ir/study.h"

namespace armilla {

struct ModelOptions {
  std::map<std::string, std::int64_t> dimensions;  // symbolic dimension -> value
  std::optional<std::int64_t> batch;  // samples per forward pass; the file's own, or 1, when not given
};

struct ModelFormat {
  std::string_view name;
  std::string_view help;
  std::span<const std::string_view> suffixes;      // with the dot
  bool (*sniff)(std::span<const char> beginning);  // whether the first bytes look like it
  Model (*read)(std::span<const char> bytes, const std::string& name, const ModelOptions& options);
};
std::span<const ModelFormat> model_formats();

// A zoo name ("resnet50") or a path. Throws Error with "did you mean" for neither.
Model read_model(const std::string& name_or_path, const ModelOptions& options);

// ONNX (read/onnx.cc): walks the wire format without touching weights.
Model read_onnx(std::span<const char> bytes, const std::string& name, const ModelOptions& options);

}  // namespace armilla
