#include "read/onnx/flatten/scope.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/suggest.h"
#include "read/onnx/dims.h"

namespace armilla {

std::string_view plain_domain(std::string_view domain) {
  return domain == "ai.onnx" ? std::string_view() : domain;
}

void OnnxScope::define(std::string_view name, std::uint32_t value, const std::string& where) {
  if (!values.emplace(name, value).second)
    throw Error(where, fmt::format("defines '{}', which is defined already", readable(name)));
}

std::uint32_t OnnxScope::lookup(std::string_view name, const std::string& where) const {
  for (const OnnxScope* at = this; at != nullptr; at = at->parent) {
    const auto found = at->values.find(name);
    if (found != at->values.end()) return found->second;
  }
  // Suggestions compare with every name; large graphs have too many.
  constexpr std::size_t kMostCompared = 2000;
  std::vector<std::string> known;
  for (const auto& [other, value] : values) {
    if (known.size() == kMostCompared) break;
    known.push_back(readable(other));
  }
  std::sort(known.begin(), known.end());
  std::string hint = suggest(readable(name), known);
  if (!hint.starts_with("did you mean")) hint = "the file is incomplete; export it again";
  throw Error(where, fmt::format("uses '{}', which nothing defines", readable(name)), hint);
}

void OnnxScope::add_infos(const WireGraph& graph) {
  for (const auto* list : {&graph.outputs, &graph.value_infos}) {
    for (const WireValueInfo& info : *list) {
      // A graph's outputs may say no shape that value_info does.
      const WireValueInfo*& known = infos[info.name];
      if (known == nullptr || !known->has_shape) known = &info;
    }
  }
}

}  // namespace armilla
