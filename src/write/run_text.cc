#include "write/run_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "base/units_text.h"
#include "ir/metrics.h"
#include "write/run_notes.h"
#include "write/text_table.h"

namespace armilla {
namespace {

constexpr std::size_t kMostRoles = 8, kMostLayers = 5, kMostLinks = 5;
constexpr std::size_t kBarWidth = 60, kNameWidth = 36, kRoleWidth = 24;

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
  std::string text = wrap(machine.device.name, "  machine  ");
  for (const Dimension& dimension : machine.dimensions) {
    text += wrap(fmt::format("{}: {} of {}, {} and {} per link", dimension.name, name_of(dimension.kind),
                             dimension.size, to_text(dimension.bandwidth), to_text(dimension.latency)),
                 kIndent);
  }
  return text;
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
    text += wrap(fmt::format("{} parameters ({}), {} forward for {} samples", with_separators(sum.parameters),
                             to_text(sum.parameter_bytes), to_text(sum.forward_flops),
                             with_separators(run.model.batch)),
                 "  model    ");
  }
  text += machine_text(study.machine);
  text += has_model(run) ? plan_text(study.plan)
                         : wrap(with_separators(run.result.ranks) + " ranks", "  plan     ");
  text += wrap(
      fmt::format("compute {}, network {}", component_text(study.compute), component_text(study.network)),
      "  models   ");
  return text;
}

std::string headline(const Run& run, bool colour) {
  if (!has_model(run))
    return heading(fmt::format("Time of the run  {}", to_text(run.result.iteration)), colour);
  const double rate = samples_per_second(run);
  return heading(fmt::format("Iteration time  {}     {} samples/s     MFU {}", to_text(run.result.iteration),
                             rate < 1000 ? fmt::format("{:.1f}", rate) : with_separators(std::llround(rate)),
                             percent(model_flops_utilization(run))),
                 colour);
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

std::string role_name(const Run& run, const RankClass& ranks) {
  const bool alone =
      std::count_if(run.result.classes.begin(), run.result.classes.end(),
                    [&](const RankClass& other) { return other.program == ranks.program; }) == 1;
  const std::string& role = run.graph.programs[ranks.program].role;
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

std::string memory_section(const Run& run, bool colour) {
  if (!has_model(run)) return {};
  const MemoryUse& memory = run.memory;
  std::string verdict = "the device's capacity is not known";
  Ink ink = Ink::plain;
  if (memory.capacity.value > 0) {
    verdict = fmt::format("{} of {}: {}", percent(ratio(memory.peak(), memory.capacity)),
                          to_text(memory.capacity), memory.fits() ? "fits" : "does not fit");
    ink = memory.fits() ? Ink::green : Ink::red;
  }
  const std::pair<std::string_view, Bytes> parts[] = {{"weights", memory.weights},
                                                      {"gradients", memory.gradients},
                                                      {"optimizer", memory.optimizer},
                                                      {"activations", memory.activations},
                                                      {"communication buffers", memory.communication_buffers},
                                                      {"temporary", memory.temporary}};
  TextTable table{{{"category", false}, {"bytes"}, {"of peak"}}, {}};
  for (const auto& [name, bytes] : parts) {
    if (bytes.value > 0)
      table.rows.push_back({std::string(name), to_text(bytes), percent(ratio(bytes, memory.peak()))});
  }
  std::string text = '\n' + paint("Memory of a rank", Ink::bold, colour) + "  peak " +
                     to_text(memory.peak()) + ", " + paint(verdict, ink, colour) + '\n';
  return table.rows.empty() ? text : text + to_text(table, 2, colour);
}

std::string collective_section(const Run& run, bool colour) {
  const std::vector<CollectiveSummary> summaries = summarize_collectives(run);
  if (summaries.empty()) return {};
  TextTable table{{{"collective", false},
                   {"ranks"},
                   {"calls"},
                   {"bytes"},
                   {"time"},
                   {"queued"},
                   {"bus bandwidth"},
                   {"of link limit"}},
                  {}};
  for (const CollectiveSummary& summary : summaries) {
    table.rows.push_back({std::string(name_of(summary.kind)), with_separators(summary.group_size),
                          with_separators(summary.count), to_text(summary.bytes), to_text(summary.time),
                          to_text(summary.queued), to_text(summary.bus_bandwidth),
                          summary.link_share > 0 ? percent(summary.link_share) : "unknown"});
  }
  // Algorithms are too long for a column: each goes below its row.
  std::string text = heading("Collectives", colour);
  const std::string rows = to_text(table, 2, colour);
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

}  // namespace

std::string write_run_text(const Run& run, bool colour) {
  return title_section(run, colour) + headline(run, colour) + time_section(run, colour) +
         memory_section(run, colour) + collective_section(run, colour) + layer_section(run, colour) +
         link_section(run, colour) + sentence_section(all_notes(run), "Notes", Ink::plain, colour) +
         sentence_section(all_warnings(run), "Warnings", Ink::red, colour);
}

}  // namespace armilla
