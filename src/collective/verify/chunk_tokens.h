// Chunks as tokens: what a chunk of memory stands for while an algorithm is played, and who used it last.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "collective/verify/members.h"
#include "collective/verify/violation.h"

namespace armilla {

using ValueId = std::uint32_t;  // into a pool; values never change
inline constexpr ValueId kNothing = 0;

struct Value {
  std::int64_t chunk = -1;  // of the collective's result
  Members contributions;
};

class TokenPool {
 public:
  TokenPool() : values_(1) {}  // kNothing

  const Value& operator[](ValueId id) const { return values_[id]; }
  ValueId add(std::int64_t chunk, Members contributions) {
    values_.push_back({chunk, std::move(contributions)});
    return static_cast<ValueId>(values_.size() - 1);
  }
  // Both together. Throws Violation, beginning with what `where()` says, for parts of different chunks and
  // for a contribution that is in both.
  template <class Where>
  ValueId sum(ValueId a, ValueId b, Where&& where) {
    const std::int64_t chunk = values_[a].chunk;
    if (chunk != values_[b].chunk)
      violation("{}: adds chunk {} to chunk {}", where(), values_[b].chunk, chunk);
    const std::int32_t twice = values_[a].contributions.first_in_both(values_[b].contributions);
    if (twice >= 0) violation("{}: adds the contribution of GPU {} to chunk {} twice", where(), twice, chunk);
    Members both = values_[a].contributions;
    both.add(values_[b].contributions);
    return add(chunk, std::move(both));
  }

 private:
  std::vector<Value> values_;
};

struct Access {
  std::int32_t block = -1;  // threadblock, among the GPU's
  std::int32_t step = 0;
};

struct Cell {
  ValueId value = kNothing;
  Access written;
  std::vector<Access> read;  // since it was written, the last by each threadblock
};

}  // namespace armilla
