#include "write/trace.h"

#include <fmt/format.h>

#include <optional>
#include <unordered_map>
#include <vector>

namespace armilla {
namespace {

// XML allows no control characters but tabs and line ends.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else
      result += static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t' ? ' ' : c;
  }
  return result;
}

struct Vertex {
  std::uint64_t id = 0;
  std::optional<std::size_t> node;                  // none for a dangling end
  std::vector<std::pair<std::size_t, bool>> edges;  // to whom, and whether it is of control
};

class Network {
 public:
  explicit Network(const ChakraTrace& trace) {
    for (std::size_t node = 0; node < trace.size(); ++node) {
      vertices_[vertex(trace.id[node])].node = node;
      for (const std::uint64_t on : trace.data_dependences(node)) connect(on, trace.id[node], false);
      for (const std::uint64_t on : trace.control_dependences(node)) connect(on, trace.id[node], true);
    }
  }
  const std::vector<Vertex>& vertices() const { return vertices_; }
  bool has_edges() const { return !edge_of_.empty(); }

 private:
  struct PairHash {
    std::size_t operator()(const std::pair<std::size_t, std::size_t>& pair) const {
      return pair.first * 0x9e3779b97f4a7c15U ^ pair.second;
    }
  };

  // Vertices in order of first mention, as networkx keeps them; an id that only dependences mention is a
  // vertex without a label.
  std::size_t vertex(std::uint64_t id) {
    const auto [found, is_new] = index_of_.emplace(id, vertices_.size());
    if (is_new) vertices_.push_back({id, {}, {}});
    return found->second;
  }
  // networkx keeps one edge between two nodes; the later kind of dependence replaces the earlier.
  void connect(std::uint64_t from, std::uint64_t to, bool control) {
    const std::pair ends(vertex(from), vertex(to));
    std::vector<std::pair<std::size_t, bool>>& edges = vertices_[ends.first].edges;
    const auto [found, is_new] = edge_of_.emplace(ends, edges.size());
    if (is_new)
      edges.emplace_back(ends.second, control);
    else
      edges[found->second].second = control;
  }

  std::vector<Vertex> vertices_;
  std::unordered_map<std::uint64_t, std::size_t> index_of_;
  std::unordered_map<std::pair<std::size_t, std::size_t>, std::size_t, PairHash> edge_of_;
};

}  // namespace

std::string write_graphml(const ChakraTrace& trace) {
  const Network network(trace);
  std::string text =
      "<?xml version='1.0' encoding='utf-8'?>\n"
      "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\" "
      "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
      "xsi:schemaLocation=\"http://graphml.graphdrawing.org/xmlns "
      "http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd\">";
  if (network.has_edges())
    text += "<key id=\"d1\" for=\"edge\" attr.name=\"dependency\" attr.type=\"string\"/>\n";
  if (trace.size() > 0) text += "<key id=\"d0\" for=\"node\" attr.name=\"label\" attr.type=\"string\"/>\n";
  text += "<graph edgedefault=\"directed\">";
  const auto out = std::back_inserter(text);
  for (const Vertex& vertex : network.vertices()) {
    if (vertex.node) {
      fmt::format_to(out, "<node id=\"{}\">\n  <data key=\"d0\">{}</data>\n</node>\n", vertex.id,
                     escaped(trace.name_of_node(*vertex.node)));
    } else {
      fmt::format_to(out, "<node id=\"{}\"/>\n", vertex.id);
    }
  }
  for (const Vertex& vertex : network.vertices()) {
    for (const auto& [to, control] : vertex.edges)
      fmt::format_to(out, "<edge source=\"{}\" target=\"{}\">\n  <data key=\"d1\">{}</data>\n</edge>\n",
                     vertex.id, network.vertices()[to].id, control ? "control" : "data");
  }
  return text + "</graph></graphml>";
}

}  // namespace armilla
