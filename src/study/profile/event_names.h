// What computations of a lowered model are called as events (ir/derived/events.h): the same kernel in every
// block and bucket has one name.
#pragma once

#include <string_view>
#include <unordered_map>

#include "ir/graph.h"
#include "ir/model.h"

namespace armilla {

class EventNames {
 public:
  // Both must outlive this.
  EventNames(const Model& model, const Graph& graph);

  // The type of an operator of the model; of what the passes named themselves, the name.
  std::string_view of(const Program& program, std::uint32_t node) const;

 private:
  const Graph& graph_;
  std::unordered_map<std::string_view, std::string_view> types_;
};

}  // namespace armilla
