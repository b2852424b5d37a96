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
  // `loads`: of the expert positions; all even where there is one.
  ShardTables(ShardedModel& model, std::vector<Share> loads) : model_(model), loads_(std::move(loads)) {}

  std::uint32_t name(std::string_view text) { return model_.names.add(text); }
  std::uint32_t work(const Work& work);
  // Index into ShardedModel::custom, -1 where loads are even.
  std::int32_t all_to_all(Bytes bytes, bool to_experts);

 private:
  ShardedModel& model_;
  std::vector<Share> loads_;
  std::map<std::vector<std::int64_t>, std::uint32_t> works_;
  std::map<std::pair<std::int64_t, bool>, std::int32_t> custom_;
};

}  // namespace armilla
