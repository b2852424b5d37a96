// The flags of every command that takes a model or a study file: each is a key of the study file by another
// name.
#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "base/error.h"

namespace armilla {

// As YAML that means exactly this text, or a list of these.
std::string yaml_scalar(std::string_view text);
std::string yaml_list(const std::vector<std::string>& items);

// Throws Error where one key is set to two values, by flags or --set: which of them was meant, nobody knows.
void refuse_two_values(const std::vector<Override>& settings);

// What of a plan nobody names: one value, or the best of several.
enum class StudyDefaults { fixed, tried };

struct StudyFlags {
  std::string input, machine;
  std::vector<std::string> values;  // in the order of the table in study_flags.cc
  std::vector<std::string> algorithms, dimensions, settings;
  std::array<bool, 2> switches{};  // likewise
  bool no_overlap = false, fsdp = false, fast_forward = false;

  void declare(CLI::App& app, StudyDefaults defaults = StudyDefaults::fixed);
  // The study file, or an empty one, with the flags as overrides. `command` is what errors call the caller.
  Config configuration(std::string_view command) const { return configurations(command)({}); }
  // The same with more overrides over them, as often as it is asked for: the file is read once.
  std::function<Config(const std::vector<Override>& more)> configurations(std::string_view command) const;

  // Keys of a study file in a text as the user would type them here: "plan.tensor" becomes "--tp" unless it
  // stands in a study file or after --set.
  std::string as_typed(std::string_view text) const;
  Error as_typed(const Error& error) const;
  // Calls `work`; its errors speak of flags.
  template <class Work>
  auto speaking_of_flags(const Work& work) const {
    try {
      return work();
    } catch (const Error& error) {
      throw as_typed(error);
    }
  }
};

// What a machine's name hides in the working directory (zoo/namesake.h), for the user to see; empty for
// nothing.
std::string hidden_by_machine(const Config& config);
// What the file of the machine's links has that says nothing here (MachineLinks::without_effect), for reports
// of many runs; or empty, as where several machines are listed.
std::string links_note(const Config& config);

}  // namespace armilla
