// The flags of `armilla translate` that concern traces: reading what becomes traces, changing them, writing
// them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "study/convert_input.h"

namespace armilla {

struct TranslateFlags {
  std::string dimensions, passes = "1", frequency = "1GHz", bytes, communicators;
  std::string scale, replica_size, keep, marker, rank;
  std::vector<std::string> merge;
  bool as_chakra = false, gzip = false, process_groups = false;

  void declare(CLI::App& app);
  // `npus` are the ranks of a text workload when no dimensions are given. Throws Error.
  ConvertOptions options(std::int64_t npus) const;
  // Applies the changes that were asked for, in the order keep, merge, scale, rank. Throws Error.
  void change(ConvertInput& input, const ConvertOptions& options) const;
};

}  // namespace armilla
