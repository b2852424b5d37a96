// Things that come and go, each under a number for as long as it is there; the number of what has gone is
// given again, the latest first. `Slots` numbers things one by one, `Blocks` some at a time that lie side by
// side. O(1), but for a block: O(free blocks). Numbers stay while there is growth, addresses do not.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace armilla {

template <class T>
class Slots {
 public:
  // A number for something new. What was there last still is: memory that it owns can be used again.
  std::uint32_t take() {
    if (free_.empty()) {
      things_.emplace_back();
      return static_cast<std::uint32_t>(things_.size() - 1);
    }
    const std::uint32_t number = free_.back();
    free_.pop_back();
    return number;
  }
  std::uint32_t add(const T& thing) {
    const std::uint32_t number = take();
    things_[number] = thing;
    return number;
  }
  void release(std::uint32_t number) { free_.push_back(number); }
  // Returns what goes.
  T remove(std::uint32_t number) {
    free_.push_back(number);
    return things_[number];
  }

  T& operator[](std::size_t number) { return things_[number]; }
  const T& operator[](std::size_t number) const { return things_[number]; }
  bool empty() const { return things_.size() == free_.size(); }
  std::size_t taken() const { return things_.size() - free_.size(); }
  // In the order of their numbers.
  template <class Visit>
  void for_each(const Visit& visit) const {
    std::vector<bool> is_free(things_.size());
    for (const std::uint32_t number : free_) is_free[number] = true;
    for (std::size_t number = 0; number < things_.size(); ++number) {
      if (!is_free[number]) visit(things_[number]);
    }
  }

 private:
  std::vector<T> things_;
  std::vector<std::uint32_t> free_;
};

template <class T>
class Blocks {
 public:
  // The number of the first of so many; they are what they were last.
  std::uint32_t take(std::uint32_t count) {
    const auto block =
        std::find_if(free_.begin(), free_.end(), [&](const auto& free) { return free.second == count; });
    if (block == free_.end()) {
      things_.resize(things_.size() + count);
      return static_cast<std::uint32_t>(things_.size() - count);
    }
    const std::uint32_t first = block->first;
    *block = free_.back();
    free_.pop_back();
    return first;
  }
  void release(std::uint32_t first, std::uint32_t count) { free_.emplace_back(first, count); }

  T& operator[](std::size_t number) { return things_[number]; }
  const T& operator[](std::size_t number) const { return things_[number]; }
  std::uint32_t number_of(const T& thing) const {
    return static_cast<std::uint32_t>(&thing - things_.data());
  }
  std::size_t size() const { return things_.size(); }

 private:
  std::vector<T> things_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> free_;  // first, how many
};

}  // namespace armilla
