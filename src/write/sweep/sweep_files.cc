#include <cmath>

#include "ir/derived/headline.h"
#include "write/format/csv.h"
#include "write/format/json_text.h"
#include "write/sweep.h"

namespace armilla {
namespace {

Json figures_json(const SweepRun& run) {
  if (run.figures.empty()) return nullptr;
  Json figures = Json::object();
  for (std::size_t i = 0; i < run.figures.size(); ++i) {
    const HeadlineFigure& figure = headline_figures()[i];
    const double value = run.figures[i];
    // Of what has no value (NaN) `finite` makes null: JSON has no word for it.
    figures[std::string(figure.name)] =
        figure.whole && std::isfinite(value) ? Json(static_cast<std::int64_t>(value)) : finite(value);
  }
  return figures;
}

}  // namespace

std::string write_sweep_json(const SweepResult& result) {
  Json runs = Json::array();
  for (const SweepRun& run : result.runs) {
    Json values = Json::object();
    for (std::size_t key = 0; key < result.keys.size(); ++key) {
      if (!run.values[key].empty()) values[result.keys[key]] = run.values[key];
    }
    runs.push_back({{"values", values},
                    {"state", name_of(run.state)},
                    {"message", run.state == SweepState::failed ? Json(run.message) : Json(nullptr)},
                    {"figures", figures_json(run)},
                    {"known", run.known || run.is_repeated},
                    {"elapsed_s", run.elapsed_seconds},
                    {"hash", run.hash}});
  }
  return to_text(Json{{"schema", "armilla.sweep/1"},
                      {"study", result.study},
                      {"keys", result.keys},
                      {"complete", result.complete()},
                      {"done", result.count(SweepState::done)},
                      {"failed", result.count(SweepState::failed)},
                      {"known", result.known() + result.repeated()},
                      {"elapsed_s", result.elapsed_seconds},
                      {"runs", runs}});
}

std::string write_sweep_csv(const SweepResult& result) {
  std::vector<std::string_view> header(result.keys.begin(), result.keys.end());
  header.insert(header.end(), {"state", "message"});
  for (const HeadlineFigure& figure : headline_figures()) header.push_back(figure.name);
  header.insert(header.end(), {"elapsed_s", "hash"});
  Csv csv(header);
  for (const SweepRun& run : result.runs) {
    for (const std::string& value : run.values) csv.cell(value);
    csv.cell(name_of(run.state)).cell(run.message);
    for (std::size_t i = 0; i < headline_figures().size(); ++i) {
      const bool has = !run.figures.empty() && std::isfinite(run.figures[i]);
      if (!has) {
        csv.cell(std::string_view());
      } else if (headline_figures()[i].whole) {
        csv.cell(static_cast<std::int64_t>(run.figures[i]));
      } else {
        csv.cell(run.figures[i]);
      }
    }
    csv.cell(run.elapsed_seconds).cell(run.hash);
    csv.end_record();
  }
  return csv.text();
}

}  // namespace armilla
