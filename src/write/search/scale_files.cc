#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/units_text.h"
#include "ir/derived/headline.h"
#include "write/format/csv.h"
#include "write/format/json_text.h"
#include "write/report/run_json.h"
#include "write/scale.h"
#include "write/search/search_words.h"
#include "write/sweep.h"

namespace armilla {

namespace {

std::string size_text(const ScalePoint& point) {
  return fmt::format("  {} {}: ", point.ranks, point.ranks == 1 ? "rank" : "ranks");
}

// Settings of a point that its row does not show, of what varies or was named by the user.
std::vector<std::string> beside_the_row(const ScalePoint& point) {
  constexpr std::array<std::string_view, 10> kShown = {
      "machine",           "plan.ranks",          "plan.tensor",      "plan.pipeline", "plan.data",
      "plan.global_batch", "plan.virtual_stages", "plan.micro_batch", "plan.zero",     "plan.recompute"};
  std::vector<std::string> found;
  for (std::size_t axis = 0; axis < point.axes.size(); ++axis) {
    const SearchAxis& of = point.axes[axis];
    const std::string& value = point.best->values[axis];
    if (value.empty() || (of.values.size() < 2 && !of.given) ||
        std::ranges::find(kShown, of.key) != kShown.end())
      continue;
    found.push_back(fmt::format("{} {}", short_key(of.key), value));
  }
  return found;
}

// What all plans have in common is said once.
std::string settings_notes(const ScaleResult& result, const TextStyle& style) {
  std::vector<std::string> common;
  bool is_first = true;
  for (const ScalePoint& point : result.points) {
    if (!point.best) continue;
    std::vector<std::string> here = beside_the_row(point);
    if (!is_first)
      std::erase_if(common, [&](const auto& each) { return std::ranges::find(here, each) == here.end(); });
    if (std::exchange(is_first, false)) common = std::move(here);
  }
  std::string text;
  if (!common.empty())
    text += wrap(fmt::format("{}", fmt::join(common, ", ")), "  at every size: ", style.width);
  for (const ScalePoint& point : result.points) {
    if (!point.best) continue;
    std::vector<std::string> here = beside_the_row(point);
    std::erase_if(here, [&](const auto& each) { return std::ranges::find(common, each) != common.end(); });
    if (!here.empty()) text += wrap(fmt::format("{}", fmt::join(here, ", ")), size_text(point), style.width);
  }
  return text;
}

}  // namespace

std::string write_scale_text(const ScaleResult& result, const TextStyle& style) {
  TextTable table;
  // Where the machine was searched for, it is a part of the answer.
  const bool several = std::ranges::any_of(result.points, [](const ScalePoint& point) {
    return std::ranges::any_of(point.settings,
                               [](const auto& setting) { return setting.starts_with("machine="); });
  });
  table.columns = {{"ranks"}, {"batch"}};
  if (several) table.columns.push_back({"machine"});
  for (const char* const name : {"tp", "pp", "dp", "vpp", "micro-batch", "zero", "recompute", "iteration",
                                 "samples/s", "speedup", "efficiency", "memory"})
    table.columns.push_back({name});
  // What more devices cost, where all that has a plan has a price.
  const auto cost_words = [&](const ScalePoint& point) {
    return objective_words(result.tokens_per_sample, SearchObjective::cost, *point.best);
  };
  const auto priced = [&](const auto& cost) {
    return std::ranges::all_of(result.points,
                               [&](const ScalePoint& point) { return !point.best || cost(*point.best); });
  };
  const bool costs = priced([](const PlanOutcome& best) { return best.cost.has_value(); });
  const bool trains = priced([](const PlanOutcome& best) { return best.training_cost().has_value(); });
  if (costs) table.columns.push_back({cost_words(result.base()).heading});
  if (trains) table.columns.push_back({"training"});
  std::string notes = settings_notes(result, style);
  for (const ScalePoint& point : result.points) {
    std::vector<std::string> row = {with_separators(point.ranks), with_separators(point.global_batch)};
    const std::string size = size_text(point);
    if (!point.best) {
      row.resize(table.columns.size());
      row[several ? 10 : 9] = "no plan";
      notes += wrap(point.refusal, size, style.width);
    } else {
      const PlanOutcome& best = *point.best;
      if (several) row.push_back(best.machine);
      for (const std::int64_t degree :
           {best.plan.tensor, best.plan.pipeline, best.plan.data(), best.plan.virtual_stages,
            best.plan.micro_batch(), static_cast<std::int64_t>(best.plan.zero_stage)})
        row.push_back(std::to_string(degree));
      row.emplace_back(best.plan.recompute == Recompute::block
                           ? fmt::format("{}:{}", name_of(best.plan.recompute), best.plan.recompute_blocks)
                           : std::string(name_of(best.plan.recompute)));
      row.push_back(to_text(best.iteration));
      row.push_back(samples_text(best.samples_per_second()));
      row.push_back(fmt::format("{:.2f}", result.speedup(point)));
      row.push_back(fmt::format("{:.1f} %", 100 * result.efficiency(point)));
      row.push_back(to_text(best.memory.needed()));
      for (const SearchEdge& edge : point.edges)
        notes +=
            wrap(edge_text(result.tokens_per_sample, SearchObjective::time, edge, best), size, style.width);
      if (costs) row.push_back(cost_words(point).text);
      if (trains) row.push_back(to_text(*best.training_cost()));
    }
    table.rows.push_back(std::move(row));
  }
  std::string text =
      fmt::format("{} scaling, with the best plan at every size\n\n", result.weak ? "Weak" : "Strong") +
      to_text(table, 0, style);
  for (const std::string& note : result.notes) notes += wrap(note, "note: ", style.width);
  return notes.empty() ? text : text + "\n" + notes;
}

std::string write_scale_json(const ScaleResult& result) {
  Json points = Json::array();
  for (const ScalePoint& point : result.points) {
    Json json = {{"ranks", point.ranks}, {"global_batch", point.global_batch}};
    if (point.best) {
      json["plan"] = plan_json(point.best->plan);
      json["settings"] = point.settings;
      json["iteration_time_s"] = seconds(point.best->iteration);
      json["samples_per_s"] = point.best->samples_per_second();
      json["compute_s"] = seconds(point.best->compute);
      json["exposed_communication_s"] = seconds(point.best->exposed_communication);
      json["memory_peak_bytes"] = point.best->memory.peak().value;
      json["memory_needed_bytes"] = point.best->memory.needed().value;
      const std::optional<Money> training = point.best->training_cost();
      json["energy_j"] = point.best->energy ? Json(point.best->energy->value) : Json(nullptr);
      json["cost_usd"] = point.best->cost ? Json(point.best->cost->value) : Json(nullptr);
      json["training_cost_usd"] = training ? Json(training->value) : Json(nullptr);
      json["speedup"] = result.speedup(point);
      json["efficiency"] = result.efficiency(point);
    }
    json["refusal"] = point.best ? Json(nullptr) : Json(point.refusal);
    json["space"] = {{"points", point.space.points},
                     {"refused", point.space.refused},
                     {"bounded", point.space.bounded},
                     {"simulated", point.space.simulated}};
    points.push_back(std::move(json));
  }
  return to_text(Json{{"schema", "armilla.scale/1"},
                      {"scaling", result.weak ? "weak" : "strong"},
                      {"complete", result.complete},
                      {"elapsed_s", result.elapsed_seconds},
                      {"notes", result.notes},
                      {"points", points}});
}

std::string write_scale_csv(const ScaleResult& result) {
  Csv csv({"ranks", "global_batch", "iteration_time_s", "samples_per_s", "speedup", "efficiency",
           "memory_peak_bytes", "settings", "refusal", "memory_needed_bytes", "energy_j", "cost_usd",
           "training_cost_usd"});
  for (const ScalePoint& point : result.points) {
    csv.cell(point.ranks).cell(point.global_batch);
    if (point.best) {
      csv.cell(point.best->iteration).cell(point.best->samples_per_second()).cell(result.speedup(point));
      csv.cell(result.efficiency(point)).cell(point.best->memory.peak());
    } else {
      for (int i = 0; i < 5; ++i) csv.cell(std::string_view());
    }
    csv.cell(fmt::format("{}", fmt::join(point.settings, " "))).cell(point.refusal);
    if (point.best) {
      const auto figure = [&](const auto& known) { csv.cell(known ? known->value : std::nan("")); };
      csv.cell(point.best->memory.needed());
      figure(point.best->energy);
      figure(point.best->cost);
      figure(point.best->training_cost());
    } else {
      for (int i = 0; i < 4; ++i) csv.cell(std::string_view());
    }
    csv.end_record();
  }
  return csv.text();
}

// Two lines of a sweep's plot.
std::string write_scale_svg(const ScaleResult& result) {
  SweepResult curves;
  curves.keys = {"curve", "plan.ranks"};
  const auto add = [&](const char* curve, std::int64_t ranks, double rate) {
    SweepRun run;
    run.values = {curve, std::to_string(ranks)};
    run.state = SweepState::done;
    for (const HeadlineFigure& figure : headline_figures())
      run.figures.push_back(figure.name == "samples_per_s" ? rate : std::nan(""));
    curves.runs.push_back(std::move(run));
  };
  const ScalePoint& base = result.base();
  const double each = base.best->samples_per_second() / static_cast<double>(base.ranks);
  for (const ScalePoint& point : result.points) {
    if (point.best) add("best plan", point.ranks, point.best->samples_per_second());
    if (point.ranks >= base.ranks) add("ideal", point.ranks, each * static_cast<double>(point.ranks));
  }
  return write_sweep_svg(curves, {"samples_per_s", {"plan.ranks"}});
}

}  // namespace armilla
