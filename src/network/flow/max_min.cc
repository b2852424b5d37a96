#include "network/flow/max_min.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace armilla {

MaxMin::MaxMin(std::vector<double> capacities, std::vector<std::uint32_t> begin, std::vector<Use> uses,
               std::vector<double> weights)
    : links_(capacities.size()), flows_(weights.size()), uses_(std::move(uses)), place_(uses_.size()) {
  const double largest = capacities.empty() ? 1 : std::ranges::max(capacities);
  quantum_ = std::ldexp(1, std::ilogb(largest) - 52);
  per_quantum_ = 1 / quantum_;
  for (std::size_t link = 0; link < links_.size(); ++link)
    links_[link].capacity = std::max(quantum_, rounded_down(capacities[link]));
  for (std::size_t flow = 0; flow < flows_.size(); ++flow) {
    flows_[flow].weight = weights[flow];
    flows_[flow].begin = begin[flow];
    flows_[flow].end = begin[flow + 1];
  }
}

double MaxMin::rounded_down(double rate) const {
  const double quanta = rate * per_quantum_;  // whole ones from 2^52 on
  return quanta < 0x1p52 ? static_cast<double>(static_cast<std::int64_t>(quanta)) * quantum_ : rate;
}

// Never nothing: flows that are there go on.
double MaxMin::level_of(const Link& link) const {
  return std::max(quantum_, rounded_down(link.left / link.weight));
}

std::uint32_t MaxMin::open(std::span<const Use> uses, double weight) {
  if (closed_.size() <= uses.size()) closed_.resize(uses.size() + 1);
  std::vector<std::uint32_t>& closed = closed_[uses.size()];
  std::uint32_t flow = static_cast<std::uint32_t>(flows_.size());
  if (closed.empty()) {
    Flow& fresh = flows_.emplace_back();
    fresh.begin = static_cast<std::uint32_t>(uses_.size());
    fresh.end = fresh.begin + static_cast<std::uint32_t>(uses.size());
    uses_.resize(fresh.end);
    place_.resize(fresh.end);
  } else {
    flow = closed.back();
    closed.pop_back();
  }
  flows_[flow].weight = weight;
  std::ranges::copy(uses, uses_.begin() + flows_[flow].begin);
  return flow;
}

void MaxMin::change(std::uint32_t flow, std::span<const Use> uses) {
  if (flows_[flow].end - flows_[flow].begin != uses.size()) {  // one that has the room gives it away
    const std::uint32_t other = open(uses);
    std::swap(flows_[flow].begin, flows_[other].begin);
    std::swap(flows_[flow].end, flows_[other].end);
    close(other);
  }
  std::ranges::copy(uses, uses_.begin() + flows_[flow].begin);
}

void MaxMin::close(std::uint32_t flow) {
  closed_[flows_[flow].end - flows_[flow].begin].push_back(flow);
}

void MaxMin::touch(std::uint32_t flow) {
  for (std::uint32_t use = flows_[flow].begin; use < flows_[flow].end; ++use) {
    Link& link = links_[uses_[use].link];
    if (link.changed) continue;
    link.changed = true;
    changed_.push_back(uses_[use].link);
  }
}

void MaxMin::add(std::uint32_t flow) {
  for (std::uint32_t use = flows_[flow].begin; use < flows_[flow].end; ++use) {
    std::vector<Member>& members = links_[uses_[use].link].members;
    place_[use] = static_cast<std::uint32_t>(members.size());
    members.push_back({flow, use});
  }
  touch(flow);
}

void MaxMin::remove(std::uint32_t flow) {
  for (std::uint32_t use = flows_[flow].begin; use < flows_[flow].end; ++use) {
    std::vector<Member>& members = links_[uses_[use].link].members;
    members[place_[use]] = members.back();
    place_[members[place_[use]].use] = place_[use];
    members.pop_back();
  }
  flows_[flow].rate = 0;
  touch(flow);
}

// The links and flows connected with what changed.
void MaxMin::gather() {
  ++round_;
  part_links_.clear();
  part_flows_.clear();
  for (const std::uint32_t link : changed_) {
    links_[link].changed = false;
    links_[link].seen = round_;
    part_links_.push_back(link);
  }
  changed_.clear();
  for (std::size_t i = 0; i < part_links_.size(); ++i) {
    for (const Member& member : links_[part_links_[i]].members) {
      Flow& flow = flows_[member.flow];
      if (flow.seen == round_) continue;
      flow.seen = round_;
      part_flows_.push_back(member.flow);
      for (std::uint32_t use = flow.begin; use < flow.end; ++use) {
        Link& link = links_[uses_[use].link];
        if (link.seen == round_) continue;
        link.seen = round_;
        part_links_.push_back(uses_[use].link);
      }
    }
  }
}

std::span<const std::uint32_t> MaxMin::solve() {
  gather();
  for (const std::uint32_t flow : part_flows_) flows_[flow].fixed = false;
  levels_.clear();
  for (const std::uint32_t index : part_links_) {
    Link& link = links_[index];
    if (link.members.empty()) continue;
    link.left = link.capacity;
    link.open = static_cast<std::uint32_t>(link.members.size());
    link.weight = 0;
    for (const Member& member : link.members) {
      const Use& use = uses_[member.use];
      link.weight += use.copies * use.share * flows_[member.flow].weight;
    }
    levels_.push_back({level_of(link), index});
  }
  std::make_heap(levels_.begin(), levels_.end(), higher);
  const auto take = [&] {
    std::pop_heap(levels_.begin(), levels_.end(), higher);
    const Level lowest = levels_.back();
    levels_.pop_back();
    return lowest;
  };
  while (!levels_.empty()) {
    // Levels only rise while others' rates are fixed: stale ones are put back.
    const double level = levels_.front().level;
    full_.clear();
    while (!levels_.empty() && levels_.front().level <= level) {
      const Level lowest = take();
      if (links_[lowest.link].open == 0) continue;
      const double now = level_of(links_[lowest.link]);
      if (now <= level) {
        full_.push_back(lowest.link);
      } else {
        levels_.push_back({now, lowest.link});
        std::push_heap(levels_.begin(), levels_.end(), higher);
      }
    }
    for (const std::uint32_t link : full_) fill(links_[link], level);
  }
  return part_flows_;
}

void MaxMin::fill(const Link& link, double level) {
  for (const Member& member : link.members) {
    Flow& flow = flows_[member.flow];
    if (flow.fixed) continue;
    flow.fixed = true;
    flow.rate = flow.weight == 1 ? level : level * flow.weight;
    for (std::uint32_t i = flow.begin; i < flow.end; ++i) {
      const Use& use = uses_[i];
      Link& other = links_[use.link];
      other.left -= use.copies * (use.share == 1 ? flow.rate : rounded_down(use.share * flow.rate));
      other.weight -= use.copies * use.share * flow.weight;
      --other.open;
    }
  }
}

}  // namespace armilla
