// What ASTRA-sim 2.x prints and logs of a run: the line of every finished rank, the issue and callback lines
// of "trace-enabled", and the memory trace of "track-local-mem".
//
// Source: Workload.cc and LocalMemUsageTracker.cc (2.x, 2026). A cycle is a nanosecond. "Exposed
// communication" is what is left of the finish time after the durations of all computations of the GPU, be
// they idle or memory time in truth; never less than 0 here (replay-only wraps around there, because it
// counts communication nodes as computations). Lines carry no time stamps, so that logs can be compared.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "ir/formats/chakra.h"
#include "ir/graph.h"
#include "ir/result.h"

namespace armilla {

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
