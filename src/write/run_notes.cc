#include "write/run_notes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units_text.h"

namespace armilla {
namespace {

void add_new(std::vector<std::string>& sentences, const std::vector<std::string>& more) {
  for (const std::string& sentence : more) {
    if (std::find(sentences.begin(), sentences.end(), sentence) == sentences.end())
      sentences.push_back(sentence);
  }
}

}  // namespace

std::string describe(const UnknownOperator& unknown, std::int64_t operators, Bytes forward_bytes) {
  const double share = forward_bytes.value > 0 ? static_cast<double>(unknown.bytes.value) /
                                                     static_cast<double>(forward_bytes.value)
                                               : 0;
  return fmt::format(
      "{}: {} of {} operators, {:.1f} % of the forward bytes; its arithmetic is unknown and "
      "counted as none",
      unknown.type, unknown.nodes, operators, 100 * share);
}

std::vector<std::string> all_notes(const Run& run) {
  std::vector<std::string> notes;
  add_new(notes, run.notes);
  add_new(notes, run.model.notes);
  return notes;
}

std::vector<std::string> all_warnings(const Run& run) {
  std::vector<std::string> warnings;
  add_new(warnings, run.warnings);
  add_new(warnings, run.result.warnings);
  const MemoryUse& memory = run.memory;
  if (memory.capacity.value > 0 && !memory.fits())
    add_new(warnings, {fmt::format("a rank needs {} of memory, the device has {}", to_text(memory.peak()),
                                   to_text(memory.capacity))});
  const Bytes forward_bytes = run.model.unknown.empty() ? Bytes(0) : totals(run.model).forward_bytes;
  for (const UnknownOperator& unknown : run.model.unknown) {
    add_new(warnings,
            {describe(unknown, static_cast<std::int64_t>(run.model.operators.size()), forward_bytes)});
  }
  return warnings;
}

}  // namespace armilla
