// Readers: files into nouns. One table of the formats of models, told apart by their content
// (read/file_format.h); each format is one source file.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ir/machine.h"
#include "ir/model.h"
#include "ir/study.h"
#include "read/file_format.h"

namespace armilla {

struct ModelOptions {
  std::map<std::string, std::int64_t> dimensions;  // symbolic dimension -> value
  std::optional<std::int64_t> batch;  // samples per forward pass; the file's own, or 1, when not given
  // Tokens per sample; 0: the description's own. In a graph it is the symbolic dimension that is called
  // sequence.
  std::int64_t sequence = 0;
  std::int64_t layers = 0;     // of a model by description; 0: the description's own
  std::int64_t lora_rank = 0;  // likewise
};

struct ModelFormat {
  FileKind kind;
  std::string_view help;
  std::string_view suffix;  // with the dot; it decides only where the content says nothing
  Model (*read)(std::span<const char> bytes, const std::string& name, const ModelOptions& options);
  bool described;  // by numbers (read/described/model_description.h) instead of a graph
};
std::span<const ModelFormat> model_formats();

// A zoo name ("resnet50") or a path. Throws Error with "did you mean" for neither.
Model read_model(const std::string& name_or_path, const ModelOptions& options);

// What a study names, for `micro_batch` samples.
Model read_model(const ModelSource& source, std::int64_t micro_batch);

// Whether that is a model by description (read/described/described_model.h) and no graph. Reads a few bytes
// of a file at most. Throws as read_model for what is neither a file nor a name.
bool is_described(const std::string& name_or_path);
bool is_described(const ModelSource& source);

// ONNX (read/onnx/onnx.cc): walks the wire format without touching weights.
Model read_onnx(std::span<const char> bytes, const std::string& name, const ModelOptions& options);
// Models by description (read/described/): YAML, and the config.json of a Hugging Face model.
Model read_described_yaml(std::span<const char> bytes, const std::string& name, const ModelOptions& options);
Model read_huggingface_json(std::span<const char> bytes, const std::string& name,
                            const ModelOptions& options);

}  // namespace armilla
