#include "write/astra/astra_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>

#include "write/format/csv.h"
#include "write/format/json_text.h"

namespace armilla {
namespace {

std::string word_of(const TextPass& pass) {
  return fmt::format("{}{}", text_word(pass.collective), text_suffix(pass.group));
}

std::string columns(const TextPass& pass) {
  return fmt::format("\t{}\t{}\t{}", pass.cycles, word_of(pass), pass.bytes.value);
}

// The order is ASTRA-sim 1.0's, which does not look at the keys; SimAI's own keys stand between.
std::string first_line(const TextWorkload& workload) {
  std::string text(name_of(workload.policy));
  const auto add = [&](std::string_view key, std::optional<std::int64_t> value) {
    if (value) fmt::format_to(std::back_inserter(text), " {}: {}", key, *value);
  };
  // A list is its length, then its items.
  const auto add_layers = [&](std::string_view key, const std::vector<std::int64_t>& layers) {
    add(key, static_cast<std::int64_t>(layers.size()));
    for (const std::int64_t layer : layers) fmt::format_to(std::back_inserter(text), " {}", layer);
  };
  if (is_dlrm(workload.policy)) text += fmt::format(" {}", workload.last_bottom_layer);
  if (workload.model_parallel_group > 0) add("model_parallel_NPU_group", workload.model_parallel_group);
  add("ep", workload.plan.ep);
  add("pp", workload.plan.pp);
  add("vpp", workload.plan.vpp);
  add("ga", workload.plan.ga);
  add("all_gpus", workload.plan.all_gpus);
  if (workload.policy == TextPolicy::hybrid_transformer_fwd_in_bckwd) {
    add_layers("checkpoints", workload.checkpoints);
    add_layers("checkpoint_initiates", workload.checkpoint_initiates);
  }
  add("pp_comm", workload.plan.pp_comm);
  return text;
}

Json pass_json(const TextPass& pass) {
  return {{"compute_cycles", pass.cycles}, {"collective", word_of(pass)}, {"bytes", pass.bytes.value}};
}

Json plan_json(const TextPlan& plan) {
  Json json = Json::object();
  const auto add = [&](const char* key, std::optional<std::int64_t> value) {
    if (value) json[key] = *value;
  };
  add("ep", plan.ep);
  add("pp", plan.pp);
  add("vpp", plan.vpp);
  add("ga", plan.ga);
  add("all_gpus", plan.all_gpus);
  add("pp_comm", plan.pp_comm);
  return json;
}

}  // namespace

std::string write_astra_text(const TextWorkload& workload) {
  validate_text_workload(workload);
  std::string text = fmt::format("{}\n{}\n", first_line(workload), workload.layers.size());
  for (const TextLayer& layer : workload.layers) {
    text += fmt::format("{}\t{}{}{}{}\t{}", layer.name, layer.dependence, columns(layer.forward),
                        columns(layer.input_gradient), columns(layer.weight_gradient), layer.update_cycles);
    if (layer.policy) text += fmt::format("\t{}", name_of(*layer.policy));
    text += '\n';
  }
  return text;
}

std::string write_text_workload_json(const TextWorkload& workload) {
  validate_text_workload(workload);
  Json layers = Json::array();
  for (const TextLayer& layer : workload.layers) {
    Json& json = layers.emplace_back(Json{{"name", layer.name},
                                          {"dependence", layer.dependence},
                                          {"forward", pass_json(layer.forward)},
                                          {"input_gradient", pass_json(layer.input_gradient)},
                                          {"weight_gradient", pass_json(layer.weight_gradient)},
                                          {"update_cycles", layer.update_cycles}});
    if (layer.policy) json["policy"] = name_of(*layer.policy);
  }
  Json document = {{"schema", "armilla.text_workload/1"}, {"policy", name_of(workload.policy)}};
  if (is_dlrm(workload.policy)) document["last_bottom_layer"] = workload.last_bottom_layer;
  if (workload.model_parallel_group > 0) document["model_parallel_group"] = workload.model_parallel_group;
  if (workload.policy == TextPolicy::hybrid_transformer_fwd_in_bckwd) {
    document["checkpoints"] = workload.checkpoints;
    document["checkpoint_initiates"] = workload.checkpoint_initiates;
  }
  if (workload.plan != TextPlan{}) document["plan"] = plan_json(workload.plan);
  document["layers"] = std::move(layers);
  return to_text(document);
}

std::string write_text_workload_csv(const TextWorkload& workload) {
  validate_text_workload(workload);
  std::vector<std::string_view> header = {"name",
                                          "dependence",
                                          "forward_cycles",
                                          "forward_collective",
                                          "forward_bytes",
                                          "input_gradient_cycles",
                                          "input_gradient_collective",
                                          "input_gradient_bytes",
                                          "weight_gradient_cycles",
                                          "weight_gradient_collective",
                                          "weight_gradient_bytes",
                                          "update_cycles"};
  // Under this policy, and no other, every layer has its own.
  const bool policies = workload.policy == TextPolicy::hybrid_customized;
  if (policies) header.emplace_back("policy");
  Csv csv(header);
  for (const TextLayer& layer : workload.layers) {
    csv.cell(layer.name).cell(layer.dependence);
    for (const TextPass* pass : {&layer.forward, &layer.input_gradient, &layer.weight_gradient})
      csv.cell(pass->cycles).cell(word_of(*pass)).cell(pass->bytes);
    csv.cell(layer.update_cycles);
    if (layer.policy) csv.cell(name_of(*layer.policy));
    csv.end_record();
  }
  return csv.text();
}

}  // namespace armilla
