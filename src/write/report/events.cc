#include "write/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units_text.h"
#include "ir/profile.h"
#include "write/format/csv.h"
#include "write/format/json_text.h"
#include "write/text_table.h"

namespace armilla {
namespace {

constexpr std::size_t kNameWidth = 26, kShapeWidth = 24;

// The first matrix product, and how many more there are; without one what tells the work apart:
// what it moves.
std::string short_shapes(const Work& work) {
  if (work.gemms.empty() && work.bytes > Bytes(0)) return with_separators(work.bytes.value) + " bytes";
  if (work.gemms.size() < 2) return shapes_text(work.gemms);
  return fmt::format("{}, +{}", shapes_text(std::span(work.gemms).first(1)), work.gemms.size() - 1);
}

double total_seconds(const JobEvent& event) {
  return in_seconds(event.time) * static_cast<double>(event.count);
}

double total_seconds(const std::vector<JobEvent>& events) {
  double sum = 0;
  for (const JobEvent& event : events) sum += total_seconds(event);
  return sum;
}

// Of the times added up, as if nothing overlapped: it tells what there is to measure or to make faster,
// not what an iteration would gain.
std::string share_text(const JobEvent& event, double all) {
  return fmt::format("{:.1f}", all > 0 ? 100 * total_seconds(event) / all : 0);
}

std::string_view dtype_text(const JobEvent& event) {
  return event.kind == NodeKind::compute ? name_of(event.work.dtype) : "";
}

std::string_view kernel_text(const JobEvent& event) {
  return event.kind == NodeKind::compute ? name_of(event.work.kernel) : "";
}

std::string computation_section(const EventTable& table, const TextStyle& style) {
  TextTable rows{{{"computation", false, kNameWidth},
                  {"phase", false, SIZE_MAX, 2},
                  {"m x n x k or moved", false, kShapeWidth, 1},
                  {"type", false, SIZE_MAX, 3},
                  {"count"},
                  {"time"},
                  {"%"}},
                 {}};
  const double all = total_seconds(table.computations);
  for (const JobEvent& event : table.computations) {
    rows.rows.push_back({event.name, std::string(name_of(event.phase)), short_shapes(event.work),
                         std::string(dtype_text(event)), with_separators(event.count), to_text(event.time),
                         share_text(event, all)});
  }
  return rows.rows.empty() ? "" : to_text(rows, 2, style);
}

std::string communication_section(const EventTable& table, const TextStyle& style) {
  TextTable rows{{{"communication", false},
                  {"bytes"},
                  {"ranks", true, SIZE_MAX, 1},
                  {"node", false, SIZE_MAX, 3},
                  {"over", false, kNameWidth, 2},
                  {"count"},
                  {"time"},
                  {"%"}},
                 {}};
  const double all = total_seconds(table.communications);
  for (const JobEvent& event : table.communications) {
    rows.rows.push_back({event.name, to_text(event.bytes), with_separators(event.group_size),
                         event.inter_node ? "inter" : "intra", event.spans, with_separators(event.count),
                         to_text(event.time), share_text(event, all)});
  }
  return rows.rows.empty() ? "" : '\n' + to_text(rows, 2, style);
}

Json products_json(const Work& work) {
  Json products = Json::array();
  for (const Gemm& gemm : work.gemms)
    products.push_back({{"m", gemm.m}, {"n", gemm.n}, {"k", gemm.k}, {"count", gemm.count}});
  return products;
}

Json computation_json(const JobEvent& event) {
  return {{"name", event.name},
          {"phase", name_of(event.phase)},
          {"products", products_json(event.work)},
          {"type", dtype_text(event)},
          {"flops", event.work.flops.value},
          {"bytes", event.work.bytes.value},
          {"count", event.count},
          {"kernel", kernel_text(event)},
          {"time_s", seconds(event.time)},
          {"source", name_of(event.source)}};
}

Json communication_json(const JobEvent& event) {
  return {{"name", event.name},
          {"bytes", event.bytes.value},
          {"ranks", event.group_size},
          {"inter_node", event.inter_node},
          {"dimensions", event.spans},
          {"count", event.count},
          {"time_s", seconds(event.time)},
          {"source", name_of(event.source)}};
}

}  // namespace

std::string write_events_text(const EventTable& table, const TextStyle& style) {
  const std::size_t distinct = table.computations.size() + table.communications.size();
  const auto measured =
      std::count_if(table.computations.begin(), table.computations.end(),
                    [](const JobEvent& event) { return event.source == TimeSource::measured; });
  std::string text =
      computation_section(table, style) + communication_section(table, style) + '\n' +
      wrap(fmt::format("{} and {} stand for {}: redundancy {}",
                       counted(table.computations.size(), "distinct computation"),
                       counted(table.communications.size(), "distinct communication"),
                       with_separators(occurrences(table)),
                       distinct > 0 ? fmt::format("{:.1f}", redundancy_factor(table)) : "unknown"),
           "", style.width);
  if (measured > 0)
    text +=
        fmt::format("{} of the computations ha{} a measured time\n", measured, measured == 1 ? "s" : "ve");
  // Calls are simulated whatever was measured: what else is on the links decides on their time.
  const auto profiled = std::count_if(table.communications.begin(), table.communications.end(),
                                      [](const JobEvent& event) { return event.profiled.has_value(); });
  if (profiled > 0)
    text += fmt::format("{} of the communications ha{} a measured time, and {} simulated\n", profiled,
                        profiled == 1 ? "s" : "ve", profiled == 1 ? "is" : "are");
  return text;
}

// What `armilla profile import` reads (read/profile/profile_csv.cc), so that the table can be filled with
// measured times and come back. Both kinds have all columns: a computation is of 1 rank, within a node.
std::string write_events_csv(const EventTable& table) {
  Csv csv({"event", "name", "phase", "shapes", "type", "flops", "bytes", "ranks", "inter_node", "dimensions",
           "count", "device", "kernel", "time_s", "source"});
  for (const JobEvent& event : table.computations) {
    csv.cell("computation").cell(event.name).cell(name_of(event.phase)).cell(shapes_text(event.work.gemms));
    csv.cell(dtype_text(event)).cell(event.work.flops.value).cell(event.work.bytes).cell(std::int64_t{1});
    csv.cell("false").cell("").cell(event.count).cell(table.device).cell(kernel_text(event));
    csv.cell(event.time).cell(name_of(event.source)).end_record();
  }
  for (const JobEvent& event : table.communications) {
    csv.cell("communication").cell(event.name).cell("").cell("").cell("").cell(std::int64_t{0});
    csv.cell(event.bytes).cell(event.group_size).cell(event.inter_node ? "true" : "false");
    csv.cell(event.spans).cell(event.count).cell(table.device).cell("");
    csv.cell(event.time).cell(name_of(event.source)).end_record();
  }
  return csv.text();
}

std::string write_events_json(const EventTable& table) {
  Json computations = Json::array(), communications = Json::array();
  for (const JobEvent& event : table.computations) computations.push_back(computation_json(event));
  for (const JobEvent& event : table.communications) communications.push_back(communication_json(event));
  return to_text(Json{{"schema", "armilla.events/1"},
                      {"device", table.device},
                      {"occurrences", occurrences(table)},
                      {"distinct", table.computations.size() + table.communications.size()},
                      {"redundancy", finite(redundancy_factor(table))},
                      {"computations", computations},
                      {"communications", communications}});
}

// Without what only a job knows: how often, over which dimensions, by which kernel.
std::string write_profile_csv(const Profile& profile) {
  Csv csv({"event", "name", "phase", "shapes", "type", "flops", "bytes", "ranks", "inter_node", "device",
           "repeats", "spread_s", "time_s", "source"});
  const auto measurement = [&](const Measured& measured) {
    csv.cell(measured.device).cell(measured.repeats).cell(measured.spread).cell(measured.time);
    csv.cell(name_of(TimeSource::measured)).end_record();
  };
  for (const auto& [key, measured] : profile.computations) {
    csv.cell("computation").cell(key.name).cell(name_of(key.phase)).cell(key.shapes).cell(key.type);
    csv.cell(key.flops).cell(key.bytes).cell(std::int64_t{1}).cell("false");
    measurement(measured);
  }
  for (const auto& [key, measured] : profile.communications) {
    csv.cell("communication").cell(key.name).cell("").cell("").cell("").cell(std::int64_t{0});
    csv.cell(key.bytes).cell(key.ranks).cell(key.inter_node ? "true" : "false");
    measurement(measured);
  }
  return csv.text();
}

std::string write_profile_json(const Profile& profile) {
  Json computations = Json::array(), communications = Json::array();
  const auto add = [](Json event, const Measured& measured) {
    event["device"] = measured.device;
    event["repeats"] = measured.repeats;
    event["spread_s"] = seconds(measured.spread);
    event["time_s"] = seconds(measured.time);
    event["source"] = name_of(TimeSource::measured);
    return event;
  };
  for (const auto& [key, measured] : profile.computations) {
    Work work;
    // Shapes were checked when they were imported.
    work.gemms = shapes_from(key.shapes).value_or(std::vector<Gemm>());
    computations.push_back(add({{"name", key.name},
                                {"phase", name_of(key.phase)},
                                {"products", products_json(work)},
                                {"type", key.type},
                                {"flops", key.flops},
                                {"bytes", key.bytes}},
                               measured));
  }
  for (const auto& [key, measured] : profile.communications)
    communications.push_back(
        add({{"name", key.name}, {"bytes", key.bytes}, {"ranks", key.ranks}, {"inter_node", key.inter_node}},
            measured));
  return to_text(Json{{"schema", "armilla.events/1"},
                      {"distinct", profile.computations.size() + profile.communications.size()},
                      {"computations", computations},
                      {"communications", communications}});
}

}  // namespace armilla
