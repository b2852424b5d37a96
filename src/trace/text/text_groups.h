// Which ranks the collectives of a text workload are among, as families of a Graph (trace/text.h).
//
// By the policy's dimensions (trace/text/text_dimensions.h); where the user asks for SimAI's reading, expert
// and pipeline-parallel files by sets of ranks in Megatron's order: tensor, expert, rest of data, pipeline.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ir/formats/text_workload.h"
#include "ir/graph.h"
#include "trace/text.h"
#include "trace/text/text_dimensions.h"

namespace armilla {

const TextPass& pass_of(const TextLayer& layer, TextPart part);
// Of the options, else of the file; 0: not given.
std::int64_t model_parallel_group(const TextWorkload& workload, const TextGraphOptions& options);

class TextGroups {
 public:
  // Adds families to `graph` as they are needed; all arguments outlive this.
  TextGroups(const TextWorkload& workload, const TextGraphOptions& options, const TextDimensions& dimensions,
             Graph& graph);

  // The family of a layer's collective, or nothing where each rank would be alone.
  std::optional<std::uint32_t> family(std::int32_t layer, TextPart part);
  std::int64_t size(std::uint32_t family) const {
    return static_cast<std::int64_t>(graph_.families[family].groups[0].size());
  }

 private:
  using Key = std::pair<bool, std::uint32_t>;  // whether of SimAI's grid, mask

  template <class Make>
  std::uint32_t cached(Key key, const Make& make) {
    const auto [entry, fresh] = known_.try_emplace(key, static_cast<std::uint32_t>(graph_.families.size()));
    if (fresh) graph_.families.push_back(make());
    return entry->second;
  }
  std::optional<std::uint32_t> spanned(std::uint32_t mask, bool flat);
  std::optional<std::uint32_t> rank_sets(TextGroup group, TextPart part);

  const TextWorkload& workload_;
  const TextGraphOptions& options_;
  const TextDimensions& dimensions_;
  Graph& graph_;
  std::vector<std::int64_t> grid_;  // SimAI's
  std::map<Key, std::uint32_t> known_;
};

}  // namespace armilla
