// Names visible in one graph of an ONNX file while it is flattened, and what a graph inherits from whoever
// runs it. A name is defined once in a scope; it may hide one of the graphs around it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "read/onnx/graph.h"
#include "read/onnx/wire.h"

namespace armilla {

struct OnnxScope {
  const OnnxScope* parent = nullptr;             // of the graph around it, which the outermost has not
  const std::vector<WireNode>* nodes = nullptr;  // of the graph, once they are run
  std::unordered_map<std::string_view, std::uint32_t> values;
  std::unordered_map<std::string_view, const WireValueInfo*> infos;

  // Throws Error for a name that is defined already.
  void define(std::string_view name, std::uint32_t value, const std::string& where);
  // From the innermost graph outwards, as ONNX scopes names. Throws Error for one that nothing defines.
  std::uint32_t lookup(std::string_view name, const std::string& where) const;
  // What the file records of the graph's values.
  void add_infos(const WireGraph& graph);
};

struct OnnxFrame {
  const std::vector<WireOpset>* opsets;
  OnnxAttributes arguments;  // attributes of the function call
  std::string prefix;        // of names and locations
  std::int64_t repeat = 1;
  int depth = 0;
};

// "ai.onnx" is another name of the standard domain of operators, "".
std::string_view plain_domain(std::string_view domain);

}  // namespace armilla
