// A set of a group's members, one bit each: whose contributions a block holds, whom a member has heard of.
#pragma once

#include <cstdint>
#include <vector>

namespace armilla {

class Members {
 public:
  explicit Members(std::int32_t ranks = 0) : words_((static_cast<std::size_t>(ranks) + 63) / 64) {}
  static Members only(std::int32_t ranks, std::int32_t member) {
    Members members(ranks);
    members.add(member);
    return members;
  }
  static Members all(std::int32_t ranks) {
    Members members(ranks);
    for (std::int32_t member = 0; member < ranks; ++member) members.add(member);
    return members;
  }
  bool has(std::int32_t member) const {
    return (words_[static_cast<std::size_t>(member) / 64] >> (member % 64) & 1) != 0;
  }
  void add(std::int32_t member) {
    words_[static_cast<std::size_t>(member) / 64] |= std::uint64_t{1} << (member % 64);
  }
  void add(const Members& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  // The smallest member of both; -1 when there is none.
  std::int32_t first_in_both(const Members& other) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (const std::uint64_t both = words_[i] & other.words_[i]; both != 0)
        return static_cast<std::int32_t>(i) * 64 + __builtin_ctzll(both);
    }
    return -1;
  }
  friend bool operator==(const Members&, const Members&) = default;

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace armilla
