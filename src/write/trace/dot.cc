#include "write/trace.h"

#include <fmt/format.h>

namespace armilla {
namespace {

// Within quotes, with what means something in a record's label escaped.
std::string label(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (std::string_view("{}()<>[]|&-\\\"").find(c) != std::string_view::npos) text += '\\';
    if (c == '\n')
      text += "\\n";
    else
      text += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return text;
}

}  // namespace

std::string write_dot(const ChakraTrace& trace) {
  std::string text = "digraph {\n";
  const auto out = std::back_inserter(text);
  for (std::size_t node = 0; node < trace.size(); ++node) {
    const std::uint64_t id = trace.id[node];
    fmt::format_to(out, "\t{} [id={} label=\"{}\" shape=record];\n", id, id, label(trace.name_of_node(node)));
    for (const std::uint64_t on : trace.data_dependences(node))
      fmt::format_to(out, "\t{} -> {} [arrowhead=normal];\n", on, id);
    for (const std::uint64_t on : trace.control_dependences(node))
      fmt::format_to(out, "\t{} -> {} [arrowhead=tee];\n", on, id);
  }
  return text + "}\n";
}

}  // namespace armilla
