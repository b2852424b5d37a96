// Compute-time models: Work on a Device -> Time. One table of models; each is one source file.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/registry.h"
#include "ir/machine.h"
#include "ir/work.h"

namespace armilla {

class CostModel {
 public:
  virtual ~CostModel() = default;
  // How long the device is busy with `work`. Zero for WorkKind::none. Pure: equal work costs equal time.
  virtual Time time(const Work& work) const = 0;
  // Dense peak of one device's matrix arithmetic under this model: what utilisation is measured against.
  virtual FlopRate peak(DType dtype) const = 0;
  // Whether matrix products can be computed in that floating type: fp32 always (the vector units can), others
  // where the device has a rate for them. Integers are computed by any unit.
  virtual bool computes_in(DType) const { return true; }
  // Whether `work` is outside the range of shapes that the model's rates were fitted in.
  virtual bool extrapolates(const Work&) const { return false; }
  // Cycles for models that count them (systolic), 0 for the others.
  virtual std::int64_t cycles(const Work&) const { return 0; }
};

// A measured time where the work has one, else the model's. On another than the `usual` device, a measured
// time is scaled by what the models say of both.
Time time_of(const Work& work, const CostModel& cost, const CostModel& usual);

struct CostModelInfo {
  std::string_view name;
  std::string_view help;
  std::span<const ParameterInfo> parameters;
  std::unique_ptr<CostModel> (*make)(const Device& device, const ParameterValues& values);
};
std::span<const CostModelInfo> cost_models();

// Throws Error for an unknown model, unknown parameters or bad values.
std::unique_ptr<CostModel> make_cost_model(const ComponentChoice& choice, const Device& device);

}  // namespace armilla
