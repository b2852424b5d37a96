// Reader of the part of Graphviz' language that exported task graphs use: one digraph of node statements with
// attributes and edge chains. Attributes of the graph and defaults ("node [...]") are skipped; subgraphs and
// ports are refused. O(text).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace armilla {

struct DotNode {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string where;  // file:line:column of the statement
};

struct DotEdge {
  std::string from, to;
  std::string where;
};

struct DotGraph {
  std::vector<DotNode> nodes;  // in the order of their statements
  std::vector<DotEdge> edges;
};

// `name` is what messages call the file. Throws Error with file:line:column.
DotGraph parse_dot(std::string_view text, const std::string& name);

}  // namespace armilla
