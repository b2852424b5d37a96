#include "write/report/run_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/units_text.h"
#include "ir/derived/expense.h"
#include "write/text_table.h"

namespace armilla {
namespace {

// Several stages of a run may say the same; each sentence stands once, in the order of first mention.
void add_new(std::vector<std::string>& sentences, const std::vector<std::string>& more) {
  for (const std::string& sentence : more) {
    if (std::find(sentences.begin(), sentences.end(), sentence) == sentences.end())
      sentences.push_back(sentence);
  }
}

std::string accuracy_note(const LikeMeasured& like) {
  // A mean of one says nothing about others.
  std::string text =
      like.rows == 1
          ? fmt::format(
                "how far off: the only measured step of {} is predicted {} off (docs/accuracy.md); of "
                "others that says little",
                like.set, signed_percent(like.bias))
          : fmt::format(
                "how far off: predictions of {} of {} are {} off on average, bias {}, 90 % of them "
                "within {} (docs/accuracy.md)",
                counted(like.rows, "measured step"), like.set, percent(like.mape), signed_percent(like.bias),
                percent(like.p90));
  if (!like.differences.empty())
    text += fmt::format("; but this run is {}", fmt::join(like.differences, ", "));
  return text;
}

// What is counted as energy.
std::string energy_note(const Run& run) {
  const Machine& machine = run.study.machine;
  if (!expense_of(run).energy || !machine.others.empty()) return {};
  return fmt::format(
      "energy counts {} while a device computes, {} while it does not{}: rated figures, not measured ones; a "
      "device that only communicates draws more than idle",
      to_text(*machine.device.busy_power), to_text(*machine.device.idle_power),
      machine.host_power ? fmt::format(", {} for its share of the server", to_text(*machine.host_power))
                         : "");
}

}  // namespace

std::vector<std::string> all_notes(const Run& run) {
  std::vector<std::string> notes;
  add_new(notes, run.notes);
  add_new(notes, run.model.notes);
  if (const std::string energy = energy_note(run); !energy.empty()) add_new(notes, {energy});
  if (run.like) {
    // What is measured says more than which figures nobody has looked up.
    add_new(notes, {accuracy_note(*run.like)});
    return notes;
  }
  const Machine& machine = run.study.machine;
  if (const std::string unverified = unverified_note(machine); !unverified.empty())
    add_new(notes, {unverified});
  if (!machine.device.unverified.empty())
    add_new(notes, {fmt::format("unverified figures of device {}: {}", machine.device.name,
                                fmt::join(machine.device.unverified, ", "))});
  return notes;
}

std::vector<std::string> all_warnings(const Run& run) {
  std::vector<std::string> warnings;
  add_new(warnings, run.warnings);
  add_new(warnings, run.result.warnings);
  return warnings;
}

}  // namespace armilla
