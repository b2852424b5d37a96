// A Model: the operators of a forward pass with shapes, parameters and work, and layers above them.
#include <cstdio>

#include "armilla.h"

int main() {
  const armilla::Model model = armilla::read_model("resnet50", {.dimensions = {}, .batch = 32});
  const armilla::ModelTotals sums = armilla::totals(model);
  std::printf("%zu operators in %zu layers, %lld parameters\n", model.operators.size(), model.layers.size(),
              static_cast<long long>(sums.parameters));
  return sums.parameters == 25'557'032 ? 0 : 1;  // torchvision's count
}
