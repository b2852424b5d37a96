#include "cli/model_flags.h"

#include "base/error.h"
#include "base/units_text.h"

namespace armilla {

void ModelFlags::declare(CLI::App& app) {
  app.add_option("model", model, "a zoo name ('armilla zoo list') or an ONNX file")
      ->type_name("MODEL")
      ->required();
  app.add_option("--batch", batch, "samples (default: the file's own batch, else 1)")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{INT32_MAX}));
  app.add_option("--dim", dimensions, "size of a symbolic dimension of the model")
      ->type_name("NAME=SIZE")
      ->allow_extra_args(false);
}

ModelOptions ModelFlags::options() const {
  ModelOptions chosen;
  if (batch > 0) chosen.batch = batch;
  for (const std::string& text : dimensions) chosen.dimensions.insert(parse_dimension(text));
  return chosen;
}

std::pair<std::string, std::int64_t> parse_dimension(const std::string& text) {
  const std::string where = "--dim " + text;
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw Error(where, "expected NAME=SIZE", "for example --dim sequence=128");
  const std::int64_t size = parse_count(text.substr(equals + 1), where);
  if (size < 1) throw Error(where, "the size must be at least 1");
  return {text.substr(0, equals), size};
}

}  // namespace armilla
