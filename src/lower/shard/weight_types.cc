#include "lower/shard/weight_types.h"

namespace armilla {

DType weight_type(const Plan& plan) {
  if (plan.weight_dtype != DType::unknown) return plan.weight_dtype;
  return plan.precision == DType::fp8 ? DType::bf16 : plan.precision;
}

DType gradient_type(const Plan& plan) {
  return plan.gradient_dtype != DType::unknown ? plan.gradient_dtype : weight_type(plan);
}

DType parameter_type(const Plan& plan) {
  return plan.parameter_dtype != DType::unknown ? plan.parameter_dtype : weight_type(plan);
}

bool has_masters(const Plan& plan) {
  return bits_of(plan.state_dtype) == 32 && bits_of(weight_type(plan)) < 32;
}

}  // namespace armilla
