#include "write/astra_text.h"

#include <fmt/format.h>

#include "write/csv.h"
#include "write/json_text.h"

namespace armilla {
namespace {

std::string columns(const TextPass& pass) {
  return fmt::format("\t{}\t{}\t{}", pass.cycles, text_word(pass.collective), pass.bytes.value);
}

Json pass_json(const TextPass& pass) {
  return {{"compute_cycles", pass.cycles},
          {"collective", text_word(pass.collective)},
          {"bytes", pass.bytes.value}};
}

}  // namespace

std::string write_astra_text(const TextWorkload& workload) {
  validate_text_workload(workload);
  std::string text = fmt::format("{}\n{}\n", name_of(workload.policy), workload.layers.size());
  for (const TextLayer& layer : workload.layers) {
    text += fmt::format("{}\t{}{}{}{}\t{}\n", layer.name, layer.dependence, columns(layer.forward),
                        columns(layer.input_gradient), columns(layer.weight_gradient), layer.update_cycles);
  }
  return text;
}

std::string write_text_workload_json(const TextWorkload& workload) {
  validate_text_workload(workload);
  Json layers = Json::array();
  for (const TextLayer& layer : workload.layers) {
    layers.push_back({{"name", layer.name},
                      {"dependence", layer.dependence},
                      {"forward", pass_json(layer.forward)},
                      {"input_gradient", pass_json(layer.input_gradient)},
                      {"weight_gradient", pass_json(layer.weight_gradient)},
                      {"update_cycles", layer.update_cycles}});
  }
  const Json document = {
      {"schema", "armilla.text_workload/1"}, {"policy", name_of(workload.policy)}, {"layers", layers}};
  return to_text(document);
}

std::string write_text_workload_csv(const TextWorkload& workload) {
  validate_text_workload(workload);
  Csv csv({"name", "dependence", "forward_cycles", "forward_collective", "forward_bytes",
           "input_gradient_cycles", "input_gradient_collective", "input_gradient_bytes",
           "weight_gradient_cycles", "weight_gradient_collective", "weight_gradient_bytes", "update_cycles"});
  for (const TextLayer& layer : workload.layers) {
    csv.cell(layer.name).cell(layer.dependence);
    for (const TextPass* pass : {&layer.forward, &layer.input_gradient, &layer.weight_gradient})
      csv.cell(pass->cycles).cell(text_word(pass->collective)).cell(pass->bytes);
    csv.cell(layer.update_cycles).end_record();
  }
  return csv.text();
}

}  // namespace armilla
