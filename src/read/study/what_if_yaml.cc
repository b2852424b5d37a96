#include "read/study/what_if_yaml.h"

#include <fmt/format.h>

#include "base/duration.h"
#include "base/error.h"
#include "base/suggest.h"
#include "base/units_text.h"
#include "ir/derived/rank_ranges.h"
#include "read/topology.h"

namespace armilla {
namespace {

// Slower or faster than this and simulated times stop to mean anything.
constexpr double kLeastFactor = 1e-6, kMostFactor = 1e6;

double read_factor(const Config& config, double lowest, double highest) {
  const double factor = parse_real(config.text(), config.where());
  if (!(factor >= lowest && factor <= highest))
    throw Error(config.where(), fmt::format("a factor of {}", factor),
                fmt::format("expected {:g} to {:g}", lowest, highest));
  return factor;
}
double read_factor(const Config& config) {
  return read_factor(config, kLeastFactor, kMostFactor);
}

std::vector<RankRange> read_ranges(const Config& config) {
  const Config ranks = config.at("ranks");
  return parse_rank_ranges(ranks.text(), ranks.where());
}

void read_slow_ranks(const Config& config, WhatIf& what_if) {
  for (const Config& item : config.items()) {
    const std::vector<RankRange> ranges = read_ranges(item);
    const double time = read_factor(item.at("time"));
    item.reject_unknown_keys();
    // All ranges of a list have its place: what is wrong with one is told where it was written.
    for (const RankRange& range : ranges) what_if.ranks.push_back({range, time, item.at("ranks").where()});
  }
}

std::uint32_t read_slower_dimension(const Config& config, const Machine& machine) {
  std::vector<std::string> names;
  for (const Dimension& dimension : machine.dimensions) {
    if (dimension.name == config.text()) return static_cast<std::uint32_t>(names.size());
    names.push_back(dimension.name);
  }
  throw Error(config.where(), fmt::format("unknown dimension '{:.60}'", config.text()),
              suggest(config.text(), names));
}

void read_slow_links(const Config& config, const Machine& machine, WhatIf& what_if) {
  for (const Config& item : config.items()) {
    SlowLinks links;
    links.dimension = read_slower_dimension(item.at("dimension"), machine);
    const std::vector<RankRange> ranges = read_ranges(item);
    if (const auto bandwidth = item.find("bandwidth")) links.bandwidth = read_factor(*bandwidth);
    // A latency of 0 can be wondered about; over a bandwidth of 0 no message would end.
    if (const auto latency = item.find("latency")) links.latency = read_factor(*latency, 0, kMostFactor);
    item.reject_unknown_keys();
    for (const RankRange& range : ranges) {
      links.ranks = range;
      links.where = item.at("ranks").where();
      what_if.links.push_back(links);
    }
  }
}

Jitter read_jitter(const Config& config) {
  constexpr double kMostDeviation = 10;
  Jitter jitter;
  jitter.deviation = read_factor(config.at("deviation"), 0, kMostDeviation);
  if (const auto seed = config.find("seed")) jitter.seed = static_cast<std::uint64_t>(seed->count(0));
  config.reject_unknown_keys();
  return jitter;
}

// Years do not fit simulated time (base/duration.h), and nothing here is simulated: goodput is arithmetic.
double read_duration(const Config& config, std::string_view key) {
  const auto duration = config.find(key);
  return duration ? parse_duration(duration->text(), duration->where()) : 0;
}

Failures read_failures(const Config& config) {
  Failures failures;
  const Config mtbf = config.at("mtbf_of_node");
  failures.mtbf_of_node = read_duration(config, "mtbf_of_node");
  if (!(failures.mtbf_of_node > 0)) throw Error(mtbf.where(), "must be positive");
  if (const auto ranks = config.find("ranks_per_node")) failures.ranks_per_node = ranks->count(1, INT32_MAX);
  failures.checkpoint = read_duration(config, "checkpoint");
  failures.restart = read_duration(config, "restart");
  failures.interval = read_duration(config, "interval");
  if (const auto interval = config.find("interval")) {
    // Whether the job gets on at all with it is known after the run (ir/derived/goodput.cc).
    failures.interval_where = interval->where();
    if (!(failures.interval > 0)) {
      throw Error(failures.interval_where, "the interval must be positive", "omit it for the best one");
    }
  }
  config.reject_unknown_keys();
  return failures;
}

}  // namespace

WhatIf read_what_if(const Config& config, const Machine& machine) {
  WhatIf what_if;
  if (const auto ranks = config.find("ranks")) read_slow_ranks(*ranks, what_if);
  if (const auto links = config.find("links")) read_slow_links(*links, machine, what_if);
  if (const auto failed = config.find("failed_links")) {
    // Text: whether it names a link only the graph of links tells (ir/interconnect.cc).
    for (const Config& link : failed->is_list() ? failed->items() : std::vector{*failed})
      what_if.damage.push_back(parse_damage(link.text(), link.where()));
  }
  if (const auto jitter = config.find("jitter")) what_if.jitter = read_jitter(*jitter);
  if (const auto failures = config.find("failures")) what_if.failures = read_failures(*failures);
  config.reject_unknown_keys();
  return what_if;
}

}  // namespace armilla
