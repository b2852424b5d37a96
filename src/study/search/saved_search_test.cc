#include "study/search/saved_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <tuple>

#include "base/error_testing.h"
#include "study/database/database.h"
#include "study/search/search_testing.h"
#include "study/search/space.h"

namespace armilla {
namespace {

constexpr DatabaseForm kForm = {
    .what = "saved search", .application = 0x41726d53, .version = 6, .tables = ""};

void expect_search_error(const std::function<void()>& call, const std::string& where,
                         const std::string& message, const std::string& hint) {
  EXPECT_EQ(error_of(call), where + ": " + message + "\n  hint: " + hint);
}

class SavedSearchTest : public SearchFixture {
 protected:
  SearchRequest saved(const std::string& study, bool resume) const {
    SearchRequest wanted = request("gpt", study);
    wanted.save = file();
    wanted.resume = resume;
    wanted.asked = study;
    wanted.version = "1.2.3";
    return wanted;
  }
  std::string file() const { return (folder_ / "plans.db").string(); }
  std::int64_t number_of(const char* query) const { return Database(file(), kForm).number_of(query); }
  // Rows, as a search would have written them.
  void change(const SearchRequest& request, const std::string& which,
              const std::function<void(SavedOutcome&)>& how) const {
    std::vector<std::tuple<std::size_t, std::int64_t, std::string>> rows;
    {
      Database database(file(), kForm);
      Statement found(database, "SELECT base, point, settings FROM plan WHERE " + which);
      while (found.next())
        rows.emplace_back(static_cast<std::size_t>(found.number(0)), found.number(1), found.text(2));
    }
    SavedSearch search(request, SearchSpace(request));
    for (const auto& [base, point, settings] : rows) {
      SavedOutcome outcome = *search.find(base, point);
      how(outcome);
      search.add(base, point, outcome, settings);
    }
  }
};

TEST_F(SavedSearchTest, GoesOnWhereItEnded) {
  const SearchResult whole = search_plans(request("gpt", kSmallSpace));
  SearchRequest first = saved(kSmallSpace, false);
  int left = 5;
  first.stopped = [&] { return left-- == 0; };
  const SearchResult begun = search_plans(first);
  EXPECT_FALSE(begun.complete);
  EXPECT_EQ(begun.space.simulated, 5);
  EXPECT_EQ(begun.space.resumed, 0);
  const SearchResult rest = search_plans(saved(kSmallSpace, true));
  EXPECT_EQ(rest.space.resumed, 5);
  EXPECT_EQ(rest.space.simulated, whole.space.simulated);
  EXPECT_EQ(texts(rest.ranking), texts(whole.ranking));
  EXPECT_EQ(texts(rest.simulated), texts(whole.simulated));
  expect_sum(rest.space);
  // With another question, too.
  SearchRequest other = saved(kSmallSpace, true);
  other.objective = SearchObjective::throughput;
  EXPECT_EQ(search_plans(other).space.resumed, whole.space.simulated);
  // And with another price and budget, which no outcome depends on.
  SearchRequest dear = other;
  const auto read = dear.read;
  dear.read = [read](std::vector<Override> settings) {
    Study study = read(settings);
    study.machine.device.price = Money(1e6);
    return study;
  };
  dear.asked += "training.tokens: 1B\nmachine.device.price: 1MUSD/h\n";
  dear.objective = SearchObjective::cost;
  EXPECT_EQ(search_plans(dear).space.resumed, whole.space.simulated);
}

// What comes of a plan is kept whatever the limits; those that it is beyond make no plan simulated.
TEST_F(SavedSearchTest, CountsAsResumedWhatIsSimulated) {
  const SearchResult whole = search_plans(saved(kSmallSpace, false));
  SearchRequest late = saved(kSmallSpace, true);
  late.deadline = whole.simulated[whole.simulated.size() / 2].iteration;
  const SearchResult some = search_plans(late);
  EXPECT_GT(some.space.resumed, 0);
  EXPECT_LT(some.space.simulated, whole.space.simulated);
  EXPECT_LE(some.space.resumed, some.space.simulated);
  expect_sum(some.space);
}

// Plans that were given up are kept with what they were longer than: they are played again only where that
// does not say enough.
TEST_F(SavedSearchTest, KeepsWhatWasGivenUp) {
  const std::string space =
      "machine: dgx-a100\nplan:\n  ranks: 8\n  global_batch: 32\n  tensor: 2\n  pipeline: [2, 4]\n"
      "  micro_batch: [1, 2]\n  virtual_stages: [1, 2]\n  offload: any\n  overlap: any\n"
      "  sequence_parallel: any\n  scatter_gather: any\n";
  const auto saved_wide = [&](bool resume) {
    SearchRequest wanted = request("wide", space);
    wanted.top = 2;
    wanted.save = file();
    wanted.resume = resume;
    wanted.asked = space;
    wanted.version = "1.2.3";
    return wanted;
  };
  const SearchResult whole = search_plans(saved_wide(false));
  const std::int64_t given_up = number_of("SELECT count(*) FROM plan WHERE longer_than_ps >= 0");
  EXPECT_GT(given_up, 3);
  EXPECT_EQ(number_of("SELECT count(*) FROM plan WHERE refusal = '' AND longer_than_ps < 0"),
            whole.space.simulated);
  const auto resume = [&] {
    const SearchResult again = search_plans(saved_wide(true));
    EXPECT_EQ(again.space.bounded, whole.space.bounded);
    EXPECT_EQ(texts(again.simulated), texts(whole.simulated));
    expect_sum(again.space);
    return again.space.resumed;
  };
  EXPECT_EQ(resume(), whole.space.simulated);
  // Where they are not known to be slow enough, they are simulated until they are.
  change(saved_wide(true), "longer_than_ps >= 0",
         [](SavedOutcome& outcome) { outcome.longer_than = Time(1); });
  EXPECT_EQ(resume(), whole.space.simulated);
  EXPECT_EQ(number_of("SELECT count(*) FROM plan WHERE longer_than_ps > 1"), given_up);
  // The best plan, were it given up, would not be looked at again.
  change(saved_wide(true),
         "iteration_ps = (SELECT min(iteration_ps) FROM plan WHERE refusal = '' AND longer_than_ps < 0)",
         [](SavedOutcome& outcome) { outcome.longer_than = Time(1'000'000'000'000'000); });
  SearchRequest wanted = saved_wide(true);
  wanted.brute_force = false;
  EXPECT_NE(texts(search_plans(wanted).ranking).front(), texts(whole.ranking).front());
}

TEST_F(SavedSearchTest, IsRefusedWhereItIsNotAsItWasWritten) {
  search_plans(saved(kSmallSpace, false));
  const std::filesystem::path whole = folder_ / "whole.db";
  std::filesystem::copy_file(file(), whole);
  for (const std::string damage :
       {"UPDATE plan SET iteration_ps = iteration_ps + 1 WHERE refusal = ''",
        "UPDATE plan SET energy_j = energy_j * 2 WHERE refusal = ''",
        "UPDATE plan SET longer_than_ps = 1 WHERE refusal = ''", "UPDATE plan SET point = point + 1000",
        "UPDATE plan SET message = message || '.'", "DROP TABLE plan"}) {
    std::filesystem::copy_file(whole, file(), std::filesystem::copy_options::overwrite_existing);
    { Database(file(), kForm).execute(damage); }
    expect_search_error([&] { search_plans(saved(kSmallSpace, true)); }, file(),
                        "this saved search is damaged", "delete it, or name another file");
  }
}

TEST_F(SavedSearchTest, BelongsToOneStudyAndVersion) {
  search_plans(saved(kSmallSpace, false));
  expect_search_error([&] { search_plans(saved(kSmallSpace, false)); }, file(),
                      "is there already, and this search does not go on with it",
                      "add --resume, or name another file");
  SearchRequest newer = saved(kSmallSpace, true);
  newer.version = "1.2.4";
  expect_search_error([&] { search_plans(newer); }, file(),
                      "was saved by build 1.2.3 of Armilla, and this is 1.2.4",
                      "their times may differ: name another file");
  // Empty, as a search leaves it that is killed at its very start.
  std::ofstream(file(), std::ios::trunc).close();
  EXPECT_GT(search_plans(saved(kSmallSpace, true)).space.simulated, 0);
}

}  // namespace
}  // namespace armilla
