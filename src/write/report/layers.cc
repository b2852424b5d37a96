#include "write/report.h"

#include <fmt/format.h>

#include "base/units_text.h"
#include "write/format/csv.h"
#include "write/format/json_text.h"
#include "write/report/run_notes.h"
#include "write/text_table.h"

namespace armilla {
namespace {

constexpr std::size_t kLayerNameWidth = 32, kTypeWidth = 20;

// Cycles exist under cost models that count them (SCALE-Sim's systolic array).
bool counts_cycles(const LayerTable& table) {
  const LayerTime sum = total_time(table);
  return sum.forward_cycles + sum.input_gradient_cycles + sum.weight_gradient_cycles > 0;
}

// Sums over the layers of what ModelTotals does not have.
LayerRow weight_totals(const LayerTable& table) {
  LayerRow sum;
  for (const LayerRow& row : table.layers) {
    sum.weights += row.weights;
    sum.weight_bytes += row.weight_bytes;
  }
  return sum;
}

// A layer is known by its whole name, however wide the table becomes.
TextStyle unshortened(const TextStyle& style) {
  return {style.colour, SIZE_MAX};
}

std::string work_text(const LayerTable& table, const TextStyle& style) {
  TextTable text{{{"layer", false, kLayerNameWidth},
                  {"operator", false, kTypeWidth},
                  {"weights"},
                  {"parameters"},
                  {"dtype", false},
                  {"size"},
                  {"MACs"},
                  {"flops"},
                  {"traffic"},
                  {"output", false}},
                 {}};
  for (const LayerRow& row : table.layers) {
    text.rows.push_back({row.name, row.operator_type, with_separators(row.weights),
                         with_separators(row.parameters), std::string(name_of(row.dtype)),
                         to_text(row.parameter_bytes), with_separators(row.forward_macs),
                         to_text(row.forward_flops), to_text(row.forward_bytes),
                         row.output_shape ? to_text(*row.output_shape) : "-"});
  }
  const ModelTotals& sum = table.totals;
  text.rows.push_back({"total", "", with_separators(weight_totals(table).weights),
                       with_separators(sum.parameters), "", to_text(sum.parameter_bytes),
                       with_separators(sum.forward_macs), to_text(sum.forward_flops),
                       to_text(sum.forward_bytes), ""});
  return to_text(text, 0, unshortened(style));
}

std::string times_text(const LayerTable& table, const TextStyle& style) {
  const bool cycles = counts_cycles(table);
  TextTable text{
      {{"layer", false, kLayerNameWidth}, {"forward"}, {"input gradient"}, {"weight gradient"}, {"sum"}}, {}};
  if (cycles) {
    // Only where they mean something: another cost model would show a column of zeros.
    for (const char* header : {"forward cycles", "input gradient", "weight gradient"})
      text.columns.push_back({header});
  }
  const auto add = [&](const std::string& name, const LayerTime& time) {
    std::vector<std::string> row = {name, to_text(time.forward), to_text(time.input_gradient),
                                    to_text(time.weight_gradient),
                                    to_text(time.forward + time.input_gradient + time.weight_gradient)};
    if (cycles) {
      row.push_back(with_separators(time.forward_cycles));
      row.push_back(with_separators(time.input_gradient_cycles));
      row.push_back(with_separators(time.weight_gradient_cycles));
    }
    text.rows.push_back(row);
  };
  for (std::size_t i = 0; i < table.times.size(); ++i) add(table.layers[i].name, table.times[i]);
  add("total", total_time(table));
  return '\n' + paint(printable(fmt::format("Compute times by {}", table.compute)), Ink::bold, style.colour) +
         '\n' + to_text(text, 0, unshortened(style));
}

std::vector<std::string> unknown_sentences(const LayerTable& table) {
  std::vector<std::string> sentences;
  for (const UnknownOperator& unknown : table.unknown)
    sentences.push_back(describe(unknown, table.operators, table.totals.forward_bytes));
  return sentences;
}

Json totals_json(const LayerTable& table) {
  const ModelTotals& sum = table.totals;
  const LayerRow weights = weight_totals(table);
  Json json = {{"parameters", sum.parameters},
               {"parameter_bytes", sum.parameter_bytes.value},
               {"buffer_bytes", sum.buffer_bytes.value},
               {"weights", weights.weights},
               {"weight_bytes", weights.weight_bytes.value},
               {"forward_macs", sum.forward_macs},
               {"forward_flops", sum.forward_flops.value},
               {"forward_bytes", sum.forward_bytes.value}};
  return json;
}

void add_times(Json& json, const LayerTime& time, bool cycles) {
  json["forward_s"] = seconds(time.forward);
  json["input_gradient_s"] = seconds(time.input_gradient);
  json["weight_gradient_s"] = seconds(time.weight_gradient);
  if (!cycles) return;
  json["forward_cycles"] = time.forward_cycles;
  json["input_gradient_cycles"] = time.input_gradient_cycles;
  json["weight_gradient_cycles"] = time.weight_gradient_cycles;
}

Json values_json(const std::vector<Tensor>& values) {
  Json json = Json::array();
  for (const Tensor& value : values) {
    const bool has_shape = value.kind == ValueKind::tensor;
    json.push_back({{"name", value.name},
                    {"kind", name_of(value.kind)},
                    {"dtype", name_of(value.dtype)},
                    {"shape", has_shape ? Json(value.shape) : Json(nullptr)}});
  }
  return json;
}

Json layer_json(const LayerRow& row) {
  return {{"name", row.name},
          {"operator", row.operator_type},
          {"weights", row.weights},
          {"weight_bytes", row.weight_bytes.value},
          {"parameters", row.parameters},
          {"parameter_bytes", row.parameter_bytes.value},
          {"dtype", name_of(row.dtype)},
          {"output_shape", row.output_shape ? Json(*row.output_shape) : Json(nullptr)},
          {"forward_macs", row.forward_macs},
          {"forward_flops", row.forward_flops.value},
          {"forward_bytes", row.forward_bytes.value}};
}

}  // namespace

std::string write_layers_text(const LayerTable& table, const TextStyle& style) {
  std::string text =
      paint(printable(fmt::format("{}, batch {}: {} in {}", table.model, with_separators(table.batch),
                                  counted(table.operators, "operator"),
                                  counted(std::ssize(table.layers), "layer"))),
            Ink::bold, style.colour) +
      '\n' + work_text(table, style);
  if (!table.times.empty()) text += times_text(table, style);
  for (const std::string& sentence : unknown_sentences(table))
    text += wrap(sentence, "warning: ", style.width);
  for (const std::string& note : table.notes) text += wrap(note, "note: ", style.width);
  return text;
}

std::string write_layers_csv(const LayerTable& table) {
  // Machine-readable tables have the same columns for all models; only times depend on what was asked.
  std::vector<std::string_view> header = {"name",         "operator",        "weights",      "weight_bytes",
                                          "parameters",   "parameter_bytes", "dtype",        "output_shape",
                                          "forward_macs", "forward_flops",   "forward_bytes"};
  const bool cycles = counts_cycles(table);
  if (!table.times.empty())
    header.insert(header.end(), {"forward_s", "input_gradient_s", "weight_gradient_s"});
  if (cycles)
    header.insert(header.end(), {"forward_cycles", "input_gradient_cycles", "weight_gradient_cycles"});
  Csv csv(header);
  for (std::size_t i = 0; i < table.layers.size(); ++i) {
    const LayerRow& row = table.layers[i];
    csv.cell(row.name).cell(row.operator_type).cell(row.weights).cell(row.weight_bytes).cell(row.parameters);
    csv.cell(row.parameter_bytes).cell(name_of(row.dtype));
    csv.cell(row.output_shape ? to_text(*row.output_shape) : "");
    csv.cell(row.forward_macs).cell(row.forward_flops.value).cell(row.forward_bytes);
    if (!table.times.empty()) {
      const LayerTime& time = table.times[i];
      csv.cell(time.forward).cell(time.input_gradient).cell(time.weight_gradient);
      if (cycles)
        csv.cell(time.forward_cycles).cell(time.input_gradient_cycles).cell(time.weight_gradient_cycles);
    }
    csv.end_record();
  }
  return csv.text();
}

std::string write_layers_json(const LayerTable& table) {
  const bool cycles = counts_cycles(table);
  Json sum = totals_json(table);
  if (!table.times.empty()) add_times(sum, total_time(table), cycles);
  Json layers = Json::array();
  for (std::size_t i = 0; i < table.layers.size(); ++i) {
    layers.push_back(layer_json(table.layers[i]));
    if (!table.times.empty()) add_times(layers.back(), table.times[i], cycles);
  }
  Json unknown = Json::array();
  for (const UnknownOperator& op : table.unknown)
    unknown.push_back({{"type", op.type}, {"operators", op.nodes}, {"bytes", op.bytes.value}});
  const Json document = {{"schema", "armilla.layers/1"},
                         {"model", table.model},
                         {"source", table.source},
                         {"batch", table.batch},
                         {"operators", table.operators},
                         {"inputs", values_json(table.inputs)},
                         {"outputs", values_json(table.outputs)},
                         {"compute", table.compute.empty() ? Json(nullptr) : Json(table.compute)},
                         {"totals", sum},
                         {"layers", layers},
                         {"unknown_operators", unknown},
                         {"notes", table.notes}};
  return to_text(document);
}

}  // namespace armilla
