// A Machine: a device, and the dimensions of the network between the devices, innermost first.
#include <cstdio>

#include "armilla.h"

int main() {
  armilla::Machine machine = armilla::load_machine("dgx-h100", "example");
  for (const armilla::Dimension& dimension : machine.dimensions)
    std::printf("%s: %lld devices at %s\n", dimension.name.c_str(), static_cast<long long>(dimension.size),
                armilla::to_text(dimension.bandwidth).c_str());
  return machine.dimensions.empty() ? 1 : 0;
}
