#include "sim/collective_runner.h"

#include <algorithm>

namespace armilla {
namespace {

// A message's tag: the chunk run in the upper half, then 8 bits of phase and 24 of step ("place").
constexpr std::uint32_t kStepBits = 24;
std::uint32_t place_of(std::uint32_t phase, std::uint32_t step) {
  return phase << kStepBits | step;
}
std::uint64_t join(std::uint32_t high, std::uint32_t low) {
  return std::uint64_t{high} << 32 | low;
}
std::uint32_t high(std::uint64_t value) {
  return static_cast<std::uint32_t>(value >> 32);
}
std::uint32_t low(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}

}  // namespace

CollectiveRunner::CollectiveRunner(const Graph& graph, const Machine& machine,
                                   const CollectiveOptions& options, CollectivePlanner& planner,
                                   const RankClasses& classes, EventQueue& queue, CollectiveClient& client)
    : graph_(graph),
      options_(options),
      memory_bandwidth_(machine.device.memory_bandwidth),
      planner_(planner),
      classes_(classes),
      queue_(queue),
      client_(client),
      target_(queue.add_handler(*this)),
      scheduler_(static_cast<std::size_t>(classes.simulated()), machine.dimensions.size() + 1,
                 options.active_chunks, options.order),
      flat_queue_(static_cast<std::uint32_t>(machine.dimensions.size())),
      issued_(static_cast<std::size_t>(classes.simulated())) {
  for (const GroupFamily& family : graph.families) {
    of_group_.emplace_back(family.groups.size());
    issued_in_family_.emplace_back(static_cast<std::size_t>(classes.simulated()));
  }
}

std::uint32_t CollectiveRunner::member_of(const GroupLayout& layout, std::int32_t rank) const {
  return classes_.fold == Fold::all ? 0 : static_cast<std::uint32_t>(layout.flat_position(rank));
}

std::int32_t CollectiveRunner::rank_of(const GroupLayout& layout, std::uint32_t member) const {
  return layout.ranks[member];
}

std::uint32_t CollectiveRunner::queue_of(const PlannedPhase& phase) const {
  return phase.dimension == kAllDimensions ? flat_queue_ : phase.dimension;
}

bool CollectiveRunner::takes_part(const ChunkRun& run, const PlannedPhase& phase, std::int32_t rank) const {
  if (!phase.only_root_lines) return true;
  const GroupLayout& layout = *instances_[run.instance]->layout;
  for (std::uint32_t d = 0; d < phase.dimension; ++d) {
    if (layout.position(rank, d) != layout.position(run.plan->root, d)) return false;
  }
  return true;
}

std::uint32_t CollectiveRunner::make_instance(std::int32_t group, std::uint32_t call_id) {
  auto instance = std::make_unique<Instance>();
  instance->call = &graph_.collectives[call_id];
  instance->layout = &planner_.layout(graph_, instance->call->family, group);
  const std::size_t members = classes_.fold == Fold::all ? 1 : instance->layout->ranks.size();
  instance->issues.resize(members);
  instance->members_left = static_cast<std::int64_t>(members);
  const auto id = static_cast<std::uint32_t>(instances_.size());
  const bool custom = instance->call->custom >= 0;
  if (custom) {
    instance->custom = custom_->open(graph_.custom[static_cast<std::size_t>(instance->call->custom)],
                                     instance->layout->ranks, instance->call->bytes);
  }
  for (std::int64_t chunk = 0; !custom && chunk < planner_.chunks(*instance->call); ++chunk) {
    auto run = std::make_unique<ChunkRun>();
    run->instance = id;
    run->chunk = static_cast<std::uint32_t>(chunk);
    run->plan = &planner_.plan(*instance->call, *instance->layout, chunk);
    run->members.resize(members);
    run->members_left = static_cast<std::int64_t>(members);
    instance->runs.push_back(static_cast<std::uint32_t>(runs_.size()));
    runs_.push_back(std::move(run));
  }
  instances_.push_back(std::move(instance));
  return id;
}

std::uint32_t CollectiveRunner::instance_for(std::int32_t rank, std::uint32_t call) {
  const std::uint32_t family = graph_.collectives[call].family;
  const std::int32_t group = graph_.families[family].group_of[static_cast<std::size_t>(rank)];
  std::vector<std::uint32_t>& instances = of_group_[family][static_cast<std::size_t>(group)];
  const std::uint32_t index = issued_in_family_[family][static_cast<std::size_t>(rank)]++;
  if (index == instances.size()) instances.push_back(make_instance(group, call));
  return instances[index];
}

void CollectiveRunner::issue(std::int32_t rank, std::uint32_t node, std::uint32_t call) {
  const std::uint32_t id = instance_for(rank, call);
  Instance& instance = *instances_[id];
  const std::uint32_t member = member_of(*instance.layout, rank);
  instance.issues[member] = {node, issued_[static_cast<std::size_t>(rank)]++,
                             static_cast<std::int32_t>(instance.runs.size()), false};
  if (instance.call->custom >= 0) {
    instance.issues[member].chunks_left = 1;
    instance.issues[member].started = true;
    client_.collective_started(rank, node);
    custom_->start(instance.custom, static_cast<std::int32_t>(member), join(id, member));
    return;
  }
  const std::vector<std::uint32_t> runs =
      instance.runs;  // a chunk that needs no messages may finish the instance
  for (const std::uint32_t run : runs) enter_phase(run, member);
  for (std::uint32_t queue = 0; queue <= flat_queue_; ++queue) fill_slots(rank, queue);
}

void CollectiveRunner::enter_phase(std::uint32_t run_id, std::uint32_t member_id) {
  ChunkRun& run = *runs_[run_id];
  Instance& instance = *instances_[run.instance];
  Member& member = run.members[member_id];
  const std::int32_t rank = rank_of(*instance.layout, member_id);
  while (member.phase < run.plan->phases.size() && !takes_part(run, run.plan->phases[member.phase], rank))
    ++member.phase;
  if (member.phase == run.plan->phases.size()) {
    finish_chunk(run_id, member_id);
    return;
  }
  const std::uint32_t queue = queue_of(run.plan->phases[member.phase]);
  member.state = State::waiting;
  locate(run, member_id, member);
  const bool awaited = std::any_of(member.early.begin(), member.early.end(),
                                   [&](std::uint32_t place) { return place >> kStepBits == member.phase; });
  const std::vector<Step>& steps = member.schedule->steps;
  if (steps.empty() || steps.front().first_send == steps.front().end_send) {
    // A slot is permission to begin sending. Who first has to receive is gated by the others' slots; were it
    // to hold one while it waits, ranks that enter a dimension in different orders would wait for each other.
    start_phase(run_id, member_id, false);
  } else if (awaited) {
    scheduler_.start_beyond_limit(rank, queue);
    start_phase(run_id, member_id, true);
  } else {
    scheduler_.add(rank, queue,
                   {run_id, member_id, member.phase, instance.issues[member_id].sequence,
                    instance.call->priority, run.chunk});
  }
}

// Where the member stands in its current phase.
void CollectiveRunner::locate(const ChunkRun& run, std::uint32_t member_id, Member& member) const {
  const GroupLayout& layout = *instances_[run.instance]->layout;
  const std::int32_t rank = rank_of(layout, member_id);
  const PlannedPhase& phase = run.plan->phases[member.phase];
  member.here =
      phase.dimension == kAllDimensions ? layout.flat_position(rank) : layout.position(rank, phase.dimension);
  member.schedule = &phase.schedule->of(member.here);
}

void CollectiveRunner::fill_slots(std::int32_t rank, std::uint32_t queue) {
  while (const std::optional<WaitingChunk> chunk = scheduler_.next(rank, queue)) {
    const ChunkRun* run = runs_[chunk->run].get();
    const bool stale = run == nullptr || run->members[chunk->member].state != State::waiting ||
                       run->members[chunk->member].phase != chunk->phase;
    if (stale) {
      scheduler_.drop(rank, queue);
    } else {
      start_phase(chunk->run, chunk->member, true);
    }
  }
}

void CollectiveRunner::start_phase(std::uint32_t run_id, std::uint32_t member_id, bool holds_slot) {
  ChunkRun& run = *runs_[run_id];
  Instance& instance = *instances_[run.instance];
  Member& member = run.members[member_id];
  member.state = State::active;
  member.holds_slot = holds_slot;
  member.step = 0;
  member.phase_start = queue_.now();
  Issue& issue = instance.issues[member_id];
  if (!issue.started) {
    issue.started = true;
    client_.collective_started(rank_of(*instance.layout, member_id), issue.node);
  }
  enter_step(run_id, member_id);
  complete_steps(run_id, member_id);
}

void CollectiveRunner::enter_step(std::uint32_t run_id, std::uint32_t member_id) {
  Member& member = runs_[run_id]->members[member_id];
  if (member.step == member.schedule->steps.size()) return;
  const Step& step = member.schedule->steps[member.step];
  member.next_send = step.first_send;
  member.in_flight = 0;
  member.receives_left = step.receives;
  if (!member.early.empty()) {
    member.receives_left -=
        static_cast<std::int32_t>(std::erase(member.early, place_of(member.phase, member.step)));
  }
  send_within_window(run_id, member_id);
}

void CollectiveRunner::send_within_window(std::uint32_t run_id, std::uint32_t member_id) {
  ChunkRun& run = *runs_[run_id];
  Member& member = run.members[member_id];
  const GroupLayout& layout = *instances_[run.instance]->layout;
  const PlannedPhase& phase = run.plan->phases[member.phase];
  const std::int32_t rank = rank_of(layout, member_id);
  const Step& step = member.schedule->steps[member.step];
  while (member.next_send < step.end_send && (step.window == 0 || member.in_flight < step.window)) {
    const Transfer& transfer = member.schedule->sends[member.next_send++];
    ++member.in_flight;
    const std::int32_t peer = phase.schedule->peer(member.here, transfer);
    const std::int32_t to = phase.dimension == kAllDimensions
                                ? layout.ranks[static_cast<std::size_t>(peer)]
                                : layout.member(rank, phase.dimension, member.here, peer);
    const std::uint32_t place = place_of(member.phase, static_cast<std::uint32_t>(transfer.step));
    network_->send({rank, to, transfer.bytes, phase.dimension, join(run_id, place)});
  }
}

// Goes on for as long as the current step is complete. A local reduction interrupts; handle() resumes behind
// it.
void CollectiveRunner::complete_steps(std::uint32_t run_id, std::uint32_t member_id) {
  Member& member = runs_[run_id]->members[member_id];
  while (member.step < member.schedule->steps.size()) {
    const Step& step = member.schedule->steps[member.step];
    const bool sent = member.next_send == step.end_send && (step.window == 0 || member.in_flight == 0);
    if (member.receives_left > 0 || !sent) return;
    if (options_.charge_reductions && step.reduced > Bytes(0)) {
      member.state = State::reducing;
      const Time duration = time_to_move(step.reduced * 3, memory_bandwidth_);
      queue_.schedule(later(queue_.now(), duration), target_, join(run_id, member_id));
      return;
    }
    ++member.step;
    enter_step(run_id, member_id);
  }
  finish_phase(run_id, member_id);
}

void CollectiveRunner::handle(std::uint64_t argument) {
  const std::uint32_t run_id = high(argument), member_id = low(argument);
  Member& member = runs_[run_id]->members[member_id];
  member.state = State::active;
  ++member.step;
  enter_step(run_id, member_id);
  complete_steps(run_id, member_id);
}

void CollectiveRunner::delivered(const Message& message) {
  const std::uint32_t run_id = high(message.tag), place = low(message.tag);
  const ChunkRun& run = *runs_[run_id];
  const GroupLayout& layout = *instances_[run.instance]->layout;
  const std::uint32_t phase = place >> kStepBits;
  const std::uint32_t receiver_id = member_of(layout, message.destination);
  if (run.plan->phases[phase].windowed)
    free_window_slot(run_id, member_of(layout, message.source), phase, receiver_id);
  receive(run_id, receiver_id, place);
}

// A step with a window lasts until its last message is delivered, so the sender is still in the step it sent
// in. It cannot finish the whole run here: the receiver of this very message is not through yet.
void CollectiveRunner::free_window_slot(std::uint32_t run_id, std::uint32_t sender_id, std::uint32_t phase,
                                        std::uint32_t receiver_id) {
  Member& sender = runs_[run_id]->members[sender_id];
  if (sender.state != State::active || sender.phase != phase ||
      sender.schedule->steps[sender.step].window == 0)
    return;
  --sender.in_flight;
  send_within_window(run_id, sender_id);
  if (sender_id != receiver_id) complete_steps(run_id, sender_id);
}

void CollectiveRunner::receive(std::uint32_t run_id, std::uint32_t member_id, std::uint32_t place) {
  ChunkRun& run = *runs_[run_id];
  Member& member = run.members[member_id];
  if (member.state == State::active && place == place_of(member.phase, member.step)) {
    --member.receives_left;
    complete_steps(run_id, member_id);
    return;
  }
  member.early.push_back(place);
  if (member.state == State::waiting && place >> kStepBits == member.phase) {
    const std::int32_t rank = rank_of(*instances_[run.instance]->layout, member_id);
    scheduler_.start_beyond_limit(rank, queue_of(run.plan->phases[member.phase]));
    start_phase(run_id, member_id, true);
  }
}

void CollectiveRunner::finish_phase(std::uint32_t run_id, std::uint32_t member_id) {
  ChunkRun& run = *runs_[run_id];
  Instance& instance = *instances_[run.instance];
  Member& member = run.members[member_id];
  const std::int32_t rank = rank_of(*instance.layout, member_id);
  const std::uint32_t queue = queue_of(run.plan->phases[member.phase]);
  ChunkPhase report;
  report.chunk = run.chunk;
  report.dimension = queue;
  report.phase = member.phase;
  report.ready = report.start = member.phase_start;
  client_.chunk_finished(rank, instance.issues[member_id].node, report);
  if (member.holds_slot) scheduler_.finished(rank, queue);
  ++member.phase;
  enter_phase(run_id, member_id);
  for (std::uint32_t q = 0; q <= flat_queue_; ++q) fill_slots(rank, q);
}

void CollectiveRunner::finish_chunk(std::uint32_t run_id, std::uint32_t member_id) {
  ChunkRun& run = *runs_[run_id];
  const std::uint32_t instance_id = run.instance;
  Instance& instance = *instances_[instance_id];
  run.members[member_id].state = State::done;
  if (--run.members_left == 0) runs_[run_id].reset();
  Issue& issue = instance.issues[member_id];
  if (--issue.chunks_left > 0) return;
  const std::int32_t rank = rank_of(*instance.layout, member_id);
  const std::uint32_t node = issue.node;
  if (!issue.started) client_.collective_started(rank, node);
  if (--instance.members_left == 0) instances_[instance_id].reset();
  client_.collective_finished(rank, node);
}

void CollectiveRunner::custom_finished(std::uint64_t argument) {
  const std::uint32_t id = high(argument);
  Instance& instance = *instances_[id];
  Issue& issue = instance.issues[low(argument)];
  issue.chunks_left = 0;
  const std::int32_t rank = rank_of(*instance.layout, low(argument));
  const std::uint32_t node = issue.node;
  if (--instance.members_left == 0) instances_[id].reset();
  client_.collective_finished(rank, node);
}

bool CollectiveRunner::start_oldest_waiting() {
  for (std::uint32_t run_id = 0; run_id < runs_.size(); ++run_id) {
    bool found = false;
    for (std::uint32_t m = 0; runs_[run_id] && m < runs_[run_id]->members.size(); ++m) {
      const ChunkRun& run = *runs_[run_id];
      const Member& member = run.members[m];
      if (member.state != State::waiting) continue;
      found = true;
      scheduler_.start_beyond_limit(rank_of(*instances_[run.instance]->layout, m),
                                    queue_of(run.plan->phases[member.phase]));
      start_phase(run_id, m, true);
    }
    if (found) return true;
  }
  return false;
}

std::int32_t CollectiveRunner::missing_member(std::int32_t rank, std::uint32_t node) const {
  for (const std::unique_ptr<Instance>& instance : instances_) {
    if (!instance) continue;
    const auto& by_rank = instance->layout->by_rank;
    const auto found = std::lower_bound(by_rank.begin(), by_rank.end(), std::pair(rank, std::int32_t{0}));
    if (found == by_rank.end() || found->first != rank) continue;
    const Issue& mine = instance->issues[member_of(*instance->layout, rank)];
    if (mine.chunks_left <= 0 || mine.node != node) continue;
    for (std::uint32_t member = 0; member < instance->issues.size(); ++member) {
      if (instance->issues[member].chunks_left < 0) return rank_of(*instance->layout, member);
    }
  }
  return -1;
}

}  // namespace armilla
