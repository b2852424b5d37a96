#include "base/string_table.h"

#include <functional>

namespace armilla {

StringTable::StringTable() : slots_(16) {
  add("");
}

std::size_t StringTable::slot_of(std::string_view text) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = std::hash<std::string_view>{}(text)&mask;
  while (slots_[slot] != 0 && at(slots_[slot] - 1) != text) slot = (slot + 1) & mask;
  return slot;
}

std::uint32_t StringTable::add(std::string_view text) {
  const std::size_t slot = slot_of(text);
  if (slots_[slot] != 0) return slots_[slot] - 1;
  characters_ += text;
  start_.push_back(characters_.size());
  slots_[slot] = static_cast<std::uint32_t>(size());
  const auto index = static_cast<std::uint32_t>(size() - 1);
  if (2 * size() > slots_.size()) grow();
  return index;
}

std::uint32_t StringTable::find(std::string_view text) const {
  return slots_[slot_of(text)] - 1;  // a free slot's 0 wraps to UINT32_MAX
}

void StringTable::grow() {
  slots_.assign(slots_.size() * 2, 0);
  for (std::uint32_t index = 0; index < size(); ++index) slots_[slot_of(at(index))] = index + 1;
}

}  // namespace armilla
