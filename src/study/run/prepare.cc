#include "study/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/units_text.h"
#include "collective/algorithm.h"
#include "ir/derived/rank_ranges.h"
#include "lower/plan.h"
#include "network/network.h"
#include "read/read.h"
#include "sim/collective_plan.h"
#include "study/profile.h"
#include "study/run/prepare.h"

namespace armilla {
namespace {

// Devices beyond the ranks of the plan are out of the job.
void cut_devices(Machine& machine, std::int64_t ranks) {
  std::erase_if(machine.others, [&](const OtherDevices& other) { return other.first >= ranks; });
  for (OtherDevices& other : machine.others) other.last = std::min(other.last, ranks - 1);
}

// Where every rank has another device, the first of these is the usual one.
void settle_usual_device(Machine& machine, std::int64_t ranks) {
  std::int64_t others = 0;
  for (const OtherDevices& other : machine.others) others += other.last - other.first + 1;
  if (others < ranks || machine.others.empty()) return;
  machine.device = machine.others.front().device;
  std::erase_if(machine.others,
                [&](const OtherDevices& other) { return other.device.name == machine.device.name; });
}

}  // namespace

// Ranges and dimensions can be checked only once the machine has its final size.
void check_what_if(const WhatIf& what_if, const Machine& machine, std::int64_t ranks) {
  for (const SlowRanks& slow : what_if.ranks) check_rank_ranges({slow.ranks}, ranks, slow.where);
  for (const SlowLinks& slow : what_if.links) {
    check_rank_ranges({slow.ranks}, ranks, slow.where);
    if (slow.dimension >= machine.dimensions.size()) {
      throw Error(slow.where,
                  fmt::format("{} of machine '{}' {} not reach dimension {}", typed_count(ranks, "rank"),
                              machine.name, ranks == 1 ? "does" : "do", slow.dimension),
                  fmt::format("the outermost they use is '{}'",
                              machine.dimensions.empty() ? "none" : machine.dimensions.back().name));
    }
  }
}

void prepare_all_but_plan(Study& study) {
  validate_machine(study.machine);
  Profile& profile = study.profile;
  if (profile.computations.empty() && !profile.file.empty() && is_database(profile.file))
    profile = read_profile_database(profile.file);
  settle_default_precision(study);
}

Plan resolved_plan(const Study& study, const PlanRequest& request, bool described) {
  const std::int64_t devices = rank_count(study.machine);
  // The outermost dimension counts nodes, so larger jobs come in whole nodes. Of a torus with_ranks knows
  // what slices there are.
  const bool counts_nodes = !study.machine.dimensions.empty() && study.machine.largest_slice == 0;
  const std::int64_t nodes = counts_nodes ? study.machine.dimensions.back().size : devices;
  return resolve_plan(request, devices, study.machine.elastic, described, devices / nodes);
}

void fit_machine(Study& study, std::int64_t ranks, std::int64_t block) {
  study.machine = with_ranks(study.machine, ranks, study.machine.elastic, study.request.ranks_where, block);
  cut_devices(study.machine, ranks);
  settle_usual_device(study.machine, ranks);
  check_what_if(study.what_if, study.machine, ranks);
}

// The order matters: the plan needs the machine's devices, an elastic machine the plan's ranks, and what-if
// settings both.
Study prepare_study(Study study) {
  prepare_all_but_plan(study);
  try {
    study.plan = resolved_plan(study, study.request, is_described(study.model));
  } catch (const Error&) {
    // No degree and no batch would mend ranks that the machine cannot have.
    const std::optional<std::int64_t> ranks = study.request.ranks;
    if (ranks && *ranks > 0 && study.machine.largest_slice == 0)
      with_ranks(study.machine, *ranks, study.machine.elastic, study.request.ranks_where);
    throw;
  }
  fit_machine(study, study.plan.ranks, innermost_block(study.plan));
  settle_host(study.plan, study.machine.device);
  return study;
}

void check_names(const Study& study) {
  check_network(study.network);
  const auto check = [](const std::vector<std::string>& algorithms, const std::string& where) {
    for (const std::string& algorithm : algorithms) Algorithm(algorithm, where);
  };
  check(study.collectives.algorithms, study.collectives.algorithms_where);
  for (const auto& [kind, algorithms] : study.collectives.algorithms_by_kind)
    check(algorithms, where_of(study.collectives, kind));
}

}  // namespace armilla
