// A Graph: what every rank executes. Here one made by hand: four ranks compute for 5 us, then share their results.
#include <cstdio>

#include "armilla.h"

int main() {
  armilla::Graph graph;
  graph.ranks = 4;
  graph.families = {armilla::world_family(4)};
  graph.collectives = {{.kind = armilla::CollectiveKind::all_reduce, .bytes = armilla::Bytes(1 << 20)}};
  graph.program_of.assign(4, 0);

  armilla::Program& program = graph.programs.emplace_back();
  program.role = "worker";
  const std::uint32_t compute = program.add(armilla::NodeKind::delay, armilla::Phase::forward,
                                            graph.names.add("compute"), -1, 5'000'000, {});
  program.add(armilla::NodeKind::collective, armilla::Phase::gradient_exchange, graph.names.add("share"), -1, 0,
              std::span(&compute, 1));
  armilla::validate_graph(graph);

  armilla::Study study;
  study.machine = armilla::with_ranks(armilla::load_machine("dgx-a100", "example"), 4, true, "example");
  const auto cost = armilla::make_cost_model(study.compute, study.machine.device);
  const armilla::Result result = armilla::simulate(graph, study, *cost);
  std::printf("%s\n", armilla::to_text(result.iteration).c_str());
  return result.iteration > armilla::microseconds(5) ? 0 : 1;
}
