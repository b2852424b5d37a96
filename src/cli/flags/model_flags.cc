#include "cli/flags/model_flags.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/units_text.h"

namespace armilla {

void ModelFlags::declare(CLI::App& app) {
  app.add_option("model", model,
                 "a zoo name ('armilla zoo list'), an ONNX file, a description or a config.json")
      ->type_name("MODEL")
      ->required();
  declare_options(app);
}

// Numbers are texts until `options` reads them, so that CLI11 does not refuse them in words of its own.
void ModelFlags::declare_options(CLI::App& app) {
  app.add_option("--batch", batch, "samples (default: the file's own batch, else 1)")->type_name("N");
  app.add_option("--seq", sequence, "tokens per sample (default: the model's own)")->type_name("N");
  app.add_option("--dim", dimensions, "size of a symbolic dimension of the model")
      ->type_name("NAME=SIZE")
      ->allow_extra_args(false);
}

ModelOptions ModelFlags::options() const {
  ModelOptions chosen;
  if (!batch.empty()) chosen.batch = parse_flag(batch, "--batch", 1, INT32_MAX);
  if (!sequence.empty()) chosen.sequence = parse_flag(sequence, "--seq", 1, INT32_MAX);
  chosen.dimensions = parse_dimensions(dimensions);
  return chosen;
}

std::int64_t parse_flag(const std::string& text, std::string_view flag, std::int64_t lowest,
                        std::int64_t highest) {
  const std::string where = fmt::format("{} {:.60}", flag, text);
  const std::int64_t value = [&] {
    try {
      return parse_count(text, where);
    } catch (const Error& error) {
      throw Error(where, error.message, fmt::format("expected {} to {}", lowest, highest));
    }
  }();
  if (value < lowest)
    throw Error(where, fmt::format("{} is too small", value), fmt::format("the lowest value is {}", lowest));
  if (value > highest)
    throw Error(where, fmt::format("{} is too large", value),
                fmt::format("the highest value is {}", highest));
  return value;
}

std::map<std::string, std::int64_t> parse_dimensions(const std::vector<std::string>& texts) {
  std::map<std::string, std::int64_t> dimensions;
  for (const std::string& text : texts) {
    if (!dimensions.insert(parse_dimension(text)).second)
      throw Error("--dim " + text, "this dimension is given twice");
  }
  return dimensions;
}

std::pair<std::string, std::int64_t> parse_dimension(const std::string& text) {
  const std::string where = "--dim " + text;
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw Error(where, "expected NAME=SIZE", "for example --dim sequence=128");
  const std::int64_t size = parse_count(text.substr(equals + 1), where);
  if (size < 0) throw Error(where, "a dimension must not be negative");
  return {text.substr(0, equals), size};
}

}  // namespace armilla
