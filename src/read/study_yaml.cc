#include "read/study_yaml.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "read/machine_yaml.h"

namespace armilla {
namespace {

// Beyond any sense, so that nothing downstream is asked to allocate by a typing mistake.
constexpr std::int64_t kMostChunks = 65536;

// One of `values`, by its name.
template <class Enum>
Enum read_choice(const Config& config, std::initializer_list<Enum> values) {
  std::vector<std::string_view> names;
  for (const Enum value : values) names.push_back(name_of(value));
  return values.begin()[config.choice(names)];
}

ModelSource read_model_source(const Config& config) {
  ModelSource model;
  if (config.is_scalar()) {
    model.name = name_or_path(config);
    return model;
  }
  model.name = name_or_path(config.at("name"));
  if (const auto dimensions = config.find("dimensions")) {
    for (const auto& [symbol, size] : dimensions->entries()) model.dimensions[symbol] = size.count();
  }
  config.reject_unknown_keys();
  return model;
}

Plan read_plan(const Config& config, std::int64_t machine_ranks) {
  Plan plan;
  plan.ranks = machine_ranks;
  if (const auto ranks = config.find("ranks")) plan.ranks = ranks->count(1, INT32_MAX);
  if (const auto batch = config.find("batch")) plan.batch = batch->count(1, INT32_MAX);
  if (const auto global = config.find("global_batch")) {
    if (config.has("batch"))
      throw Error(global->where(), "is given beside plan.batch", "give one: of all ranks, or of one");
    const std::int64_t samples = global->count(1);
    if (samples % plan.ranks != 0 || samples / plan.ranks > INT32_MAX) {
      const std::int64_t below = std::max(samples / plan.ranks, std::int64_t{1}) * plan.ranks;
      throw Error(global->where(),
                  fmt::format("{} samples cannot be shared equally by {} ranks", samples, plan.ranks),
                  fmt::format("batches that can are {} and {}", below, below + plan.ranks));
    }
    plan.batch = samples / plan.ranks;
  }
  if (const auto count = config.find("micro_batches")) {
    plan.micro_batches = count->count(1, INT32_MAX);
    if (plan.batch % plan.micro_batches != 0) {
      throw Error(count->where(), fmt::format("{} micro-batches do not divide the batch of {} per rank",
                                              plan.micro_batches, plan.batch));
    }
  }
  if (const auto precision = config.find("precision")) {
    std::vector<std::string_view> names;
    for (const std::string_view name : dtype_names()) {
      if (is_floating(*dtype_from_name(name))) names.push_back(name);
    }
    plan.precision = *dtype_from_name(names[precision->choice(names)]);
  }
  if (const auto bucket = config.find("bucket")) plan.bucket = bucket->bytes();
  if (const auto bucket = config.find("first_bucket")) plan.first_bucket = bucket->bytes();
  if (const auto overlap = config.find("overlap")) plan.overlap = overlap->boolean();
  if (const auto optimizer = config.find("optimizer"))
    plan.optimizer = read_choice(*optimizer, {Optimizer::sgd, Optimizer::momentum, Optimizer::adam});
  config.reject_unknown_keys();
  return plan;
}

ComponentChoice read_component(const Config& config) {
  if (config.is_scalar()) return parse_component(config.text(), config.where());
  ComponentChoice choice;
  choice.where = config.at("model").where();
  choice.name = config.at("model").text();
  for (const auto& [name, value] : config.entries()) {
    if (name != "model") choice.parameters[name] = {value.text(), value.where()};
  }
  return choice;
}

std::vector<std::string> read_algorithms(const Config& config) {
  std::vector<std::string> algorithms;
  if (config.is_scalar()) {
    algorithms.push_back(config.text());
  } else {
    for (const Config& item : config.items()) algorithms.push_back(item.text());
  }
  if (algorithms.empty())
    throw Error(config.where(), "the list is empty", "leave the key out for the default");
  for (const std::string& algorithm : algorithms) {
    if (algorithm.empty()) throw Error(config.where(), "the name is empty");
  }
  return algorithms;
}

CollectiveOptions read_collectives(const Config& config) {
  CollectiveOptions options;
  if (const auto algorithms = config.find("algorithms")) options.algorithms = read_algorithms(*algorithms);
  for (const CollectiveKind kind : kCollectiveKinds) {
    if (const auto algorithms = config.find(name_of(kind)))
      options.algorithms_by_kind[kind] = read_algorithms(*algorithms);
  }
  if (const auto decomposition = config.find("decomposition")) {
    options.decomposition = read_choice(
        *decomposition, {Decomposition::bandwidth_aware, Decomposition::baseline, Decomposition::flat});
  }
  if (const auto chunks = config.find("chunks")) options.chunks = chunks->count(1, kMostChunks);
  if (const auto chunks = config.find("active_chunks")) options.active_chunks = chunks->count(1, kMostChunks);
  if (const auto order = config.find("order"))
    options.order = read_choice(*order, {ChunkOrder::lifo, ChunkOrder::fifo, ChunkOrder::priority});
  if (const auto charge = config.find("charge_reductions")) options.charge_reductions = charge->boolean();
  config.reject_unknown_keys();
  return options;
}

}  // namespace

Study read_study(const Config& config) {
  Study study;
  study.model = read_model_source(config.at("model"));
  const Config machine_config = config.at("machine");
  const Machine machine = machine_config.is_scalar()
                              ? load_machine(name_or_path(machine_config), machine_config.where())
                              : read_machine(machine_config);
  const auto plan = config.find("plan");
  const Config origin = plan ? *plan : machine_config;
  study.plan.ranks = rank_count(machine);
  if (plan) study.plan = read_plan(*plan, study.plan.ranks);
  if (const auto compute = config.find("compute")) study.compute = read_component(*compute);
  if (const auto network = config.find("network")) study.network = read_component(*network);
  if (const auto collectives = config.find("collectives")) study.collectives = read_collectives(*collectives);
  config.reject_unknown_keys();
  validate_plan(study.plan, origin.where());
  const auto ranks = plan ? plan->find("ranks") : std::nullopt;
  study.machine =
      with_ranks(machine, study.plan.ranks, machine.elastic, ranks ? ranks->where() : origin.where());
  return study;
}

}  // namespace armilla
