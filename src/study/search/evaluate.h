// What is known of a plan before it is simulated, and its simulation. What plans have in common is made once: models by
// micro-batch, divided models by what divides them, orders of micro-batches by schedule.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "cost/cost.h"
#include "ir/search.h"
#include "ir/study.h"
#include "lower/hybrid.h"
#include "lower/sharded_model.h"

namespace armilla {

// A legal plan.
struct PlanPrepared {
  Study study;  // prepared: the machine cut to the ranks, the plan resolved
  std::shared_ptr<const Model> model;
  std::shared_ptr<const ShardedModel> sharded;  // nothing where experts are loaded unevenly
  MemoryUse memory;                             // of the rank that needs most
  Time bound;                                   // on the iteration
};

class PlanEvaluator {
 public:
  explicit PlanEvaluator(const Study& base);
  ~PlanEvaluator();
  PlanEvaluator(const PlanEvaluator&) = delete;
  PlanEvaluator& operator=(const PlanEvaluator&) = delete;

  // Throws Error for a plan that is not legal. From any thread.
  PlanPrepared prepare(const PlanRequest& request);
  // Iteration and how it divides; from any thread. Throws Error for what only the simulation refuses.
  PlanOutcome simulate(const PlanPrepared& plan) const;

 private:
  std::shared_ptr<const Model> model_of(const Plan& plan);
  std::shared_ptr<const ShardedModel> sharded_of(const Plan& plan, const Model& model);
  std::shared_ptr<const PipelineOrder> order_of(const Plan& plan);

  const Study& base_;
  std::unique_ptr<CostModel> cost_;
  std::mutex mutex_;                                             // of the tables below
  std::map<std::int64_t, std::shared_ptr<const Model>> models_;  // by micro-batch
  std::map<std::string, std::shared_ptr<const ShardedModel>> sharded_;
  std::map<std::string, std::shared_ptr<const PipelineOrder>> orders_;
};

// Everything that tells plans apart, without what has no effect at degrees of 1: equal for plans that run alike.
std::string text_of(const Plan& plan);

}  // namespace armilla
