#include "write/astra.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace armilla {
namespace {

// ASTRA-sim's usage tracker samples every 10 us.
constexpr std::int64_t kWindow = 10'000'000;      // picoseconds
constexpr std::int64_t kMostWindows = 1'000'000;  // the first 10 s
constexpr std::size_t kBackendDimensions = 7, kRowsPerRun = 10;
constexpr std::size_t kSpareRows = 20, kWidth = 50;  // of ASTRA-sim's frontend tables

std::string number(double value) {
  return fmt::format("{:.6f}", value);
}
std::string micros(Time time) {
  return number(static_cast<double>(time.value) / 1e6);
}
std::string mebibytes_text(Bytes bytes) {
  return number(static_cast<double>(bytes.value) / (1024.0 * 1024.0));
}

// Runs of one experiment share their files: each writes its row into what the runs before it left. A table of
// which several runs write their cells. Text of cells has no commas or line ends.
class Grid {
 public:
  Grid(std::size_t rows, std::size_t columns) : columns_(columns), cells_(rows) {}

  void merge(std::string_view text) {
    for (std::size_t row = 0; !text.empty(); ++row) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      for (std::size_t column = 0;; ++column) {
        const std::size_t comma = std::min(line.find(','), line.size());
        if (comma > 0) set(row, column, std::string(line.substr(0, comma)));
        if (comma == line.size()) break;
        line.remove_prefix(comma + 1);
      }
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  void set(std::size_t row, std::size_t column, std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == ',' || c == '\n' || c == '\r'; }, ' ');
    if (row >= cells_.size()) cells_.resize(row + 1);
    columns_ = std::max(columns_, column + 1);
    if (column >= cells_[row].size()) cells_[row].resize(column + 1);
    cells_[row][column] = std::move(text);
  }

  std::string text() const {
    std::string all;
    for (const std::vector<std::string>& row : cells_) {
      for (std::size_t column = 0; column < columns_; ++column) {
        if (column > 0) all += ',';
        if (column < row.size()) all += row[column];
      }
      all += '\n';
    }
    return all;
  }

 private:
  std::size_t columns_;
  std::vector<std::vector<std::string>> cells_;
};

// Rows of a layer stand together, one for each run.
std::size_t row_of(const Astra1Report& report, std::size_t layer) {
  return layer * static_cast<std::size_t>(report.total_stat_rows) + 1 +
         static_cast<std::size_t>(report.stat_row);
}

std::size_t frontend_rows(const Astra1Report& report) {
  return report.layers.size() * static_cast<std::size_t>(report.total_stat_rows) + kSpareRows;
}

// Columns and their order are those of ASTRA-sim's CSVWriter output.
void fill_end_to_end(const Astra1Report& report, Grid& grid) {
  constexpr std::string_view kHeader[] = {"fwd compute",          "wg compute",      "ig compute",
                                          "fwd exposed comm",     "wg exposed comm", "ig exposed comm",
                                          "fwd total comm",       "wg total comm",   "ig total comm",
                                          "workload finished at", "total comp",      "total exposed comm"};
  for (std::size_t i = 0; i < std::size(kHeader); ++i) grid.set(0, i + 2, std::string(kHeader[i]));
  for (std::size_t layer = 0; layer < report.layers.size(); ++layer) {
    const Astra1LayerRow& figures = report.layers[layer];
    const std::size_t row = row_of(report, layer);
    if (report.stat_row == 0) grid.set(row, 0, figures.name);
    grid.set(row, 1, report.run_name);
    std::size_t column = 2;
    for (const auto& times : {figures.compute, figures.exposed, figures.communication}) {
      for (const Time time : times) grid.set(row, column++, micros(time));
    }
    grid.set(row, column, micros(report.finish));
  }
  const std::size_t row = row_of(report, 0);
  // The sums of the whole run stand in the first layer's row only.
  grid.set(row, 12, micros(report.total_compute));
  grid.set(row, 13, micros(report.finish - report.total_compute));
}

void fill_detailed(const Astra1Report& report, Grid& grid) {
  std::size_t queues = 0, phases = 0;
  for (const Astra1LayerRow& layer : report.layers) {
    queues = std::max(queues, layer.queuing_us.size());
    phases = std::max(phases, layer.network_us.size());
  }
  const std::size_t network = 2 + queues, dimensions = network + phases;
  for (std::size_t i = 0; i < queues; ++i) grid.set(0, 2 + i, fmt::format("queuing delay phase {}", i));
  for (std::size_t i = 0; i < phases; ++i)
    grid.set(0, network + i, fmt::format("network delay phase {}", i + 1));
  for (std::size_t i = 0; i < report.chunk_us.size(); ++i)
    grid.set(0, dimensions + i, fmt::format("avg chunk delay dimension {}", i + 1));
  for (std::size_t layer = 0; layer < report.layers.size(); ++layer) {
    const Astra1LayerRow& figures = report.layers[layer];
    const std::size_t row = row_of(report, layer);
    if (report.stat_row == 0) grid.set(row, 0, figures.name);
    grid.set(row, 1, report.run_name);
    for (std::size_t i = 0; i < figures.queuing_us.size(); ++i)
      grid.set(row, 2 + i, number(figures.queuing_us[i]));
    for (std::size_t i = 0; i < figures.network_us.size(); ++i)
      grid.set(row, network + i, number(figures.network_us[i]));
  }
  for (std::size_t i = 0; i < report.chunk_us.size(); ++i) {
    if (report.chunk_us[i]) grid.set(row_of(report, 0), dimensions + i, number(*report.chunk_us[i]));
  }
}

void fill_backend(const Astra1Report& report, Grid& grid) {
  constexpr std::string_view kHeader[] = {"RunName",          "CommsTime", "ComputeTime",
                                          "ExposedCommsTime", "Cost",      "TotalPayloadSize"};
  const std::size_t dimensions = std::max(kBackendDimensions, report.payload.size());
  for (std::size_t i = 0; i < std::size(kHeader); ++i) grid.set(0, i, std::string(kHeader[i]));
  for (std::size_t i = 0; i < dimensions; ++i) grid.set(0, 6 + i, fmt::format("PayloadSize_Dim{}", i));
  const std::size_t row = static_cast<std::size_t>(report.stat_row) + 1;
  Bytes all;
  for (const Bytes bytes : report.payload) all = saturating_add(all, bytes);
  grid.set(row, 0, report.run_name);
  grid.set(row, 1, micros(report.finish));
  grid.set(row, 2, micros(report.total_compute));
  grid.set(row, 3, micros(report.finish - report.total_compute));
  grid.set(row, 4, number(report.cost));
  grid.set(row, 5, mebibytes_text(all));
  // Dimensions that the network does not have are -1.
  for (std::size_t i = 0; i < dimensions; ++i)
    grid.set(row, 6 + i, i < report.payload.size() ? mebibytes_text(report.payload[i]) : "-1");
}

void fill_dimensions(const Astra1Report& report, Grid& grid) {
  constexpr std::string_view kHeader[] = {"RunName", "DimensionIndex", "AverageChunkLatency"};
  for (std::size_t i = 0; i < std::size(kHeader); ++i) grid.set(0, i, std::string(kHeader[i]));
  // A run has ten rows; a logical dimension more than that would be another run's.
  const std::size_t first = static_cast<std::size_t>(report.stat_row) * kRowsPerRun + 1;
  for (std::size_t i = 0; i < std::min(report.chunk_us.size(), kRowsPerRun); ++i) {
    grid.set(first + i, 0, report.run_name);
    grid.set(first + i, 1, fmt::format("{}", i));
    if (report.chunk_us[i]) grid.set(first + i, 2, number(*report.chunk_us[i]));
  }
}

std::string utilization_text(const Astra1Report& report) {
  std::string text = " time (us) ,";
  for (std::size_t d = 0; d < report.utilization.size(); ++d) text += fmt::format("dim{} util,", d + 1);
  text += '\n';
  const std::size_t windows = report.utilization.empty() ? 0 : report.utilization.front().size();
  for (std::size_t window = 0; window < windows; ++window) {
    text += micros(Time(kWindow * static_cast<std::int64_t>(window + 1))) + ',';
    for (const std::vector<double>& dimension : report.utilization) text += number(dimension[window]) + ',';
    text += '\n';
  }
  return text;
}

// Queueing delays are counted by phase from 1, as in ASTRA-sim's detailed.csv. Sums of a collective's chunks,
// per phase.
struct ChunkSums {
  std::vector<double> queuing_us, network_us;
  double chunks = 0;

  void add(const ChunkInterval& chunk) {
    const std::size_t phase = chunk.phase;
    if (phase >= network_us.size()) {
      network_us.resize(phase + 1);
      queuing_us.resize(phase + 2);
    }
    queuing_us[phase + 1] += in_microseconds(chunk.start - chunk.ready);
    if (chunk.messages > 0) network_us[phase] += in_microseconds(chunk.message_time) / chunk.messages;
    if (phase == 0) ++chunks;
  }
};

void add_scaled(std::vector<double>& sums, const std::vector<double>& more, double count) {
  if (sums.size() < more.size()) sums.resize(more.size());
  for (std::size_t i = 0; i < more.size(); ++i) sums[i] += more[i] / count;
}

void average_delays(Astra1Report& report, const Program& program, const RankClass& ranks) {
  std::map<std::uint32_t, ChunkSums> collectives;  // by node
  for (const ChunkInterval& chunk : ranks.chunks) collectives[chunk.node].add(chunk);
  std::vector<double> counts(report.layers.size());
  for (const auto& [node, sums] : collectives) {
    const std::int32_t layer = program.layer[node];
    if (layer < 0 || static_cast<std::size_t>(layer) >= report.layers.size()) continue;
    Astra1LayerRow& row = report.layers[static_cast<std::size_t>(layer)];
    // Per chunk first, then over the collectives of a layer.
    add_scaled(row.queuing_us, sums.queuing_us, sums.chunks);
    add_scaled(row.network_us, sums.network_us, sums.chunks);
    ++counts[static_cast<std::size_t>(layer)];
  }
  for (std::size_t layer = 0; layer < report.layers.size(); ++layer) {
    for (double& value : report.layers[layer].queuing_us) value /= counts[layer];
    for (double& value : report.layers[layer].network_us) value /= counts[layer];
  }
}

// Share of every window in which one of `busy` covers the time, in percent.
// Overlapping intervals count once: `until` is how far the time is covered already.
std::vector<double> covered(std::vector<std::pair<Time, Time>> busy, Time finish) {
  std::vector<std::int64_t> active(static_cast<std::size_t>(std::min(finish.value / kWindow, kMostWindows)));
  std::sort(busy.begin(), busy.end());
  Time until{};
  for (const auto& [from, to] : busy) {
    std::int64_t at = std::max(from, until).value;
    until = std::max(until, to);
    while (at < to.value) {
      const auto window = static_cast<std::size_t>(at / kWindow);
      const std::int64_t end = std::min(to.value, static_cast<std::int64_t>(window + 1) * kWindow);
      if (window < active.size()) active[window] += end - at;
      at = end;
    }
  }
  std::vector<double> percent;
  for (const std::int64_t part : active)
    percent.push_back(100 * static_cast<double>(part) / static_cast<double>(kWindow));
  return percent;
}

}  // namespace

void add_chunk_statistics(Astra1Report& report, const Graph& graph, const Result& result,
                          std::size_t dimensions) {
  report.chunk_us.assign(dimensions, std::nullopt);
  report.utilization.assign(dimensions, {});
  if (result.classes.empty() || dimensions == 0) return;
  const RankClass& ranks = result.classes.front();
  average_delays(report, graph.programs[ranks.program], ranks);
  std::vector<std::vector<std::pair<Time, Time>>> busy(dimensions);
  std::vector<double> sum_us(dimensions);
  for (const ChunkInterval& chunk : ranks.chunks) {
    // Algorithms over all ranks work in the first dimension's queues.
    const std::size_t dimension = chunk.dimension < dimensions ? chunk.dimension : 0;
    busy[dimension].emplace_back(chunk.ready, chunk.end);
    sum_us[dimension] += in_microseconds(chunk.end - chunk.start);
  }
  for (std::size_t d = 0; d < dimensions; ++d) {
    if (!busy[d].empty()) report.chunk_us[d] = sum_us[d] / static_cast<double>(busy[d].size());
    report.utilization[d] = covered(std::move(busy[d]), report.finish);
  }
}

std::vector<NamedContents> write_astra1_report(const Astra1Report& report, const std::string& folder,
                                               std::optional<std::string> (*read)(const std::string&)) {
  const auto runs = static_cast<std::size_t>(report.total_stat_rows);
  const auto shared = [&](const std::string& name, std::size_t rows, std::size_t columns,
                          void (*fill)(const Astra1Report&, Grid&)) {
    const std::string path = folder + "/" + name;
    Grid grid(rows, columns);
    if (report.stat_row > 0) {
      if (const auto present = read(path)) grid.merge(*present);
    }
    fill(report, grid);
    return NamedContents{path, grid.text()};
  };
  return {shared("EndToEnd.csv", frontend_rows(report), kWidth, fill_end_to_end),
          shared("detailed.csv", frontend_rows(report), kWidth, fill_detailed),
          {folder + "/" + report.run_name + "_dimension_utilization.csv", utilization_text(report)},
          shared("backend_end_to_end.csv", runs + 1, 6 + kBackendDimensions, fill_backend),
          shared("backend_dim_info.csv", runs * kRowsPerRun + 1, 3, fill_dimensions)};
}

}  // namespace armilla
