// The flags of every command that reads a model.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "read/read.h"

namespace armilla {

struct ModelFlags {
  std::string model;
  std::string batch, sequence;
  std::vector<std::string> dimensions;

  void declare(CLI::App& app);
  void declare_options(CLI::App& app);  // without the model itself
  // Throws Error for flags that make no sense.
  ModelOptions options() const;
  Model read() const { return read_model(model, options()); }
};

// Simulations or runs beside each other, at most.
inline constexpr std::int64_t kMostAtOnce = 4096;

// A whole number given to `flag`, in decimal. Throws Error unless it lies between the bounds.
std::int64_t parse_flag(const std::string& text, std::string_view flag, std::int64_t lowest,
                        std::int64_t highest);

// "NAME=SIZE", as given to --dim.
std::pair<std::string, std::int64_t> parse_dimension(const std::string& text);
// All of them. Throws Error for a name that is given twice.
std::map<std::string, std::int64_t> parse_dimensions(const std::vector<std::string>& texts);

}  // namespace armilla
