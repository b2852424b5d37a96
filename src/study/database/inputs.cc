#include "study/database/inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <vector>

#include "base/file_status.h"
#include "event/state_digest.h"
#include "ir/machine.h"
#include "read/read.h"
#include "read/study.h"
#include "study/search.h"
#include "zoo/zoo.h"

namespace armilla {
namespace {

void append_settings(const Config& config, const std::string& path, std::vector<std::string>& lines) {
  if (config.is_map()) {
    for (const std::string& key : config.keys())
      append_settings(config.at(key), path.empty() ? key : path + "." + key, lines);
  } else if (config.is_list()) {
    std::size_t index = 0;
    for (const Config& item : config.items())
      append_settings(item, fmt::format("{}.{}", path, index++), lines);
  } else {
    lines.push_back(fmt::format("{}: {}", path, config.is_scalar() ? config.text() : ""));
  }
}

// Paths of files that values name, without the model's.
void append_files(const Config& config, bool is_root, std::vector<std::string>& paths) {
  if (config.is_map()) {
    for (const std::string& key : config.keys()) {
      if (!is_root || key != "model") append_files(config.at(key), false, paths);
    }
  } else if (config.is_list()) {
    for (const Config& item : config.items()) append_files(item, false, paths);
  } else if (config.is_scalar() && is_path(config.text())) {
    const std::string path = config.text().starts_with('/') ? config.text() : config.folder() + config.text();
    if (is_file(path)) paths.push_back(path);
  }
}

}  // namespace

std::string settings_text(const Config& config) {
  std::vector<std::string> lines;
  append_settings(config, "", lines);
  std::sort(lines.begin(), lines.end());
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

std::string digest_text(const std::string& text) {
  Digest digest;
  for (const char c : text) digest = digest_of(digest.low, digest.high, c);
  return fmt::format("{:016x}{:016x}", digest.low, digest.high);
}

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string InputReader::model_digest(const ModelSource& source) {
  std::string key = fmt::format("{}\n{}\n{} {} {}", source.name, source.text, source.sequence, source.layers,
                                source.lora_rank);
  for (const auto& [name, size] : source.dimensions) key += fmt::format("\n{} {}", name, size);
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = models_.find(key); known != models_.end()) return known->second;
  }
  std::string digest = digest_text(dump_model(read_model(source, 1)));
  const std::lock_guard lock(mutex_);
  return models_.emplace(key, std::move(digest)).first->second;
}

std::string InputReader::file_digest(const std::string& path) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = files_.find(path); known != files_.end()) return known->second;
  }
  std::string digest = digest_text(contents_of(path));
  const std::lock_guard lock(mutex_);
  return files_.emplace(path, std::move(digest)).first->second;
}

RunInputs InputReader::inputs_of(const Config& config) {
  std::string text = version_ + "\n";
  std::vector<std::string> warnings;
  // Reading comes first: to look at every key is to know it, and unknown ones are to be refused.
  if (config.has("jobs")) {
    const JobsStudy jobs = read_jobs(config, &warnings);
    text += dump_machine(jobs.shared.machine);
    for (const JobRequest& job : jobs.jobs) text += model_digest(job.study.model);
  } else {
    const Study study = read_study(config, &warnings);
    text += dump_machine(study.machine) + model_digest(study.model);
  }
  std::vector<std::string> files;
  append_files(config, true, files);
  for (const std::string& path : files) text += file_digest(path);
  RunInputs inputs{settings_text(config), {}, std::move(warnings)};
  text += inputs.settings;
  inputs.hash = digest_text(text);
  return inputs;
}

RunInputs InputReader::inputs_of_refused(const std::string& settings, const std::string& message) const {
  return {settings, digest_text(fmt::format("{}\n{}\nrefused: {}", version_, settings, message)), {}};
}

}  // namespace armilla
