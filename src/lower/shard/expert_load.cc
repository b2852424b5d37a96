#include "lower/shard/expert_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "lower/expert_exchange.h"

namespace armilla {
namespace {

// Loads become fractions of 2^16, exact in what follows and the same on every machine.
constexpr std::int64_t kUnit = 1 << 16;

// splitmix64 over seed and counter: no state, so a position's load does not depend on how many were drawn
// before. 2^-53 scales to (0, 1); the half keeps 0, whose logarithm is needed, out.
double uniform_of(std::uint64_t seed, std::uint64_t counter) {
  std::uint64_t x = seed * 0x9E3779B97F4A7C15ULL + (counter + 1) * 0xD1B54A32D192ED03ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  x ^= x >> 31;
  return (static_cast<double>(x >> 11) + 0.5) / 9007199254740992.0;
}

// Box-Muller; only the cosine's half is used.
double normal_of(std::uint64_t seed, std::uint64_t counter) {
  return std::sqrt(-2 * std::log(uniform_of(seed, 2 * counter))) *
         std::cos(2 * std::numbers::pi * uniform_of(seed, 2 * counter + 1));
}

// Zipf: the i-th position has weight i^-skew. Random: normal with mean 1 and deviation skew.
double weight_of(const Plan& plan, std::int64_t position) {
  if (plan.expert_load == ExpertLoad::zipf)
    return std::pow(static_cast<double>(position + 1), -plan.expert_skew);
  return 1 + plan.expert_skew * normal_of(plan.seed, static_cast<std::uint64_t>(position));
}

Bytes pair_bytes(Bytes bytes, Share load, std::size_t positions) {
  return Bytes(scaled(bytes.value, load * Share{1, static_cast<std::int64_t>(positions)}));
}

// Copies of one token go to different experts: a position with E / p experts gets at most that many of the k.
double highest_load(const Plan& plan, const ModelFacts& facts) {
  if (facts.experts == 0 || facts.active_experts == 0) return static_cast<double>(plan.expert);
  const double active = static_cast<double>(facts.active_experts);
  const double own = static_cast<double>(facts.experts) / static_cast<double>(plan.expert);
  return static_cast<double>(plan.expert) * std::min(active, own) / active;
}

// Loads of mean 1 in proportion to the weights, as far as the limit lets them.
std::vector<double> limited_loads(std::vector<double> weights, double highest) {
  const auto count = static_cast<double>(weights.size());
  std::vector<bool> full(weights.size());
  double left = count;  // load for those that are not full
  double weight = std::accumulate(weights.begin(), weights.end(), 0.0);
  // What goes beyond the limit is dealt to the others, who may then reach it themselves; each round fills at
  // least one more position, so there are at most as many rounds as positions.
  for (bool changed = true; changed;) {
    changed = false;
    const double scale = weight > 0 ? left / weight : 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (full[i] || weights[i] * scale < highest) continue;
      full[i] = changed = true;
      left -= highest;
      weight -= weights[i];
    }
  }
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] = full[i] ? highest : weights[i] * std::max(left, 0.0) / weight;
  return weights;
}

}  // namespace

double default_skew(ExpertLoad load) {
  return load == ExpertLoad::zipf ? 1 : load == ExpertLoad::random ? 0.2 : 0;
}

Share capacity_share(const Plan& plan) {
  const auto part =
      std::max<std::int64_t>(1, std::llround(plan.expert_capacity * static_cast<double>(kUnit)));
  const std::int64_t common = std::gcd(part, kUnit);
  return {part / common, kUnit / common};
}

std::vector<Share> expert_loads(const Plan& plan, const ModelFacts& facts) {
  std::vector<Share> loads(static_cast<std::size_t>(is_uneven(plan) ? plan.expert : 1));
  if (!is_uneven(plan)) return loads;
  std::vector<double> weights;
  for (std::int64_t i = 0; i < plan.expert; ++i) weights.push_back(std::max(weight_of(plan, i), kLeastLoad));
  weights = limited_loads(std::move(weights), highest_load(plan, facts));
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const double load = std::max(weights[i], kLeastLoad);
    loads[i] = Share{std::llround(load * static_cast<double>(kUnit)), kUnit};
  }
  return loads;
}

CustomCollective uneven_all_to_all(const std::vector<Share>& loads, Bytes bytes, bool to_experts) {
  CustomCollective collective;
  collective.name = "uneven direct";
  collective.kind = CollectiveKind::all_to_all;
  collective.members.resize(loads.size());
  for (std::size_t i = 0; i < loads.size(); ++i) {
    CustomProgram& program = collective.members[i];
    const auto add = [&](CustomNode::Kind kind, std::size_t peer) {
      // Towards the experts a message is as large as its receiver's load, back as its sender's.
      const bool own = (kind == CustomNode::Kind::receive) == to_experts;
      CustomNode node;
      node.kind = kind;
      node.peer = static_cast<std::int32_t>(peer);
      node.bytes = pair_bytes(bytes, loads[own ? i : peer], loads.size());
      program.nodes.push_back(node);
      program.first_dependence.push_back(0);
      program.labels.push_back(fmt::format("{} {}", kind == CustomNode::Kind::send ? "to" : "from", peer));
    };
    // Step s sends s positions further and receives from s back: every position is the target of one message
    // per step.
    for (std::size_t step = 1; step < loads.size(); ++step) {
      add(CustomNode::Kind::send, (i + step) % loads.size());
      add(CustomNode::Kind::receive, (i + loads.size() - step) % loads.size());
    }
  }
  return collective;
}

}  // namespace armilla
