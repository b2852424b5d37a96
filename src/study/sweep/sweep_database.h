// The runs of sweeps in a file (study/database/database.h; docs/formats/sweep_database.md): one row per run,
// written as soon as it ends, found again by its hash.
#pragma once

#include <string>
#include <vector>

#include "ir/sweep.h"
#include "study/database/database.h"

namespace armilla {

class SweepDatabase {
 public:
  // Throws Error as Database does.
  explicit SweepDatabase(const std::string& path);

  // Takes over what is known of the run with this hash, and says whether there is anything. A row whose bytes
  // have changed since it was written is as none, and counted.
  bool find(SweepRun& run);
  std::int64_t damaged() const { return damaged_; }
  // `settings` of its study, a line each.
  void add(const SweepRun& run, const std::string& settings, const std::string& version);
  // Says which values the run had of the keys of this sweep.
  void add_values(const SweepRun& run, const std::vector<std::string>& keys);
  // Runs that another build of Armilla made.
  std::int64_t not_of(const std::string& version);
  // Makes the view in which every key and figure is a column.
  void make_view();

 private:
  Database database_;
  Statement find_, add_, add_value_;
  std::int64_t damaged_ = 0;  // rows
};

}  // namespace armilla
