#include "base/string_table.h"

#include <bit>
#include <functional>

namespace armilla {
namespace {

std::uint32_t hash_of(std::string_view text) {
  const std::size_t hash = std::hash<std::string_view>{}(text);
  return static_cast<std::uint32_t>(hash ^ hash >> 32);
}

}  // namespace

// The empty text is number 0 in every table.
StringTable::StringTable() : slots_(16) {
  add("");
}

// Open addressing with linear probing; half of the slots stay free. A slot holds number + 1, as 0 says that
// it is free.
std::size_t StringTable::slot_of(std::string_view text, std::uint32_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash & mask;
  while (slots_[slot].number != 0 && !(slots_[slot].hash == hash && at(slots_[slot].number - 1) == text))
    slot = (slot + 1) & mask;
  return slot;
}

// Adds without looking whether the text is there; neither add() nor find() will see it.
std::uint32_t StringTable::append(std::string_view text) {
  characters_ += text;
  start_.push_back(characters_.size());
  return static_cast<std::uint32_t>(size() - 1);
}

std::uint32_t StringTable::add(std::string_view text) {
  const std::uint32_t hash = hash_of(text);
  const std::size_t slot = slot_of(text, hash);
  if (slots_[slot].number != 0) return slots_[slot].number - 1;
  const std::uint32_t index = append(text);
  slots_[slot] = {hash, index + 1};
  if (2 * ++indexed_ > slots_.size()) rebuild(2 * slots_.size());
  return index;
}

void StringTable::reserve(std::size_t strings) {
  start_.reserve(strings + 1);
  if (2 * strings > slots_.size()) rebuild(std::bit_ceil(2 * strings));
}

void StringTable::expect(std::string_view text) const {
  __builtin_prefetch(&slots_[hash_of(text) & (slots_.size() - 1)], 1);
}

std::uint32_t StringTable::find(std::string_view text) const {
  return slots_[slot_of(text, hash_of(text))].number - 1;  // a free slot's 0 wraps to UINT32_MAX
}

void StringTable::rebuild(std::size_t slots) {
  const std::vector<Slot> old = std::move(slots_);
  slots_.assign(slots, {});
  for (const Slot& filled : old) {
    if (filled.number == 0) continue;
    std::size_t slot = filled.hash & (slots - 1);
    while (slots_[slot].number != 0) slot = (slot + 1) & (slots - 1);
    slots_[slot] = filled;
  }
}

}  // namespace armilla
