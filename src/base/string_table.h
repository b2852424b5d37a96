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
  // UINT32_MAX when it was never added.
  std::uint32_t find(std::string_view text) const;
  std::string_view at(std::uint32_t index) const {
    return std::string_view(characters_)
        .substr(start_[index], start_[index + std::size_t{1}] - start_[index]);
  }
  std::string_view operator[](std::uint32_t index) const { return at(index); }
  std::size_t size() const { return start_.size() - 1; }

 private:
  std::size_t slot_of(std::string_view text) const;
  void grow();

  std::string characters_;
  std::vector<std::uint64_t> start_ = {0};
  std::vector<std::uint32_t> slots_;  // open addressing: index + 1, 0 for a free slot
};

}  // namespace armilla
