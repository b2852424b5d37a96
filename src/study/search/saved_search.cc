#include "study/search/saved_search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <vector>

#include "base/error.h"
#include "base/file_status.h"
#include "ir/machine.h"
#include "ir/model.h"
#include "read/read.h"
#include "study/database/inputs.h"

namespace armilla {
namespace {

constexpr DatabaseForm kForm = {
    .what = kSavedSearch.what,
    .application = kSavedSearch.application,
    .version = 6,
    .tables =
        "CREATE TABLE study (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
        "CREATE TABLE axis (number INTEGER PRIMARY KEY, key TEXT NOT NULL, tried TEXT NOT NULL);"
        "CREATE TABLE plan (base INTEGER NOT NULL, point INTEGER NOT NULL, settings TEXT NOT NULL,"
        " iteration_ps INTEGER NOT NULL, compute_ps INTEGER NOT NULL, exposed_ps INTEGER NOT NULL,"
        " energy_j REAL, longer_than_ps INTEGER NOT NULL,"
        " refusal TEXT NOT NULL, message TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (base, point)) "
        "WITHOUT ROWID;"};

// Refused before the database is opened, which would make the file.
const std::string& checked_path(const SearchRequest& request) {
  if (is_folder(request.save))
    throw Error(request.save, "is a folder, and a search is saved in a file", "name a file in it");
  if (!request.resume && is_there(request.save)) {
    throw Error(request.save, "is there already, and this search does not go on with it",
                "add --resume, or name another file");
  }
  return request.save;
}

// Prices change what a plan costs, not what is kept of it.
Machine without_price(Machine machine) {
  machine.device.price.reset();
  for (OtherDevices& other : machine.others) other.device.price.reset();
  return machine;
}

// Settings, a line each, that outcomes depend on, and that are not told by what the machine is: neither how
// long the training is nor what an hour costs.
std::string settings_that_count(const SearchRequest& request, const SearchSpace& space) {
  std::istringstream settings(request.asked);
  std::string text, line;
  while (std::getline(settings, line)) {
    if (!line.starts_with("training.") && !line.starts_with("machine.") && !line.starts_with("machine:"))
      text += line + '\n';
  }
  for (const SearchBase& base : space.bases()) text += fmt::format("machine: {}\n", base.study.machine.name);
  for (const SearchAxis& axis : space.axes())
    text += fmt::format("{}: {}\n", axis.key, fmt::join(axis.values, ","));
  return text;
}

// All that outcomes depend on beside what the user set.
std::string stands_for(const SearchSpace& space) {
  std::string text;
  for (const SearchBase& base : space.bases()) {
    text += dump_machine(without_price(base.study.machine));
    text += dump_model(read_model(base.study.model, 1));
    if (!base.study.profile.file.empty()) text += contents_of(base.study.profile.file);
  }
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The first setting that only one of the two has, and what the other says of the same key.
std::string difference(const std::string& saved, const std::string& now) {
  const std::vector<std::string> before = lines_of(saved), after = lines_of(now);
  const auto first_alone = [](const std::vector<std::string>& these, const std::vector<std::string>& those) {
    return std::ranges::find_if(
        these, [&](const std::string& line) { return std::ranges::count(those, line) == 0; });
  };
  const auto same_key = [](const std::vector<std::string>& lines, const std::vector<std::string>& others,
                           const std::string& line) -> std::string {
    const std::string key = line.substr(0, line.find(": ") + 2);
    for (const std::string& other : lines) {
      if (other.starts_with(key) && std::ranges::count(others, other) == 0) return other;
    }
    return {};
  };
  if (const auto old = first_alone(before, after); old != before.end()) {
    const std::string other = same_key(after, before, *old);
    return other.empty() ? fmt::format("it has '{}', and this search does not", *old)
                         : fmt::format("it has '{}', this search '{}'", *old, other);
  }
  const auto added = first_alone(after, before);
  return added == after.end() ? "its settings stand in another order"
                              : fmt::format("this search has '{}', and it does not", *added);
}

// A plan that was simulated, is known to be longer, or was refused.
bool is_possible(const SavedOutcome& outcome) {
  if (!outcome.reason.empty()) return true;
  const Time none;
  if (outcome.iteration == none) return outcome.is_given_up();
  return outcome.iteration > none && outcome.compute >= none && outcome.exposed_communication >= none;
}

// Of a row: bytes that have changed since it was written would change an answer unseen.
std::string digest_of(std::size_t base, std::int64_t point, const SavedOutcome& outcome) {
  return digest_text(fmt::format("{} {} {} {} {} {:a} {} {}\n{}", base, point, outcome.iteration.value,
                                 outcome.compute.value, outcome.exposed_communication.value,
                                 outcome.energy ? outcome.energy->value : -1, outcome.longer_than.value,
                                 outcome.reason, outcome.message));
}

}  // namespace

SavedSearch::SavedSearch(const SearchRequest& request, const SearchSpace& space)
    : database_(checked_path(request), kForm),
      insert_(database_, "INSERT OR REPLACE INTO plan VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)") {
  check_study(request, space);
  Statement rows(
      database_,
      "SELECT base, point, iteration_ps, compute_ps, exposed_ps, energy_j, longer_than_ps, refusal, message, "
      "digest FROM plan");
  while (rows.next()) {
    std::optional<Energy> energy;
    if (const double joules = rows.real(5); !std::isnan(joules)) energy = Energy(joules);
    const SavedOutcome outcome = {.iteration = Time(rows.number(2)),
                                  .compute = Time(rows.number(3)),
                                  .exposed_communication = Time(rows.number(4)),
                                  .energy = energy,
                                  .longer_than = Time(rows.number(6)),
                                  .reason = rows.text(7),
                                  .message = rows.text(8)};
    const auto base = static_cast<std::size_t>(rows.number(0));
    if (!is_possible(outcome) || rows.text(9) != digest_of(base, rows.number(1), outcome))
      throw Error(request.save, "this saved search is damaged", "delete it, or name another file");
    known_[{base, rows.number(1)}] = outcome;
  }
}

// A search that was killed before it had said what it is of, is of this study.
void SavedSearch::check_study(const SearchRequest& request, const SearchSpace& space) {
  const std::string asked = settings_that_count(request, space);
  const std::pair<const char*, std::string> facts[] = {
      {"armilla", request.version}, {"asked", asked}, {"contents", digest_text(stands_for(space))}};
  if (database_.number_of("SELECT count(*) FROM study") > 0) {
    for (const auto& [key, value] : facts) {
      Statement stored(database_, "SELECT value FROM study WHERE key = ?");
      stored.set(0, key);
      const std::string before = stored.next() ? stored.text(0) : "";
      if (before == value) continue;
      const std::string_view name = key;
      if (name == "armilla") {
        throw Error(request.save,
                    fmt::format("was saved by build {} of Armilla, and this is {}", before, value),
                    "their times may differ: name another file");
      }
      throw Error(
          request.save, "was saved by a search of another study or space",
          name == "asked"
              ? difference(before, value)
              : "its machine, model or profile was another: a setting of the machine or a file has changed");
    }
    return;
  }
  database_.execute("BEGIN");
  Statement fact(database_, "INSERT INTO study VALUES (?, ?)");
  for (const auto& [key, value] : facts) fact.set(0, key).set(1, value).run();
  Statement row(database_, "INSERT INTO axis VALUES (?, ?, ?)");
  for (std::size_t i = 0; i < space.axes().size(); ++i) {
    const SearchAxis& axis = space.axes()[i];
    row.set(0, static_cast<std::int64_t>(i))
        .set(1, axis.key)
        .set(2, fmt::format("{}", fmt::join(axis.values, ",")));
    row.run();
  }
  database_.execute("COMMIT");
}

const SavedOutcome* SavedSearch::find(std::size_t base, std::int64_t point) const {
  const auto found = known_.find({base, point});
  return found == known_.end() ? nullptr : &found->second;
}

void SavedSearch::add(std::size_t base, std::int64_t point, const SavedOutcome& outcome,
                      const std::string& settings) {
  insert_.set(0, static_cast<std::int64_t>(base)).set(1, point).set(2, settings);
  insert_.set(3, outcome.iteration.value).set(4, outcome.compute.value);
  insert_.set(5, outcome.exposed_communication.value);
  insert_.set(6, outcome.energy ? outcome.energy->value : std::nan(""));
  insert_.set(7, outcome.longer_than.value);
  insert_.set(8, outcome.reason).set(9, outcome.message).set(10, digest_of(base, point, outcome)).run();
}

}  // namespace armilla
