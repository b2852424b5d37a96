#include "study/search/check_figures.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "ir/derived/expense.h"
#include "ir/derived/training.h"
#include "lower/sharded_model.h"
#include "read/read.h"

namespace armilla {

bool goes_by(const SearchRequest& request, SearchObjective objective) {
  return request.objective == objective || std::ranges::find(request.front, objective) != request.front.end();
}

namespace {

// `first`: the machine that the others are compared with.
void check_figures_of(const SearchRequest& request, const SearchBase& base, const Machine& first) {
  const Machine& machine = base.study.machine;
  const std::int64_t ranks = base.study.request.ranks.value_or(rank_count(machine));
  const std::string which = fmt::format("machine '{}', device '{}'", machine.name, machine.device.name);
  if ((goes_by(request, SearchObjective::cost) || request.budget) && !cost_of(machine, ranks, Time(0))) {
    throw Error(which,
                fmt::format("has no price, {}",
                            request.budget ? "which the budget needs" : "and the search goes by cost"),
                "give one, such as --price 2.5USD/h for an hour of a device, or, where there are several "
                "machines, the "
                "key 'price' in its file");
  }
  if (goes_by(request, SearchObjective::energy) && !knows_energy(machine, ranks)) {
    throw Error(which, "does not say what it draws, and the search goes by energy",
                "give busy_power and idle_power in its file, or with --set "
                "machine.device.busy_power=700W --set machine.device.idle_power=70W");
  }
  if (goes_by(request, SearchObjective::energy) &&
      machine.host_power.has_value() != first.host_power.has_value()) {
    throw Error(fmt::format("machine '{}'", (machine.host_power ? first : machine).name),
                "does not say what the rest of its servers draws, and another machine does",
                "give host_power in its file, per device: energy is compared with it or without");
  }
  const auto check_goal = [&] {
    Model model = read_model(base.study.model, 1);
    if (model.blocks.empty()) annotate_parallelism(model);
    check_training(base.study.training, model);
  };
  if (base.study.training.tokens > 0) check_goal();
  if (!request.budget) return;
  if (base.study.what_if.failures.mtbf_of_node > 0)
    throw Error("--budget", "cannot be held to where nodes fail: what is computed again is not counted",
                "omit what_if.failures");
  const TrainingGoal& goal = base.study.training;
  if (goal.tokens <= 0 && goal.samples <= 0) {
    throw Error("--budget", "is for the whole training, and nothing says how long that is",
                "give --tokens or --samples, such as --tokens 300B");
  }
  check_goal();
}

}  // namespace

void check_request(const SearchRequest& request) {
  if (request.top < 1) throw Error("--top", "must be at least 1");
  if (!(request.memory_share > 0))
    throw Error("--memory-share", "leaves no memory", "give a share above 0, such as 0.9");
  if (request.deadline && *request.deadline <= Time(0))
    throw Error("--deadline", "leaves no time", "give a time above 0, such as 2s");
  if (request.budget && request.budget->value <= 0)
    throw Error("--budget", "leaves no money", "give an amount above 0, such as 2.5MUSD");
}

void check_figures(const SearchRequest& request, const SearchSpace& space) {
  for (const SearchBase& base : space.bases())
    check_figures_of(request, base, space.bases().front().study.machine);
}

}  // namespace armilla
