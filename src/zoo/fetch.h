// Fetching trained models from the ONNX Model Zoo, or from any address, into a cache in the user's folder.
//
// A download is written to NAME.onnx.part under a lock, with its address and ETag noted beside it, so that a
// killed one goes on where it stopped as long as the server still has the same file. NAME.onnx appears by
// renaming, only after the whole file is on disk, looks like ONNX and has the expected SHA-256.
//
// The zoo: Hugging Face's onnxmodelzoo, where the ONNX project moved it when github.com/onnx/models ended its
// downloads on 1 July 2025 (notice in that repository's README). Checksums and sizes: the Git LFS pointers of
// that repository, commit b1eeaa1. External data beside a model is not fetched; Armilla reads no weights.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace armilla {

struct ZooDownload {
  std::string_view name;    // the zoo's file name without ".onnx": "resnet50-v1-12"
  std::string_view sha256;  // 64 hexadecimal digits
  Bytes size;
  std::string_view description;
};
std::span<const ZooDownload> zoo_downloads();

// "{model}" stands for the name. A base address without it is a folder of NAME.onnx files.
inline constexpr std::string_view kZooUrl =
    "https://huggingface.co/onnxmodelzoo/{model}/resolve/main/{model}.onnx";

struct FetchProgress {
  Bytes received;  // including what was there already
  Bytes total;     // 0 when the server does not say
};

struct FetchOptions {
  std::string base_url = {};  // empty: the environment's ARMILLA_ZOO_URL, else kZooUrl
  std::string cache = {};     // empty: model_cache_directory()
  std::string sha256 = {};    // expected; empty: the zoo's own, or none for other addresses
  bool refresh = false;       // download again even if the model is there
  int silence_seconds = 60;   // without a byte, then it is an Error
  std::function<void(const FetchProgress&)> progress =
      {};  // may be empty; called for every piece that arrives
};

struct FetchedModel {
  std::string
      name;  // read_model knows it by this name; empty when a compiled-in model has it: then use `path`
  std::string path;
  std::string url;
  Bytes size;
  std::string sha256;
  bool verified = false;   // the checksum was known beforehand
  bool was_there = false;  // nothing was downloaded
  Bytes resumed_from;      // bytes kept from an earlier attempt
};

// Throws Error; then nothing new lies under the final name.
FetchedModel fetch_model(const std::string& name_or_url, const FetchOptions& options);

// $XDG_CACHE_HOME/armilla/models, or ~/.cache/armilla/models; empty when neither variable is usable.
std::string model_cache_directory();
// Names of what was fetched, sorted.
std::vector<std::string> cached_models();

}  // namespace armilla
