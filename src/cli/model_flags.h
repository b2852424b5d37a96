// The flags of every command that reads a model.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "read/read.h"

namespace armilla {

struct ModelFlags {
  std::string model;
  std::int64_t batch = 0;
  std::vector<std::string> dimensions;

  void declare(CLI::App& app);
  // Throws Error for flags that make no sense.
  ModelOptions options() const;
  Model read() const { return read_model(model, options()); }
};

// "NAME=SIZE", as given to --dim.
std::pair<std::string, std::int64_t> parse_dimension(const std::string& text);

}  // namespace armilla
