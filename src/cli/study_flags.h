// The flags of every command that takes a model or a study file: each is a key of the study file by another
// name.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"

namespace armilla {

// As YAML that means exactly this text, or a list of these.
std::string yaml_scalar(std::string_view text);
std::string yaml_list(const std::vector<std::string>& items);

struct StudyFlags {
  std::string input, machine;
  std::vector<std::string> values;  // in the order of the table in study_flags.cc
  std::vector<std::string> algorithms, dimensions, settings;
  bool no_overlap = false, sequence_parallel = false, overlap_tensor = false, fsdp = false;

  void declare(CLI::App& app);
  // The study file, or an empty one, with the flags as overrides. `command` is what errors call the caller.
  Config configuration(std::string_view command) const;
};

}  // namespace armilla
