#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <vector>

#include "base/units_text.h"
#include "write/format/svg.h"
#include "write/machine.h"

namespace armilla {
namespace {

// What is drawn as one line: cables of equal figures between the same two nodes.
struct Line {
  std::uint32_t a = 0, b = 0;
  std::int64_t cables = 0;
  LinkFigures there, back;
};

std::vector<Line> lines_of(const Interconnect& graph) {
  using Key = std::tuple<std::uint32_t, std::uint32_t, double, double, std::int64_t, std::int64_t>;
  std::map<Key, std::size_t> known;
  std::vector<Line> lines;
  for (const Cable& cable : graph.cables) {
    const bool turned = cable.a > cable.b;
    Line line = {turned ? cable.b : cable.a, turned ? cable.a : cable.b, 1, turned ? cable.back : cable.there,
                 turned ? cable.there : cable.back};
    const Key key = {line.a,
                     line.b,
                     line.there.bandwidth.value,
                     line.back.bandwidth.value,
                     line.there.latency.value,
                     line.back.latency.value};
    const auto [found, fresh] = known.try_emplace(key, lines.size());
    if (fresh) {
      lines.push_back(line);
    } else {
      ++lines[found->second].cables;
    }
  }
  return lines;
}

std::string line_text(const Line& line) {
  std::string text = line.cables > 1 ? fmt::format("{} x ", line.cables) : "";
  text += to_text(line.there.bandwidth);
  if (line.back.bandwidth != line.there.bandwidth) text += " / " + to_text(line.back.bandwidth);
  return text + ", " + to_text(line.there.latency);
}

std::string dot_quoted(std::string_view name) {
  std::string text = "\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') text += '\\';
    text += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return text + '"';
}

std::string_view dot_shape(NetworkNodeKind kind) {
  return kind == NetworkNodeKind::device ? "box" : kind == NetworkNodeKind::nic ? "hexagon" : "ellipse";
}

// Links from the nearest device.
std::vector<std::int32_t> tiers_of(const Interconnect& graph) {
  std::vector<std::vector<std::uint32_t>> near(graph.nodes.size());
  for (const Cable& cable : graph.cables) {
    near[cable.a].push_back(cable.b);
    near[cable.b].push_back(cable.a);
  }
  std::vector<std::int32_t> tier(graph.nodes.size(), -1);
  std::vector<std::uint32_t> waiting;
  for (std::uint32_t node = 0; node < graph.nodes.size(); ++node) {
    if (graph.nodes[node].kind != NetworkNodeKind::device) continue;
    tier[node] = 0;
    waiting.push_back(node);
  }
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    for (const std::uint32_t next : near[waiting[i]]) {
      if (tier[next] >= 0) continue;
      tier[next] = tier[waiting[i]] + 1;
      waiting.push_back(next);
    }
  }
  for (std::int32_t& one : tier) one = std::max(one, 0);
  return tier;
}

}  // namespace

std::string write_interconnect_dot(const Interconnect& graph) {
  std::string text = "graph {\n\tlayout=neato; overlap=false;\n";
  const auto out = std::back_inserter(text);
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    fmt::format_to(out, "\t{} [label={} shape={}];\n", node, dot_quoted(graph.nodes[node].name),
                   dot_shape(graph.nodes[node].kind));
  }
  for (const Line& line : lines_of(graph))
    fmt::format_to(out, "\t{} -- {} [label={}];\n", line.a, line.b, dot_quoted(line_text(line)));
  return text + "}\n";
}

std::string write_interconnect_svg(const Interconnect& graph) {
  constexpr double kRow = 120, kLeast = 28, kMargin = 50;
  const std::vector<std::int32_t> tier = tiers_of(graph);
  const std::int32_t top = tier.empty() ? 0 : *std::ranges::max_element(tier);
  std::vector<std::int64_t> in_tier(static_cast<std::size_t>(top) + 1);
  for (const std::int32_t one : tier) ++in_tier[static_cast<std::size_t>(one)];
  const double width =
      std::max(400.0, kLeast * static_cast<double>(*std::ranges::max_element(in_tier))) + 2 * kMargin;
  const double height = kRow * static_cast<double>(top) + 2 * kMargin;
  std::vector<std::int64_t> placed(in_tier.size());
  std::vector<std::pair<double, double>> at;
  for (const std::int32_t one : tier) {
    const auto row = static_cast<std::size_t>(one);
    const double step = (width - 2 * kMargin) / static_cast<double>(in_tier[row]);
    at.emplace_back(kMargin + step * (static_cast<double>(placed[row]++) + 0.5),
                    height - kMargin - kRow * static_cast<double>(one));
  }
  std::string shapes;
  const auto out = std::back_inserter(shapes);
  for (const Line& line : lines_of(graph)) {
    const auto [x1, y1] = at[line.a];
    const auto [x2, y2] = at[line.b];
    const std::string title =
        fmt::format("{} - {}: {}", graph.nodes[line.a].name, graph.nodes[line.b].name, line_text(line));
    // Links within a row are arcs below it.
    const double bend = y1 == y2 ? 20 + 0.1 * std::abs(x2 - x1) : 0;
    fmt::format_to(out,
                   "<path d=\"M{:.1f} {:.1f} Q{:.1f} {:.1f} {:.1f} {:.1f}\" fill=\"none\" stroke=\"#888\" "
                   "stroke-width=\"{}\"><title>{}</title></path>\n",
                   x1, y1, (x1 + x2) / 2, (y1 + y2) / 2 + bend, x2, y2, line.cables > 1 ? 2 : 1,
                   svg_text(title));
  }
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    const NetworkNodeKind kind = graph.nodes[node].kind;
    const auto [x, y] = at[node];
    const std::string_view colour = kind == NetworkNodeKind::device ? "#4477aa"
                                    : kind == NetworkNodeKind::nic  ? "#ccbb44"
                                                                    : "#ee6677";
    fmt::format_to(out,
                   "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"16\" height=\"16\" rx=\"{}\" fill=\"{}\">"
                   "<title>{}</title></rect>\n",
                   x - 8, y - 8, kind == NetworkNodeKind::switched ? 8 : 2, colour,
                   svg_text(graph.nodes[node].name));
    fmt::format_to(out,
                   "<text x=\"{0:.1f}\" y=\"{1:.1f}\" text-anchor=\"end\" font-size=\"8\" "
                   "transform=\"rotate(-60 {0:.1f} {1:.1f})\">{2}</text>\n",
                   x + 2, y + 18, svg_text(graph.nodes[node].name));
  }
  return svg_document(width, height, shapes);
}

}  // namespace armilla
