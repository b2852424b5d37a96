// Sweep: the runs that a user asked to compare, key by key, and what came of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace armilla {

enum class SweepState : std::uint8_t {
  open,  // not run: the sweep was interrupted before
  done,
  failed,  // refused by whatever it asks for
};
std::string_view name_of(SweepState state);

struct SweepRun {
  std::vector<std::string> values;  // one for each key, as text of a study file; empty: as the study has it
  std::string hash;                 // of all that the outcome depends on; 32 hexadecimal digits
  SweepState state = SweepState::open;
  bool known = false;           // from the database: not run this time
  bool is_repeated = false;     // the same as one before it
  std::string message;          // why it failed
  std::vector<double> figures;  // headline_figures() (ir/derived/headline.h); empty unless done
  double elapsed_seconds = 0;   // that the run took
};

struct SweepResult {
  std::string study;              // what is varied: the file, or the sweep's own
  std::vector<std::string> keys;  // that runs differ in
  std::vector<SweepRun> runs;     // in the order of the list, then of the grid, whose last key changes first
  double elapsed_seconds = 0;
  std::vector<std::string> notes;    // what files that the runs name have that says nothing here, each once
  std::int64_t of_other_builds = 0;  // runs in the database that another build of Armilla made: not taken

  std::int64_t count(SweepState state) const;
  std::int64_t known() const;
  std::int64_t repeated() const;  // and not known
  bool complete() const { return count(SweepState::open) == 0; }
};

}  // namespace armilla
