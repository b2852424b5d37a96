#include <fmt/format.h>

#include <optional>

#include "base/error.h"
#include "base/file_status.h"
#include "base/text.h"
#include "ir/collective.h"
#include "read/file_format.h"
#include "study/database/database.h"
#include "study/profile.h"

namespace armilla {
namespace {

constexpr DatabaseForm kProfileForm = {
    .what = kProfileDatabase.what,
    .application = kProfileDatabase.application,
    .version = 1,
    .tables =
        "CREATE TABLE computation (device TEXT NOT NULL, operator TEXT NOT NULL, phase TEXT NOT NULL,"
        " shapes TEXT NOT NULL, type TEXT NOT NULL, flops INTEGER NOT NULL, bytes INTEGER NOT NULL,"
        " time_ps INTEGER NOT NULL, spread_ps INTEGER NOT NULL, repeats INTEGER NOT NULL,"
        " source TEXT NOT NULL,"
        " PRIMARY KEY (device, operator, phase, shapes, type, flops, bytes)) WITHOUT ROWID;"
        "CREATE TABLE communication (device TEXT NOT NULL, kind TEXT NOT NULL, bytes INTEGER NOT NULL,"
        " ranks INTEGER NOT NULL, inter_node INTEGER NOT NULL,"
        " time_ps INTEGER NOT NULL, spread_ps INTEGER NOT NULL, repeats INTEGER NOT NULL,"
        " source TEXT NOT NULL, PRIMARY KEY (device, kind, bytes, ranks, inter_node)) WITHOUT ROWID;",
    .log = false};

constexpr const char* kAgain = "it is damaged: delete it, and import the measurements again";

Phase stored_phase(const std::string& text, const std::string& path) {
  for (const Phase phase : {Phase::forward, Phase::input_gradient, Phase::weight_gradient,
                            Phase::gradient_exchange, Phase::optimizer, Phase::other}) {
    if (text == name_of(phase)) return phase;
  }
  throw Error(path, fmt::format("this profile database has an unknown phase '{:.60}'", text), kAgain);
}

// A whole number of at least `least`; `of` is the event's name.
std::int64_t stored_count(const Statement& row, int column, std::int64_t least, std::string_view name,
                          const std::string& of, const std::string& path) {
  const std::string text = row.text(column);
  const std::optional<std::int64_t> number = number_from<std::int64_t>(text);
  if (number && *number >= least) return *number;
  throw Error(path, fmt::format("this profile database has '{:.60}' as the {} of '{:.60}'", text, name, of),
              kAgain);
}

Measured stored_measurement(const Statement& row, int first, std::string device, const std::string& of,
                            const std::string& path) {
  const std::int64_t time = stored_count(row, first, 1, "time", of, path);
  const std::int64_t spread = stored_count(row, first + 1, 0, "spread", of, path);
  return {Time(time), Time(spread), stored_count(row, first + 2, 0, "number of repeats", of, path),
          std::move(device)};
}

void check_stored(const ComputationKey& key, const std::string& path) {
  if (!shapes_from(key.shapes))
    throw Error(
        path,
        fmt::format("this profile database has '{:.60}' as the shapes of '{:.60}'", key.shapes, key.name),
        kAgain);
  if (!dtype_from_name(key.type))
    throw Error(path,
                fmt::format("this profile database has '{:.60}' as the type of '{:.60}'", key.type, key.name),
                kAgain);
}

void set_measurement(Statement& statement, int first, const Measured& measured, const std::string& source) {
  statement.set(first, measured.time.value).set(first + 1, measured.spread.value);
  statement.set(first + 2, measured.repeats).set(first + 3, source);
}

void set_key(Statement& statement, const MeasuredComputation& event) {
  const ComputationKey& key = event.key;
  statement.set(0, event.measured.device).set(1, key.name).set(2, name_of(key.phase)).set(3, key.shapes);
  statement.set(4, key.type).set(5, key.flops).set(6, key.bytes);
}
void set_key(Statement& statement, const MeasuredCommunication& event) {
  const CommunicationKey& key = event.key;
  statement.set(0, event.measured.device).set(1, key.name).set(2, key.bytes).set(3, key.ranks);
  statement.set(4, static_cast<std::int64_t>(key.inter_node));
}

struct EventTableForm {
  int key_columns;
  const char* find;
  const char* insert;
};
constexpr EventTableForm kComputations = {
    7,
    "SELECT time_ps, spread_ps, repeats FROM computation WHERE device = ? AND operator = ? AND phase = ?"
    " AND shapes = ? AND type = ? AND flops = ? AND bytes = ?",
    "INSERT OR REPLACE INTO computation VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"};
constexpr EventTableForm kCommunications = {
    5,
    "SELECT time_ps, spread_ps, repeats FROM communication WHERE device = ? AND kind = ? AND bytes = ?"
    " AND ranks = ? AND inter_node = ?",
    "INSERT OR REPLACE INTO communication VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"};

// All that it holds, in order. Throws Error for what cannot have been measured: times of nothing or less, and
// what is no number.
Profile stored_in(Database& database, const std::string& path) {
  Profile profile;
  profile.file = path;
  constexpr int kComputationTime = 7, kCommunicationTime = 5;
  Statement computations(database,
                         "SELECT device, operator, phase, shapes, type, flops, bytes, time_ps, spread_ps,"
                         " repeats FROM computation ORDER BY 1, 2, 3, 4, 5, 6, 7");
  while (computations.next()) {
    const std::string name = computations.text(1);
    ComputationKey key{name,
                       stored_phase(computations.text(2), path),
                       computations.text(3),
                       computations.text(4),
                       stored_count(computations, 5, 0, "flops", name, path),
                       stored_count(computations, 6, 0, "bytes", name, path)};
    check_stored(key, path);
    profile.computations.push_back({std::move(key), stored_measurement(computations, kComputationTime,
                                                                       computations.text(0), name, path)});
  }
  Statement communications(database,
                           "SELECT device, kind, bytes, ranks, inter_node, time_ps, spread_ps, repeats"
                           " FROM communication ORDER BY 1, 2, 3, 4, 5");
  while (communications.next()) {
    const std::string name = communications.text(1);
    if (name != "send" && !collective_from_name(name))
      throw Error(path, fmt::format("this profile database has an unknown communication '{:.60}'", name),
                  kAgain);
    profile.communications.push_back(
        {{name, stored_count(communications, 2, 0, "bytes", name, path),
          stored_count(communications, 3, 1, "ranks", name, path),
          stored_count(communications, 4, 0, "inter_node", name, path) != 0},
         stored_measurement(communications, kCommunicationTime, communications.text(0), name, path)});
  }
  return profile;
}

template <class Event>
void put(Database& database, const EventTableForm& form, const std::vector<Event>& events,
         const std::string& source, ProfileImport& result) {
  Statement insert(database, form.insert);
  for (const Event& event : events) {
    // A statement that still has rows would keep the transaction open.
    Statement find(database, form.find);
    set_key(find, event);
    if (!find.next()) {
      ++result.added;
    } else if (stored_measurement(find, 0, event.measured.device, event.key.name, database.path()) ==
               event.measured) {
      ++result.unchanged;
      continue;
    } else {
      ++result.replaced;
    }
    set_key(insert, event);
    set_measurement(insert, form.key_columns, event.measured, source);
    insert.run();
  }
}

}  // namespace

bool is_database(const std::string& path) {
  return sniff_file(path) == FileKind::sqlite;
}

Profile read_profile_database(const std::string& path) {
  if (!is_there(path))
    throw Error(path, "cannot be opened: there is no such file", "armilla profile import makes a database");
  Database database(path, kProfileForm, DatabaseUse::reading);
  return stored_in(database, path);
}

ProfileImport import_into(const std::string& path, const Profile& profile) {
  Database database(path, kProfileForm);
  // Nothing is added to what is damaged.
  if (!database.is_new()) stored_in(database, path);
  ProfileImport result;
  database.execute("BEGIN");
  put(database, kComputations, profile.computations, profile.file, result);
  put(database, kCommunications, profile.communications, profile.file, result);
  database.execute("COMMIT");
  return result;
}

}  // namespace armilla
