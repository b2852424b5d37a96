// A pass of a block (lower/sharded_model.h) made ready to be appended to programs many times: names, works,
// collectives and messages are looked up once, dependences are reduced to those that matter.
//
// A rank's computations form one chain (lower/pipeline/stage_program.h), so a step waits for communications
// and, when it is a communication, for the latest of the computations it needs. Steps that a filter leaves
// out (weight gradients under zero-bubble schedules, collectives of one rank) hand on what they waited for.
// Collectives of one group family must be issued in the same order by all its members whatever the timing, so
// one whose turn depends on another communication is waited for by the next of its family, as one NCCL
// communicator does. Under an eager PyTorch those of tensor parallelism begin behind the computation before
// them (lower/plan/idle_overlap.h).
// Cost: O(steps + dependences) per template.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "ir/graph.h"
#include "ir/plan.h"
#include "lower/data/job_tables.h"
#include "lower/sharded_model.h"

namespace armilla {

inline constexpr std::uint32_t kNoFamily = UINT32_MAX;

struct TemplateStep {
  NodeKind kind = NodeKind::compute;
  Phase phase = Phase::forward;
  bool enters = false;  // waits for whatever the pass as a whole waits for
  bool along = false;   // as PassStep::along
  std::uint32_t name = 0;
  std::int32_t issues = 1;  // of a computation, as Work::issues
  std::uint64_t payload = 0;
  std::uint32_t family = kNoFamily;                // of a collective
  std::uint32_t first_wait = 0, end_of_waits = 0;  // into PassTemplate::waits
};

struct PassTemplate {
  std::vector<TemplateStep> steps;
  std::vector<std::uint32_t> waits;  // steps of the pass
  std::vector<std::uint32_t> ends;   // communications that no step waits for

  std::size_t issues() const {
    std::size_t sum = 0;
    for (const TemplateStep& step : steps) sum += static_cast<std::size_t>(step.issues);
    return sum;
  }
};

enum class PassPart : std::uint8_t { whole, without_weight_gradients, weight_gradients };

// Which of a block's passes this is; messages of different passes must not be taken for each other.
enum class PassRole : std::uint8_t { forward, recompute, backward };

PassTemplate make_template(const ShardedModel& model, const Pass& pass, PassRole role, PassPart part,
                           const Plan& plan, JobTables& tables);

// The passes of a block shape, ready to be appended.
struct BlockTemplates {
  PassTemplate forward, recompute, backward, input_gradients, weight_gradients;
};

// Templates of the shapes in use, per shape of one ShardedModel.
class TemplateCache {
 public:
  TemplateCache(const ShardedModel& model, const Plan& plan, JobTables& tables)
      : model_(model), plan_(plan), tables_(tables) {}
  const BlockTemplates& of(std::uint32_t shape);

 private:
  const ShardedModel& model_;
  const Plan& plan_;
  JobTables& tables_;
  std::map<std::uint32_t, BlockTemplates> templates_;
};

}  // namespace armilla
