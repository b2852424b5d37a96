#include "network/flow/max_min.h"

#include <algorithm>

namespace armilla {

MaxMin::MaxMin(std::vector<double> capacities, std::vector<std::uint32_t> begin, std::vector<Use> uses,
               std::vector<double> weights)
    : links_(capacities.size()), flows_(weights.size()), uses_(std::move(uses)), place_(uses_.size()) {
  for (std::size_t link = 0; link < links_.size(); ++link) links_[link].capacity = capacities[link];
  for (std::size_t flow = 0; flow < flows_.size(); ++flow) {
    flows_[flow].weight = weights[flow];
    flows_[flow].begin = begin[flow];
    flows_[flow].end = begin[flow + 1];
  }
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
    for (const Member& member : link.members)
      link.weight += uses_[member.use].share * flows_[member.flow].weight;
    levels_.push_back({link.left / link.weight, index});
  }
  std::make_heap(levels_.begin(), levels_.end(), higher);
  while (!levels_.empty()) {
    std::pop_heap(levels_.begin(), levels_.end(), higher);
    const Level lowest = levels_.back();
    levels_.pop_back();
    Link& link = links_[lowest.link];
    if (link.open == 0) continue;
    // Levels only rise while others' rates are fixed: a stale one is put back, and the least that is not
    // stale counts.
    const double level = std::max(0.0, link.left) / link.weight;
    if (level > lowest.level && !levels_.empty() && level > levels_.front().level) {
      levels_.push_back({level, lowest.link});
      std::push_heap(levels_.begin(), levels_.end(), higher);
      continue;
    }
    for (const Member& member : link.members) {
      Flow& flow = flows_[member.flow];
      if (flow.fixed) continue;
      flow.fixed = true;
      flow.rate = level * flow.weight;
      for (std::uint32_t use = flow.begin; use < flow.end; ++use) {
        Link& other = links_[uses_[use].link];
        other.left -= uses_[use].share * flow.rate;
        other.weight -= uses_[use].share * flow.weight;
        --other.open;
      }
    }
  }
  return part_flows_;
}

}  // namespace armilla
