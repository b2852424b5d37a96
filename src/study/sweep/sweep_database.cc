#include "study/sweep/sweep_database.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "ir/derived/headline.h"
#include "study/database/inputs.h"

namespace armilla {
namespace {

// The headline figures as columns, each written as `after` says.
std::string columns(const std::string& after) {
  std::string text;
  for (const HeadlineFigure& figure : headline_figures())
    text += fmt::format(fmt::runtime(after), fmt::arg("name", figure.name),
                        fmt::arg("type", figure.whole ? "INTEGER" : "REAL"));
  return text;
}

const std::string& tables_of_sweeps() {
  static const std::string text =
      "CREATE TABLE run (id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, armilla TEXT NOT NULL,"
      " finished TEXT NOT NULL, elapsed_s REAL NOT NULL, state TEXT NOT NULL, message TEXT NOT NULL" +
      columns(", {name} {type}") +
      ", settings TEXT NOT NULL, digest TEXT NOT NULL);"
      "CREATE TABLE value (run INTEGER NOT NULL REFERENCES run(id), key TEXT NOT NULL, value TEXT NOT NULL,"
      " PRIMARY KEY (run, key)) WITHOUT ROWID;";
  return text;
}

DatabaseForm form_of_sweeps() {
  return {.what = kSweepDatabase.what,
          .application = kSweepDatabase.application,
          .version = 4,
          .tables = tables_of_sweeps()};
}

std::string now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
}

std::string in_sql_quotes(const std::string& text, char quote) {
  std::string result(1, quote);
  for (const char c : text) {
    result += c;
    if (c == quote) result += c;
  }
  return result + quote;
}

// Of a row: bytes that have changed since it was written would change an answer unseen.
std::string digest_of_run(const SweepRun& run) {
  std::string text = fmt::format("{} {} {:a}", run.hash, name_of(run.state), run.elapsed_seconds);
  for (const double figure : run.figures) text += std::isnan(figure) ? " none" : fmt::format(" {:a}", figure);
  return digest_text(text + "\n" + run.message);
}

}  // namespace

SweepDatabase::SweepDatabase(const std::string& path)
    : database_(path, form_of_sweeps()),
      find_(database_,
            "SELECT state, message, elapsed_s, digest" + columns(", {name}") + " FROM run WHERE hash = ?"),
      // A run that is done again keeps its row: its values name the row by number.
      add_(database_,
           "INSERT INTO run (hash, armilla, finished, elapsed_s, state, message, settings, digest" +
               columns(", {name}") + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?" + columns(", ?") +
               ") ON CONFLICT (hash) DO UPDATE SET finished = excluded.finished, elapsed_s = "
               "excluded.elapsed_s, state = excluded.state, message = excluded.message, digest = "
               "excluded.digest" +
               columns(", {name} = excluded.{name}")),
      add_value_(database_, "INSERT OR REPLACE INTO value SELECT id, ?, ? FROM run WHERE hash = ?") {}

bool SweepDatabase::find(SweepRun& run) {
  find_.set(0, run.hash);
  const bool is_there = find_.next();
  bool known = false;
  if (is_there) {
    SweepRun found = run;
    found.known = true;
    found.state = find_.text(0) == name_of(SweepState::done) ? SweepState::done : SweepState::failed;
    found.message = find_.text(1);
    found.elapsed_seconds = find_.real(2);
    if (found.state == SweepState::done) {
      for (std::size_t i = 0; i < headline_figures().size(); ++i)
        found.figures.push_back(find_.real(4 + static_cast<int>(i)));
    }
    known = find_.text(3) == digest_of_run(found);
    if (known) run = std::move(found);
  }
  find_.run();
  if (is_there && !known) ++damaged_;
  return known;
}

void SweepDatabase::add(const SweepRun& run, const std::string& settings, const std::string& version) {
  add_.set(0, run.hash).set(1, version).set(2, now()).set(3, run.elapsed_seconds);
  add_.set(4, name_of(run.state)).set(5, run.message).set(6, settings);
  add_.set(7, digest_of_run(run));
  // SQLite keeps no NaN: it becomes NULL, which says what a failed run has.
  const double none = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t i = 0; i < headline_figures().size(); ++i)
    add_.set(8 + static_cast<int>(i), run.figures.empty() ? none : run.figures[i]);
  add_.run();
}

void SweepDatabase::add_values(const SweepRun& run, const std::vector<std::string>& keys) {
  for (std::size_t key = 0; key < keys.size(); ++key) {
    if (run.values[key].empty()) continue;
    add_value_.set(0, keys[key]).set(1, run.values[key]).set(2, run.hash).run();
  }
}

std::int64_t SweepDatabase::not_of(const std::string& version) {
  Statement others(database_, "SELECT count(*) FROM run WHERE armilla <> ?");
  others.set(0, version);
  return others.next() ? others.number(0) : 0;
}

// A row for each run, with a column for each key that any run of the file sets. Made anew, since keys come,
// and as a whole: who reads meanwhile finds the old view or the new one.
void SweepDatabase::make_view() {
  std::string view = "BEGIN; DROP VIEW IF EXISTS sweep; CREATE VIEW sweep AS SELECT id";
  {
    Statement keys(database_, "SELECT DISTINCT key FROM value ORDER BY key");
    while (keys.next()) {
      const std::string key = keys.text(0);
      view += fmt::format(", (SELECT value FROM value WHERE run = id AND key = {}) AS {}",
                          in_sql_quotes(key, '\''), in_sql_quotes(key, '"'));
    }
  }
  view += ", state, message" + columns(", {name}") + ", elapsed_s, finished, armilla FROM run; COMMIT";
  database_.execute(view);
}

}  // namespace armilla
