#include "ir/profile.h"

#include <fmt/format.h>

namespace armilla {

std::string shapes_text(const Work& work) {
  std::string text;
  for (const Gemm& gemm : work.gemms) {
    if (!text.empty()) text += ", ";
    if (gemm.count > 1) text += fmt::format("{} x ", gemm.count);
    text += fmt::format("{}x{}x{}", gemm.m, gemm.n, gemm.k);
  }
  return text;
}

ComputationKey key_of(std::string name, Phase phase, const Work& work) {
  return {std::move(name),  phase,           shapes_text(work), std::string(name_of(work.dtype)),
          work.flops.value, work.bytes.value};
}

}  // namespace armilla
