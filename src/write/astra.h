// What ASTRA-sim writes and prints of a run, in its own words: 1.0's reports, and 2's lines, log and memory
// trace.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "ir/formats/chakra.h"
#include "ir/graph.h"
#include "ir/result.h"

namespace armilla {

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

struct Astra1LayerRow {
  std::string name;
  // Forward, weight gradient, input gradient: the order of ASTRA-sim's columns.
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

// What ASTRA-sim 2.x prints and logs of a run: the line of every finished rank, the issue and callback lines
// of "trace-enabled", and the memory trace of "track-local-mem".
//
// Source: Workload.cc and LocalMemUsageTracker.cc (2.x, 2026). A cycle is a nanosecond. "Exposed
// communication" is what is left of the finish time after the durations of all computations of the GPU, be
// they idle or memory time in truth; never less than 0 here (replay-only wraps around there, because it
// counts communication nodes as computations). Lines carry no time stamps, so that logs can be compared.

// Of a program, as fractions of its time in computations.
struct Astra2Utilisation {
  double compute_bound = 0, compute = 0, memory = 0;
  double operation_intensity = 0;  // flop per byte
};

struct Astra2Lines {
  bool replay_only = false;
  bool trace_enabled = false;
  std::vector<Astra2Utilisation> utilisation = {};  // per program, with the roofline; else empty
};

// "[workload] [info] sys[0] finished, 64440 cycles, exposed communication 64440 cycles." and the statistics
// that follow it ("[statistics] [info] sys[0], Wall time: 64440", GPU and communication time and their
// overlap where there is any), for every rank, in order of rank.
std::string astra2_finish_lines(const Graph& graph, const Result& result, const Astra2Lines& lines);

// A node of a rank from issue to completion.
struct NodeSpan {
  Time start, end;
  std::uint32_t node = 0;
};
// Every recorded node of the rank in order of issue; empty when the run recorded none for it.
std::vector<NodeSpan> node_spans(const Result& result, std::int32_t rank);

// "[workload] [debug] issue,sys->id=0, tick=0, node->id=0, node->name=n0, node->type=4" and the same with
// "callback" of all ranks, in order of time; of a rank, completions come before what they let start. Types
// are Chakra's numbers of the node's kind; a node that only lasts counts as a computation, or as a collective
// where it occupies the communication lane. The finish lines of a rank follow its last callback.
std::string astra2_log(const Graph& graph, const Result& result, const Astra2Lines& lines);

// Tensors of one rank: lifetimes from the "inputs" and "outputs" lists (name, size in bytes, name, ...) of
// its nodes. A tensor lives from the start of the node that first writes it, or from 0 when none does before
// it is read, to the end of its last reader; one that nobody reads lives on. Throws Error for a list of odd
// length and for a size that is none.
struct LocalMemory {
  std::string chrome_trace;  // reads, writes and lifetimes of tensors, and the memory in use, in microseconds
  std::uint64_t peak_bytes = 0;
  std::size_t tensors = 0;
};
LocalMemory local_memory(const ChakraTrace& trace, std::int32_t rank, const Program& program,
                         std::span<const NodeSpan> spans);
// "[workload] [info] sys[0] peak memory usage: 3.00 MB"
std::string peak_memory_line(std::int32_t rank, std::uint64_t peak_bytes);

}  // namespace armilla
