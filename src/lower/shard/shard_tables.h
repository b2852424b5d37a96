// Tables of a ShardedModel while it is filled: names, works and uneven all-to-alls, each once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lower/shard_share.h"
#include "lower/sharded_model.h"

namespace armilla {

class ShardTables {
 public:
  explicit ShardTables(ShardedModel& model) : model_(model) {}

  std::uint32_t name(std::string_view text) { return model_.names.add(text); }
  std::uint32_t work(const Work& work);
  // Index into ShardedModel::uneven, -1 where loads are even.
  std::int32_t all_to_all(Bytes bytes, bool to_experts);

 private:
  ShardedModel& model_;
  std::map<std::vector<std::int64_t>, std::uint32_t> works_;
  std::map<std::pair<std::int64_t, bool>, std::int32_t> uneven_;
};

}  // namespace armilla
