// The model zoo: named models compiled into the program (models/, zoo/embedded.h), and models fetched from
// the ONNX Model Zoo into a cache.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace armilla {

struct ZooModel {
  std::string_view name;         // "resnet50"
  std::string_view file;         // "models/resnet50.onnx", "models/llama3-8b.yaml"
  std::string_view description;  // one line: input size, source of the export
};
std::span<const ZooModel> zoo_models();

// A path has a slash or an extension; a dot before a digit belongs to a name ("megatron-1.7b").
bool is_path(std::string_view name_or_path);
// Whether that is the name of a model, compiled in or fetched, rather than a path.
bool names_model(const std::string& name_or_path);

// The cached path of an earlier `fetch`, if there is one.
std::optional<std::string> find_cached_model(const std::string& name);

}  // namespace armilla
