#include "study/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/units_text.h"
#include "lower/plan.h"
#include "lower/shard_layout.h"
#include "read/read.h"

namespace armilla {
namespace {

// Floating types that products can be computed in, those nearest in width to `wanted` first.
std::vector<DType> nearest_types(const CostModel& cost, DType wanted) {
  std::vector<DType> types;
  for (const std::string_view name : dtype_names()) {
    const DType dtype = *dtype_from_name(name);
    if (is_floating(dtype) && cost.computes_in(dtype)) types.push_back(dtype);
  }
  // tf32 is the narrow one of the two types of 32 bits.
  const auto width = [](DType dtype) { return dtype == DType::tf32 ? 19 : bits_of(dtype); };
  std::stable_sort(types.begin(), types.end(), [&](DType a, DType b) {
    return std::abs(width(a) - width(wanted)) < std::abs(width(b) - width(wanted));
  });
  return types;
}

std::string list_of(const std::vector<DType>& types) {
  std::string text;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (i > 0) text += i + 1 == types.size() ? " and " : ", ";
    text += name_of(types[i]);
  }
  return text;
}

std::vector<DType> types_of(const Plan& plan) {
  std::vector<DType> types = {plan.precision};
  if (const DType other = activation_dtype(plan); other != plan.precision) types.push_back(other);
  return types;
}

}  // namespace

void require_precision(const CostModel& cost, DType dtype, const std::string& device,
                       const std::string& where) {
  if (cost.computes_in(dtype)) return;
  throw Error(where, fmt::format("{} has no {} matrix units", device, name_of(dtype)),
              fmt::format("{} computes in {}", device, list_of(nearest_types(cost, dtype))));
}

void check_precision(const Study& study, const Plan& plan, const CostModel& cost) {
  const std::string where = place_of(study.request, {"plan.precision"});
  for (const DType dtype : types_of(plan)) {
    require_precision(cost, dtype, study.machine.device.name, where);
    for (const OtherDevices& other : study.machine.others)
      require_precision(*make_cost_model(study.compute, other.device), dtype, other.device.name, where);
  }
}

void check_precision(const Model& model, const CostModel& cost, const std::string& device,
                     const std::string& where) {
  for (const Operator& op : model.operators) {
    if (op.forward.kind == WorkKind::matrix) require_precision(cost, op.forward.dtype, device, where);
  }
}

void settle_default_precision(Study& study) {
  if (study.request.precision || !is_described(study.model)) return;
  std::vector<std::unique_ptr<CostModel>> costs;
  costs.push_back(make_cost_model(study.compute, study.machine.device));
  for (const OtherDevices& other : study.machine.others)
    costs.push_back(make_cost_model(study.compute, other.device));
  for (const DType dtype : {DType::bf16, DType::fp16, DType::fp32}) {
    if (!std::all_of(costs.begin(), costs.end(), [&](const auto& cost) { return cost->computes_in(dtype); }))
      continue;
    if (dtype != DType::bf16) study.request.precision = dtype;
    return;
  }
}

std::vector<std::string> precision_notes(const Study& study, const CostModel& cost) {
  std::vector<std::string> notes;
  const Device& device = study.machine.device;
  const DType precision = study.plan.precision;
  if (study.request.precision && !study.request.places.contains("precision")) {
    notes.push_back(
        fmt::format("precision {}: the usual bf16 has no matrix units on these devices", name_of(precision)));
  }
  if (precision == DType::fp32 && !device.matrix_rate.contains(precision) &&
      cost.peak(precision).value == device.vector_rate.value) {
    notes.push_back(fmt::format("device '{}' lists no matrix rate for {}: its vector rate of {} is used",
                                device.name, name_of(precision), to_text(device.vector_rate)));
  }
  return notes;
}

}  // namespace armilla
