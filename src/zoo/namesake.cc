#include "zoo/namesake.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/error.h"

namespace armilla {
namespace {

namespace fs = std::filesystem;

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// What lies here under that name: "the file", "the folder", "the traces"; empty for nothing.
std::string_view hidden_thing(const std::string& name) {
  std::error_code ignored;
  if (fs::is_directory(name, ignored)) return "the folder";
  if (exists(name)) return "the file";
  for (const char* suffix : {".0.et", ".0.et.gz", ".0.json"})
    if (exists(name + suffix)) return "the traces";
  return {};
}

// The first file in the folder, by name, that ends so.
std::string first_with(const std::string& folder, std::string_view ending) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.ends_with(ending) && name.size() > ending.size()) found.push_back(at->path().string());
  }
  return found.empty() ? std::string() : *std::min_element(found.begin(), found.end());
}

std::string hint_about(const std::string& folder) {
  if (const std::string model = first_with(folder, ".onnx"); !model.empty())
    return fmt::format("give the file itself: {}", model);
  if (const std::string trace = first_with(folder, ".0.et"); !trace.empty())
    return fmt::format("traces are given by their prefix: {}", trace.substr(0, trace.size() - 5));
  if (const std::string study = first_with(folder, ".yaml"); !study.empty())
    return fmt::format("give the file itself: {}", study);
  return "a model's folder is one that was downloaded from Hugging Face";
}

}  // namespace

std::string namesake_note(const std::string& name, std::string_view what) {
  const std::string_view hidden = hidden_thing(name);
  if (hidden.empty()) return {};
  const bool several = hidden == "the traces";
  return fmt::format("{0} is {1}; {2} {0}{3} here {4} not used: write ./{0} for {5}", name, what, hidden,
                     several ? ".0.et ..." : "", several ? "are" : "is", several ? "them" : "it");
}

std::string model_in_folder(const std::string& folder) {
  const std::string config = (fs::path(folder) / "config.json").string();
  if (exists(config)) return config;
  throw Error(folder, "is a folder without a config.json, so it is not a model", hint_about(folder));
}

}  // namespace armilla
