#include "lower/shard/shard_tables.h"

namespace armilla {

std::uint32_t ShardTables::work(const Work& work) {
  // Everything that pricing looks at. Names are not among it: equal work of different operators is priced
  // once.
  std::vector<std::int64_t> key = {static_cast<std::int64_t>(work.kind),
                                   static_cast<std::int64_t>(work.dtype),
                                   work.flops.value,
                                   work.bytes.value,
                                   static_cast<std::int64_t>(work.kernel),
                                   static_cast<std::int64_t>(work.scaling)};
  for (const Gemm& g : work.gemms) key.insert(key.end(), {g.m, g.n, g.k, g.count});
  const auto [found, fresh] =
      works_.try_emplace(std::move(key), static_cast<std::uint32_t>(model_.works.size()));
  if (fresh) model_.works.push_back(work);
  return found->second;
}

std::int32_t ShardTables::all_to_all(Bytes bytes, bool to_experts) {
  // Even loads need no schedule of their own: the plain all-to-all is one.
  if (model_.expert_loads.size() < 2) return -1;
  const auto [found, fresh] =
      uneven_.try_emplace({bytes.value, to_experts}, static_cast<std::int32_t>(model_.uneven.size()));
  if (fresh) model_.uneven.push_back({bytes, to_experts});
  return found->second;
}

}  // namespace armilla
