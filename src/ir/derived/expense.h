// What an iteration takes to run in energy and money, from the figures of devices and machines
// (machines/README.md).
//
//   energy = sum over devices (busy power x time that it computes + idle power x the rest of the iteration)
//            + host power x devices x iteration
//   cost   = price x devices x iteration
//
// Busy power is the most that a device may draw (TDP) and host power the most that the rest of its server
// may: both are upper figures. A device that waits or only communicates counts as idle, which is a lower one:
// collectives keep it between idle and busy (Patel et al. 2024 (POLCA), section 4: from a fifth to three
// quarters of the TDP on A100). `full_power` is above whatever happens. Not modelled: clocks that follow the
// load, memory-bound kernels that draw less, switches and optics outside the servers, cooling (PUE).
#pragma once

#include <cstdint>
#include <optional>

#include "ir/study.h"

namespace armilla {

// Nothing where a device that takes part has no busy_power or no idle_power, or no price. Machines are
// prepared: they have as many devices as the result or `ranks` says, or more.
std::optional<Energy> energy_of(const Machine& machine, const Result& result);
bool knows_energy(const Machine& machine, std::int64_t ranks);
std::optional<Energy> full_power_energy(const Machine& machine, std::int64_t ranks, Time time);
std::optional<Money> cost_of(const Machine& machine, std::int64_t ranks, Time time);

// energy_of where all devices are alike: what it is at least when the iteration is at least so long and all
// ranks together compute for at least so many picoseconds. It does not fall with either.
double least_energy(const Machine& machine, std::int64_t ranks, Time iteration, double computing);

// Of a run: energy, cost, and the former with every device busy all the time.
struct Expense {
  std::optional<Energy> energy, full_power;
  std::optional<Money> cost;
  double tokens = 0;  // of the iteration; 0: the model does not tell what a token is
  bool is_known() const { return energy || cost; }
};
// Of one iteration of a model; of a workload, or of several jobs, nothing.
Expense expense_of(const Run& run);

}  // namespace armilla
