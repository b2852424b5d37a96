#include "study/run/compute_shares.h"

#include <vector>

namespace armilla {

ComputeShares compute_shares(const Graph& graph, const CostModel& cost) {
  std::vector<std::int64_t> ranks(graph.programs.size());
  for (const std::uint32_t program : graph.program_of) ++ranks[program];
  // How often every work is done, then what each costs: works are few.
  std::vector<double> times(graph.works.size());
  for (std::size_t index = 0; index < graph.programs.size(); ++index) {
    const Program& program = graph.programs[index];
    for (std::uint32_t node = 0; node < program.size(); ++node) {
      if (program.kind[node] == NodeKind::compute && program.lane[node] != Lane::none)
        times[program.payload[node]] += static_cast<double>(ranks[index] * program.times(node));
    }
  }
  ComputeShares sums;
  double all = 0;
  for (std::size_t index = 0; index < times.size(); ++index) {
    const Work& work = graph.works[index];
    if (!(times[index] > 0)) continue;
    const double seconds = times[index] * in_seconds(time_of(work, cost, cost));
    all += seconds;
    if (work.measured) {
      (work.interpolated ? sums.interpolated : sums.measured) += seconds;
    } else {
      sums.modelled += seconds;
      if (cost.extrapolates(work)) sums.extrapolated += seconds;
    }
  }
  if (!(all > 0)) return {};
  return {sums.measured / all, sums.interpolated / all, sums.modelled / all, sums.extrapolated / all};
}

}  // namespace armilla
