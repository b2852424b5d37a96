#include "study/memory_limits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/units_text.h"
#include "lower/hybrid_memory.h"

namespace armilla {
namespace {

// What a rank with that device (device_number) needs at most; nothing where no rank has it.
Bytes need_on(const Run& run, std::uint32_t device) {
  const Machine& machine = run.study.machine;
  std::vector<bool> runs(run.graph.programs.size());
  for (std::size_t rank = 0; rank < run.graph.program_of.size(); ++rank) {
    if (device_number(machine, static_cast<std::int64_t>(rank)) != device) continue;
    runs[run.graph.program_of[rank]] = true;
  }
  Bytes most;
  for (const RoleMemory& role : run.roles) {
    if (runs[role.program]) most = std::max(most, role.use.peak());
  }
  return most;
}

std::string memory_advice_text(const Run& run, Device device, Bytes memory) {
  if (!run.hybrid) return "more micro-batches, a smaller batch or a smaller precision need less";
  device.memory = memory;
  const std::vector<std::string> advice = memory_advice(run.model, run.study.plan, device);
  if (advice.empty()) return "no single change of the plan makes it fit";
  return fmt::format("what would make it fit, and the peak then: {}", fmt::join(advice, "; "));
}

}  // namespace

void set_memory_limits(Run& run) {
  const Machine& machine = run.study.machine;
  std::vector<Bytes> least(run.graph.programs.size(), Bytes(INT64_MAX));
  for (std::size_t rank = 0; rank < run.graph.program_of.size(); ++rank) {
    Bytes& memory = least[run.graph.program_of[rank]];
    memory = std::min(memory, device_of(machine, static_cast<std::int64_t>(rank)).memory);
  }
  for (RoleMemory& role : run.roles) role.use.capacity = least[role.program];
  const auto pressure = [](const RoleMemory& role) {
    const double capacity = static_cast<double>(role.use.capacity.value);
    return static_cast<double>(role.use.peak().value) / std::max(capacity, 1.0);
  };
  run.memory = std::max_element(run.roles.begin(), run.roles.end(), [&](const auto& a, const auto& b) {
                 return pressure(a) < pressure(b);
               })->use;
}

void warn_of_memory(Run& run) {
  const Machine& machine = run.study.machine;
  std::size_t first = SIZE_MAX;  // of the warnings
  Bytes least;                   // memory of the devices that have too little
  for (std::uint32_t number = 0; number <= machine.others.size(); ++number) {
    const Device& device = number == 0 ? machine.device : machine.others[number - 1].device;
    const Bytes need = need_on(run, number);
    if (need <= device.memory) continue;
    if (first == SIZE_MAX) first = run.warnings.size();
    least = least > Bytes(0) ? std::min(least, device.memory) : device.memory;
    run.warnings.push_back(fmt::format("does not fit: a rank needs {}, device '{}' has {}", to_text(need),
                                       device.name, to_text(device.memory)));
  }
  if (first != SIZE_MAX) run.warnings[first] += "; " + memory_advice_text(run, machine.device, least);
}

}  // namespace armilla
