// Study: everything a user asks for in one run, as read from the command line or a study file; and Run: a
// study with what came of it, which is what the writers show.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/registry.h"
#include "ir/collective.h"
#include "ir/derived/goodput.h"
#include "ir/graph.h"
#include "ir/machine.h"
#include "ir/memory.h"
#include "ir/model.h"
#include "ir/plan.h"
#include "ir/profile.h"
#include "ir/result.h"
#include "ir/what_if.h"

namespace armilla {

struct ModelSource {
  std::string name;                                // a zoo name or a path
  std::string text;                                // a description in YAML, instead of what `name` stands for
  std::map<std::string, std::int64_t> dimensions;  // values of symbolic dimensions
  std::int64_t sequence = 0;                       // tokens per sample; 0: the model's own
  std::int64_t layers = 0;                         // of a model by description; 0: the model's own
  std::int64_t lora_rank = 0;                      // likewise: of adapters, the rest being frozen; 0: none
};

// What the whole training reads: one of the two, or neither (ir/derived/training.h).
struct TrainingGoal {
  double tokens = 0, samples = 0;
  std::string where;
};

struct Study {
  ModelSource model;
  Machine machine;  // as given; once prepared (study/run.h) cut or grown to plan.ranks
  PlanRequest request;
  Plan plan;  // the request, resolved
  ComponentChoice compute = {"kernels", {}, {}};
  ComponentChoice network = {"analytical", {}, {}};
  CollectiveOptions collectives;
  WhatIf what_if;
  TrainingGoal training;
  Profile profile;  // of a database only its name, until the study is prepared
};

// One of several jobs that shared the machine.
struct JobOutcome {
  std::string name, model;
  std::string devices;  // "0-63"
  std::int64_t ranks = 0;
  Time start;
  Time alone;   // its iteration on the same devices without the others
  Time shared;  // and with them
};

// Where the times of kernels come from, as shares of the computing time of all ranks: measured (by a
// profile), interpolated between measured neighbours, or the compute model's. They add up to 1, or are all 0.
struct ComputeShares {
  double measured = 0, interpolated = 0, modelled = 0;
  double extrapolated = 0;  // of all, among those modelled: outside the range that the model was fitted in
};

// The set of published measurements (docs/accuracy.md) that is most like a run, and how far off predictions
// of it are. Errors are shares: 0.05 is 5 %.
struct LikeMeasured {
  std::string set;
  std::int64_t rows = 0;
  double mape = 0, bias = 0, p90 = 0;
  std::vector<std::string> differences;  // of the run from the set: what makes the figures less than certain
};

struct Run {
  Study study;
  // The trace prefix or the text workload of a run without a model: memory and, but for its ranks, the plan
  // say nothing then. Empty: a model was simulated.
  std::string workload;
  Model model;  // for the samples of one micro-batch of one rank
  Graph graph;
  MemoryUse memory;               // of the role that needs most
  std::vector<RoleMemory> roles;  // of every program of a model
  // Of a device's matrix arithmetic under the compute model, at the plan's precision; the mean over all
  // ranks.
  FlopRate peak_rate;
  ComputeShares shares;
  std::optional<LikeMeasured> like;  // nothing measured is on such a device
  Result result;
  std::int64_t iterations = 1;  // simulated in a row: several where nothing separates them (pipedream-2bw)
  Time simulated;  // time of all of them, where there are several: the result is one of the steady state
  std::optional<Time> ideal;          // the iteration without `what_if`, where that changes the simulation
  std::optional<Goodput> goodput;     // where failures are given
  std::vector<JobOutcome> jobs;       // of a run of several (study/run.h)
  std::vector<std::string> notes;     // choices made for the user
  std::vector<std::string> warnings;  // what the user should not overlook
};

inline bool has_model(const Run& run) {
  return run.workload.empty();
}
inline const std::string& workload_name(const Run& run) {
  return has_model(run) ? run.model.name : run.workload;
}

}  // namespace armilla
