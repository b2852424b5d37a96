// What a search has simulated so far, in a file (study/database/database.h; docs/formats/search_database.md):
// one row per plan, written as soon as its simulation ends. A search that goes on looks its plans up before
// it simulates them; everything else is worked out again, so that it may ask for another objective, ranking
// or number of threads.
//
// A plan is known by its number in the space. So a database belongs to one study and space: what the user
// set, the machines and models that this stands for, the values of every axis, and the version of Armilla.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/config.h"
#include "base/units.h"
#include "study/database/database.h"
#include "study/search/space.h"

namespace armilla {

// What came of a simulation: times, that it was given up, or why it was refused.
struct SavedOutcome {
  Time iteration{}, compute{}, exposed_communication{};
  std::optional<Energy> energy{};
  Time longer_than{-1};             // where it was given up: the iteration lasts longer; else negative
  std::string reason{}, message{};  // of a refusal
  bool is_refused() const { return !reason.empty(); }
  bool is_given_up() const { return longer_than >= Time(0); }
};

class SavedSearch {
 public:
  // Of the request's file. Throws Error: for a file that is there although nothing is to be resumed, for
  // another study's, and as Database does.
  SavedSearch(const SearchRequest& request, const SearchSpace& space);

  const SavedOutcome* find(std::size_t base, std::int64_t point) const;
  // `settings`: of the plan, for those who read the database.
  void add(std::size_t base, std::int64_t point, const SavedOutcome& outcome, const std::string& settings);

 private:
  void check_study(const SearchRequest& request, const SearchSpace& space);

  Database database_;
  Statement insert_;
  std::map<std::pair<std::size_t, std::int64_t>, SavedOutcome> known_;
};

}  // namespace armilla
