#include <fmt/format.h>

#include <algorithm>

#include "write/format/csv.h"
#include "write/format/json_text.h"
#include "write/validation.h"

namespace armilla {
namespace {

Json errors_json(const ErrorSummary& e) {
  if (e.count == 0) {
    return {{"count", 0},      {"mape", nullptr}, {"median", nullptr},
            {"bias", nullptr}, {"p90", nullptr},  {"largest", nullptr}};
  }
  return {{"count", e.count},       {"mape", finite(e.mape)}, {"median", finite(e.median)},
          {"bias", finite(e.bias)}, {"p90", finite(e.p90)},   {"largest", finite(e.largest)}};
}

Json validated_json(const ValidatedRow& row) {
  return {{"where", row.measured.where},
          {"id", row.measured.id},
          {"measured", finite(row.measured.value)},
          {"predicted", finite(*row.predicted)},
          {"error", finite(row.error())},
          {"study", row.study},
          {"likely", row.likely}};
}

Json set_json(const ValidatedSet& set, const Validation& validation, std::size_t misses) {
  Json json = {
      {"kind", set.kind}, {"name", set.name}, {"rows", set.rows}, {"errors", errors_json(set.errors)}};
  json["constant"] = set.constant.count > 0 ? errors_json(set.constant) : Json(nullptr);
  json["ranking"] = set.ranking.groups == 0 ? Json(nullptr)
                                            : Json{{"groups", set.ranking.groups},
                                                   {"plans", set.ranking.plans},
                                                   {"spearman", finite(set.ranking.spearman)},
                                                   {"regret", finite(set.ranking.regret)}};
  Json largest = Json::array();
  for (std::size_t i = 0; i < std::min(misses, set.misses.size()); ++i)
    largest.push_back(validated_json(validation.rows[set.misses[i]]));
  json["largest_errors"] = largest;
  return json;
}

}  // namespace

std::string write_validation_json(const Validation& validation, std::size_t misses) {
  Json sets = Json::array(), totals = Json::array(), unpredicted = Json::array();
  for (const ValidatedSet& set : validation.sets) sets.push_back(set_json(set, validation, misses));
  for (const ValidatedSet& set : validation.totals) totals.push_back(set_json(set, validation, misses));
  for (const auto& [reason, rows] : validation.unpredicted) {
    unpredicted.push_back({{"reason", reason},
                           {"rows", rows.size()},
                           {"first", validation.rows[rows.front()].measured.where},
                           {"example", validation.rows[rows.front()].unpredicted_detail}});
  }
  return to_text(Json{{"schema", "armilla.validation/1"},
                      {"files", validation.files},
                      {"totals", totals},
                      {"sets", sets},
                      {"unpredicted", unpredicted}});
}

std::string write_validation_csv(const Validation& validation) {
  Csv csv({"where", "id", "set", "tier", "measured", "predicted", "error", "constant", "reason", "study",
           "likely"});
  for (const ValidatedRow& row : validation.rows) {
    csv.cell(row.measured.where).cell(row.measured.id).cell(row.set);
    csv.cell(row.measured.tier == ' ' ? std::string() : std::string(1, row.measured.tier));
    row.measured.value > 0 ? csv.cell(row.measured.value) : csv.cell("");
    row.predicted ? csv.cell(*row.predicted).cell(row.error()) : csv.cell("").cell("");
    row.by_constant ? csv.cell(*row.by_constant) : csv.cell("");
    csv.cell(row.unpredicted_detail).cell(row.study).cell(row.likely).end_record();
  }
  return csv.text();
}

}  // namespace armilla
