#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/amount.h"
#include "base/checked.h"
#include "base/duration.h"
#include "base/units_text.h"
#include "ir/derived/expense.h"
#include "ir/derived/metrics.h"
#include "ir/derived/training.h"
#include "write/report.h"
#include "write/report/alike.h"
#include "write/report/run_parts.h"

namespace armilla {
namespace {

constexpr std::size_t kMostDevices = 4;
constexpr std::string_view kIndent = "           ";

std::string machine_text(const Machine& machine, std::size_t width) {
  // Machines may have one other device per rank: a few examples are enough.
  std::string devices = machine.device.name;
  for (std::size_t i = 0; i < machine.others.size(); ++i) {
    if (i == kMostDevices) {
      devices += fmt::format("; and {} more", machine.others.size() - i);
      break;
    }
    const OtherDevices& other = machine.others[i];
    devices += other.first == other.last
                   ? fmt::format("; rank {}: {}", other.first, other.device.name)
                   : fmt::format("; ranks {} to {}: {}", other.first, other.last, other.device.name);
  }
  std::string text = wrap(devices, "  machine  ", width);
  for (const Dimension& dimension : machine.dimensions) {
    const std::string attained =
        dimension.of_links.value > 0 ? fmt::format(" attained of {}", to_text(dimension.of_links)) : "";
    text +=
        wrap(fmt::format("{}: {} of {}, {}{} and {} per link", dimension.name, name_of(dimension.kind),
                         dimension.size, to_text(dimension.bandwidth), attained, to_text(dimension.latency)),
             kIndent, width);
  }
  return text;
}

// "16,384 ranks = tensor 8 x pipeline 16 x data 128"
std::string degrees_text(const Plan& plan) {
  std::string degrees;
  const auto add = [&](std::string_view name, std::int64_t degree) {
    // Degrees of 1 are left out.
    if (degree > 1)
      degrees += fmt::format("{}{} {}", degrees.empty() ? " = " : " x ", name, with_separators(degree));
  };
  add("tensor", plan.tensor);
  add("context", plan.context);
  add("pipeline", plan.pipeline);
  add("data", plan.data());
  if (plan.expert > 1) degrees += fmt::format(", expert {} x {}", plan.expert, plan.experts_tensor());
  return counted(plan.ranks, "rank") + degrees;
}

// "batch 64 = 4 replicas x 8 micro-batches of 2, bf16, adam"
std::string batch_text(const Plan& plan) {
  const std::int64_t global = checked_multiply(plan.batch, plan.data(), "plan");
  return fmt::format("batch {} = {} x {} of {}, {}, {}", with_separators(global),
                     counted(plan.data(), "replica"), counted(plan.micro_batches, "micro-batch"),
                     with_separators(plan.micro_batch()), name_of(plan.precision), name_of(plan.optimizer));
}

// "first layer", "last 14 layers"
std::string layers_text(std::string_view end, std::int64_t count) {
  return count == 1 ? fmt::format("{} layer", end) : fmt::format("{} {} layers", end, count);
}

// "bf16 in first 2 layers and last layer and attention"
std::string wide_text(const Plan& plan) {
  std::vector<std::string> wide;
  if (plan.wide_first_layers > 0) wide.push_back(layers_text("first", plan.wide_first_layers));
  if (plan.wide_last_layers > 0) wide.push_back(layers_text("last", plan.wide_last_layers));
  for (const std::string_view part : names_of(plan.wide_modules)) wide.emplace_back(part);
  return wide.empty() ? std::string() : fmt::format("bf16 in {}", fmt::join(wide, " and "));
}

std::string ways_text(const Plan& plan, const ModelFacts& facts) {
  std::string ways;
  const auto add = [&](const std::string& way) { ways += (ways.empty() ? "" : ", ") + way; };
  // Others than these two matter on one pipeline rank, too.
  if (plan.pipeline > 1 || (plan.schedule != "1f1b" && plan.schedule != "interleaved")) {
    add(fmt::format(
        "{}{}", plan.schedule,
        plan.virtual_stages > 1 ? fmt::format(" with {} chunks per rank", plan.virtual_stages) : ""));
  }
  if (plan.zero_stage > 0) {
    add(fmt::format(
        "ZeRO-{}{}", plan.zero_stage,
        plan.hybrid_shard > 0 ? fmt::format(" in groups of {}", counted(plan.hybrid_shard, "rank")) : ""));
    if (!plan.reduce_scatter && !shares_out_tensors(plan)) add("gradients all-reduced");
  }
  if (plan.recompute == Recompute::block) {
    add(fmt::format("recompute {} per chunk", counted(plan.recompute_blocks, "block")));
  } else if (plan.recompute != Recompute::none) {
    const bool modules =
        plan.recompute == Recompute::selective && plan.recompute_modules != Parts{Part::core_attn};
    add(modules ? fmt::format("recompute {}", fmt::join(names_of(plan.recompute_modules), ", "))
                : fmt::format("recompute {}", name_of(plan.recompute)));
  }
  const bool is_narrow = plan.precision == DType::fp8 || plan.precision == DType::fp4;
  if (const std::string wide = wide_text(plan); is_narrow && !wide.empty()) add(wide);
  if (facts.experts > 0 && plan.expert_capacity > 0)
    add(fmt::format("expert capacity {}", plan.expert_capacity));
  if (facts.experts > 0 && dispatches_on_rank(plan.expert_dispatch))
    add(fmt::format("{} dispatch", name_of(plan.expert_dispatch)));
  if (!plan.cuda_graph_scope.empty() && issue_time_of(plan) > Time(0))
    add(fmt::format("CUDA graphs of {}", fmt::join(names_of(plan.cuda_graph_scope), ", ")));
  if (plan.sequence_parallel) add("sequence parallel");
  if (plan.context > 1) add(fmt::format("context by {}", name_of(plan.context_method)));
  if (plan.offload_optimizer) add("optimizer offloaded");
  if (plan.offload_activations) add("activations offloaded");
  if (plan.step_overhead > Time(0)) add(fmt::format("{} between steps", to_text(plan.step_overhead)));
  return ways;
}

std::string plan_text(const Run& run, std::size_t width) {
  if (!has_model(run)) return wrap(counted(run.result.ranks, "rank"), "  plan     ", width);
  const Plan& plan = run.study.plan;
  std::string text = wrap(degrees_text(plan), "  plan     ", width) + wrap(batch_text(plan), kIndent, width);
  if (const std::string ways = ways_text(plan, run.model.facts); !ways.empty())
    text += wrap(ways, kIndent, width);
  // Buckets are worth a line where data parallelism is all there is.
  if (plan.is_plain_data_parallel() && plan.data() > 1) {
    text +=
        wrap(fmt::format("gradient buckets of {} after a first of {}, exchanged {} the backward pass",
                         to_text(plan.bucket), to_text(plan.first_bucket), plan.overlap ? "during" : "after"),
             kIndent, width);
  }
  return text;
}

std::string component_text(const ComponentChoice& choice) {
  std::string text = choice.name;
  char separator = ':';
  for (const auto& [name, given] : choice.parameters) {
    text += fmt::format("{}{}={}", separator, name, given.value);
    separator = ',';
  }
  return text;
}

std::string model_text(const Model& model, std::size_t width) {
  const ModelTotals sum = totals(model);
  const std::int64_t tokens = model.facts.sequence;
  std::int64_t frozen = 0;
  for (const Parameter& parameter : model.parameters) frozen += parameter.frozen ? parameter.elements : 0;
  return wrap(fmt::format("{} ({}){}, {} forward{} for {}{}", counted(sum.parameters, "parameter"),
                          to_text(sum.parameter_bytes),
                          frozen > 0 ? fmt::format(" trained, {} frozen", with_separators(frozen)) : "",
                          to_text(visible_forward_flops(model)),
                          has_hidden_scores(model) ? " (causal half)" : "", counted(model.batch, "sample"),
                          tokens > 0 ? fmt::format(" of {}", counted(tokens, "token")) : ""),
              "  model    ", width);
}

// What a rank runs on, for readers.
std::string_view device_noun(const Run& run) {
  return run.study.machine.device.name.starts_with("tpu") ? "TPU" : "GPU";
}

std::string rate_text(double per_second) {
  // Three digits are enough to compare runs.
  if (per_second >= 1e15) return amount_text(per_second);
  if (per_second >= 1000) return with_separators(std::llround(per_second));
  return per_second < 10 ? fmt::format("{:.3g}", per_second) : fmt::format("{:.1f}", per_second);
}

// The same of one device, below the figures of the job.
std::string per_device_text(const Run& run, std::size_t width) {
  const double devices = static_cast<double>(std::max<std::int64_t>(run.study.plan.ranks, 1));
  const double seconds = in_seconds(run.result.iteration);
  const double tokens = tokens_per_second(run), samples = samples_per_second(run);
  const double rate = (tokens > 0 ? tokens : samples) / devices;
  return flow({fmt::format("  per {}  {}", device_noun(run),
                           to_text(FlopRate(ratio(model_flops(run), seconds * devices)))),
               rate_text(rate) + (tokens > 0 ? " tokens/s" : " samples/s")},
              5, width) +
         '\n';
}

// "per iteration 24.51 Wh (at most 26.10 Wh), 0.98 USD; per million tokens ..."
std::string expense_text(const Run& run, const Expense& expense) {
  const auto amounts = [&](double share, bool with_most) {
    std::string text;
    if (expense.energy) text = to_text(*expense.energy * share);
    // Who draws full power all the time draws no more.
    if (expense.energy && with_most) {
      text += fmt::format(" ({}at most {})", run.study.machine.host_power ? "" : "devices alone, ",
                          to_text(*expense.full_power * share));
    }
    if (expense.cost) text += (text.empty() ? "" : ", ") + to_text(*expense.cost * share);
    return text;
  };
  const double samples = static_cast<double>(run.study.plan.global_batch());
  return fmt::format("per iteration {}; per {} {}", amounts(1, true),
                     expense.tokens > 0 ? "million tokens" : "thousand samples",
                     amounts(expense.tokens > 0 ? 1e6 / expense.tokens : 1e3 / samples, false));
}

std::string goodput_text(const Goodput& goodput) {
  // "In the long run" is with failures, checkpoints and restarts averaged in.
  return fmt::format(
      "goodput {}: {:.2f} failures a day, a checkpoint every {} (best {}); {} per iteration in "
      "the long run",
      percent(goodput.share), goodput.failures_per_day, duration_text(goodput.interval),
      duration_text(goodput.optimal_interval), duration_text(goodput.iteration));
}

std::string count_text(double count) {
  constexpr double kTera = 1e12;
  return count < 1e3 * kTera ? with_separators(std::llround(count))
                             : with_separators(std::llround(count / kTera)) + "T";
}

// "15T tokens take", "1 sample takes"; amounts that no suffix makes shorter are written out.
std::string goal_text(double amount, std::string_view noun) {
  const bool digits = amount == std::floor(amount) && (amount < 1e6 || amount >= 1e15);
  return fmt::format("{} {}{} take{}", digits ? count_text(amount) : amount_text(amount), noun,
                     amount == 1 ? "" : "s", amount == 1 ? "s" : "");
}

std::string training_text(const Run& run, const TrainingTime& time) {
  const bool tokens = run.study.training.tokens > 0;
  const double hours = time.device_seconds / 3600;
  const double days = time.seconds / 86400;
  // Beyond a century days mean as little as hours.
  const bool in_days = days >= 1 && days < 36525;
  std::string expense;
  if (time.energy) expense += ", " + to_text(*time.energy);
  if (time.cost) expense += ", " + to_text(*time.cost);
  return fmt::format("{} {}: {} iteration{}, {} {}-hours{}{}",
                     goal_text(tokens ? time.tokens : time.samples, tokens ? "token" : "sample"),
                     in_days ? fmt::format("{:.1f} days", days) : duration_text(time.seconds),
                     count_text(time.iterations), time.iterations == 1 ? "" : "s",
                     hours < 0.01 ? "under 0.01" : rate_text(hours), device_noun(run), expense,
                     run.goodput ? ", failures included" : "");
}

std::string what_if_section(const Run& run, const TextStyle& style) {
  const std::vector<std::string> settings = what_if_settings(run);
  const std::string effect = what_if_effect(run);
  if (settings.empty() && effect.empty()) return {};
  std::string text = heading("What if", style);
  if (settings.empty()) text += wrap("every factor is 1: nothing differs", "  ", style.width);
  for (const std::string& setting : settings) text += wrap(setting, "  ", style.width);
  if (!effect.empty()) text += wrap(effect, "  effect: ", style.width);
  return text;
}

}  // namespace

std::string title_section(const Run& run, const TextStyle& style) {
  const Study& study = run.study;
  const bool deviates = !what_if_settings(run).empty();
  std::string text = paint(printable(fmt::format("{} on {}{}", workload_name(run), study.machine.name,
                                                 deviates ? ", what if" : "")),
                           Ink::bold, style.colour) +
                     '\n';
  if (has_model(run)) text += model_text(run.model, style.width);
  text += machine_text(study.machine, style.width) + plan_text(run, style.width);
  return text + wrap(fmt::format("compute {}, network {}", component_text(study.compute),
                                 component_text(study.network)),
                     "  models   ", style.width);
}

std::string headline_section(const Run& run, const TextStyle& style) {
  if (!has_model(run)) {
    return heading(fmt::format("Time of the run  {}", to_text(run.result.iteration)), style) +
           what_if_section(run, style);
  }
  std::vector<std::string> figures = {"Iteration time  " + to_text(run.result.iteration),
                                      rate_text(samples_per_second(run)) + " samples/s"};
  if (tokens_per_second(run) > 0) figures.push_back(rate_text(tokens_per_second(run)) + " tokens/s");
  figures.push_back("MFU " + percent(model_flops_utilization(run)) +
                    (has_hidden_scores(run.model) ? " (causal half)" : ""));
  const std::string executed = percent(hardware_flops_utilization(run));
  // Both are the same figure where nothing is computed twice.
  if (!run.study.plan.is_plain_data_parallel() || executed != percent(model_flops_utilization(run)))
    figures.push_back("HFU " + executed);
  std::string text = heading(flow(figures, 5, style.width), style) + per_device_text(run, style.width);
  if (const Expense expense = expense_of(run); expense.is_known() && run.result.iteration > Time(0))
    text += wrap(expense_text(run, expense), "  ", style.width);
  if (run.goodput) text += wrap(goodput_text(*run.goodput), "  ", style.width);
  if (const auto training = training_time(run))
    text += wrap(training_text(run, *training), "  ", style.width);
  return text + what_if_section(run, style);
}

}  // namespace armilla
