#include "study/translate.h"

#include <span>

namespace armilla {
namespace {

std::int64_t cycles_of(std::span<const Work> works, const CostModel& cost) {
  std::int64_t sum = 0;
  for (const Work& work : works) {
    // Cost models without cycles give times: nanoseconds, rounded up, which are cycles of ASTRA-sim's 1 GHz.
    const std::int64_t counted = cost.cycles(work);
    sum += counted > 0 ? counted : (cost.time(work).value + 999) / 1000;
  }
  return sum;
}

}  // namespace

TextWorkload translate(const Model& model, const TextWorkloadOptions& options, const CostModel& cost) {
  std::vector<LayerCycles> cycles;
  for (const ShardedLayer& layer : shard_layers(model, options)) {
    cycles.push_back({cycles_of(layer.forward, cost), cycles_of(layer.input_gradient, cost),
                      cycles_of(layer.weight_gradient, cost)});
  }
  return lower_to_text(model, options, cycles);
}

}  // namespace armilla
