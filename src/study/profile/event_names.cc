#include "study/profile/event_names.h"

namespace armilla {

EventNames::EventNames(const Model& model, const Graph& graph) : graph_(graph) {
  for (const Operator& op : model.operators) types_.emplace(op.name, op.type);
}

std::string_view EventNames::of(const Program& program, std::uint32_t node) const {
  const std::string_view name = graph_.names[program.name[node]];
  // "optimizer, bucket 3": all of a size are the same kernel.
  if (program.phase[node] == Phase::optimizer) return name.substr(0, name.find(','));
  const auto exact = types_.find(name);
  if (exact != types_.end()) return exact->second;
  // "conv1 weight gradient": the phase is a column of its own.
  const auto first = types_.find(name.substr(0, name.find(' ')));
  return first != types_.end() ? first->second : name;
}

}  // namespace armilla
