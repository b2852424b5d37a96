#include "study/search/evaluate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <set>
#include <span>

#include "base/error.h"
#include "ir/derived/expense.h"
#include "ir/derived/metrics.h"
#include "ir/issued.h"
#include "lower/expert_exchange.h"
#include "lower/memory.h"
#include "lower/pipeline_schedule.h"
#include "lower/plan.h"
#include "read/read.h"
#include "sim/simulate.h"
#include "sim/undisturbed.h"
#include "study/run.h"
#include "study/run/attained_links.h"
#include "study/run/balance_stages.h"
#include "study/run/prepare.h"

namespace armilla {
namespace {

constexpr const char* kWhere = "plan";

// Whether one division of the model and the usual device say all of it.
bool is_uniform(const Plan& plan, const Machine& machine) {
  return !is_uneven(plan) && machine.others.empty();
}

// The pipeline's order depends on nothing else of a plan.
std::string order_key(const Plan& plan) {
  return fmt::format("{} {} {} {}", plan.schedule, plan.pipeline, plan.virtual_stages, plan.micro_batches);
}

// What decides which ranks are in the groups of a slot: those of the innermost axis are the same whatever
// lies further out, but where the job's size shapes the machine.
std::string place_of_slot(const PlanPrepared& made, bool is_shaped) {
  const Plan& plan = made.plan;
  const bool is_innermost = plan.order.front() == Axis::tensor && plan.context == 1 && plan.expert == 1;
  const std::string place = is_innermost ? fmt::format("tensor {}", plan.tensor) : place_of_ranks(plan);
  return is_shaped ? fmt::format("{} of {}", place, plan.ranks) : place;
}

std::set<std::string> names_of_families(const Graph& slot) {
  std::set<std::string> names;
  for (const Issued& program : issued_by(slot)) {
    for (const IssuedItem& item : program.items) {
      if (item.kind == NodeKind::collective)
        names.insert(slot.families[slot.collectives[item.payload].family].name);
    }
  }
  return names;
}

// Of a block. Of more, as where calls are checked and an operator takes the host next to nothing, nodes are
// played.
constexpr std::int64_t kMostParts = 1 << 14;

// What a host issues of the block's program, and, where every node waits for the one before it, how long each
// issue's took: they then take as long whenever they are done.
void time_chain(const Graph& graph, const RankClass& ranks, SlotTime& time) {
  const Program& program = graph.programs.front();
  std::vector<Time> times(program.size(), Time(-1));
  for (const std::vector<Interval>* const intervals : {&ranks.computes, &ranks.collectives}) {
    for (const Interval& interval : *intervals) times[interval.node] = interval.end - interval.start;
  }
  bool is_chain = true;
  std::size_t behind = 0;
  for (std::uint32_t node = 0; node < program.size(); ++node) {
    const std::int64_t issues = host_issues(graph, program, node);
    const std::int64_t begin = time.issues + host_issues_to_begin(graph, program, node);
    time.issues += issues;
    const std::span<const std::uint32_t> waits = program.dependences(node);
    is_chain = is_chain && times[node] >= Time(0) && (issues > 0 || program.lane[node] == Lane::device) &&
               (node == 0 || (program.lane[node] == Lane::device && program.lane[node - 1] == Lane::device) ||
                std::ranges::find(waits, node - 1) != waits.end());
    // What takes the host longer before it may begin is begun by the last of these issues; what goes along
    // with the node before is begun by the same.
    is_chain = is_chain && begin > 0 && time.issues <= kMostParts;
    if (!is_chain) continue;
    time.parts.resize(static_cast<std::size_t>(begin));
    time.parts.back() += times[node];
    behind = program.lane[node] == Lane::device ? time.parts.size() : behind;
  }
  time.parts_behind = time.parts.size() - behind;
  // The delay up to the last computation would stand for nothing. What the host needs behind the last node
  // is not waited for by what ends the block.
  if (is_chain && behind > 0 && std::ssize(time.parts) == time.issues) return;
  time.parts.clear();
  time.parts_behind = 0;
}

SimulationOptions of_times_alone() {
  SimulationOptions options;
  options.intervals = false;
  options.collectives = false;
  return options;
}

// The slot that stands for another in the order of all micro-batches, as a loop does its slots again: that
// one, and how many nodes behind its own are the other's.
struct WrittenSlot {
  std::size_t slot = 0;
  std::uint32_t behind = 0;
};
WrittenSlot written_slot(const Program& nodes, const std::vector<NodeRange>& written, std::size_t slot) {
  WrittenSlot stands{slot, 0};
  // What a loop does again stands behind it.
  for (const Loop& loop : nodes.loops) {
    const auto behind = [&](std::uint32_t node) {
      return static_cast<std::size_t>(std::ranges::upper_bound(written, node, {}, &NodeRange::end) -
                                      written.begin());
    };
    const std::size_t end = behind(loop.end), round = end - behind(loop.end - loop.period);
    if (stands.slot < end) break;
    const std::uint32_t again =
        std::min(loop.more, static_cast<std::uint32_t>((stands.slot - end) / round + 1));
    stands.slot -= again * round;
    stands.behind += again * loop.period;
  }
  return stands;
}

// The node with which a slot's passes end. In the nodes of a slot are also some of the exchange between
// replicas and of the optimizer.
std::optional<FusedSlotEnd> last_computation(const Program& nodes, const NodeRange& slot) {
  for (std::uint32_t node = slot.end; node-- > slot.first;) {
    const Phase phase = nodes.phase[node];
    if (nodes.kind[node] == NodeKind::compute &&
        (phase == Phase::forward || phase == Phase::input_gradient || phase == Phase::weight_gradient))
      return FusedSlotEnd{.node = node};
  }
  return std::nullopt;
}

// Whether one iteration of the divided model is all that a run of the plan plays. Schedules that do not flush
// need several, whose average counts.
bool is_one_iteration(const PlanPrepared& plan) {
  return plan.sharded && schedule_of(plan.plan).flushes && plan.setting->profile.file.empty();
}

// Of such a plan, node by node.
LoweredJob lower_nodes(const PlanPrepared& plan) {
  return lower_sharded({*plan.sharded}, plan.plan, 1, plan.setting->machine.device.host_bandwidth,
                       Written::loops);
}

// Whether, besides, its slots are few enough for their order to be worth keeping.
bool knows_slot_bound(const PlanPrepared& plan) {
  constexpr std::int64_t kMostSlots = 1 << 18;
  return is_one_iteration(plan) &&
         plan.plan.micro_batches <= kMostSlots / 2 / (plan.plan.pipeline * plan.plan.virtual_stages);
}

}  // namespace

// The ends of slots of the pipeline, by program of the job: one for each pipeline rank.
struct PlanEvaluator::WatchedSlots {
  WatchedSlots(const LoweredJob& job, const LeastAhead& ahead, Time longest) {
    watch(job.graph, job.slot_nodes, ahead, longest, [&](std::size_t p, std::size_t slot) {
      return last_computation(job.graph.programs[p], job.slot_nodes[p][slot]);
    });
  }
  WatchedSlots(const FusedJob& job, const LeastAhead& ahead, Time longest) {
    watch(job.graph, job.slot_nodes, ahead, longest,
          [&](std::size_t p, std::size_t slot) -> std::optional<FusedSlotEnd> {
            const FusedSlotEnd& end = job.slot_ends[p][slot];
            const NodeRange& nodes = job.slot_nodes[p][slot];
            if (end.node < nodes.first || end.node >= nodes.end) return std::nullopt;
            return end;
          });
  }

  // What was seen before any gradient was exchanged.
  Beginning seen(const LeastAhead& ahead) const {
    Beginning beginning(ends.size());
    for (std::size_t p = 0; p < ends.size(); ++p) {
      SlotEnd& latest = beginning[p];
      for (std::size_t i = 0; i < ends[p].size(); ++i) {
        const Time end = ends[p][i].seen - slots_[p][i].behind;
        if (end > latest.end && end < ahead.first_exchange) latest = {slots_[p][i].slot, end};
      }
    }
    return beginning;
  }

  std::vector<std::vector<WatchedEnd>> ends;

 private:
  struct Slot {
    std::size_t slot = 0;
    Time behind;  // FusedSlotEnd
  };

  template <class End>
  void watch(const Graph& graph, const std::vector<std::vector<NodeRange>>& written, const LeastAhead& ahead,
             Time longest, const End& end_of) {
    for (std::size_t p = 0; p < graph.programs.size(); ++p) {
      const std::vector<Time>& least = ahead.after_slots[p];
      ends.emplace_back();
      slots_.emplace_back();
      for (std::size_t slot = 0; slot < least.size(); ++slot) {
        const WrittenSlot stands = written_slot(graph.programs[p], written[p], slot);
        const std::optional<FusedSlotEnd> end = end_of(p, stands.slot);
        if (!end) continue;
        const Time latest = later(std::max(Time(0), longest - least[slot]), end->behind);
        ends.back().push_back({.node = end->node + stands.behind, .latest = latest});
        slots_.back().push_back({slot, end->behind});
      }
    }
  }

  std::vector<std::vector<Slot>> slots_;
};

Study PlanPrepared::study() const {
  Study whole = *setting;
  whole.plan = plan;
  whole.request.balance_stages = false;  // they are, and the request may be another plan's
  return whole;
}

PlanEvaluator::PlanEvaluator(const Study& base)
    : base_(base),
      described_(is_described(base.model)),
      own_cost_(make_cost_model(base.compute, base.machine.device)),
      cost_(*own_cost_) {
  prepare_all_but_plan(base_);
}

PlanEvaluator::~PlanEvaluator() = default;

class PlanEvaluator::LentMemory {
 public:
  LentMemory(PlanEvaluator& evaluator, const PlanPrepared& plan) : evaluator_(evaluator) {
    {
      const std::lock_guard lock(evaluator_.mutex_);
      std::vector<KeptMemory>& idle = evaluator_.memories_[plan.setting.get()];
      if (!idle.empty()) {
        lent_ = std::move(idle.back());
        idle.pop_back();
      }
    }
    if (!lent_.memory) lent_ = {plan.setting, std::make_unique<RunMemory>(*plan.setting)};
  }
  ~LentMemory() {
    // What an Error has left half made is not kept.
    if (std::uncaught_exceptions() > exceptions_ && !was_late_) return;
    const std::lock_guard lock(evaluator_.mutex_);
    evaluator_.memories_[lent_.setting.get()].push_back(std::move(lent_));
  }
  LentMemory(const LentMemory&) = delete;
  LentMemory& operator=(const LentMemory&) = delete;
  RunMemory& memory() { return *lent_.memory; }
  // The run was called off, by no Error.
  void was_late() { was_late_ = true; }

 private:
  PlanEvaluator& evaluator_;
  KeptMemory lent_;
  int exceptions_ = std::uncaught_exceptions();
  bool was_late_ = false;
};

std::shared_ptr<const Study> PlanEvaluator::setting_of(const Plan& plan) {
  const std::int64_t block = base_.machine.largest_slice > 0 ? innermost_block(plan) : 1;
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const Study>& known = settings_[{plan.ranks, block}];
  if (known) return known;
  auto setting = std::make_shared<Study>(base_);
  fit_machine(*setting, plan.ranks, block);
  attain_links(*setting);
  known = std::move(setting);
  return known;
}

std::shared_ptr<const Model> PlanEvaluator::model_of(const Plan& plan) {
  const std::lock_guard lock(mutex_);
  // Refusals are kept, too: the next plan with this micro-batch would only meet the same one again.
  const std::int64_t micro_batch = plan.micro_batch();
  if (const auto refused = refused_models_.find(micro_batch); refused != refused_models_.end())
    throw refused->second;
  std::shared_ptr<const Model>& known = models_[micro_batch];
  if (known) return known;
  try {
    auto model = std::make_shared<Model>(read_model(base_.model, micro_batch));
    require_work(*model);
    if (model->blocks.empty()) annotate_parallelism(*model);
    known = std::move(model);
  } catch (const Error& error) {
    // It was read before the search: what stands in the way is this micro-batch, of whichever plan.
    const Error refusal(error.where, error.message, error.hint, {"plan.micro_batch"});
    refused_models_.emplace(micro_batch, refusal);
    throw refusal;
  }
  return known;
}

std::shared_ptr<const ShardedModel> PlanEvaluator::sharded_of(const Plan& plan, const Model& model) {
  std::string key = fmt::format("{} {}", plan.micro_batch(), division_of(plan));
  // Of tables what is read in an iteration is updated.
  if (has_tables_for_experts(model.facts))
    key += fmt::format(" {} {} {}", plan.data(), plan.micro_batches, plan.zero_stage > 1);
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const ShardedModel>& known = sharded_[key];
  if (!known) known = std::make_shared<const ShardedModel>(shard_model(model, plan, 0, kWhere));
  return known;
}

std::shared_ptr<const PipelineOrder> PlanEvaluator::order_of(const Plan& plan) {
  const std::string key = order_key(plan);
  const std::lock_guard lock(mutex_);
  // Long orders are as much as a few plans have: all start again where they are too many.
  constexpr std::int64_t kMostKept = 1 << 22;
  const bool is_new = !orders_.contains(key);
  const std::int64_t slots = 2 * plan.micro_batches * plan.pipeline * plan.virtual_stages;
  if (is_new && (kept_slots_ += slots) > kMostKept) {
    orders_.clear();
    kept_slots_ = slots;
  }
  std::shared_ptr<const PipelineOrder>& known = orders_[key];
  if (!known) known = std::make_shared<const PipelineOrder>(pipeline_order(plan, 1, kWhere));
  return known;
}

PlanPrepared PlanEvaluator::prepare(const PlanRequest& request) {
  if (!request.precision && base_.request.precision) {
    PlanRequest settled = request;
    settled.precision = base_.request.precision;
    return prepare(settled);
  }
  PlanPrepared made;
  made.plan = resolved_plan(base_, request, described_);
  Plan& plan = made.plan;
  made.setting = setting_of(plan);
  const Study& setting = *made.setting;
  settle_host(plan, setting.machine.device);
  validate_plan(plan, kWhere);
  check_precision(setting, plan, cost_);
  made.model = model_of(plan);
  settle_recompute(request, made.model->facts, plan);
  if (request.balance_stages) plan.stage_blocks = balance_stages(*made.model, plan, cost_, kWhere);
  check_plan_for_model(plan, *made.model, kWhere);
  resolve_exchange(made.model->facts, plan);
  if (is_uniform(plan, setting.machine)) made.sharded = sharded_of(plan, *made.model);
  return made;
}

Time PlanEvaluator::bound(const PlanPrepared& made) {
  return least_of(made, Known::at_least);
}

Time PlanEvaluator::about(const PlanPrepared& made) {
  return least_of(made, Known::about);
}

Time PlanEvaluator::least_of(const PlanPrepared& made, Known known_of_calls) {
  if (!made.sharded) return {};
  const Plan& plan = made.plan;
  const std::int64_t recomputed = plan.recompute == Recompute::block ? plan.recompute_blocks : 0;
  const std::shared_ptr<const PipelineOrder> order = short_order_of(plan);
  const std::lock_guard lock(mutex_);
  StagePaths& paths = paths_of(made, known_of_calls);
  // All that the bound looks at: a field that is missing here gives one plan another's bound.
  std::tuple key(&paths, order_key(plan), plan.stage_blocks, recomputed, plan.scatter_gather,
                 issue_time_of(plan), plan.step_overhead);
  if (const auto known = bounds_.find(key); known != bounds_.end()) return known->second;
  const StageCut stages = cut_stages(*made.sharded, plan, kWhere);
  const Time least = least_iteration(*made.setting, plan, paths, stages, *order);
  return bounds_.emplace(std::move(key), least).first->second;
}

double PlanEvaluator::computing_bound(const PlanPrepared& made) {
  if (!made.sharded) return {};
  const Plan& plan = made.plan;
  const std::shared_ptr<const PipelineOrder> order = short_order_of(plan);
  const StageCut stages = cut_stages(*made.sharded, plan, kWhere);
  const std::lock_guard lock(mutex_);
  return least_computing(*made.setting, plan, paths_of(made), stages, *order);
}

Time PlanEvaluator::slot_bound(const PlanPrepared& made) {
  if (!knows_slot_bound(made)) return {};
  const Plan& plan = made.plan;
  const std::shared_ptr<const PipelineOrder> order = order_of(plan);
  const StageCut stages = cut_stages(*made.sharded, plan, kWhere);
  const std::lock_guard lock(mutex_);
  return least_iteration_of_slots(*made.setting, plan, exchanges_of(made), stages, *order);
}

LeastAhead PlanEvaluator::ahead_of(const PlanPrepared& made) {
  if (!knows_slot_bound(made)) return {};
  const std::shared_ptr<const PipelineOrder> order = order_of(made.plan);
  const StageCut stages = cut_stages(*made.sharded, made.plan, kWhere);
  const std::lock_guard lock(mutex_);
  return least_ahead(*made.setting, made.plan, exchanges_of(made), stages, *order);
}

StagePaths& PlanEvaluator::paths_of(const PlanPrepared& made, Known known) {
  const Plan& plan = made.plan;
  std::tuple key(made.sharded.get(), place_of_ranks(plan), plan.schedule, known);
  auto paths = paths_.find(key);
  if (paths == paths_.end()) {
    LeastCommunication& communication =
        communication_.try_emplace(made.setting.get(), *made.setting).first->second;
    paths =
        paths_.emplace(std::move(key), StagePaths(plan, *made.sharded, cost_, communication, known)).first;
  }
  return paths->second;
}

StageExchanges& PlanEvaluator::exchanges_of(const PlanPrepared& made) {
  const Plan& plan = made.plan;
  StagePaths& paths = paths_of(made);
  // Likewise all that its figures depend on.
  return exchanges_
      .try_emplace({&paths, plan.zero_stage, plan.hybrid_shard, plan.overlap_parameters,
                    plan.offload_activations, plan.offload_optimizer},
                   plan, paths, made.setting->machine.device.host_bandwidth)
      .first->second;
}

MemoryUse PlanEvaluator::memory(const PlanPrepared& made) {
  if (!made.sharded) return lower_study(made.study(), cost_).memory;
  return largest_use(*made.sharded, cut_stages(*made.sharded, made.plan, kWhere), *order_of(made.plan),
                     made.plan, made.setting->machine.device);
}

double PlanEvaluator::hardware_flops(const PlanPrepared& made) {
  if (!made.sharded) return armilla::hardware_flops(lower_study(made.study(), cost_));
  return armilla::hardware_flops(*made.sharded, cut_stages(*made.sharded, made.plan, kWhere), made.plan);
}

const PlanEvaluator::MeasuredBlock& PlanEvaluator::measured(const PlanPrepared& plan, std::uint32_t shape,
                                                            PipelineAction action) {
  const std::tuple key(plan.sharded.get(), place_of_slot(plan, base_.machine.largest_slice > 0),
                       issue_time_of(plan.plan), plan.plan.check_collectives, shape, action);
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = blocks_.find(key); known != blocks_.end()) return known->second;
  }
  MeasuredBlock made;
  if (const std::optional<Graph> alone = lone_block(*plan.sharded, plan.plan, shape, action)) {
    if (alone->programs.empty()) {
      made.time = SlotTime{};
    } else {
      made.families = names_of_families(*alone);
      LentMemory lent(*this, plan);
      FoldedGraph folded(*alone, lent.memory());
      const Result result = folded.simulate(cost_, true);
      const RankClass& all = result.classes.front();
      const Time computed = all.computes.empty() ? Time() : all.computes.back().end;
      // While it does not compute it communicates, and all ranks are in step.
      if (result.classes.size() == 1 && all.compute + all.exposed_communication == all.finish &&
          folded.is_undisturbed(made.families, Beside::everything))
        time_chain(*alone, all, made.time.emplace(all.finish, all.compute, all.finish - computed));
    }
  }
  // Measured without the lock: if another was quicker, its figures are the same, and stay.
  const std::lock_guard lock(mutex_);
  return blocks_.emplace(key, std::move(made)).first->second;
}

// Its blocks follow each other.
std::optional<SlotTime> PlanEvaluator::time_of_slot(const PlanPrepared& plan, const SlotKind& kind,
                                                    std::set<std::string>& families) {
  SlotTime sum;
  // Backward passes go through them in reverse.
  std::vector<std::uint32_t> shapes = kind.shapes;
  if (kind.action != PipelineAction::forward) std::ranges::reverse(shapes);
  for (const std::uint32_t shape : shapes) {
    const MeasuredBlock& block = measured(plan, shape, kind.action);
    if (!block.time) return std::nullopt;
    families.insert(block.families.begin(), block.families.end());
    sum.duration += block.time->duration;
    sum.compute += block.time->compute;
    sum.issues += block.time->issues;
    sum.parts.insert(sum.parts.end(), block.time->parts.begin(), block.time->parts.end());
    if (block.time->issues == 0) continue;
    sum.behind = block.time->behind;
    sum.parts_behind = block.time->parts_behind;
  }
  if (sum.issues == 0) return std::nullopt;
  return sum;
}

std::optional<Result> PlanEvaluator::play_slots(const PlanPrepared& plan, const Watch& watch) {
  const Study& setting = *plan.setting;
  // A profile or a what-if may change single nodes, which slots hide.
  if (!plan.sharded || !setting.profile.file.empty() || setting.what_if.changes_simulation())
    return std::nullopt;
  Fusion fusion;
  std::set<std::string> families;
  for (SlotKind& kind : slot_kinds(*plan.sharded, plan.plan)) {
    const std::optional<SlotTime> time = time_of_slot(plan, kind, families);
    if (!time) return std::nullopt;
    // Every forward pass comes again, and the CPU would fall behind (lower/fused_slots.h).
    if (kind.action == PipelineAction::forward && !time->is_chain() &&
        time->compute < saturating_multiply(issue_time_of(plan.plan), time->issues))
      return std::nullopt;
    for (const std::uint32_t shape : kind.shapes)
      fusion.slots.try_emplace({{shape}, kind.action}, *measured(plan, shape, kind.action).time);
    fusion.slots.insert_or_assign(std::move(kind), *time);
  }
  if (fusion.slots.empty()) return std::nullopt;
  fusion.beside_exchanges = true;
  FusedJob job = lower_fused(*plan.sharded, plan.plan, fusion, setting.machine.device.host_bandwidth);
  if (!job.host_is_ahead) return std::nullopt;
  LentMemory lent(*this, plan);
  std::optional<FoldedGraph> folded(std::in_place, job.graph, lent.memory());
  if (!folded->is_undisturbed(families, Beside::everything)) {
    // Slots stand for their nodes beside exchanges as well only if these disturb nobody; else they stand for
    // them beside messages alone.
    if (!folded->is_undisturbed(families, Beside::messages)) return std::nullopt;
    folded.reset();
    fusion.beside_exchanges = false;
    job = lower_fused(*plan.sharded, plan.plan, fusion, setting.machine.device.host_bandwidth);
    if (!job.host_is_ahead) return std::nullopt;
    folded.emplace(job.graph, lent.memory());
  }
  std::span<std::vector<WatchedEnd>> watched;
  if (watch) watched = watch(job);
  Result result;
  try {
    result = folded->simulate(cost_, false, watched);
  } catch (const RunIsLate&) {
    lent.was_late();
    throw;
  }
  for (RankClass& ranks : result.classes) {
    // A slot counts as computing from end to end; what it waits for within is taken out again.
    ranks.compute -= job.waits[ranks.program];
    ranks.exposed_communication += job.waits[ranks.program];
  }
  return result;
}

Result PlanEvaluator::play(const PlanPrepared& plan) {
  std::optional<Result> slots = play_slots(plan, {});
  return slots ? *std::move(slots) : play_nodes(plan);
}

PlanOutcome PlanEvaluator::outcome_of(const PlanPrepared& plan, const Result& result) {
  const Machine& machine = plan.setting->machine;
  PlanOutcome outcome;
  outcome.plan = plan.plan;
  outcome.machine = machine.name;
  outcome.iteration = result.iteration;
  outcome.energy = energy_of(machine, result);
  outcome.cost = cost_of(machine, plan.plan.ranks, result.iteration);
  // Of the class that computes longest; of several, of that which waits longest for communication.
  for (const RankClass& ranks : result.classes) {
    const auto key = [](Time compute, Time exposed) { return std::pair(compute, exposed); };
    if (key(ranks.compute, ranks.exposed_communication) < key(outcome.compute, outcome.exposed_communication))
      continue;
    outcome.compute = ranks.compute;
    outcome.exposed_communication = ranks.exposed_communication;
  }
  return outcome;
}

PlanOutcome PlanEvaluator::simulate(const PlanPrepared& plan) {
  return outcome_of(plan, play(plan));
}

std::optional<PlanOutcome> PlanEvaluator::simulate_within(const PlanPrepared& plan, Time longest) {
  const LeastAhead ahead = ahead_of(plan);
  if (ahead.after_slots.empty()) return simulate(plan);
  const BeginningKey key = beginning_key(plan);
  if (is_known_to_be_late(key, ahead, longest)) return std::nullopt;
  std::optional<WatchedSlots> watched;
  std::optional<PlanOutcome> outcome;
  try {
    const std::optional<Result> result = play_slots(plan, [&](const FusedJob& job) {
      watched.emplace(job, ahead, longest);
      return std::span(watched->ends);
    });
    if (!result) return play_nodes_within(plan, longest, key, ahead);
    outcome = outcome_of(plan, *result);
  } catch (const RunIsLate&) {
    // There is no outcome.
  }
  note_beginning(key, watched->seen(ahead));
  return outcome;
}

PlayTime PlanEvaluator::foreseen_time(const PlanPrepared& plan) const {
  if (!is_one_iteration(plan)) return foresee_study(plan.study(), of_times_alone());
  return foresee(lower_nodes(plan).graph, *plan.setting, cost_, of_times_alone());
}

Result PlanEvaluator::play_nodes(const PlanPrepared& plan) {
  if (!is_one_iteration(plan)) return run_study(plan.study(), of_times_alone()).result;
  LentMemory lent(*this, plan);
  return armilla::simulate(lower_nodes(plan).graph, cost_, of_times_alone(), lent.memory());
}

std::optional<PlanOutcome> PlanEvaluator::play_nodes_within(const PlanPrepared& plan, Time longest,
                                                            const BeginningKey& key,
                                                            const LeastAhead& ahead) {
  const LoweredJob job = lower_nodes(plan);
  WatchedSlots watched(job, ahead, longest);
  SimulationOptions options = of_times_alone();
  options.watched_ends = watched.ends;
  LentMemory lent(*this, plan);
  std::optional<PlanOutcome> outcome;
  try {
    outcome = outcome_of(plan, armilla::simulate(job.graph, cost_, options, lent.memory()));
  } catch (const RunIsLate&) {
    // There is no outcome.
  }
  note_beginning(key, watched.seen(ahead));
  return outcome;
}

PlanEvaluator::BeginningKey PlanEvaluator::beginning_key(const PlanPrepared& made) {
  Plan plan = made.plan;
  plan.overlap = true;
  plan.offload_optimizer = false;
  // What ZeRO gathers at the end is not there yet.
  if (plan.zero_stage == 1 && !plan.overlap_parameters) plan.zero_stage = 0;
  const std::lock_guard lock(mutex_);
  return {&paths_of(made), issue_time_of(plan), text_of(plan)};
}

bool PlanEvaluator::is_known_to_be_late(const BeginningKey& key, const LeastAhead& ahead, Time longest) {
  const std::lock_guard lock(mutex_);
  const auto known = beginnings_.find(key);
  if (known == beginnings_.end()) return false;
  for (std::size_t rank = 0; rank < known->second.size(); ++rank) {
    const auto& [slot, end] = known->second[rank];
    if (end >= Time(0) && end < ahead.first_exchange && later(end, ahead.after_slots[rank][slot]) > longest)
      return true;
  }
  return false;
}

// Of two runs, the one that was watched for longer.
void PlanEvaluator::note_beginning(const BeginningKey& key, Beginning beginning) {
  const auto latest = [](const Beginning& ends) { return std::ranges::max(ends, {}, &SlotEnd::end).end; };
  if (latest(beginning) < Time(0)) return;
  const std::lock_guard lock(mutex_);
  Beginning& known = beginnings_[key];
  if (known.empty() || latest(known) < latest(beginning)) known = std::move(beginning);
}

std::string text_of(const Plan& plan) {
  const bool pipelined = plan.pipeline > 1, tensor = plan.tensor > 1,
             replicated = plan.context * plan.data() > 1;
  const bool scheduled = pipelined || !orders_like_1f1b(plan);
  const int zero = plan.zero_stage;  // of a resolved plan: none where it would do nothing
  std::string order;
  for (const Axis axis : plan.order) {
    const std::int64_t degree = axis == Axis::tensor     ? plan.tensor
                                : axis == Axis::context  ? plan.context
                                : axis == Axis::pipeline ? plan.pipeline
                                                         : plan.data();
    if (degree > 1) order += fmt::format("{}-", name_of(axis));
  }
  return fmt::format(
             "{} {} {} {} | {} {} {} | {} {} {} | {} {} {} | {} {} {} | {} {} {} {} {} | {} {} {} {} | {} {}",
             plan.ranks, plan.tensor, plan.context, plan.pipeline, plan.expert, plan.experts_tensor(),
             scheduled ? plan.virtual_stages : 1, plan.batch, plan.micro_batches,
             scheduled ? plan.schedule : "", fmt::join(plan.stage_blocks, ","),
             tensor && plan.sequence_parallel, tensor && plan.overlap_tensor, name_of(plan.recompute),
             plan.recompute == Recompute::block ? plan.recompute_blocks : 0,
             plan.recompute == Recompute::selective ? plan.recompute_modules.bits() : 0, zero,
             zero == 0 || zero == 3 || plan.overlap_parameters, zero < 3 || plan.prefetch,
             zero < 3 || plan.reshard, zero > 0 ? plan.hybrid_shard : 0, plan.offload_optimizer,
             plan.offload_activations, !pipelined || plan.overlap_pipeline,
             pipelined && tensor && !plan.sequence_parallel && plan.scatter_gather,
             !replicated || plan.overlap, plan.context > 1 ? name_of(plan.context_method) : "") +
         " | " + order;
}

std::string text_of(const PlanPrepared& plan) {
  const bool repeats = plan.plan.recompute == Recompute::block;
  if (plan.plan.stage_blocks.empty() && !repeats) return text_of(plan.plan);
  // Stages are cut alike whatever the load of experts and the devices.
  const std::shared_ptr<const ShardedModel> sharded =
      plan.sharded ? plan.sharded
                   : std::make_shared<const ShardedModel>(shard_model(*plan.model, plan.plan, 0, kWhere));
  const StageCut stages = cut_stages(*sharded, plan.plan, kWhere);
  Plan same = plan.plan;
  same.stage_blocks.clear();
  if (cut_stages(*sharded, same, kWhere) != stages) same.stage_blocks = plan.plan.stage_blocks;
  if (repeats && plan.plan.recompute_blocks == 0) {
    same.recompute = Recompute::none;
  } else if (repeats && repeats_all(*sharded, plan.plan, stages)) {
    same.recompute = Recompute::full;
  }
  return text_of(same);
}

}  // namespace armilla
