#include "study/run/memory_limits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/units_text.h"
#include "lower/memory.h"

namespace armilla {
namespace {

// What the tensors of a rank with that device (device_number) need at most; nothing where no rank has it.
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
  device.memory = memory;
  const std::vector<std::string> advice = memory_advice(run.model, run.study.plan, device);
  if (advice.empty()) return "no single change of the plan makes it fit";
  return fmt::format("what would make it fit, and what is needed then: {}", fmt::join(advice, "; "));
}

}  // namespace

// Ranks of a role may have different devices. The one with the least room is what the role must fit into.
void set_memory_limits(Run& run) {
  const Machine& machine = run.study.machine;
  const auto room = [&](const Device& device) {
    return device.memory - framework_memory(run.study.plan, device);
  };
  std::vector<const Device*> least(run.graph.programs.size(), nullptr);  // with the least room for tensors
  for (std::size_t rank = 0; rank < run.graph.program_of.size(); ++rank) {
    const Device*& known = least[run.graph.program_of[rank]];
    const Device& device = device_of(machine, static_cast<std::int64_t>(rank));
    if (known == nullptr || room(device) < room(*known)) known = &device;
  }
  const auto limit = [&](MemoryUse& use, const Device* device) {
    if (device == nullptr) return;
    use.capacity = device->memory;
    set_framework_memory(run.study.plan, *device, use);
  };
  for (RoleMemory& role : run.roles) limit(role.use, least[role.program]);
  // Most in proportion to what its device has, not most in bytes.
  const auto pressure = [](const RoleMemory& role) {
    const double capacity = static_cast<double>(role.use.capacity.value);
    return static_cast<double>(role.use.needed().value) / std::max(capacity, 1.0);
  };
  run.memory = std::max_element(run.roles.begin(), run.roles.end(), [&](const auto& a, const auto& b) {
                 return pressure(a) < pressure(b);
               })->use;
}

void warn_of_memory(Run& run) {
  const Machine& machine = run.study.machine;
  std::size_t first = SIZE_MAX;  // of the warnings
  Bytes least;                   // memory of the devices that have too little
  // By kind of device: a role may fit on one and not on the other.
  for (std::uint32_t number = 0; number <= machine.others.size(); ++number) {
    const Device& device = number == 0 ? machine.device : machine.others[number - 1].device;
    const Bytes tensors = need_on(run, number), framework = framework_memory(run.study.plan, device);
    const Bytes need = saturating_add(tensors, framework);
    if (tensors == Bytes(0) || need <= device.memory) continue;
    if (first == SIZE_MAX) first = run.warnings.size();
    least = least > Bytes(0) ? std::min(least, device.memory) : device.memory;
    const std::string share =
        framework > Bytes(0) ? fmt::format(" ({} of them the framework's)", to_text(framework)) : "";
    run.warnings.push_back(fmt::format("does not fit: a rank needs {}{}, device '{}' has {}", to_text(need),
                                       share, device.name, to_text(device.memory)));
  }
  // The advice is looked for once, for the smallest device, and appended to the first warning.
  if (first != SIZE_MAX) run.warnings[first] += "; " + memory_advice_text(run, machine.device, least);
}

}  // namespace armilla
