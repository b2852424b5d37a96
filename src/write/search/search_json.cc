#include <fmt/format.h>

#include <cmath>
#include <set>

#include "write/format/csv.h"
#include "write/format/json_text.h"
#include "write/report/run_json.h"
#include "write/search.h"

namespace armilla {
namespace {

Json outcome_json(const SearchResult& result, const PlanOutcome& plan, bool simulated) {
  Json values = Json::object();
  for (std::size_t axis = 0; axis < result.axes.size(); ++axis) {
    if (!plan.values[axis].empty()) values[result.axes[axis].key] = plan.values[axis];
  }
  Json json = {{"values", values}, {"machine", plan.machine}, {"plan", plan_json(plan.plan)}};
  // The nearest plan does not fit: it has a bound and a memory, but was not simulated.
  if (simulated) {
    json["iteration_time_s"] = seconds(plan.iteration);
    json["samples_per_s"] = plan.samples_per_second();
    const auto tokens = static_cast<double>(result.tokens_per_sample);
    json["tokens_per_s"] = tokens > 0 ? Json(plan.samples_per_second() * tokens) : Json(nullptr);
    json["energy_j"] = plan.energy ? Json(plan.energy->value) : Json(nullptr);
    json["cost_usd"] = plan.cost ? Json(plan.cost->value) : Json(nullptr);
    const std::optional<Money> training = plan.training_cost();
    json["training_cost_usd"] = training ? Json(training->value) : Json(nullptr);
    json["compute_s"] = seconds(plan.compute);
    json["exposed_communication_s"] = seconds(plan.exposed_communication);
    json["exposed_by_kind_s"] = nullptr;
    for (const auto& [kind, time] : plan.exposed_by_kind) json["exposed_by_kind_s"][kind] = seconds(time);
  }
  json["least_time_s"] = seconds(plan.bound);
  json["memory_peak_bytes"] = plan.memory.peak().value;
  json["memory_needed_bytes"] = plan.memory.needed().value;
  json["memory_capacity_bytes"] = plan.memory.capacity.value;
  return json;
}

Json list(const SearchResult& result, const std::vector<PlanOutcome>& plans) {
  Json json = Json::array();
  for (const PlanOutcome& plan : plans) json.push_back(outcome_json(result, plan, true));
  return json;
}

Json needs_json(const Neighbour& neighbour) {
  if (neighbour.needs.empty()) return nullptr;
  return fmt::format("{}={}", neighbour.needs, neighbour.needed_value);
}

}  // namespace

std::string write_search_json(const SearchResult& result, const Run* best) {
  Json axes = Json::array();
  for (const SearchAxis& axis : result.axes)
    axes.push_back({{"key", axis.key}, {"values", axis.values}, {"given", axis.given}});
  Json refusals = Json::array();
  for (const auto& [reason, refusal] : result.space.refusals)
    refusals.push_back({{"reason", reason}, {"plans", refusal.plans}, {"example", refusal.example}});
  Json neighbours = Json::array();
  for (const Neighbour& neighbour : result.neighbours) {
    Json json = {{"key", neighbour.key}, {"value", neighbour.value}};
    json["outcome"] = neighbour.outcome ? outcome_json(result, *neighbour.outcome, true) : Json(nullptr);
    json["refusal"] = neighbour.broken    ? Json(neighbour.broken->how)
                      : neighbour.outcome ? Json(nullptr)
                                          : Json(neighbour.refusal);
    json["needs"] = needs_json(neighbour);
    neighbours.push_back(std::move(json));
  }
  const std::optional<Money> late_cost = result.late ? result.late->training_cost() : std::nullopt;
  Json edges = Json::array();
  for (const SearchEdge& edge : result.edges) {
    edges.push_back({{"key", edge.key},
                     {"value", edge.value},
                     {"next", edge.next},
                     {"outcome", outcome_json(result, edge.outcome, true)}});
  }
  const Neighbour* const most = what_matters_most(result);
  Json front_of = Json::array();
  for (const SearchObjective objective : result.front_of) front_of.push_back(name_of(objective));
  Json json = {
      {"schema", "armilla.search/1"},
      {"objective", name_of(result.objective)},
      {"complete", result.complete},
      {"elapsed_s", result.elapsed_seconds},
      {"space",
       {{"axes", axes},
        {"points", result.space.points},
        {"refused", result.space.refused},
        {"bounded", result.space.bounded},
        {"simulated", result.space.simulated},
        {"not_looked_at", result.space.not_looked_at},
        {"resumed", result.space.resumed},
        {"refusals", refusals}}},
      {"ranking", list(result, result.ranking)},
      {"front_of", front_of},
      {"front", list(result, result.front)},
      {"whole_front", result.whole_front},
      {"neighbours", neighbours},
      {"matters_most", most == nullptr
                           ? Json(nullptr)
                           : Json{{"key", most->key}, {"value", most->value}, {"needs", needs_json(*most)}}},
      {"edges", edges},
      {"notes", result.notes},
      {"nearest", result.nearest ? outcome_json(result, *result.nearest, false) : Json(nullptr)},
      {"nearest_changes", result.nearest_changes},
      {"late_cost_usd", late_cost && result.budget ? Json(late_cost->value) : Json(nullptr)},
      {"budget_usd", result.budget ? Json(result.budget->value) : Json(nullptr)},
      {"late", result.late ? outcome_json(result, *result.late, true) : Json(nullptr)},
      {"best", best ? run_json(*best) : Json(nullptr)}};
  return to_text(json);
}

std::string write_search_csv(const SearchResult& result) {
  std::vector<std::string_view> header = {"rank"};
  for (const SearchAxis& axis : result.axes) header.push_back(axis.key);
  for (const char* const name : {"data", "global_batch", "iteration_time_s", "samples_per_s", "energy_j",
                                 "cost_usd", "compute_s", "exposed_communication_s", "least_time_s",
                                 "memory_peak_bytes", "memory_needed_bytes", "training_cost_usd", "on_front"})
    header.push_back(name);
  std::set<std::vector<std::string>> front;
  for (const PlanOutcome& plan : result.front) front.insert(plan.values);
  Csv csv(header);
  for (std::size_t i = 0; i < result.simulated.size(); ++i) {
    const PlanOutcome& plan = result.simulated[i];
    csv.cell(static_cast<std::int64_t>(i + 1));
    for (const std::string& value : plan.values) csv.cell(value);
    csv.cell(plan.plan.data())
        .cell(plan.plan.global_batch())
        .cell(plan.iteration)
        .cell(plan.samples_per_second())
        .cell(plan.energy ? plan.energy->value : std::nan(""))
        .cell(plan.cost ? plan.cost->value : std::nan(""));
    csv.cell(plan.compute).cell(plan.exposed_communication).cell(plan.bound).cell(plan.memory.peak());
    const std::optional<Money> training = plan.training_cost();
    csv.cell(plan.memory.needed()).cell(training ? training->value : std::nan(""));
    csv.cell(std::int64_t{front.contains(plan.values)});
    csv.end_record();
  }
  return csv.text();
}

}  // namespace armilla
