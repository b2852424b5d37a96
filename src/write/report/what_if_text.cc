#include "write/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/duration.h"
#include "base/units_text.h"

namespace armilla {
namespace {

std::string range_text(const RankRange& range) {
  return range.first == range.last ? fmt::format("{}", range.first)
                                   : fmt::format("{}-{}", range.first, range.last);
}

// "rank 13", "ranks 0-7,128".
std::string slowed_ranks(const std::vector<RankRange>& ranges) {
  std::string text;
  for (const RankRange& range : ranges) text += (text.empty() ? "" : ",") + range_text(range);
  const bool one = ranges.size() == 1 && ranges.front().first == ranges.front().last;
  return (one ? "rank " : "ranks ") + text;
}

// Ranges that were given in one place with the same factors are one setting.
template <class Slow, class Same, class Describe>
void add_settings(const std::vector<Slow>& all, Same same, Describe describe,
                  std::vector<std::string>& texts) {
  for (std::size_t i = 0; i < all.size();) {
    std::vector<RankRange> ranges;
    const Slow& first = all[i];
    for (; i < all.size() && all[i].where == first.where && same(all[i], first); ++i)
      ranges.push_back(all[i].ranks);
    std::string text = describe(first, ranges);
    if (!text.empty()) texts.push_back(std::move(text));
  }
}

std::string describe_ranks(const SlowRanks& slow, const std::vector<RankRange>& ranges) {
  // A factor of 1 changes nothing and is not worth a line.
  if (slow.time == 1) return {};
  const std::string ranks = slowed_ranks(ranges);
  return fmt::format("{} {} {:g} times as long to compute", ranks,
                     ranks.starts_with("ranks") ? "take" : "takes", slow.time);
}

std::string describe_links(const Run& run, const SlowLinks& slow, const std::vector<RankRange>& ranges) {
  std::string factors;
  if (slow.bandwidth != 1) factors += fmt::format("{:g} times the bandwidth", slow.bandwidth);
  if (slow.latency != 1)
    factors += fmt::format("{}{:g} times the latency", factors.empty() ? "" : " and ", slow.latency);
  if (factors.empty()) return {};
  const std::vector<Dimension>& dimensions = run.study.machine.dimensions;
  const std::string dimension = slow.dimension < dimensions.size()
                                    ? dimensions[slow.dimension].name
                                    : fmt::format("dimension {}", slow.dimension);
  return fmt::format("links of {} in {} have {}", slowed_ranks(ranges), dimension, factors);
}

std::string describe(const Failures& failures) {
  std::string text =
      fmt::format("a node of {} fails every {} on average", counted(failures.ranks_per_node, "rank"),
                  duration_text(failures.mtbf_of_node));
  if (failures.checkpoint > 0)
    text += fmt::format(", a checkpoint takes {}", duration_text(failures.checkpoint));
  if (failures.restart > 0) text += fmt::format(", a restart {}", duration_text(failures.restart));
  return text;
}

}  // namespace

std::vector<std::string> what_if_settings(const Run& run) {
  const WhatIf& what_if = run.study.what_if;
  std::vector<std::string> texts;
  add_settings(
      what_if.ranks, [](const SlowRanks& a, const SlowRanks& b) { return a.time == b.time; }, describe_ranks,
      texts);
  add_settings(
      what_if.links,
      [](const SlowLinks& a, const SlowLinks& b) {
        return a.dimension == b.dimension && a.bandwidth == b.bandwidth && a.latency == b.latency;
      },
      [&](const SlowLinks& slow, const std::vector<RankRange>& ranges) {
        return describe_links(run, slow, ranges);
      },
      texts);
  for (const DamagedLink& link : what_if.damage) {
    texts.push_back(link.bandwidth == 0 ? fmt::format("the link {} failed", link.between)
                                        : fmt::format("the link {} has {:.4g} % of its bandwidth",
                                                      link.between, 100 * link.bandwidth));
  }
  if (what_if.jitter.deviation > 0) {
    texts.push_back(
        fmt::format("the time of every computation scatters by {:.4g} % around its mean (seed {})",
                    100 * what_if.jitter.deviation, what_if.jitter.seed));
  }
  if (what_if.failures.mtbf_of_node > 0) texts.push_back(describe(what_if.failures));
  return texts;
}

std::string what_if_effect(const Run& run) {
  if (!run.ideal) return {};
  const Time with = run.result.iteration, without = *run.ideal;
  // Picoseconds are exact, so equality means that nothing in the critical path was slowed down.
  if (with == without) return fmt::format("the iteration takes {} with and without", to_text(with));
  const Time difference = std::max(with, without) - std::min(with, without);
  const std::string share =
      without > Time(0) ? fmt::format(" ({:.1f} %)", 100 * in_seconds(difference) / in_seconds(without)) : "";
  return fmt::format("the iteration takes {}, {}{} {} than the {} without", to_text(with),
                     to_text(difference), share, with > without ? "longer" : "shorter", to_text(without));
}

}  // namespace armilla
