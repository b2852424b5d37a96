// Memory, communication, layers and links of a run: the tables below the one of time.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/units_text.h"
#include "ir/derived/communication.h"
#include "ir/derived/metrics.h"
#include "write/report/alike.h"
#include "write/report/run_parts.h"

namespace armilla {
namespace {

constexpr std::size_t kMostTraffic = 8, kMostLayers = 5, kMostLinkRows = 5;

std::string memory_title(const Run& run) {
  std::vector<std::string> worst;
  for (const RoleMemory& role : run.roles) {
    if (role.use.peak() == run.memory.peak()) worst.push_back(role.role);
  }
  if (worst.empty() || worst.size() == run.roles.size()) return "Memory of a rank";
  const std::string_view verb = worst.size() == 1 ? "needs" : "need";
  return fmt::format("Memory of {}, which {} most", name_of_all(worst), verb);
}

// A kind of communication: collectives or messages.
struct TrafficRow {
  std::vector<std::string> names;  // kind, axis, ranks
  std::string algorithm;
  RankTraffic traffic;
  bool collective = true;
};

std::vector<TrafficRow> traffic_rows(const Run& run) {
  std::vector<TrafficRow> rows;
  for (const CollectiveSummary& summary : summarize_collectives(run)) {
    rows.push_back(
        {{std::string(name_of(summary.kind)), std::string(summary.axis), with_separators(summary.group_size)},
         summary.algorithm,
         summary.per_rank,
         true});
  }
  for (const MessageSummary& summary : summarize_messages(run))
    rows.push_back({{"send", std::string(summary.axis), "2"}, "", summary.per_rank, false});
  std::stable_sort(rows.begin(), rows.end(),
                   [](const TrafficRow& a, const TrafficRow& b) { return a.traffic.time > b.traffic.time; });
  return rows;
}

// Means over ranks need not be whole.
std::string calls_text(double calls) {
  const double whole = std::round(calls);
  return std::abs(calls - whole) < 1e-9 ? with_separators(std::llround(whole)) : fmt::format("{:.1f}", calls);
}

std::vector<std::string> traffic_cells(const TrafficRow& row, bool axes, bool most) {
  const RankTraffic& traffic = row.traffic;
  std::vector<std::string> cells = {row.names[0]};
  if (axes) cells.push_back(row.names[1]);
  cells.push_back(row.names[2]);
  cells.push_back(calls_text(traffic.calls));
  cells.push_back(to_text(traffic.bytes));
  cells.push_back(to_text(traffic.time));
  if (most) cells.push_back(to_text(traffic.most_time));
  cells.push_back(row.collective ? to_text(traffic.queued) : "");
  cells.push_back(to_text(traffic.bandwidth));
  // The limit of links is known for machines with dimensions only.
  cells.push_back(traffic.link_share > 0 ? percent(traffic.link_share) : std::string("unknown"));
  return cells;
}

// Rows with the same figures are one: roles, layers or links that differ in nothing but their names.
struct Alike {
  std::vector<std::size_t> members;
};

std::vector<Alike> alike(const std::vector<std::vector<std::string>>& figures) {
  std::map<std::vector<std::string>, std::size_t> index;
  std::vector<Alike> rows;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const auto [row, fresh] = index.try_emplace(figures[i], rows.size());
    if (fresh) rows.emplace_back();
    rows[row->second].members.push_back(i);
  }
  return rows;
}

}  // namespace

std::string memory_section(const Run& run, const TextStyle& style) {
  if (!has_model(run)) return {};
  const MemoryUse& memory = run.memory;
  std::string verdict = "the device's capacity is not known";
  Ink ink = Ink::plain;
  if (memory.capacity.value > 0) {
    verdict = fmt::format("{} of {}: {}", percent(ratio(memory.needed(), memory.capacity)),
                          to_text(memory.capacity), memory.fits() ? "fits" : "does not fit");
    ink = memory.fits() ? Ink::green : Ink::red;
  }
  std::vector<std::pair<std::string_view, Bytes>> parts = {{"weights", memory.weights},
                                                           {"gradients", memory.gradients},
                                                           {"optimizer", memory.optimizer},
                                                           {"activations", memory.activations},
                                                           {"temporary", memory.temporary}};
  for (const MemoryBuffer buffer : kMemoryBuffers) {
    if (buffer == MemoryBuffer::context) parts.emplace_back("fragmentation", memory.fragmentation);
    parts.emplace_back(name_of(buffer), memory.buffer(buffer));
  }
  TextTable table{{{"category", false}, {"bytes"}, {"of all"}}, {}};
  for (const auto& [name, bytes] : parts) {
    // Parts of nothing are left out: they say that something was not used.
    if (bytes.value > 0)
      table.rows.push_back({std::string(name), to_text(bytes), percent(ratio(bytes, memory.needed()))});
  }
  std::string figures = to_text(memory.needed());
  if (memory.framework().value > 0) {
    figures +=
        fmt::format(" ({} of tensors, {} beside them)", to_text(memory.peak()), to_text(memory.framework()));
  }
  const std::string title = memory_title(run);
  const bool wide = display_width(title + "  " + figures + ", " + verdict) > style.width;
  std::string text = heading(title, style);
  if (wide) {
    text += "  " + figures + ",\n  ";
  } else {
    text.back() = ' ';
    text += ' ' + figures + ", ";
  }
  text += paint(verdict, ink, style.colour) + '\n';
  return table.rows.empty() ? text : text + to_text(table, 2, style);
}

std::string communication_section(const Run& run, const TextStyle& style) {
  const std::vector<TrafficRow> rows = traffic_rows(run);
  if (rows.empty()) return {};
  // Axes exist in jobs that were lowered from a plan; traces name none.
  const bool axes =
      std::any_of(rows.begin(), rows.end(), [](const auto& row) { return !row.names[1].empty(); });
  // Only where ranks differ visibly.
  const bool most = std::any_of(rows.begin(), rows.end(), [](const TrafficRow& row) {
    return to_text(row.traffic.time) != to_text(row.traffic.most_time);
  });
  const std::size_t shown = std::min(rows.size(), kMostTraffic);
  TextTable table{{{"communication", false}}, {}};
  if (axes) table.columns.push_back({"axis", false});
  const auto add = [&](std::string header, int spare) {
    table.columns.push_back({std::move(header), true, SIZE_MAX, spare});
  };
  add("ranks", 0);
  add("calls", 2);
  add("bytes", 1);
  add("time", 0);
  if (most) add("most", 4);
  add("queued", 6);
  add("bus bandwidth", 5);
  add("of limit", 3);
  for (std::size_t i = 0; i < shown; ++i) table.rows.push_back(traffic_cells(rows[i], axes, most));
  const std::string lines = to_text(table, 2, style);
  const bool of_first = communication_spread(run).has_value();
  std::string text =
      heading("Communication of a rank", style,
              of_first && most ? "means of the first ranks of the roles that take part, and the most of any"
              : of_first       ? "of the first ranks of the roles that take part"
              : most           ? "means of the ranks that take part, and the most of any of them"
                               : "of those that take part");
  // Algorithms are too long for a column: each goes below its row.
  std::size_t begin = 0;
  for (std::size_t line = 0; begin < lines.size(); ++line) {
    const std::size_t end = lines.find('\n', begin) + 1;
    text += lines.substr(begin, end - begin);
    if (line > 0 && !rows[line - 1].algorithm.empty())
      text += wrap(rows[line - 1].algorithm, "    by ", style.width);
    begin = end;
  }
  if (shown < rows.size()) text += fmt::format("  and {} more\n", rows.size() - shown);
  return text;
}

std::string layer_section(const Run& run, const TextStyle& style) {
  const std::vector<LayerCost> costs = layer_costs(run);
  Time all;
  std::vector<std::vector<std::string>> figures;
  for (const LayerCost& cost : costs) {
    all += cost.compute();
    figures.push_back({to_text(cost.forward), to_text(cost.input_gradient + cost.weight_gradient),
                       to_text(cost.compute())});
  }
  if (all == Time(0)) return {};
  std::vector<Alike> rows = alike(figures);
  const auto sum = [&](const Alike& row) {
    return std::accumulate(row.members.begin(), row.members.end(), Time(0),
                           [&](Time so_far, std::size_t i) { return so_far + costs[i].compute(); });
  };
  const auto mean_communication = [&](const Alike& row) {
    double seconds = 0;
    for (const std::size_t i : row.members) seconds += in_seconds(costs[i].communication);
    return from_seconds(seconds / static_cast<double>(row.members.size()));
  };
  // Together, layers that are alike may outweigh a single expensive one.
  std::stable_sort(rows.begin(), rows.end(), [&](const Alike& a, const Alike& b) { return sum(a) > sum(b); });
  const bool several = rows.size() < costs.size();
  TextTable table{{{"layer", false}}, {}};
  if (several) table.columns.push_back({"alike"});
  for (const char* const header : {"forward", "backward"})
    table.columns.push_back({header, true, SIZE_MAX, 1});
  table.columns.push_back({"compute"});
  table.columns.push_back({"of all"});  // together, where several are alike
  table.columns.push_back({"communication", true, SIZE_MAX, 2});
  for (std::size_t i = 0; i < std::min(kMostLayers, rows.size()); ++i) {
    std::vector<std::string> names;
    for (const std::size_t layer : rows[i].members) names.push_back(run.graph.layers[layer]);
    const std::vector<std::string>& cells = figures[rows[i].members.front()];
    std::vector<std::string>& row = table.rows.emplace_back();
    row.push_back(name_of_all(names));
    if (several) row.push_back(with_separators(static_cast<std::int64_t>(names.size())));
    row.insert(row.end(), cells.begin(), cells.end());
    row.push_back(percent(ratio(sum(rows[i]), all)));
    row.push_back(to_text(mean_communication(rows[i])));
  }
  return heading(fmt::format("Costliest layers of {}", costs.size()), style) + to_text(table, 2, style);
}

std::string link_section(const Run& run, const TextStyle& style) {
  if (run.result.links.empty()) return {};
  std::vector<std::vector<std::string>> figures;
  for (const LinkUse& link : run.result.links) {
    figures.push_back({to_text(link.bytes), to_text(link.busy), to_text(link.bandwidth),
                       percent(utilization(link, run.result.iteration)), fmt::format("{}", link.dimension)});
  }
  TextTable table{{{"link", false},
                   {"alike", true, SIZE_MAX, 2},
                   {"bytes", true, SIZE_MAX, 1},
                   {"busy"},
                   {"bandwidth", true, SIZE_MAX, 3},
                   {"utilisation"}},
                  {}};
  // Links that did the same are one row, so that a symmetric machine has as many rows as kinds of links.
  const std::vector<Alike> rows = alike(figures);
  for (std::size_t i = 0; i < std::min(kMostLinkRows, rows.size()); ++i) {
    std::vector<std::string> names;
    std::int64_t links = 0;
    for (const std::size_t member : rows[i].members) {
      names.push_back(run.result.links[member].name);
      links += run.result.links[member].links;
    }
    std::vector<std::string>& row = table.rows.emplace_back();
    row = {name_of_all(names, static_cast<std::size_t>(links)), with_separators(links)};
    const std::vector<std::string>& cells = figures[rows[i].members.front()];
    row.insert(row.end(), cells.begin(), cells.begin() + 4);
  }
  return heading("Hottest links", style) + to_text(table, 2, style);
}

}  // namespace armilla
