// Files compiled into the program: the model zoo and the machine descriptions, so that named models and
// machines work with no file and no network.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace armilla {

struct EmbeddedFile {
  std::string_view
      path;  // relative to the repository: "models/resnet50.onnx", "machines/clusters/dgx-a100.yaml"
  std::span<const char> bytes;
};

// Sorted by path.
std::span<const EmbeddedFile> embedded_files();
std::optional<EmbeddedFile> find_embedded(std::string_view path);

}  // namespace armilla
