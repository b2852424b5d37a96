#include "lower/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "base/nearest_divisor.h"
#include "base/units_text.h"
#include "lower/pipeline_schedule.h"
#include "lower/shard/expert_load.h"

namespace armilla {
namespace {

using Count = std::optional<std::int64_t>;

constexpr std::int64_t kMostSamples = std::int64_t{1} << 40;
// Enough to fill a pipeline: with 4 micro-batches per stage 1F1B idles for less than a fifth of its time.
constexpr std::int64_t kMicroBatchesPerStage = 4;

void require_positive(const Count& count, std::string_view name, const std::string& where) {
  if (count && *count < 1)
    throw Error(where, fmt::format("{} {}", name, *count), "it must be at least 1", {std::string(name)});
  if (count && *count > kMostSamples)
    throw Error(where, fmt::format("{} {}", name, *count), fmt::format("it can be at most {}", kMostSamples),
                {std::string(name)});
}

// Degrees and ranks: derives at most one degree, and the ranks where they are not said.
class DegreesOfPlan {
 public:
  DegreesOfPlan(const PlanRequest& request, std::int64_t devices, bool elastic, std::int64_t group)
      : where_(request.where),
        ranks_where_(request.ranks_where.empty() ? request.where : request.ranks_where),
        devices_(devices),
        elastic_(elastic),
        group_(group),
        ranks_(request.ranks),
        tensor_(request.tensor),
        context_(request.context),
        data_(request.data),
        pipeline_(request.pipeline) {
    require_positive(ranks_, "plan.ranks", ranks_where_);
    if (ranks_ && *ranks_ > kMostRanks) {
      throw Error(ranks_where_, fmt::format("plan.ranks {}", *ranks_),
                  fmt::format("a job can have at most {}", kMostRanks));
    }
    require_positive(tensor_, "plan.tensor", where_);
    require_positive(context_, "plan.context", where_);
    require_positive(data_, "plan.data", where_);
    require_positive(pipeline_, "plan.pipeline", where_);
  }

  void resolve(Plan& plan) {
    // Three cases: everything but one model degree is given; data parallelism alone decides the ranks; or it
    // is what the ranks, given or the machine's, leave over.
    if (data_ && ranks_) {
      derive_missing();
    } else if (data_) {
      ranks_ = product();
    } else {
      derive_data();
    }
    check_product();
    if (!elastic_ && *ranks_ > devices_) {
      throw Error(
          ranks_where_,
          fmt::format("the plan has {}, the machine {}", ranks_text(), typed_count(devices_, "device")),
          "give smaller degrees or a larger machine");
    }
    plan.ranks = *ranks_;
    plan.tensor = tensor_.value_or(1);
    plan.context = context_.value_or(1);
    plan.pipeline = pipeline_.value_or(1);
  }

 private:
  std::int64_t model_product() const {
    return bounded_product({tensor_.value_or(1), context_.value_or(1), pipeline_.value_or(1)});
  }
  std::int64_t product() const { return bounded_product({model_product(), data_.value_or(1)}); }

  std::int64_t bounded_product(std::initializer_list<std::int64_t> factors) const {
    std::int64_t result = 1;
    // Divided first, so that the product itself cannot overflow.
    for (const std::int64_t factor : factors) {
      if (factor > kMostRanks / result) {
        throw Error(where_, fmt::format("{} is more than {} ranks", degrees(), kMostRanks),
                    "give smaller degrees", keys_of_degrees());
      }
      result *= factor;
    }
    return result;
  }

  std::vector<std::pair<std::string_view, std::int64_t>> given_degrees() const {
    std::vector<std::pair<std::string_view, std::int64_t>> given;
    if (tensor_) given.emplace_back("plan.tensor", *tensor_);
    if (context_) given.emplace_back("plan.context", *context_);
    if (data_) given.emplace_back("plan.data", *data_);
    if (pipeline_) given.emplace_back("plan.pipeline", *pipeline_);
    return given;
  }

  std::vector<std::string> keys_of_degrees() const {
    std::vector<std::string> keys;
    for (const auto& [name, degree] : given_degrees()) keys.emplace_back(name);
    return keys;
  }

  std::string degrees() const {
    std::string text;
    for (const auto& [name, degree] : given_degrees())
      text += fmt::format("{}{} {}", text.empty() ? "" : " x ", name, degree);
    return text;
  }

  // Digits as they are typed.
  std::string ranks_text() const { return typed_count(*ranks_, "rank"); }

  // "plan.tensor 6 x plan.pipeline 2 = 12"; a single degree is its own product.
  std::string degrees_and(std::int64_t product) const {
    return given_degrees().size() < 2 ? degrees() : fmt::format("{} = {}", degrees(), product);
  }

  // The hint: other ranks, or another value of the one degree that stands in the way.
  [[noreturn]] void refuse_product(std::int64_t product, const std::string& where,
                                   const std::string& message) const {
    const std::int64_t unit = *ranks_ > group_ ? std::lcm(product, group_) : product;
    std::string hint = fmt::format("plan.ranks could be {}", nearest_multiples(unit, *ranks_));
    std::vector<std::string> keys = keys_of_degrees();
    // Degrees would not help where the ranks themselves do not fill nodes.
    const bool fills_nodes = *ranks_ <= group_ || *ranks_ % group_ == 0;
    for (const auto& [name, degree] : given_degrees()) {
      const std::int64_t others = product / degree;
      if (!fills_nodes || *ranks_ % others != 0) continue;
      hint += fmt::format(", or {} {}", name, nearest_divisors(*ranks_ / others, degree));
      keys.insert(keys.begin(), std::string(name));
      break;
    }
    throw Error(where, message, hint, keys);
  }

  void derive_missing() {
    const std::int64_t known = product();
    if (*ranks_ % known != 0) {
      refuse_product(known, where_, fmt::format("{} does not divide {}", degrees_and(known), ranks_text()));
    }
    const std::int64_t rest = *ranks_ / known;
    if (rest == 1) return;
    // How the rest is divided between two open degrees would be a guess.
    if (!pipeline_ && !tensor_) {
      std::vector<std::string> keys = keys_of_degrees();
      keys.insert(keys.end(), {"plan.tensor", "plan.pipeline"});
      throw Error(where_,
                  fmt::format("{} of {} leaves {} for plan.tensor and plan.pipeline together", degrees(),
                              ranks_text(), rest),
                  "give one of the two", keys);
    }
    if (!pipeline_) {
      pipeline_ = rest;
    } else if (!tensor_) {
      tensor_ = rest;
    } else if (!context_) {
      context_ = rest;
    }
  }

  // Where nothing says how many ranks there are, an elastic machine grows to hold at least one replica.
  void derive_data() {
    const std::int64_t model = model_product();
    const bool given = ranks_.has_value();
    if (!given) ranks_ = elastic_ ? std::max(devices_, model) : devices_;
    if (*ranks_ % model != 0) {
      refuse_product(model, given ? ranks_where_ : where_,
                     fmt::format("{} does not divide {}", degrees_and(model),
                                 given ? ranks_text() : fmt::format("{}, the machine's devices", *ranks_)));
    }
    data_ = *ranks_ / model;
  }

  void check_product() const {
    const std::int64_t known = product();
    if (known == *ranks_) return;
    const std::int64_t model = model_product();
    std::string hint = fmt::format("plan.ranks could be {}", known);
    std::vector<std::string> keys = keys_of_degrees();
    if (*ranks_ % model == 0) {
      hint += fmt::format(", or plan.data {}", *ranks_ / model);
      keys.insert(keys.begin(), "plan.data");
    }
    throw Error(where_,
                fmt::format("{} = {}, but plan.ranks is {}", degrees(), typed_count(known, "rank"), *ranks_),
                hint, keys);
  }

  const std::string& where_;
  const std::string& ranks_where_;
  std::int64_t devices_;
  bool elastic_;
  std::int64_t group_;
  Count ranks_, tensor_, context_, data_, pipeline_;
};

// Samples of a replica from the global batch.
std::int64_t share_of_global(std::int64_t global, const Plan& plan, const std::string& where) {
  const std::int64_t replicas = plan.data();
  if (global % replicas == 0) return global / replicas;
  if (plan.is_plain_data_parallel()) {
    throw Error(where,
                fmt::format("plan.global_batch {} cannot be shared equally by {} ranks", global, replicas),
                fmt::format("plan.global_batch could be {}", nearest_multiples(replicas, global)),
                {"plan.global_batch", "plan.data"});
  }
  throw Error(where,
              fmt::format("plan.global_batch {} cannot be shared equally by plan.data {}", global, replicas),
              fmt::format("plan.global_batch could be {}", nearest_multiples(replicas, global)),
              {"plan.global_batch", "plan.data"});
}

// ZeRO without anybody to share states with is none: settings_without_effect says so. (What is no legal plan
// is left to be refused.)
void drop_idle_sharding(Plan& plan) {
  const bool alone = plan.data() * plan.context == 1 &&
                     (plan.expert < 1 || plan.experts_tensor() < 1 || plan.expert_data() <= 1);
  if (!alone || plan.zero_stage < 1 || plan.zero_stage > 3 || plan.hybrid_shard < 0 || plan.hybrid_shard > 1)
    return;
  // FSDP of one replica updates weights and holds gradients in its own way all the same.
  if (plan.framework == Framework::pytorch && plan.zero_stage > 1) return;
  plan.zero_stage = 0;
  plan.hybrid_shard = 0;
}

// Micro-batches where nothing is said of them: one pass, or enough to fill a pipeline.
std::int64_t usual_micro_batches(const Plan& plan, const std::string& where) {
  return plan.pipeline == 1 ? 1 : checked_multiply(kMicroBatchesPerStage, plan.pipeline, where);
}

// What the batch of a replica is where only its parts are said, or nothing.
std::int64_t default_batch(const PlanRequest& request, const Plan& plan, bool described,
                           const std::string& where) {
  const Count &size = request.micro_batch, &count = request.micro_batches;
  // Models by description have a batch of the plan's own making; a graph comes with the batch it was read
  // for, which is kept, rounded up to whole micro-batches.
  if (size || described)
    return checked_multiply(size.value_or(1), count.value_or(usual_micro_batches(plan, where)), where);
  if (!count) return plan.batch;
  return checked_multiply(ceil_divide(plan.batch, *count), *count, where);
}

bool is_schedulable_in(Plan plan, std::int64_t micro_batches) {
  plan.micro_batches = micro_batches;
  return is_schedulable(plan, 1);
}

// Whether there are numbers of micro-batches that the schedule can use: its chunks and degrees are legal.
bool has_schedule(Plan plan, const std::string& where) {
  plan.micro_batches = micro_batch_rule(plan).least;
  try {
    schedule_of(plan).check(plan, where);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// The most micro-batches that divide a batch that is said, up to the usual number, and that the schedule,
// whose chunks and degrees are legal, can use; 0: none.
std::int64_t scheduled_micro_batches(const Plan& plan, const std::string& where) {
  const std::int64_t most = std::min(plan.batch, usual_micro_batches(plan, where));
  const MicroBatchRule rule = micro_batch_rule(plan);
  for (std::int64_t count = most / rule.unit * rule.unit; count >= rule.least; count -= rule.unit) {
    if (plan.batch % count == 0 && is_schedulable_in(plan, count)) return count;
  }
  return 0;
}

// Of a batch that is said: the most that divide it, up to the usual number; if possible such that the
// schedule can use them.
std::int64_t derived_micro_batches(const Plan& plan, const std::string& where) {
  if (has_schedule(plan, where)) {
    if (const std::int64_t count = scheduled_micro_batches(plan, where); count > 0) return count;
  }
  std::int64_t count = std::min(plan.batch, usual_micro_batches(plan, where));
  while (plan.batch % count != 0) --count;
  return count;
}

void resolve_batch(const PlanRequest& request, bool described, Plan& plan) {
  const std::string& where = request.where;
  require_positive(request.batch, "plan.batch", where);
  require_positive(request.global_batch, "plan.global_batch", where);
  require_positive(request.micro_batch, "plan.micro_batch", where);
  require_positive(request.micro_batches, "plan.micro_batches", where);
  Count batch = request.batch;
  // The batch of all replicas and that of one are two ways to say the same; given both, they have to agree.
  if (request.global_batch) {
    const std::int64_t share = share_of_global(*request.global_batch, plan, where);
    if (batch && *batch != share) {
      throw Error(where,
                  fmt::format("plan.global_batch {} is {} for each of {} replicas, but plan.batch is {}",
                              *request.global_batch, share, plan.data(), *batch),
                  "give one: of all ranks, or of one", {"plan.global_batch", "plan.batch"});
    }
    batch = share;
  }
  plan.batch = batch ? *batch : default_batch(request, plan, described, where);
  const Count &size = request.micro_batch, &count = request.micro_batches;
  // Micro-batch, their number and the batch: any two decide the third, all three have to agree.
  if (size && plan.batch % *size != 0) {
    throw Error(
        where,
        fmt::format("plan.micro_batch {} does not divide the batch of {} per replica", *size, plan.batch),
        fmt::format("plan.micro_batch could be {}", nearest_divisors(plan.batch, *size)),
        {"plan.micro_batch"});
  }
  if (count && plan.batch % *count != 0) {
    throw Error(
        where,
        fmt::format("plan.micro_batches {} does not divide the batch of {} per replica", *count, plan.batch),
        fmt::format("plan.micro_batches could be {}", nearest_divisors(plan.batch, *count)),
        micro_batch_keys());
  }
  if (size && count && plan.batch / *size != *count) {
    throw Error(where,
                fmt::format("plan.micro_batch {} x plan.micro_batches {} is not the batch of {} per replica",
                            *size, *count, plan.batch),
                fmt::format("leave one out: plan.micro_batches {} or plan.micro_batch {}", plan.batch / *size,
                            plan.batch / *count),
                micro_batch_keys());
  }
  if (count) {
    plan.micro_batches = *count;
  } else {
    plan.micro_batches = size ? plan.batch / *size : derived_micro_batches(plan, where);
  }
}

void resolve_types(const PlanRequest& request, bool described, Plan& plan) {
  plan.precision = request.precision.value_or(DType::unknown);
  if (plan.precision == DType::unknown) plan.precision = described ? DType::bf16 : DType::fp32;
  // fp8 and fp4 are types of products only: weights are kept in bf16, as Transformer Engine does; tf32 is a
  // way to multiply fp32 numbers.
  const bool narrow = plan.precision == DType::fp8 || plan.precision == DType::fp4;
  if (plan.weight_dtype == DType::unknown) {
    plan.weight_dtype = plan.precision;
    if (narrow) plan.weight_dtype = DType::bf16;
    if (plan.precision == DType::tf32) plan.weight_dtype = DType::fp32;
    // Autocast computes in another type than it keeps and exchanges.
    const bool autocast = !described && plan.is_plain_data_parallel();
    if (autocast && bits_of(plan.precision) < bits_of(DType::fp32)) plan.weight_dtype = DType::fp32;
  }
  if (plan.gradient_dtype == DType::unknown) {
    // Megatron-LM accumulates and reduces gradients of bf16 weights in fp32
    // (accumulate_allreduce_grads_in_fp32). Autograd's gradients have the type of their parameters, which are
    // narrow where the optimizer has no master copy of them.
    const bool narrow_parameters =
        plan.framework == Framework::pytorch && bits_of(plan.state_dtype) < bits_of(DType::fp32);
    const bool accumulates = described && (narrow || plan.precision == DType::bf16) && !narrow_parameters;
    plan.gradient_dtype = accumulates ? DType::fp32 : plan.weight_dtype;
  }
  if (plan.parameter_dtype == DType::unknown) plan.parameter_dtype = plan.weight_dtype;
  plan.optimizer = request.optimizer.value_or(described ? Optimizer::adam : Optimizer::momentum);
}

struct Advice {
  std::string hint;  // empty: none
  std::string key;   // that it changes
};

// Of a batch that was given, micro-batches must divide it as well as suit the schedule.
Advice micro_batches_advice(const PlanRequest& request, const Plan& plan, const std::string& where) {
  // The nearest numbers on either side that divide the batch and suit the schedule; if there are none, a
  // larger batch near the given one.
  if (!has_schedule(plan, where)) return {};
  const MicroBatchRule rule = micro_batch_rule(plan);
  const std::int64_t most =
      std::min(plan.batch, 2 * kMicroBatchesPerStage * plan.pipeline + plan.micro_batches);
  std::int64_t below = 0, above = 0;
  for (std::int64_t count = ceil_divide(rule.least, rule.unit) * rule.unit; count <= most;
       count += rule.unit) {
    if (plan.batch % count != 0 || !is_schedulable_in(plan, count)) continue;
    if (count <= plan.micro_batches) below = count;
    if (count >= plan.micro_batches && above == 0) above = count;
  }
  if (below > 0 || above > 0) {
    return {below > 0 && above > below
                ? fmt::format("plan.micro_batches could be {} or {}", below, above)
                : fmt::format("plan.micro_batches could be {}", std::max(below, above)),
            "plan.micro_batches"};
  }
  Plan larger = plan;
  for (larger.batch = plan.batch + 1; larger.batch <= plan.batch + 2 * plan.pipeline; ++larger.batch) {
    if (scheduled_micro_batches(larger, where) == 0) continue;
    if (request.global_batch)
      return {fmt::format("plan.global_batch could be {}", larger.batch * plan.data()), "plan.global_batch"};
    return {fmt::format("plan.batch could be {}", larger.batch), "plan.batch"};
  }
  return {};
}

void check_schedule_of(const PlanRequest& request, const Plan& plan, const std::string& where) {
  try {
    check_schedule(plan, 1, where);
  } catch (const Error& error) {
    // The schedule's own hint knows nothing of the batch: its next legal number of micro-batches may not
    // divide it.
    const std::size_t counts = error.hint.find("plan.micro_batches could be");
    if (counts == std::string::npos || !(request.batch || request.global_batch)) throw;
    const Advice advice = micro_batches_advice(request, plan, where);
    if (advice.hint.empty()) throw;
    std::vector<std::string> keys = error.keys;
    keys.insert(keys.begin(), advice.key);
    throw Error(error.where, error.message, error.hint.substr(0, counts) + advice.hint, keys);
  }
}

// Chunks take turns on the ranks of a pipeline. That one rank alone could have several, too, is no plan that
// anybody runs: frameworks refuse it.
void refuse_chunks_of_one_rank(const Plan& plan, const std::string& where) {
  if (plan.pipeline > 1 || !schedule_of(plan).in_groups) return;
  const bool needs_several =
      std::ranges::find(pipeline_schedules(), std::string_view(plan.schedule),
                        &PipelineScheduleInfo::over_chunks) != pipeline_schedules().end();
  if (plan.virtual_stages == 1 && !needs_several) return;
  std::vector<std::string> keys = {"plan.virtual_stages", "plan.pipeline"};
  if (plan.virtual_stages == 1) keys.emplace_back("plan.schedule");
  throw Error(where,
              plan.virtual_stages == 1
                  ? fmt::format("plan.schedule {} with plan.pipeline 1", plan.schedule)
                  : fmt::format("plan.virtual_stages {} with plan.pipeline 1", plan.virtual_stages),
              "chunks of the model take turns on the ranks of a pipeline: plan.virtual_stages 1 and "
              "plan.schedule 1f1b, or plan.pipeline 2 or more",
              keys);
}

Plan resolve(const PlanRequest& request, std::int64_t devices, bool elastic, bool described,
             std::int64_t group) {
  Plan plan = request.plan;
  const std::string& where = request.where;
  const PipelineScheduleInfo& schedule =
      find_component("schedule", pipeline_schedules(), plan.schedule, place_of(request, {"plan.schedule"}));
  DegreesOfPlan(request, devices, elastic, group).resolve(plan);
  // 1 is what a plan without the key has; some schedules need more chunks.
  if (plan.virtual_stages == 1) plan.virtual_stages = schedule.usual_chunks;
  // 1F1B over several chunks per rank is the interleaved schedule (Narayanan et al. 2021).
  if (plan.virtual_stages > 1 && !schedule.over_chunks.empty()) plan.schedule = schedule.over_chunks;
  refuse_chunks_of_one_rank(plan, where);
  drop_idle_sharding(plan);
  // Degrees first: what follows divides by them.
  plan.batch = plan.micro_batches = 1;
  resolve_types(request, described, plan);
  if (plan.expert_skew == 0 && !request.places.contains("expert_skew"))
    plan.expert_skew = default_skew(plan.expert_load);
  validate_plan(plan, where);
  plan.batch = request.plan.batch;
  resolve_batch(request, described, plan);
  validate_plan(plan, where);
  check_schedule_of(request, plan, where);
  return plan;
}

}  // namespace

std::string place_of(const PlanRequest& request, const std::vector<std::string>& keys) {
  constexpr std::string_view kPrefix = "plan.";
  // Keys of an error are in order of what to change first; the first that the user gave says where.
  for (const std::string_view key : keys) {
    if (!key.starts_with(kPrefix)) continue;
    const auto place = request.places.find(key.substr(kPrefix.size()));
    if (place != request.places.end()) return place->second;
  }
  // Of a plan that is made of flags alone, the first flag says nothing.
  const bool is_flag = request.where.empty() || request.where.starts_with("--");
  return is_flag ? std::string(kWholePlan) : request.where;
}

Plan resolve_plan(const PlanRequest& request, std::int64_t devices, bool elastic, bool described,
                  std::int64_t group) {
  return with_places(request, [&] { return resolve(request, devices, elastic, described, group); });
}

void settle_recompute(const PlanRequest& request, const ModelFacts& facts, Plan& plan) {
  if (plan.recompute != Recompute::selective || facts.heads > 0) return;
  if (plan.recompute_modules != Parts{Part::core_attn}) return;
  plan.recompute = Recompute::none;
  plan.weight_dtype = request.plan.weight_dtype;
  plan.gradient_dtype = request.plan.gradient_dtype;
  plan.parameter_dtype = request.plan.parameter_dtype;
  resolve_types(request, !facts.family.empty(), plan);
}

void settle_host(Plan& plan, const Device& device) {
  if (plan.host == Host::automatic)
    plan.host = device.issue_time > Time(0) || plan.issue_time ? Host::eager : Host::compiled;
  if (plan.host == Host::eager && !plan.issue_time)
    plan.issue_time = device.issue_time > Time(0) ? device.issue_time : kEagerIssue;
}

}  // namespace armilla
