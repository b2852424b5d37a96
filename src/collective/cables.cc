#include "collective/cables.h"

#include <algorithm>
#include <numeric>

namespace armilla {
namespace {

constexpr std::int32_t kNobodyHere = -1;  // whom no cable leads to

// Directed cycles through all members, from the first: the members that follow each other.
class RingSearch {
 public:
  RingSearch(std::span<const MemberCable> cables, std::span<const std::int32_t> members)
      : members_(members.size()), free_(members_ * members_, 0) {
    for (const MemberCable& cable : cables) {
      const auto a = std::ranges::find(members, cable.a), b = std::ranges::find(members, cable.b);
      if (a == members.end() || b == members.end()) continue;
      const auto from = static_cast<std::size_t>(a - members.begin()),
                 to = static_cast<std::size_t>(b - members.begin());
      ++free_[from * members_ + to];
      ++free_[to * members_ + from];
    }
    most_ = members_ < 2 ? 0 : INT32_MAX;
    for (std::size_t member = 0; member < members_; ++member) {
      const auto row = free_.begin() + static_cast<std::ptrdiff_t>(member * members_);
      most_ = std::min(most_, std::accumulate(row, row + static_cast<std::ptrdiff_t>(members_), 0));
    }
  }

  std::vector<std::vector<std::size_t>> rings() {
    if (most_ > 0) extend({0});
    return best_;
  }

  // A way through all; empty: there is none.
  std::vector<std::size_t> chain() {
    for (std::size_t first = 0; first < members_; ++first) {
      std::vector<std::size_t> way = {first};
      if (leads_on(way)) return way;
    }
    return {};
  }

 private:
  static constexpr std::int64_t kMostSteps = 1'000'000;

  std::int32_t& free(std::size_t from, std::size_t to) { return free_[from * members_ + to]; }

  // Every ring in turn that begins with `ring`, and behind each the next one. True: no more can be found.
  bool extend(std::vector<std::size_t> ring) {
    if (++steps_ > kMostSteps) return true;
    const std::size_t here = ring.back();
    if (ring.size() == members_) {
      if (free(here, 0) == 0) return false;
      --free(here, 0);
      found_.push_back(ring);
      if (found_.size() > best_.size()) best_ = found_;
      const bool done = static_cast<std::int32_t>(best_.size()) == most_ || extend({0});
      found_.pop_back();
      ++free(here, 0);
      return done;
    }
    for (std::size_t next = 1; next < members_; ++next) {
      if (free(here, next) == 0 || std::ranges::find(ring, next) != ring.end()) continue;
      --free(here, next);
      ring.push_back(next);
      const bool done = extend(ring);
      ring.pop_back();
      ++free(here, next);
      if (done) return true;
    }
    return false;
  }

  bool leads_on(std::vector<std::size_t>& way) {
    if (way.size() == members_ || ++steps_ > 2 * kMostSteps) return way.size() == members_;
    const std::size_t here = way.back();
    for (std::size_t next = 0; next < members_; ++next) {
      if (free(here, next) == 0 || std::ranges::find(way, next) != way.end()) continue;
      way.push_back(next);
      if (leads_on(way)) return true;
      way.pop_back();
    }
    return false;
  }

  std::size_t members_;
  std::vector<std::int32_t> free_;  // cables from one to another that no ring takes
  std::int32_t most_ = 0;
  std::vector<std::vector<std::size_t>> found_, best_;
  std::int64_t steps_ = 0;
};

// Every member sends an equal part to every other; those that no cable leads to share the detour.
double exchange_rate(const Dimension& dimension, std::span<const std::int32_t> members, Bandwidth host) {
  double slowest = 0;  // seconds per byte to each other member
  for (const std::int32_t here : members) {
    double around = 0;
    for (const std::int32_t there : members) {
      if (here == there) continue;
      const double seconds = 1 / pair_bandwidth(dimension, here, there, host).value;
      if (cables_between(dimension, here, there) == 0) around += seconds;
      slowest = std::max({slowest, seconds, around});
    }
  }
  return static_cast<double>(members.size() - 1) / slowest;
}

}  // namespace

MemberRings find_rings(std::span<const MemberCable> cables, std::span<const std::int32_t> members) {
  RingSearch search(cables, members);
  const std::vector<std::vector<std::size_t>> rings = search.rings();
  MemberRings found{static_cast<std::int32_t>(rings.size()), true, {}};
  const auto add = [&](std::span<const std::size_t> way) {
    std::vector<std::int32_t>& order = found.orders.emplace_back();
    for (const std::size_t member : way) order.push_back(members[member]);
  };
  for (const std::vector<std::size_t>& ring : rings) add(ring);
  if (found.rings > 0) return found;
  std::vector<std::size_t> way = search.chain();
  found.chain = !way.empty();
  if (!found.chain) {
    way.resize(members.size());
    std::iota(way.begin(), way.end(), std::size_t{0});
  }
  add(way);
  std::ranges::reverse(way);
  add(way);
  return found;
}

Bandwidth attained_on_cables(const Dimension& dimension, std::span<const std::int32_t> members,
                             CollectiveKind kind, Bandwidth host) {
  if (members.size() < 2) return dimension.bandwidth;
  if (kind == CollectiveKind::all_to_all) return Bandwidth(exchange_rate(dimension, members, host));
  const MemberRings found = find_rings(dimension.cables, members);
  const double cable = cable_bandwidth(dimension).value;
  if (found.rings > 0) return Bandwidth(found.rings * cable);
  const double around = pair_bandwidth(dimension, kNobodyHere, kNobodyHere, host).value;
  if (kind != CollectiveKind::all_reduce || !found.chain) return Bandwidth(around);
  // All bytes go up the chain and down; of a ring a member sends 2 (n - 1) / n of them.
  const auto ranks = static_cast<double>(members.size());
  return Bandwidth(std::max(around, cable * 2 * (ranks - 1) / ranks));
}

}  // namespace armilla
