// The ways of packets, each kept once: ways that end alike share their ends, and flows that have the same
// ways share their list. A million flows between a thousand hosts have some thousand ends of ways.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/huge_pages.h"
#include "base/splitmix.h"

namespace armilla {

class WayStore {
 public:
  static constexpr std::uint32_t kEnd = UINT32_MAX;

  struct Step {
    std::uint32_t port = 0;     // that a packet leaves by
    std::uint32_t rest = kEnd;  // the step after it
    std::uint32_t links = 0;    // to the end, this one included
  };
  const Step& operator[](std::uint32_t step) const { return steps_[step]; }
  std::uint32_t links(std::uint32_t way) const { return way == kEnd ? 0 : steps_[way].links; }

  // The first step of the way over these ports, kEnd for none.
  std::uint32_t add(std::span<const std::uint32_t> ports) {
    std::uint32_t way = kEnd;
    for (std::size_t i = ports.size(); i-- > 0;) {
      if (2 * (steps_.size() + 1) > known_steps_.size()) grow();
      std::uint32_t& known = place_of(ports[i], way);
      if (known == kEnd) {
        known = static_cast<std::uint32_t>(steps_.size());
        steps_.push_back({ports[i], way, links(way) + 1});
      }
      way = known;
    }
    return way;
  }

  // A list of ways, by their first steps.
  std::uint32_t add_list(const std::vector<std::uint32_t>& ways) {
    const auto [known, fresh] = known_lists_.try_emplace(ways, static_cast<std::uint32_t>(lists_.size()));
    if (fresh) lists_.insert(lists_.end(), ways.begin(), ways.end());
    return known->second;
  }
  std::uint32_t of_list(std::uint32_t list, std::uint32_t place) const {
    return lists_[std::size_t{list} + place];
  }
  std::span<const std::uint32_t> list(std::uint32_t list, std::size_t count) const {
    return std::span(lists_).subspan(list, count);
  }

  // Asks the memory for a step that is needed soon.
  void fetch(std::uint32_t step) const { __builtin_prefetch(steps_.data() + step); }

 private:
  // Where the step is named, or would be: an open hash table, less than half full. Ways that go on to
  // neighbouring steps by the same port, such as those of a host's flows to one after the other, are
  // neighbours there, too.
  static constexpr int kLineBits = 4;
  std::uint32_t& place_of(std::uint32_t port, std::uint32_t rest) {
    std::uint64_t hash = (std::uint64_t{port} << 32 | rest >> kLineBits) * 0x9e3779b97f4a7c15U;
    hash = (hash ^ hash >> 32) * 0xbf58476d1ce4e5b9U;
    for (hash = (hash ^ hash >> 32) << kLineBits | (rest & ((1U << kLineBits) - 1));; ++hash) {
      std::uint32_t& place = known_steps_[hash & (known_steps_.size() - 1)];
      if (place == kEnd || (steps_[place].port == port && steps_[place].rest == rest)) return place;
    }
  }
  void grow() {
    known_steps_.assign(std::max<std::size_t>(64, 2 * known_steps_.size()), kEnd);
    for (std::uint32_t step = 0; step < steps_.size(); ++step)
      place_of(steps_[step].port, steps_[step].rest) = step;
  }

  struct Hash {
    std::size_t operator()(const std::vector<std::uint32_t>& words) const {
      std::uint64_t hash = words.size();
      for (const std::uint32_t word : words) hash = hash_with(hash, word);
      return hash;
    }
  };

  HugeVector<Step> steps_;
  std::vector<std::uint32_t> lists_;
  HugeVector<std::uint32_t> known_steps_;  // a power of two of places
  std::unordered_map<std::vector<std::uint32_t>, std::uint32_t, Hash> known_lists_;
};

}  // namespace armilla
