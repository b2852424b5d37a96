#include "ir/derived/headline.h"

#include <array>
#include <limits>

#include "ir/derived/expense.h"
#include "ir/derived/metrics.h"
#include "ir/derived/stage_table.h"

namespace armilla {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double count(std::int64_t number) {
  return static_cast<double>(number);
}

// What only runs of a model have.
template <double (*figure)(const Run&)>
double with_model(const Run& run) {
  return has_model(run) && !run.model.operators.empty() ? figure(run) : kNone;
}
template <std::int64_t (*figure)(const Plan&)>
double of_plan(const Run& run) {
  return has_model(run) && !run.model.operators.empty() ? count(figure(run.study.plan)) : kNone;
}
template <Bytes (*figure)(const MemoryUse&)>
double of_memory(const Run& run) {
  return has_model(run) && !run.model.operators.empty() ? count(figure(run.memory).value) : kNone;
}

// Mean over all ranks.
template <Time RankClass::*time>
double mean(const Run& run) {
  double sum = 0, ranks = 0;
  for (const RankClass& alike : run.result.classes) {
    sum += in_seconds(alike.*time) * count(alike.ranks);
    ranks += count(alike.ranks);
  }
  return ranks > 0 ? sum / ranks : kNone;
}

double tokens_or_none(const Run& run) {
  const double tokens = tokens_per_second(run);
  return tokens > 0 ? tokens : kNone;
}

constexpr std::array kFigures = {
    HeadlineFigure{"iteration_time_s", false, "end of the last operation of any rank",
                   [](const Run& run) { return static_cast<double>(run.result.iteration.value) / 1e12; }},
    HeadlineFigure{"samples_per_s", false, "samples of all ranks over the iteration time",
                   with_model<samples_per_second>},
    HeadlineFigure{"tokens_per_s", false, "tokens of all ranks over the iteration time",
                   with_model<tokens_or_none>},
    HeadlineFigure{"mfu", false, "model flops utilisation", with_model<model_flops_utilization>},
    HeadlineFigure{"hfu", false, "hardware flops utilisation", with_model<hardware_flops_utilization>},
    HeadlineFigure{"compute_s", false, "a rank computes, mean over all ranks", mean<&RankClass::compute>},
    HeadlineFigure{"communication_s", false, "at least one communication is under way, mean over all ranks",
                   mean<&RankClass::communication>},
    HeadlineFigure{"exposed_communication_s", false, "of that, while nothing is computed",
                   mean<&RankClass::exposed_communication>},
    HeadlineFigure{"bubble_fraction", false, "neither of both nor waiting for the host, mean share",
                   bubble_fraction},
    HeadlineFigure{"host_fraction", false, "waiting for the host to issue kernels, mean share",
                   host_fraction},
    HeadlineFigure{"memory_needed_bytes", true, "memory of the fullest rank, with the framework's",
                   of_memory<[](const MemoryUse& use) { return use.needed(); }>},
    HeadlineFigure{"memory_peak_bytes", true, "of that, tensors",
                   of_memory<[](const MemoryUse& use) { return use.peak(); }>},
    HeadlineFigure{"memory_capacity_bytes", true, "of the device",
                   of_memory<[](const MemoryUse& use) { return use.capacity; }>},
    HeadlineFigure{"memory_fits", true, "1: what is needed is within the capacity",
                   with_model<[](const Run& run) { return run.memory.fits() ? 1.0 : 0.0; }>},
    HeadlineFigure{"model_flops", false, "that the model asks for in an iteration, all ranks",
                   with_model<model_flops>},
    HeadlineFigure{"ranks", true, "devices that take part",
                   [](const Run& run) { return count(run.result.ranks); }},
    HeadlineFigure{"tensor", true, "tensor parallelism",
                   of_plan<[](const Plan& plan) { return plan.tensor; }>},
    HeadlineFigure{"pipeline", true, "pipeline parallelism",
                   of_plan<[](const Plan& plan) { return plan.pipeline; }>},
    HeadlineFigure{"data", true, "data parallelism", of_plan<[](const Plan& plan) { return plan.data(); }>},
    HeadlineFigure{"context", true, "context parallelism",
                   of_plan<[](const Plan& plan) { return plan.context; }>},
    HeadlineFigure{"expert", true, "expert parallelism",
                   of_plan<[](const Plan& plan) { return plan.expert; }>},
    HeadlineFigure{"micro_batches", true, "per replica and iteration",
                   of_plan<[](const Plan& plan) { return plan.micro_batches; }>},
    HeadlineFigure{"global_batch", true, "samples of all replicas",
                   of_plan<[](const Plan& plan) { return plan.global_batch(); }>},
    HeadlineFigure{"goodput_share", false, "of the time that makes progress, where failures are given",
                   [](const Run& run) { return run.goodput ? run.goodput->share : kNone; }},
    HeadlineFigure{"energy_j", false, "of an iteration, all devices, where their power is known",
                   [](const Run& run) {
                     const auto energy = expense_of(run).energy;
                     return energy ? energy->value : kNone;
                   }},
    HeadlineFigure{"cost_usd", false, "of an iteration, all devices, where their price is known",
                   [](const Run& run) {
                     const auto cost = expense_of(run).cost;
                     return cost ? cost->value : kNone;
                   }},
    HeadlineFigure{"messages", true, "simulated", [](const Run& run) { return count(run.result.messages); }},
    HeadlineFigure{"events", true, "simulated", [](const Run& run) { return count(run.result.events); }},
    HeadlineFigure{"warnings", true, "what `armilla run` would warn of",
                   [](const Run& run) { return count(static_cast<std::int64_t>(run.warnings.size())); }},
};

}  // namespace

std::span<const HeadlineFigure> headline_figures() {
  return kFigures;
}

std::vector<double> headline_of(const Run& run) {
  std::vector<double> figures;
  for (const HeadlineFigure& figure : kFigures) figures.push_back(figure.of(run));
  return figures;
}

}  // namespace armilla
