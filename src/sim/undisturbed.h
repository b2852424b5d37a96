// What ranks do between messages takes the same time whenever they do it, if they do it in step and their
// collectives meet nothing on their way.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cost/cost.h"
#include "ir/graph.h"
#include "ir/result.h"
#include "ir/study.h"
#include "sim/run_memory.h"
#include "sim/simulate.h"

namespace armilla {

struct ReadyJob;

// What else there is while the collectives run that are asked about.
enum class Beside : std::uint8_t {
  everything,  // all that the graph has
  messages,    // without the collectives of ranks of one program, which are at other times of these ranks
};

// A graph on a machine, folded once: to be asked about, and to be run.
class FoldedGraph {
 public:
  // Of the memory's study. Both must outlive it; nobody else uses the memory meanwhile. Throws Error as
  // simulate does. Cost: that of folding ranks, unless jobs of its structure were folded before.
  FoldedGraph(const Graph& graph, RunMemory& memory);
  ~FoldedGraph();
  FoldedGraph(const FoldedGraph&) = delete;
  FoldedGraph& operator=(const FoldedGraph&) = delete;

  // Whether all ranks of a program fare alike, and every collective of families of these names and every
  // message between ranks of one program meets nothing on its way but others of these of its pass, where
  // passes follow each other (sim/memo/lone_groups.h). With Beside::messages it also asks for
  // links that no messages of other ranks pass.
  bool is_undisturbed(const std::set<std::string>& families, Beside beside);

  // As simulate does, but for the times of ranks alone. `cost` is of the machine's usual device, which all
  // ranks must have. `intervals`: also when every node ran. `watched`: SimulationOptions::watched_ends.
  Result simulate(const CostModel& cost, bool intervals = false,
                  std::span<std::vector<WatchedEnd>> watched = {});

 private:
  std::unique_ptr<const ReadyJob> job_;
};

}  // namespace armilla
