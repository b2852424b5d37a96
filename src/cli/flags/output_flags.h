// The flags that every command has which simulates: what to write where, and how far to go.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/output_file.h"
#include "cli/command.h"
#include "ir/study.h"
#include "sim/simulate.h"
#include "write/timeline.h"

namespace armilla {

struct OutputFlags {
  std::string json, csv, trace;
  std::string timeline_ranks, timeline_window;
  std::string max_messages = "2e9";
  bool no_fold = false, every_message = false, quiet = false;

  void declare(CLI::App& app, OutputOptions& outputs);
  void declare_timeline(CLI::App& app);  // which part of it
  // Throws Error for flags that make no sense, before anything is simulated.
  SimulationOptions options() const;
  TimelineSelection selection() const;
  // The chosen ranks of the timeline. Throws Error where one is beyond `ranks`.
  std::vector<std::int32_t> recorded_ranks(std::int64_t ranks) const;
  // Writes the run's files and `more`, all of them or none, and none over what the session reads. Folders
  // that are missing are made: the one of --csv and `folders`.
  void write(const Session& session, const Run& run, std::vector<NamedContents> more = {},
             std::vector<std::string> folders = {}) const;
};

// Of any command: as OutputFlags::write.
void write_into_folders(const Session& session, const std::vector<NamedContents>& files,
                        const std::vector<std::string>& folders);

// Which of `known` was given to `flag`.
std::size_t parse_choice(const std::string& text, std::span<const std::string_view> known,
                         std::string_view flag);
// A truth value given to `flag`: true, false, 1 or 0.
bool parse_switch(const std::string& text, std::string_view flag);
// A factor given to `flag`: a finite number of at least 0.
double parse_scale(const std::string& text, std::string_view flag);

}  // namespace armilla
