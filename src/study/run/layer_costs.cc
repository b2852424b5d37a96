#include "study/run.h"

#include "ir/derived/backward.h"

namespace armilla {

// Work of the whole model on one device, undivided.
LayerTable costed_layers(const Model& model, const CostModel& cost, const std::string& compute) {
  LayerTable table = layer_table(model);
  table.compute = compute;
  for (const LayerRow& row : table.layers) {
    LayerTime& sum = table.times.emplace_back();
    const auto add = [&](const Work& work, Time& time, std::int64_t& cycles) {
      time = later(time, cost.time(work));
      cycles += cost.cycles(work);
    };
    for (const std::uint32_t i : row.operators) {
      const Operator& op = model.operators[i];
      add(op.forward, sum.forward, sum.forward_cycles);
      add(input_gradient(model, op), sum.input_gradient, sum.input_gradient_cycles);
      add(weight_gradient(model, op), sum.weight_gradient, sum.weight_gradient_cycles);
    }
  }
  return table;
}

}  // namespace armilla
