#include "cost/cost.h"

#include <array>

#include "cost/device/kernels.h"
#include "cost/device/roofline.h"
#include "cost/systolic.h"

namespace armilla {
namespace {

constexpr std::array kCostModels = {
    CostModelInfo{"roofline",
                  "the longer of arithmetic and memory traffic, plus a launch overhead per kernel",
                  kRooflineParameters, make_roofline},
    CostModelInfo{
        "kernels",
        "kernels by class and shape, at rates that were measured; devices without any as in roofline",
        kKernelParameters, make_kernels},
    CostModelInfo{"systolic",
                  "matrix products cycle by cycle as SCALE-Sim v2 counts them, the rest as in roofline",
                  kSystolicParameters, make_systolic},
};

}  // namespace

Time time_of(const Work& work, const CostModel& cost, const CostModel& usual) {
  if (!work.measured) return cost.time(work);
  if (&cost == &usual) return *work.measured;
  const Time here = cost.time(work), there = usual.time(work);
  if (there == Time(0)) return *work.measured;
  return from_seconds(in_seconds(*work.measured) * (in_seconds(here) / in_seconds(there)));
}

std::span<const CostModelInfo> cost_models() {
  return kCostModels;
}

std::unique_ptr<CostModel> make_cost_model(const ComponentChoice& choice, const Device& device) {
  const CostModelInfo& info =
      find_component<CostModelInfo>("compute model", cost_models(), choice.name, choice.where);
  return info.make(device, ParameterValues(info.name, info.parameters, choice.parameters));
}

}  // namespace armilla
