#include "write/run_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/checked.h"
#include "base/duration.h"
#include "base/units_text.h"
#include "ir/metrics.h"
#include "ir/stage_table.h"
#include "write/run_notes.h"
#include "write/text_table.h"

namespace armilla {
namespace {

constexpr std::size_t kMostRoles = 8, kMostLayers = 5, kMostLinks = 5, kMostStages = 20, kMostCollectives = 6,
                      kMostKinds = 4, kMostDevices = 4;
constexpr std::size_t kBarWidth = 60, kNameWidth = 36, kRoleWidth = 24, kShortRole = 16;

std::string percent(double fraction) {
  return std::isfinite(fraction) ? fmt::format("{:.1f} %", 100 * fraction) : "unknown";
}

double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}
double ratio(Time part, Time whole) {
  return ratio(static_cast<double>(part.value), static_cast<double>(whole.value));
}
double ratio(Bytes part, Bytes whole) {
  return ratio(static_cast<double>(part.value), static_cast<double>(whole.value));
}

std::string heading(std::string_view text, bool colour) {
  return '\n' + paint(text, Ink::bold, colour) + '\n';
}

std::string times(std::string_view text, std::size_t count) {
  std::string repeated;
  for (std::size_t i = 0; i < count; ++i) repeated += text;
  return repeated;
}

constexpr std::string_view kIndent = "           ";

std::string machine_text(const Machine& machine) {
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
  std::string text = wrap(devices, "  machine  ");
  for (const Dimension& dimension : machine.dimensions) {
    text += wrap(fmt::format("{}: {} of {}, {} and {} per link", dimension.name, name_of(dimension.kind),
                             dimension.size, to_text(dimension.bandwidth), to_text(dimension.latency)),
                 kIndent);
  }
  return text;
}

std::string hybrid_plan_text(const Plan& plan) {
  std::string degrees = fmt::format("{} ranks = tensor {}", with_separators(plan.ranks), plan.tensor);
  if (plan.context > 1) degrees += fmt::format(" x context {}", plan.context);
  degrees += fmt::format(" x pipeline {} x data {}", plan.pipeline, with_separators(plan.data()));
  if (plan.expert > 1) degrees += fmt::format(", expert {} x {}", plan.expert, plan.experts_tensor());
  const std::int64_t global =
      checked_multiply(checked_multiply(plan.micro_batches, plan.micro_batch(), "plan"), plan.data(), "plan");
  std::string ways = std::string(name_of(plan.schedule));
  if (plan.virtual_stages > 1) ways += fmt::format(" with {} chunks per rank", plan.virtual_stages);
  if (plan.pipeline == 1) ways = "no pipeline";
  if (plan.zero_stage > 0) ways += fmt::format(", ZeRO-{}", plan.zero_stage);
  if (plan.hybrid_shard > 0) ways += fmt::format(" in groups of {}", plan.hybrid_shard);
  if (plan.recompute != Recompute::none) ways += fmt::format(", recompute {}", name_of(plan.recompute));
  if (plan.recompute == Recompute::block) ways += fmt::format(" {}", plan.recompute_blocks);
  if (plan.sequence_parallel) ways += ", sequence parallel";
  if (plan.context > 1) ways += fmt::format(", context by {}", name_of(plan.context_method));
  if (plan.offload_optimizer) ways += ", optimizer offloaded";
  if (plan.offload_activations) ways += ", activations offloaded";
  return wrap(degrees, "  plan     ") +
         wrap(fmt::format("batch {} = {} replicas x {} micro-batches of {}, {}, {}", with_separators(global),
                          with_separators(plan.data()), with_separators(plan.micro_batches),
                          with_separators(plan.micro_batch()), name_of(plan.precision),
                          name_of(plan.optimizer)),
              kIndent) +
         wrap(ways, kIndent);
}

std::string plan_text(const Plan& plan) {
  return wrap(fmt::format(
                  "batch {} = {} ranks x {}{}, {}, {}",
                  with_separators(checked_multiply(plan.batch, plan.ranks, "plan")),
                  with_separators(plan.ranks), with_separators(plan.batch),
                  plan.micro_batches > 1 ? fmt::format(" in {} micro-batches", plan.micro_batches) : "",
                  name_of(plan.precision), name_of(plan.optimizer)),
              "  plan     ") +
         wrap(
             fmt::format("gradient buckets of {} after a first of {}, exchanged {} backward",
                         to_text(plan.bucket), to_text(plan.first_bucket), plan.overlap ? "during" : "after"),
             kIndent);
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

std::string title_section(const Run& run, bool colour) {
  const Study& study = run.study;
  std::string text =
      paint(printable(fmt::format("{} on {}", workload_name(run), study.machine.name)), Ink::bold, colour) +
      '\n';
  if (has_model(run)) {
    const ModelTotals sum = totals(run.model);
    const std::int64_t tokens = run.model.facts.sequence;
    text += wrap(
        fmt::format("{} parameters ({}), {} forward{} for {} samples{}", with_separators(sum.parameters),
                    to_text(sum.parameter_bytes), to_text(visible_forward_flops(run.model)),
                    has_hidden_scores(run.model) ? " (causal half)" : "", with_separators(run.model.batch),
                    tokens > 0 ? fmt::format(" of {} tokens", with_separators(tokens)) : ""),
        "  model    ");
  }
  text += machine_text(study.machine);
  text += is_hybrid(run)   ? hybrid_plan_text(study.plan)
          : has_model(run) ? plan_text(study.plan)
                           : wrap(with_separators(run.result.ranks) + " ranks", "  plan     ");
  text += wrap(
      fmt::format("compute {}, network {}", component_text(study.compute), component_text(study.network)),
      "  models   ");
  return text;
}

std::string goodput_text(const Goodput& goodput) {
  return wrap(fmt::format("goodput {}: {:.2f} failures a day, a checkpoint every {} (best {}); {} per "
                          "iteration in the long run",
                          percent(goodput.share), goodput.failures_per_day, duration_text(goodput.interval),
                          duration_text(goodput.optimal_interval), duration_text(goodput.iteration)),
              "  ");
}

std::string headline(const Run& run, bool colour) {
  if (!has_model(run))
    return heading(fmt::format("Time of the run  {}", to_text(run.result.iteration)), colour);
  const auto rate = [](double per_second) {
    if (per_second >= 1000) return with_separators(std::llround(per_second));
    return per_second < 10 ? fmt::format("{:.3g}", per_second) : fmt::format("{:.1f}", per_second);
  };
  std::string text = fmt::format("Iteration time  {}     {} samples/s     ", to_text(run.result.iteration),
                                 rate(samples_per_second(run)));
  if (tokens_per_second(run) > 0) text += rate(tokens_per_second(run)) + " tokens/s     ";
  text += "MFU " + percent(model_flops_utilization(run));
  if (has_hidden_scores(run.model)) text += " (causal half)";
  if (is_hybrid(run)) text += "     HFU " + percent(hardware_flops_utilization(run));
  text = heading(text, colour);
  if (run.goodput) text += goodput_text(*run.goodput);
  return text;
}

std::string bar(const RankClass& ranks, Time iteration, bool colour) {
  const auto cells = [&](Time until) {
    return static_cast<std::size_t>(std::llround(kBarWidth * std::clamp(ratio(until, iteration), 0.0, 1.0)));
  };
  const std::size_t compute = cells(ranks.compute);
  const std::size_t busy = std::max(compute, cells(ranks.compute + ranks.exposed_communication));
  return "  " + paint(times("█", compute), Ink::green, colour) +
         paint(times("▓", busy - compute), Ink::yellow, colour) +
         paint(times("░", kBarWidth - busy), Ink::dim, colour) + '\n';
}

// A role of one of several jobs; what data-parallel ranks are need not be said.
std::string job_role(std::string role) {
  constexpr std::string_view kUsual = ", data-parallel rank";
  if (role.ends_with(kUsual)) role.resize(role.size() - kUsual.size());
  return role;
}

std::string role_name(const Run& run, const RankClass& ranks) {
  const bool alone =
      std::count_if(run.result.classes.begin(), run.result.classes.end(),
                    [&](const RankClass& other) { return other.program == ranks.program; }) == 1;
  std::string role = run.graph.programs[ranks.program].role;
  if (!run.jobs.empty()) role = job_role(std::move(role));
  return alone ? role : fmt::format("{} #{}", role, ranks.representative);
}

std::string time_section(const Run& run, bool colour) {
  const Time iteration = run.result.iteration;
  std::vector<const RankClass*> classes;
  for (const RankClass& ranks : run.result.classes) classes.push_back(&ranks);
  std::stable_sort(classes.begin(), classes.end(),
                   [](const RankClass* a, const RankClass* b) { return a->finish > b->finish; });
  const std::size_t shown = std::min(classes.size(), kMostRoles);

  TextTable table{{{"role", false, kRoleWidth},
                   {"ranks"},
                   {"compute"},
                   {"%"},
                   {"communication"},
                   {"exposed"},
                   {"%"},
                   {"idle"},
                   {"%"}},
                  {}};
  const auto share = [&](Time part) { return fmt::format("{:.1f}", 100 * ratio(part, iteration)); };
  std::string bars;
  for (std::size_t i = 0; i < shown; ++i) {
    const RankClass& ranks = *classes[i];
    const Time waiting = idle(ranks, iteration);
    table.rows.push_back({role_name(run, ranks), with_separators(ranks.ranks), to_text(ranks.compute),
                          share(ranks.compute), to_text(ranks.communication),
                          to_text(ranks.exposed_communication), share(ranks.exposed_communication),
                          to_text(waiting), share(waiting)});
    bars += bar(ranks, iteration, colour);
  }
  std::string text = heading("Time of a rank", colour) + to_text(table, 2, colour) + bars;
  text += "  " + paint("█ compute  ▓ exposed communication  ░ idle", Ink::dim, colour) + '\n';
  if (classes.size() > shown)
    text += fmt::format("  and {} more classes of ranks, which finish no later\n", classes.size() - shown);
  return text;
}

// "pipeline rank 3, expert position 7" where that is too long for the column.
std::string short_role(std::string role) {
  if (display_width(role) <= kShortRole) return role;
  for (const std::string_view word : {" rank", " position"}) {
    const std::size_t at = role.find(word);
    if (at != std::string::npos) role.erase(at, word.size());
  }
  return shorten(role, kRoleWidth);
}

// Columns of exposed communication: the kinds with most of it as far as the line has room, the rest in one.
struct ExposedColumns {
  std::vector<std::size_t> kinds;  // into StageTable::kinds
  bool others = false;
};

ExposedColumns exposed_columns(const Run& run, const StageTable& table) {
  constexpr std::size_t kOtherColumns = 52, kGap = 2, kNarrowest = 5;
  std::size_t role = 0;
  for (const StageSummary& stage : table.stages)
    role = std::max(role, display_width(short_role(run.graph.programs[stage.program].role)));
  std::vector<double> seconds(table.kinds.size());
  for (const StageSummary& stage : table.stages) {
    for (std::size_t kind = 0; kind < seconds.size(); ++kind)
      seconds[kind] += in_seconds(stage.exposed[kind]) * static_cast<double>(stage.ranks);
  }
  std::vector<std::size_t> order(table.kinds.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return seconds[a] > seconds[b]; });
  std::size_t room = kReportWidth - kOtherColumns - role;
  ExposedColumns columns;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t width = kGap + std::max(kNarrowest, display_width(table.kinds[order[i]]));
    const std::size_t reserve = i + 1 < order.size() ? kGap + kNarrowest : 0;
    columns.others = width + reserve > room;
    if (columns.others) break;
    room -= width;
    columns.kinds.push_back(order[i]);
  }
  std::sort(columns.kinds.begin(), columns.kinds.end());
  return columns;
}

std::vector<std::string> stage_row(const Run& run, const StageSummary& stage, const ExposedColumns& columns) {
  const auto share = [&](Time part) {
    return fmt::format("{:.1f}", 100 * ratio(part, run.result.iteration));
  };
  std::vector<std::string> row = {short_role(run.graph.programs[stage.program].role),
                                  with_separators(stage.ranks), to_text(stage.compute), share(stage.compute)};
  Time others = run.result.iteration - stage.compute - stage.bubble;
  for (const std::size_t kind : columns.kinds) {
    row.push_back(share(stage.exposed[kind]));
    others -= stage.exposed[kind];
  }
  if (columns.others) row.push_back(share(others));
  row.push_back(share(stage.bubble));
  row.push_back(to_text(stage.peak));
  row.push_back(
      run.memory.capacity.value > 0
          ? fmt::format("{:.1f}", 100 * ratio(stage.peak + run.memory.framework, run.memory.capacity))
          : "unknown");
  return row;
}

// The role whose ranks differ most, where they do: stragglers, jitter, other devices.
std::string spread_text(const Run& run, const StageTable& table) {
  const auto widest = std::max_element(
      table.stages.begin(), table.stages.end(), [](const StageSummary& a, const StageSummary& b) {
        return a.most_compute - a.least_compute < b.most_compute - b.least_compute;
      });
  if (widest == table.stages.end() || widest->least_compute == widest->most_compute) return {};
  return wrap(fmt::format("ranks of a role differ: those of {} compute for {} to {}",
                          run.graph.programs[widest->program].role, to_text(widest->least_compute),
                          to_text(widest->most_compute)),
              "  ");
}

// What every role computes, waits for and holds: the report of a hybrid-parallel run.
std::string stage_section(const Run& run, bool colour) {
  const StageTable table = stage_table(run);
  const ExposedColumns columns = exposed_columns(run, table);
  const std::size_t shown = table.stages.size() > kMostStages ? kMostStages - 1 : table.stages.size();
  TextTable rows{{{"role", false}, {"ranks"}, {"compute"}, {"%"}}, {}};
  for (const std::size_t kind : columns.kinds) rows.columns.push_back({std::string(table.kinds[kind])});
  if (columns.others) rows.columns.push_back({"other"});
  for (const char* const header : {"bubble", "memory", "%"}) rows.columns.push_back({header});
  for (std::size_t i = 0; i < shown; ++i) rows.rows.push_back(stage_row(run, table.stages[i], columns));
  std::string text = '\n' + paint("Time and memory of a rank by role", Ink::bold, colour) +
                     fmt::format("  bubble {} of the time, {} of the computing time; shares in %\n",
                                 percent(bubble_fraction(run)), percent(bubble_ratio(run))) +
                     to_text(rows, 2, colour);
  if (shown < table.stages.size()) text += fmt::format("  and {} more\n", table.stages.size() - shown);
  return text + spread_text(run, table);
}

std::string memory_title(const Run& run) {
  const auto worst = std::find_if(run.roles.begin(), run.roles.end(), [&](const RoleMemory& role) {
    return role.use.peak() == run.memory.peak();
  });
  if (worst == run.roles.end() || run.roles.size() == 1) return "Memory of a rank";
  return fmt::format("Memory of {}, which needs most", worst->role);
}

std::string memory_section(const Run& run, bool colour) {
  if (!has_model(run)) return {};
  const MemoryUse& memory = run.memory;
  std::string verdict = "the device's capacity is not known";
  Ink ink = Ink::plain;
  if (memory.capacity.value > 0) {
    verdict = fmt::format("{} of {}: {}", percent(ratio(memory.needed(), memory.capacity)),
                          to_text(memory.capacity), memory.fits() ? "fits" : "does not fit");
    ink = memory.fits() ? Ink::green : Ink::red;
  }
  const std::pair<std::string_view, Bytes> parts[] = {{"weights", memory.weights},
                                                      {"gradients", memory.gradients},
                                                      {"optimizer", memory.optimizer},
                                                      {"activations", memory.activations},
                                                      {"communication buffers", memory.communication_buffers},
                                                      {"temporary", memory.temporary},
                                                      {"fragmentation", memory.fragmentation},
                                                      {"driver, context, communicators", memory.framework}};
  TextTable table{{{"category", false}, {"bytes"}, {"of all"}}, {}};
  for (const auto& [name, bytes] : parts) {
    if (bytes.value > 0)
      table.rows.push_back({std::string(name), to_text(bytes), percent(ratio(bytes, memory.needed()))});
  }
  std::string text = '\n' + paint(memory_title(run), Ink::bold, colour) + "  peak " + to_text(memory.peak()) +
                     (memory.framework.value > 0 ? " and " + to_text(memory.framework) + " beside it" : "") +
                     ", " + paint(verdict, ink, colour) + '\n';
  return table.rows.empty() ? text : text + to_text(table, 2, colour);
}

std::string collective_section(const Run& run, bool colour) {
  const std::vector<CollectiveSummary> summaries = summarize_collectives(run);
  if (summaries.empty()) return {};
  const bool axes = is_hybrid(run);
  const std::size_t shown = axes ? std::min(summaries.size(), kMostCollectives) : summaries.size();
  TextTable table{{{"collective", false}}, {}};
  if (axes) table.columns.push_back({"axis", false});
  for (const char* const header :
       {"ranks", "calls", "bytes", "time", "queued", "bus bandwidth", "of link limit"})
    table.columns.push_back({header});
  for (std::size_t i = 0; i < shown; ++i) {
    const CollectiveSummary& summary = summaries[i];
    std::vector<std::string>& row = table.rows.emplace_back();
    row.emplace_back(name_of(summary.kind));
    if (axes) row.emplace_back(summary.axis);
    for (std::string cell :
         {with_separators(summary.group_size), with_separators(summary.count), to_text(summary.bytes),
          to_text(summary.time), to_text(summary.queued), to_text(summary.bus_bandwidth),
          summary.link_share > 0 ? percent(summary.link_share) : std::string("unknown")})
      row.push_back(std::move(cell));
  }
  const std::string rows = to_text(table, 2, colour);
  if (axes) {
    const std::string more =
        shown < summaries.size() ? fmt::format("  and {} more\n", summaries.size() - shown) : "";
    return heading("Collectives, summed over a rank of every role", colour) + rows + more;
  }
  // Algorithms are too long for a column: each goes below its row.
  std::string text = heading("Collectives", colour);
  std::size_t begin = 0;
  for (std::size_t line = 0; begin < rows.size(); ++line) {
    const std::size_t end = rows.find('\n', begin) + 1;
    text += rows.substr(begin, end - begin);
    if (line > 0) text += wrap(summaries[line - 1].algorithm, "    by ");
    begin = end;
  }
  return text;
}

std::string layer_section(const Run& run, bool colour) {
  Time all;
  for (const LayerCost& cost : layer_costs(run)) all += cost.compute();
  if (all == Time(0)) return {};
  TextTable table{{{"layer", false, kNameWidth}, {"forward"}, {"backward"}, {"compute"}, {""}, {"exchange"}},
                  {}};
  for (const LayerCost& cost : costliest_layers(run, kMostLayers)) {
    table.rows.push_back({run.graph.layers[static_cast<std::size_t>(cost.layer)], to_text(cost.forward),
                          to_text(cost.input_gradient + cost.weight_gradient), to_text(cost.compute()),
                          percent(ratio(cost.compute(), all)), to_text(cost.communication)});
  }
  return heading(fmt::format("Costliest layers of {}", run.graph.layers.size()), colour) +
         to_text(table, 2, colour);
}

std::string link_section(const Run& run, bool colour) {
  if (run.result.links.empty()) return {};
  TextTable table{
      {{"link", false, kNameWidth}, {"alike"}, {"bytes"}, {"busy"}, {"bandwidth"}, {"utilisation"}}, {}};
  for (std::size_t i = 0; i < std::min(kMostLinks, run.result.links.size()); ++i) {
    const LinkUse& link = run.result.links[i];
    table.rows.push_back({link.name, with_separators(link.links), to_text(link.bytes), to_text(link.busy),
                          to_text(link.bandwidth), percent(utilization(link, run.result.iteration))});
  }
  return heading("Hottest links", colour) + to_text(table, 2, colour);
}

std::string sentence_section(const std::vector<std::string>& sentences, std::string_view title, Ink ink,
                             bool colour) {
  if (sentences.empty()) return {};
  std::string text = '\n' + paint(paint(title, ink, colour), Ink::bold, colour) + '\n';
  for (const std::string& sentence : sentences) text += wrap(sentence, "  - ");
  return text;
}

std::string jobs_section(const Run& run, bool colour) {
  if (run.jobs.empty()) return "";
  TextTable table;
  table.columns = {{"job", false, kNameWidth},
                   {"model", false, kNameWidth},
                   {"ranks"},
                   {"devices", false, kNameWidth},
                   {"start"},
                   {"alone"},
                   {"shared"},
                   {"slowdown"}};
  for (const JobOutcome& job : run.jobs) {
    table.rows.push_back({job.name, job.model, with_separators(job.ranks), job.devices, to_text(job.start),
                          to_text(job.alone), to_text(job.shared),
                          fmt::format("{:.3f}", ratio(job.shared, job.alone))});
  }
  return heading("Iteration of each job", colour) + to_text(table, 2, colour);
}

}  // namespace

std::string write_run_text(const Run& run, bool colour) {
  const std::string parts = is_hybrid(run) ? stage_section(run, colour) + memory_section(run, colour) +
                                                 collective_section(run, colour)
                                           : time_section(run, colour) + memory_section(run, colour) +
                                                 collective_section(run, colour) + layer_section(run, colour);
  return title_section(run, colour) + headline(run, colour) + jobs_section(run, colour) + parts +
         link_section(run, colour) + sentence_section(all_notes(run), "Notes", Ink::plain, colour) +
         sentence_section(all_warnings(run), "Warnings", Ink::red, colour);
}

}  // namespace armilla
