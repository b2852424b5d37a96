#include "network/flow/max_min.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace armilla {

MaxMin::MaxMin(std::span<const double> capacities)
    : MaxMin(capacities.empty() ? 1 : std::ranges::max(capacities)) {
  for (const double capacity : capacities) add_link(capacity);
}

MaxMin::MaxMin(double largest) {
  set_quantum(largest);
}

std::uint32_t MaxMin::add_link(double capacity) {
  set_capacity(links_.emplace_back(), capacity);
  return static_cast<std::uint32_t>(links_.size() - 1);
}

// Levels are multiples of one quantum, no finer than the last bit of the largest capacity. Sums and
// differences of such numbers are exact, so that rates depend neither on the order in which flows came nor on
// how much of the network was worked out anew.
void MaxMin::set_quantum(double largest) {
  quantum_ = std::ldexp(1, std::ilogb(largest) - 52);
  per_quantum_ = 1 / quantum_;
}

// Down, so that no more is given out than there is; but never nothing.
void MaxMin::set_capacity(Link& link, double capacity) const {
  link.capacity = std::max(quantum_, rounded_down(capacity));
}

double MaxMin::rounded_down(double rate) const {
  const double quanta = rate * per_quantum_;  // whole ones from 2^52 on
  return quanta < 0x1p52 ? static_cast<double>(static_cast<std::int64_t>(quanta)) * quantum_ : rate;
}

// Never nothing: flows that are there go on.
double MaxMin::level_of(const Link& link) const {
  return std::max(quantum_, rounded_down((link.capacity - link.taken) / link.weight));
}

// Flows that are over leave their place to the next that uses as many links: the memory is that of the most
// that were there at once, and numbers stay small.
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

void MaxMin::add(std::uint32_t number) {
  Flow& flow = flows_[number];
  flow.there = true;
  added_.push_back(number);
  ++there_;
  for (std::uint32_t use = flow.begin; use < flow.end; ++use) {
    Link& link = links_[uses_[use].link];
    place_[use] = static_cast<std::uint32_t>(link.members.size());
    link.members.push_back({number, use});
    link.weights += weight_of(uses_[use], flow);
    link.uneven += is_uneven(uses_[use], flow);
  }
  touch(number);
}

void MaxMin::remove(std::uint32_t number) {
  Flow& flow = flows_[number];
  set_bottleneck(flow, kNone);
  for (std::uint32_t use = flow.begin; use < flow.end; ++use) {
    Link& link = links_[uses_[use].link];
    // The last takes the place of the one that goes: O(1), and the order of members decides nothing.
    swap_members(link, place_[use], static_cast<std::uint32_t>(link.members.size() - 1));
    link.members.pop_back();
    link.taken -= taken(uses_[use], flow.rate);
    link.uneven -= is_uneven(uses_[use], flow);
    link.weights = link.members.empty() ? 0 : link.weights - weight_of(uses_[use], flow);
  }
  flow.rate = 0;
  flow.there = false;
  --there_;
  touch(number);
}

bool MaxMin::replace(std::uint32_t from, std::uint32_t to) {
  Flow &before = flows_[from], &after = flows_[to];
  const auto alike = [](const Use& a, const Use& b) {
    return a.link == b.link && a.copies == b.copies && a.share == b.share;
  };
  if (before.bottleneck == kNone || before.weight != after.weight ||
      !std::ranges::equal(uses(from), uses(to), alike))
    return false;
  for (std::uint32_t old = before.begin, use = after.begin; use < after.end; ++old, ++use) {
    place_[use] = place_[old];
    links_[uses_[use].link].members[place_[use]] = {to, use};
  }
  after.rate = before.rate;
  after.level = before.level;
  after.bottleneck = before.bottleneck;
  after.seen = before.seen;
  after.fixed = before.fixed;
  after.there = true;
  before.rate = 0;
  before.bottleneck = kNone;
  before.there = false;
  return true;
}

void MaxMin::swap_members(Link& link, std::uint32_t a, std::uint32_t b) {
  std::swap(link.members[a], link.members[b]);
  place_[link.members[a].use] = a;
  place_[link.members[b].use] = b;
}

void MaxMin::set_bottleneck(Flow& flow, std::uint32_t index) {
  if (flow.bottleneck == index) return;
  for (std::uint32_t use = flow.begin; use < flow.end; ++use) {
    Link& link = links_[uses_[use].link];
    if (uses_[use].link == flow.bottleneck) swap_members(link, place_[use], --link.own);
    if (uses_[use].link == index) swap_members(link, place_[use], link.own++);
  }
  flow.bottleneck = index;
}

void MaxMin::take_in(std::uint32_t number) {
  Flow& flow = flows_[number];
  if (flow.seen == round_) return;
  flow.seen = round_;
  part_flows_.push_back(number);
  for (std::uint32_t use = flow.begin; use < flow.end; ++use) {
    Link& link = links_[uses_[use].link];
    if (link.seen == round_) continue;
    link.seen = round_;
    part_links_.push_back(uses_[use].link);
  }
}

// Members that do not get what they had.
void MaxMin::take_in_others(const Link& link) {
  // A little below that level, too: near ties are worked out rather than decided by a last bit.
  const double least = link.filled > 0 ? std::min(link.level, link.kept) : link.kept;
  for (const Member& member : link.members) {
    if (flows_[member.flow].level >= (1 - 1e-6) * least) take_in(member.flow);
  }
}

// From these links on, those that follow: by the flows that they fix, or by all.
void MaxMin::follow(std::size_t first, bool all) {
  for (std::size_t i = first; i < part_links_.size(); ++i) {
    // Taking in moves no members.
    const Link& link = links_[part_links_[i]];
    const std::size_t count = all ? link.members.size() : link.own;
    for (std::size_t member = 0; member < count; ++member) take_in(link.members[member].flow);
  }
}

// Marks by round instead of being cleared: a change then costs what it touches, not what is there.
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
  for (const std::uint32_t flow : added_) {
    if (flows_[flow].there) take_in(flow);
  }
  added_.clear();
  follow(0, false);
}

std::span<const std::uint32_t> MaxMin::solve() {
  constexpr int kMostTries = 16;
  gather();
  std::size_t spent = 0;
  for (int tries = 1;; ++tries) {
    share_out();
    const std::size_t links = part_links_.size();
    bool all_keep = true;
    // What was left alone is right if every link still bears it: looked at afterwards, since only the
    // new rates tell.
    for (std::size_t i = 0; i < links; ++i) {
      Link& link = links_[part_links_[i]];
      if (keeps_others(link)) continue;
      all_keep = false;
      take_in_others(link);
    }
    if (all_keep) return part_flows_;
    // What it costs at most is some times what it costs to work out everything.
    spent += part_flows_.size();
    const bool all = tries == kMostTries || spent > there_;
    follow(all ? 0 : links, all);
  }
}

// Whether those that were not looked at still get what they had. So they do if they take less than the link
// could give them; near ties are not decided: then the answer is no. Of equal levels one thing more is sure:
// where the link can bear them, and all others are well below, filling up ends at just that level, whichever
// of the links that are full then comes first.
bool MaxMin::keeps_others(Link& link) const {
  if (link.part == link.members.size()) return true;
  const double left = link.capacity - link.taken;
  const auto keeps = [&](double kept) {
    const double near = 1e-9 * kept * link.weights;
    return left > near || (link.level - kept) * link.filled > near;
  };
  // By the bound, where that is enough: looking at all is what costs.
  if (keeps(link.top)) return true;
  link.top = link.kept = 0;
  double below_top = 0;
  for (const Member& member : link.members) {
    const Flow& flow = flows_[member.flow];
    if (flow.level > link.top) below_top = std::exchange(link.top, flow.level);
    if (flow.level < link.top) below_top = std::max(below_top, flow.level);
    if (flow.seen != round_) link.kept = std::max(link.kept, flow.level);
  }
  if (keeps(link.kept)) return true;
  // Shares and weights would round what flows take: then equal levels say nothing.
  if (link.uneven > 0 || left < 0 || (link.filled > 0 && link.level < link.kept)) return false;
  const double quanta = static_cast<double>(link.members.size()) * quantum_;
  return link.top - below_top > std::max(1e-9 * link.top, quanta);
}

// Takes their rates from those that are worked out. Others keep theirs, and so take them from what there is
// to share.
void MaxMin::open_part() {
  opened_.clear();
  for (const std::uint32_t index : part_links_) {
    Link& link = links_[index];
    link.weight = link.level = link.filled = 0;
    link.open = 0;
    link.first = kNone;
  }
  for (const std::uint32_t number : part_flows_) {
    Flow& flow = flows_[number];
    flow.fixed = false;
    for (std::uint32_t i = flow.begin; i < flow.end; ++i) {
      const Use& use = uses_[i];
      Link& link = links_[use.link];
      link.taken -= taken(use, flow.rate);
      link.weight += weight_of(use, flow);
      ++link.open;
      opened_.push_back({number, link.first});
      link.first = static_cast<std::uint32_t>(opened_.size() - 1);
    }
  }
}

void MaxMin::share_out() {
  open_part();
  levels_.clear();
  for (const std::uint32_t index : part_links_) {
    Link& link = links_[index];
    link.part = link.open;
    if (link.open == link.members.size()) link.top = 0;
    if (link.open > 0) levels_.push_back({level_of(link), index});
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
    // All links that are full at one level are taken together, before any of them changes what is left for
    // the others: which of them is first in the heap must not decide.
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
    for (const std::uint32_t link : full_) fill(link, level);
  }
}

double MaxMin::taken(const Use& use, double rate) const {
  return use.copies * (use.share == 1 ? rate : rounded_down(use.share * rate));
}

void MaxMin::fill(std::uint32_t index, double level) {
  Link& link = links_[index];
  link.level = level;
  link.filled = link.weight;
  for (std::uint32_t one = link.first; one != kNone; one = opened_[one].next) {
    Flow& flow = flows_[opened_[one].flow];
    if (flow.fixed) continue;
    // The first full link that a flow meets bounds it: the level only rises from here on.
    flow.fixed = true;
    flow.level = level;
    flow.rate = flow.weight == 1 ? level : level * flow.weight;
    set_bottleneck(flow, index);
    for (std::uint32_t i = flow.begin; i < flow.end; ++i) {
      const Use& use = uses_[i];
      Link& other = links_[use.link];
      other.taken += taken(use, flow.rate);
      other.weight -= weight_of(use, flow);
      other.top = std::max(other.top, level);
      --other.open;
    }
  }
}

}  // namespace armilla
