#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <numbers>
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

// Where members of a dimension that are joined by cables have a switch in links_of, what is drawn has the
// cables, each with its share of what all of the member that has most carry.
Interconnect drawn_links(const Machine& machine) {
  Interconnect all = links_of(machine);
  if (!machine.graph.empty()) return all;
  const auto has_cables = [&](std::uint32_t d) { return !machine.dimensions[d].cables.empty(); };
  std::vector<bool> left(all.nodes.size());
  for (const Cable& cable : all.cables) {
    if (has_cables(cable.dimension)) left[cable.b] = true;  // the switch
  }
  Interconnect graph;
  std::vector<std::uint32_t> number(all.nodes.size());
  for (std::size_t node = 0; node < all.nodes.size(); ++node) {
    number[node] = static_cast<std::uint32_t>(graph.nodes.size());
    if (!left[node]) graph.nodes.push_back(all.nodes[node]);
  }
  for (Cable cable : all.cables) {
    if (has_cables(cable.dimension)) continue;
    cable.a = number[cable.a];
    cable.b = number[cable.b];
    graph.cables.push_back(cable);
  }
  const std::int64_t ranks = rank_count(machine);
  std::int64_t stride = 1;
  for (std::uint32_t d = 0; d < machine.dimensions.size(); ++d) {
    const Dimension& dimension = machine.dimensions[d];
    std::vector<std::int64_t> of_member(static_cast<std::size_t>(dimension.size));
    for (const MemberCable& cable : dimension.cables) {
      ++of_member[static_cast<std::size_t>(cable.a)];
      ++of_member[static_cast<std::size_t>(cable.b)];
    }
    const auto most = static_cast<double>(std::max<std::int64_t>(1, *std::ranges::max_element(of_member)));
    const LinkFigures figures = {Bandwidth(dimension.bandwidth.value / most), dimension.latency, 0};
    for (std::int64_t first = 0; first < ranks; ++first) {
      if (first / stride % dimension.size != 0) continue;
      for (const MemberCable& cable : dimension.cables) {
        graph.cables.push_back({static_cast<std::uint32_t>(first + cable.a * stride),
                                static_cast<std::uint32_t>(first + cable.b * stride), figures, figures, d});
      }
    }
    stride *= dimension.size;
  }
  return graph;
}

struct Point {
  double x = 0, y = 0;
};
struct Places {
  std::vector<Point> devices;  // from the upper left corner
  double width = 0, height = 0;
  bool flat = true;  // one row
};

// Devices, dimension in dimension: those of rings and meshes in rows and columns by turns, those that are
// joined crosswise around a circle, those below switches side by side.
Places places_for(const Machine& machine, const Interconnect& graph) {
  constexpr double kCell = 28, kWideCell = 50;
  const std::int64_t devices = graph.devices();
  Places layout;
  std::vector<bool> direct(machine.dimensions.size());
  for (const Cable& cable : graph.cables) {
    if (graph.nodes[cable.a].kind == NetworkNodeKind::device &&
        graph.nodes[cable.b].kind == NetworkNodeKind::device)
      direct[cable.dimension] = true;
  }
  layout.flat = rank_count(machine) != devices || std::ranges::none_of(direct, std::identity());
  if (layout.flat) {
    for (std::int64_t device = 0; device < devices; ++device)
      layout.devices.push_back({kCell * (static_cast<double>(device) + 0.5), 0});
    layout.width = kCell * static_cast<double>(devices);
    return layout;
  }
  layout.devices.push_back({kWideCell / 2, kWideCell / 2});
  layout.width = layout.height = kWideCell;
  for (std::size_t d = 0; d < machine.dimensions.size(); ++d) {
    const Dimension& dimension = machine.dimensions[d];
    constexpr std::int64_t kMostAround = 64;
    const bool around = direct[d] && dimension.kind != DimensionKind::ring && dimension.size > 2 &&
                        dimension.size <= kMostAround;
    const bool below = direct[d] && !around && layout.height < layout.width;
    const auto size = static_cast<double>(dimension.size);
    const double gap = layout.devices.size() > 1 ? kWideCell / 2 : 0;
    const double radius = around ? (std::max(layout.width, layout.height) + gap) * size / 6 : 0;
    const Places inner = layout;
    layout.devices.clear();
    for (std::int64_t i = 0; i < dimension.size; ++i) {
      const auto place = static_cast<double>(i);
      const double angle = 2 * std::numbers::pi * place / size;
      const Point at = around  ? Point{radius * (1 + std::sin(angle)), radius * (1 - std::cos(angle))}
                       : below ? Point{0, place * (inner.height + gap)}
                               : Point{place * (inner.width + gap), 0};
      for (const Point& device : inner.devices) layout.devices.push_back({at.x + device.x, at.y + device.y});
    }
    layout.width = around ? inner.width + 2 * radius : below ? inner.width : size * (inner.width + gap) - gap;
    layout.height = around  ? inner.height + 2 * radius
                    : below ? size * (inner.height + gap) - gap
                            : inner.height;
  }
  return layout;
}

}  // namespace

std::string write_interconnect_dot(const Machine& machine) {
  const Interconnect graph = drawn_links(machine);
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

std::string write_interconnect_svg(const Machine& machine) {
  constexpr double kRow = 120, kLeast = 28, kMargin = 50;
  const Interconnect graph = drawn_links(machine);
  const Places layout = places_for(machine, graph);
  const std::vector<std::int32_t> tier = tiers_of(graph);
  const std::int32_t top = tier.empty() ? 0 : *std::ranges::max_element(tier);
  std::vector<std::int64_t> in_tier(static_cast<std::size_t>(top) + 1);
  for (const std::int32_t one : tier) ++in_tier[static_cast<std::size_t>(one)];
  in_tier.front() = 0;
  const double width =
      std::max({400.0, layout.width, kLeast * static_cast<double>(*std::ranges::max_element(in_tier))}) +
      2 * kMargin;
  const double floor = kMargin + kRow * static_cast<double>(top);  // where devices begin
  const double height = floor + layout.height + kMargin;
  std::vector<std::int64_t> placed(in_tier.size());
  std::vector<Point> at;
  std::size_t devices = 0;
  for (std::size_t node = 0; node < tier.size(); ++node) {
    const auto row = static_cast<std::size_t>(tier[node]);
    if (graph.nodes[node].kind == NetworkNodeKind::device) {
      const Point& device = layout.devices[devices++];
      at.push_back({(width - layout.width) / 2 + device.x, floor + device.y});
      continue;
    }
    const double step = (width - 2 * kMargin) / static_cast<double>(std::max<std::int64_t>(1, in_tier[row]));
    at.push_back({kMargin + step * (static_cast<double>(placed[row]++) + 0.5),
                  floor - kRow * static_cast<double>(tier[node])});
  }
  std::string shapes;
  const auto out = std::back_inserter(shapes);
  for (const Line& line : lines_of(graph)) {
    const Point from = at[line.a], to = at[line.b];
    const std::string title =
        fmt::format("{} - {}: {}", graph.nodes[line.a].name, graph.nodes[line.b].name, line_text(line));
    // Links that would pass others of their row or column are arcs beside it.
    const double dx = to.x - from.x, dy = to.y - from.y, length = std::hypot(dx, dy);
    const bool passes = (std::abs(dx) < 1 || std::abs(dy) < 1) && tier[line.a] == tier[line.b] && length > 60;
    const double bend = passes ? (12 + 0.1 * length) / length : 0;
    fmt::format_to(out,
                   "<path d=\"M{:.1f} {:.1f} Q{:.1f} {:.1f} {:.1f} {:.1f}\" fill=\"none\" stroke=\"#888\" "
                   "stroke-width=\"{}\"><title>{}</title></path>\n",
                   from.x, from.y, (from.x + to.x) / 2 - bend * dy, (from.y + to.y) / 2 + bend * dx, to.x,
                   to.y, line.cables > 1 ? 2 : 1, svg_text(title));
  }
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    const NetworkNodeKind kind = graph.nodes[node].kind;
    const auto [x, y] = at[node];
    const bool in_grid = !layout.flat && kind == NetworkNodeKind::device;
    const std::string_view colour = kind == NetworkNodeKind::device ? "#4477aa"
                                    : kind == NetworkNodeKind::nic  ? "#ccbb44"
                                                                    : "#ee6677";
    fmt::format_to(out,
                   "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"16\" height=\"16\" rx=\"{}\" fill=\"{}\">"
                   "<title>{}</title></rect>\n",
                   x - 8, y - 8, kind == NetworkNodeKind::switched ? 8 : 2, colour,
                   svg_text(graph.nodes[node].name));
    if (in_grid) {
      fmt::format_to(out,
                     "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" font-size=\"8\">{}</text>\n", x,
                     y + 17, svg_text(graph.nodes[node].name));
      continue;
    }
    fmt::format_to(out,
                   "<text x=\"{0:.1f}\" y=\"{1:.1f}\" text-anchor=\"end\" font-size=\"8\" "
                   "transform=\"rotate(-60 {0:.1f} {1:.1f})\">{2}</text>\n",
                   x + 2, y + 18, svg_text(graph.nodes[node].name));
  }
  return svg_document(width, height, shapes);
}

}  // namespace armilla
