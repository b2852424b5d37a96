// ASTRA-sim 1.0's reports of a text-workload run: EndToEnd.csv, detailed.csv, <run>_dimension_utilization.csv
// and the analytical backend's backend_end_to_end.csv and backend_dim_info.csv, with its column names. Times
// are microseconds (cycles of 1 ns over 1000) with six decimals, sizes MiB.
//
// Source: 1.0's Layer.cc, CSVWriter.cc, Workload.cc, UsageTracker.cc, StreamStat.hh and
// astra-network-analytical's main.cc and AnalyticalNetwork.cc. As there, "CommsTime" is the time of the whole
// run, queuing and network delays are averages over the chunks of a collective and then over the layer's
// collectives, and a dimension is in use while a chunk waits or works there. Unlike there: a phase has the
// same column in every layer of detailed.csv; dimensions beyond 7 get columns; an average of nothing is an
// empty cell; the utilisation table ends with its last full window, or after 10 s.
//
// Several runs share the tables: run `stat_row` of `total_stat_rows` fills its rows and leaves the others as
// they are; row 0 begins them afresh.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "ir/graph.h"
#include "ir/result.h"

namespace armilla {

struct Astra1LayerRow {
  std::string name;
  // Forward, weight gradient, input gradient: the order of the peer's columns.
  std::array<Time, 3> compute{}, exposed{}, communication{};
  std::vector<double> queuing_us;  // average wait per chunk; [0]: before its first phase is known
  std::vector<double> network_us;  // average time of a message per phase
};

struct Astra1Report {
  std::string run_name;
  std::int64_t stat_row = 0, total_stat_rows = 1;
  std::vector<Astra1LayerRow> layers;
  Time finish, total_compute;                    // what is left of `finish` counts as exposed communication
  double cost = 0;                               // dollars
  std::vector<Bytes> payload;                    // sent by rank 0, per physical dimension
  std::vector<std::optional<double>> chunk_us;   // average in a logical dimension
  std::vector<std::vector<double>> utilization;  // [dimension][window of 10 us], percent
};

// Fills queuing_us and network_us of the layers, chunk_us and utilization from what rank 0 recorded. Layers
// are those of the graph; `dimensions` counts the logical ones.
void add_chunk_statistics(Astra1Report& report, const Graph& graph, const Result& result,
                          std::size_t dimensions);

// `read` returns the present text of a file of `folder`, or nothing when there is none; it is asked only
// when stat_row is not 0.
std::vector<NamedContents> write_astra1_report(const Astra1Report& report, const std::string& folder,
                                               std::optional<std::string> (*read)(const std::string& path));

}  // namespace armilla
