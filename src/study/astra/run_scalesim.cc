#include "study/astra.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "cost/systolic.h"
#include "read/scalesim.h"

namespace armilla {

ScaleSimAnswer run_scalesim(const ScaleSimRequest& request, Progress& meter) {
  ScaleSimAnswer answer;
  ScaleSimRun& run = answer.run;
  run.config = read_scalesim_config(request.config);
  run.topology_path = request.topology.empty() ? run.config.topology : request.topology;
  if (run.topology_path.empty())
    throw Error("-t", "no topology is given", "the configuration has no TopologyCsvLoc either");
  const SystolicTopology topology = read_scalesim_topology(run.topology_path);
  if (topology.products != request.products)
    throw Error(run.topology_path, topology.products ? "is a table of M, N, K" : "is a table of convolutions",
                topology.products ? "add '-i gemm'" : "omit '-i gemm'");
  answer.notes = run.config.notes;
  answer.notes.insert(answer.notes.end(), topology.notes.begin(), topology.notes.end());
  // Nets repeat layers: each shape is simulated once.
  std::vector<std::pair<ConvolutionShape, SystolicReport>> known;
  // Time goes about with the multiply-accumulates, which is what progress is measured in.
  const auto macs = [](const SystolicLayer& layer) {
    return static_cast<double>(to_gemm(layer.shape, layer.where).macs()) * static_cast<double>(layer.repeats);
  };
  double all = 0, done = 0;
  meter.begin("simulating");
  for (const SystolicLayer& layer : topology.layers) all += macs(layer);
  for (const SystolicLayer& layer : topology.layers) {
    auto found = std::find_if(known.begin(), known.end(),
                              [&](const auto& entry) { return entry.first == layer.shape; });
    if (found == known.end()) {
      known.emplace_back(layer.shape,
                         simulate_layer(run.config.array, run.config.buffers, layer.shape, layer.where));
      found = known.end() - 1;
    }
    run.layers.insert(run.layers.end(), static_cast<std::size_t>(layer.repeats), found->second);
    done += macs(layer);
    meter.update(done / std::max(all, 1.0));
  }
  return answer;
}

}  // namespace armilla
