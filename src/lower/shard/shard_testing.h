// For tests of sharded models: a zoo model under a plan, and its passes as lines of text.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lower/sharded_model.h"
#include "read/read.h"

namespace armilla {

inline Model zoo_model(const std::string& name, std::int64_t batch = 1) {
  ModelOptions options;
  options.batch = batch;
  Model model = read_model(name, options);
  annotate_parallelism(model);
  return model;
}

// With `data` replicas; in bf16.
inline Plan plan_of(std::int64_t tensor, std::int64_t context = 1, std::int64_t data = 1) {
  Plan plan;
  plan.batch = 1;
  plan.precision = DType::bf16;
  plan.tensor = tensor;
  plan.context = context;
  plan.ranks = tensor * context * data;
  return plan;
}

inline const BlockShape& shape_named(const ShardedModel& model, const std::string& block) {
  const auto found = std::find_if(model.blocks.begin(), model.blocks.end(),
                                  [&](const ShardedBlock& known) { return known.name == block; });
  return model.shapes.at(found == model.blocks.end() ? SIZE_MAX : found->shape);
}

// "attention.qkv: all-gather tensor 1024", messages as "send context 1024 +1".
inline std::vector<std::string> communication(const ShardedModel& model, const Pass& pass) {
  std::vector<std::string> lines;
  for (const PassStep& step : pass.steps) {
    if (step.kind == NodeKind::collective) {
      lines.push_back(fmt::format("{} {} {}", model.names[step.name], name_of(step.axis), step.bytes.value));
    } else if (step.kind != NodeKind::compute) {
      lines.push_back(fmt::format("{} {} {} {:+}", step.kind == NodeKind::send ? "send" : "receive",
                                  name_of(step.axis), step.bytes.value, step.shift));
    }
  }
  return lines;
}

inline Flops arithmetic(const ShardedModel& model, const Pass& pass) {
  Flops sum;
  for (const PassStep& step : pass.steps) {
    if (step.kind == NodeKind::compute) sum += model.works[step.work].flops;
  }
  return sum;
}

}  // namespace armilla
