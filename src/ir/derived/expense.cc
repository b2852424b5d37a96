#include "ir/derived/expense.h"

#include <algorithm>
#include <vector>

#include "base/checked.h"

namespace armilla {
namespace {

constexpr double kSecondsPerHour = 3600;
using DeviceTime = WideProduct;  // of all devices together, in picoseconds

// Of the first `ranks` devices, those of each kind (device_number).
std::vector<std::int64_t> devices_by_kind(const Machine& machine, std::int64_t ranks) {
  std::vector<std::int64_t> devices = {ranks};
  for (const OtherDevices& other : machine.others) {
    const std::int64_t taken = std::max<std::int64_t>(0, std::min(other.last + 1, ranks) - other.first);
    devices.push_back(taken);
    devices.front() -= taken;
  }
  return devices;
}

const Device& device_of_kind(const Machine& machine, std::size_t kind) {
  return kind == 0 ? machine.device : machine.others[kind - 1].device;
}

double host_watts(const Machine& machine) {
  return machine.host_power.value_or(Power(0)).value;
}

// Neither factor makes it smaller by being larger.
double joules(const Device& device, double host, std::int64_t devices, Time iteration, double computing) {
  const double idle = device.idle_power->value, more = device.busy_power->value - idle;
  return static_cast<double>(devices) * in_seconds(iteration) * (idle + host) + computing * 1e-12 * more;
}

bool has_power(const Device& device) {
  return device.busy_power && device.idle_power;
}

}  // namespace

bool knows_energy(const Machine& machine, std::int64_t ranks) {
  const std::vector<std::int64_t> devices = devices_by_kind(machine, ranks);
  for (std::size_t kind = 0; kind < devices.size(); ++kind) {
    if (devices[kind] > 0 && !has_power(device_of_kind(machine, kind))) return false;
  }
  return true;
}

std::optional<Energy> energy_of(const Machine& machine, const Result& result) {
  if (!knows_energy(machine, result.ranks)) return {};
  const std::vector<std::int64_t> devices = devices_by_kind(machine, result.ranks);
  std::vector<DeviceTime> computing(devices.size());
  for (const RankClass& ranks : result.classes)
    computing[device_number(machine, ranks.representative)] += DeviceTime{ranks.compute.value} * ranks.ranks;
  double sum = 0;
  for (std::size_t kind = 0; kind < devices.size(); ++kind) {
    if (devices[kind] == 0) continue;
    sum += joules(device_of_kind(machine, kind), host_watts(machine), devices[kind], result.iteration,
                  static_cast<double>(computing[kind]));
  }
  return Energy(sum);
}

std::optional<Energy> full_power_energy(const Machine& machine, std::int64_t ranks, Time time) {
  const std::vector<std::int64_t> devices = devices_by_kind(machine, ranks);
  double watts = static_cast<double>(ranks) * host_watts(machine);
  for (std::size_t kind = 0; kind < devices.size(); ++kind) {
    const Device& device = device_of_kind(machine, kind);
    if (devices[kind] > 0 && !device.busy_power) return {};
    if (devices[kind] > 0) watts += static_cast<double>(devices[kind]) * device.busy_power->value;
  }
  return Energy(watts * in_seconds(time));
}

std::optional<Money> cost_of(const Machine& machine, std::int64_t ranks, Time time) {
  const std::vector<std::int64_t> devices = devices_by_kind(machine, ranks);
  double hourly = 0;
  for (std::size_t kind = 0; kind < devices.size(); ++kind) {
    const Device& device = device_of_kind(machine, kind);
    if (devices[kind] > 0 && !device.price) return {};
    if (devices[kind] > 0) hourly += static_cast<double>(devices[kind]) * device.price->value;
  }
  return Money(hourly * in_seconds(time) / kSecondsPerHour);
}

double least_energy(const Machine& machine, std::int64_t ranks, Time iteration, double computing) {
  if (!machine.others.empty() || !has_power(machine.device)) return 0;
  return joules(machine.device, host_watts(machine), ranks, iteration, computing);
}

Expense expense_of(const Run& run) {
  Expense expense;
  if (!has_model(run) || !run.jobs.empty() || run.result.ranks == 0) return expense;
  const Machine& machine = run.study.machine;
  const Plan& plan = run.study.plan;
  expense.energy = energy_of(machine, run.result);
  if (expense.energy) expense.full_power = full_power_energy(machine, run.result.ranks, run.result.iteration);
  expense.cost = cost_of(machine, run.result.ranks, run.result.iteration);
  expense.tokens = static_cast<double>(run.model.facts.sequence) * static_cast<double>(plan.batch) *
                   static_cast<double>(plan.data());
  return expense;
}

}  // namespace armilla
