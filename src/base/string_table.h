// Interned text: equal strings share an index. One block of characters, 8 bytes per string, and a hash table
// of indices; adding is O(length).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace armilla {

class StringTable {
 public:
  StringTable();  // holds the empty string, as index 0
  // Returns the index of `text`, new or old.
  std::uint32_t add(std::string_view text);
  // Room for so many strings in all, for who is about to add them.
  void reserve(std::size_t strings);
  // `text` will be added soon: its place, far away in a large table, is fetched meanwhile.
  void expect(std::string_view text) const;
  // Adds `text` under a new index without looking whether it is there; add() and find() will not see it. For
  // many strings that are known to differ: the look-up costs more than all the rest.
  std::uint32_t append(std::string_view text);
  // UINT32_MAX when it was never added.
  std::uint32_t find(std::string_view text) const;
  std::string_view at(std::uint32_t index) const {
    return std::string_view(characters_)
        .substr(start_[index], start_[index + std::size_t{1}] - start_[index]);
  }
  std::string_view operator[](std::uint32_t index) const { return at(index); }
  std::size_t size() const { return start_.size() - 1; }

 private:
  struct Slot {
    std::uint32_t hash = 0;    // tells most strings apart without looking at them
    std::uint32_t number = 0;  // index + 1, 0: free
  };
  std::size_t slot_of(std::string_view text, std::uint32_t hash) const;
  void rebuild(std::size_t slots);

  std::string characters_;
  std::vector<std::uint64_t> start_ = {0};
  std::vector<Slot> slots_;  // open addressing
  std::size_t indexed_ = 0;  // filled slots
};

}  // namespace armilla
