#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "base/units_text.h"
#include "ir/collective.h"
#include "read/profile.h"
#include "read/profile/profile_fields.h"

namespace armilla {
namespace {

// What nccl-tests calls its programs, without "_perf".
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kPrograms = {
    {{"all_reduce", "all-reduce"},
     {"reduce_scatter", "reduce-scatter"},
     {"all_gather", "all-gather"},
     {"alltoall", "all-to-all"},
     {"all_to_all", "all-to-all"},
     {"broadcast", "broadcast"},
     {"sendrecv", "send"},
     {"reduce", "reduce"}}};

std::string collective_named_in(std::string_view text) {
  for (const auto& [program, collective] : kPrograms) {
    if (text.find(program) != text.npos) return std::string(collective);
  }
  return {};
}

class NcclTests {
 public:
  NcclTests(const std::string& name, const std::string& collective)
      : name_(name), collective_(collective), builder_(name) {}

  Profile read(std::string_view text) {
    std::istringstream lines{std::string(text)};
    std::int64_t number = 0;
    for (std::string line; std::getline(lines, line);) {
      const std::string where = fmt::format("{}:{}", name_, ++number);
      if (line.starts_with('#')) {
        read_comment(line);
      } else {
        read_result(words_of(line), where);
      }
    }
    Profile profile = builder_.take();
    if (profile.communications.empty())
      throw Error(name_, "has no times of nccl-tests",
                  "give the whole output, from '# nThread' to '# Avg bus bandwidth'");
    return profile;
  }

 private:
  void read_comment(const std::string& line) {
    const std::vector<std::string_view> words = words_of(line);
    const bool is_rank = words.size() > 2 && words[1] == "Rank";
    const bool starts = line.find("Collective test starting:") != line.npos;
    // Several runs may be in one log.
    if (starts || line.find("Using devices") != line.npos || (is_rank && has_results_)) {
      groups_.clear();
      has_results_ = false;
    }
    if (starts) {
      collective_ = collective_named_in(line);
      program_ = std::string(words.back());
    } else if (is_rank) {
      // "# Rank 0 Group 0 Pid 1 on HOST device 0 [0x10] NVIDIA A100-SXM4-80GB"
      const auto on = std::find(words.begin(), words.end(), "on");
      if (on == words.end() || on + 1 == words.end()) return;
      // NCCL_TESTS_SPLIT makes groups that run at the same time, each a collective of its own.
      const auto named = std::find(words.begin(), words.end(), "Group");
      Group& group =
          groups_[named == words.end() || named + 1 == words.end() ? "" : std::string(*(named + 1))];
      ++group.ranks;
      group.hosts.emplace(*(on + 1));
      const std::size_t bracket = line.find("] ");
      if (bracket != line.npos) device_ = line.substr(bracket + 2);
      while (!device_.empty() && (device_.back() == ' ' || device_.back() == '\r')) device_.pop_back();
    } else if (const auto size = std::find(words.begin(), words.end(), "size"); size != words.end()) {
      // "# size count type redop root time algbw ...": which of them there are differs by version.
      const auto time = std::find(size, words.end(), "time");
      if (time == words.end()) return;
      time_column_ = static_cast<std::size_t>(time - size);
      const auto wrong = std::find(time, words.end(), "#wrong");
      wrong_column_.reset();
      if (wrong != words.end()) wrong_column_ = static_cast<std::size_t>(wrong - size);
    }
  }

  void read_result(const std::vector<std::string_view>& words, const std::string& where) {
    const auto is_number = [](std::string_view word) {
      return !word.empty() && word.find_first_not_of("0123456789") == word.npos;
    };
    if (!time_column_ || words.empty() || !is_number(words.front())) return;
    // Behind the time stand two bandwidths. A log that was cut off may have part of a time.
    if (words.size() <= *time_column_ + 2)
      throw Error(where, "the line is cut off: its bandwidths are missing", "leave it out");
    if (collective_.empty() && !program_.empty())
      throw Error(where, fmt::format("'{:.60}' is not a collective that is modelled", program_),
                  "known: all_reduce, reduce_scatter, all_gather, alltoall, broadcast, reduce and sendrecv");
    if (collective_.empty())
      throw Error(where, "which collective this is of is not said", "add --collective all-reduce");
    if (groups_.empty()) throw Error(where, "no line says which ranks take part", "expected '# Rank 0 ...'");
    has_results_ = true;
    const Group& group = groups_.begin()->second;
    const bool alike = std::ranges::all_of(groups_, [&](const auto& other) {
      return other.second.ranks == group.ranks && (other.second.hosts.size() > 1) == (group.hosts.size() > 1);
    });
    if (!alike)
      throw Error(where, "its groups differ: some have more ranks, or are on more hosts, than others",
                  "measure groups of one kind at a time");
    const std::int64_t bytes = parse_count(words.front(), where + ": size");
    constexpr double kMicro = 1e-6;
    const std::string text(words[*time_column_]);
    const Time time = duration_from(parse_real(text, where + ": time") * kMicro, text, where + ": time");
    if (bytes < 1) return;
    // "N/A": nobody looked.
    const std::string_view wrong =
        wrong_column_ && words.size() > *wrong_column_ ? words[*wrong_column_] : "0";
    if (is_number(wrong) && wrong.find_first_not_of('0') != wrong.npos)
      throw Error(where, fmt::format("{} of its results {} wrong", wrong, wrong == "1" ? "was" : "were"),
                  "such a time says nothing: measure it again, or leave the line out");
    const CommunicationKey key{collective_, bytes, collective_ == "send" ? 2 : group.ranks,
                               group.hosts.size() > 1};
    // A run may give a size several times; the first counts.
    if (!known_.insert({key.name, key.bytes, key.ranks, key.inter_node, device_}).second) return;
    builder_.add(key, Measured{time, {}, 0, device_}, where);
  }

  const std::string& name_;
  std::string collective_, program_, device_;
  ProfileBuilder builder_;
  struct Group {
    std::int64_t ranks = 0;
    std::set<std::string> hosts;
  };
  std::map<std::string, Group> groups_;  // of the run that is being read
  bool has_results_ = false;             // of it
  std::set<std::tuple<std::string, std::int64_t, std::int64_t, bool, std::string>> known_;
  std::optional<std::size_t> time_column_, wrong_column_;  // the first of each, out of place
};

}  // namespace

Profile parse_nccl_tests(std::string_view text, const std::string& name, const std::string& collective) {
  return NcclTests(name, collective).read(text);
}

}  // namespace armilla
