#include "sim/engine/collective_runner.h"

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

// Within the phase's line of ranks.
std::int32_t position_in(const PlannedPhase& phase, const GroupLayout& layout, std::int32_t rank) {
  return phase.dimension == kAllDimensions ? layout.flat_position(rank)
                                           : layout.position(rank, phase.dimension);
}

}  // namespace

CollectiveRunner::CollectiveRunner(const Graph& graph, const Machine& machine,
                                   const CollectiveOptions& options, std::vector<Bandwidth> memory_bandwidths,
                                   CollectivePlanner& planner, const RankClasses& classes, EventQueue& queue,
                                   RankTurns& turns, CollectiveClient& client)
    : graph_(graph),
      options_(options),
      memory_bandwidths_(std::move(memory_bandwidths)),
      planner_(planner),
      classes_(classes),
      queue_(queue),
      turns_(turns),
      client_(client),
      target_(queue.add_handler(*this)),
      scheduler_(static_cast<std::size_t>(classes.simulated()), options.active_chunks, options.order),
      all_dimensions_(static_cast<std::uint32_t>(machine.dimensions.size())),
      instances_(graph, classes, planner),
      first_note_(static_cast<std::size_t>(classes.simulated()), kNone) {}

std::uint32_t CollectiveRunner::dimension_of(const ChunkRun& run, const Member& member) const {
  const std::uint32_t dimension = run.plan->phases[member.phase].dimension;
  return dimension == kAllDimensions ? all_dimensions_ : dimension;
}

std::uint32_t CollectiveRunner::queue_of(const ChunkRun& run, const Member& member) const {
  return instances_[run.instance].family * (all_dimensions_ + 1) + dimension_of(run, member);
}

bool CollectiveRunner::takes_part(const ChunkRun& run, const PlannedPhase& phase,
                                  std::uint32_t member_id) const {
  if (!phase.only_root_lines) return true;
  const GroupLayout& layout = *run.group->layouts[member_id];
  const std::int32_t rank = run.group->real[member_id];
  for (std::uint32_t d = 0; d < phase.dimension; ++d) {
    if (layout.position(rank, d) != run.plan->root[d]) return false;
  }
  return true;
}

void CollectiveRunner::open_custom(CollectiveInstance& instance) {
  const CollectiveCall& call = graph_.collectives[instance.call];
  instance.custom = custom_->open(graph_.custom[static_cast<std::size_t>(call.custom)],
                                  instance.group->layouts.front()->ranks, call.bytes);
}

void CollectiveRunner::open_runs(std::uint32_t id) {
  CollectiveInstance& instance = instances_[id];
  const CollectiveCall& call = graph_.collectives[instance.call];
  instance.first_run = static_cast<std::uint32_t>(runs_.size());
  for (std::int32_t chunk = 0; chunk < instance.chunks; ++chunk) {
    auto run = std::make_unique<ChunkRun>();
    run->instance = id;
    run->chunk = static_cast<std::uint32_t>(chunk);
    run->plan = &planner_.plan(call, *instance.group->layouts.front(), chunk);
    run->group = instance.group;
    run->members.resize(instance.issues.size());
    run->members_left = static_cast<std::int64_t>(instance.issues.size());
    runs_.push_back(std::move(run));
  }
}

void CollectiveRunner::issue(std::int32_t rank, std::uint32_t node, std::uint32_t call) {
  const auto [id, fresh] = instances_.issue(rank, node, call);
  CollectiveInstance& instance = instances_[id];
  const std::uint32_t member = instances_.member_of(instance.family, rank);
  if (instance.is_custom) {
    if (fresh) open_custom(instance);
    instance.issues[member].started = true;
    client_.collective_started(rank, node);
    const std::int32_t position = instance.group->layouts[member]->flat_position(classes_.real_rank(rank));
    custom_->start(instance.custom, position, join(id, member));
    return;
  }
  if (evaluator_ && evaluator_->take(id, fresh, rank)) return;
  play(id, member);
}

void CollectiveRunner::play(std::uint32_t id, std::uint32_t member_id) {
  if (instances_[id].first_run == kNone) open_runs(id);
  const std::int32_t rank = rank_of(instances_[id], member_id);
  // A chunk that needs no messages may finish the instance.
  const std::uint32_t first = instances_[id].first_run;
  const std::uint32_t end = first + static_cast<std::uint32_t>(instances_[id].chunks);
  for (std::uint32_t run = first; run < end; ++run) enter_phase(run, member_id);
  fill_slots(rank);
}

void CollectiveRunner::round_over() {
  if (evaluator_) evaluator_->release([&](std::uint32_t id, std::uint32_t member) { play(id, member); });
}

void CollectiveRunner::enter_phase(std::uint32_t run_id, std::uint32_t member_id) {
  ChunkRun& run = *runs_[run_id];
  CollectiveInstance& instance = instances_[run.instance];
  Member& member = run.members[member_id];
  while (member.phase < run.plan->phases.size() &&
         !takes_part(run, run.plan->phases[member.phase], member_id))
    ++member.phase;
  if (member.phase == run.plan->phases.size()) {
    finish_chunk(run_id, member_id);
    return;
  }
  const std::int32_t rank = rank_of(instance, member_id);
  const std::uint32_t queue = queue_of(run, member);
  member.state = State::waiting;
  locate(run, member_id, member);
  const std::vector<Step>& steps = member.schedule->steps;
  if (steps.empty() || steps.front().first_send == steps.front().end_send) {
    // A slot is permission to begin sending. Who first has to receive is gated by the others' slots; were it
    // to hold one while it waits, ranks that enter a dimension in different orders would wait for each other.
    start_phase(run_id, member_id, false);
  } else if (is_awaited(member)) {
    scheduler_.start_beyond_limit(rank, queue);
    start_phase(run_id, member_id, true);
  } else {
    const CollectiveIssue& issue = instance.issues[member_id];
    scheduler_.add(rank, queue, {run_id, member_id, member.phase, issue.sequence, issue.priority, run.chunk});
    refill_ = true;
  }
}

// Whether messages of the phase it waits for are here.
bool CollectiveRunner::is_awaited(const Member& member) const {
  return std::any_of(member.early.begin(), member.early.end(),
                     [&](std::uint32_t place) { return place >> kStepBits == member.phase; });
}

// Where the member stands in its current phase.
void CollectiveRunner::locate(const ChunkRun& run, std::uint32_t member_id, Member& member) const {
  const PlannedPhase& phase = run.plan->phases[member.phase];
  member.here = position_in(phase, *run.group->layouts[member_id], run.group->real[member_id]);
  member.schedule = &phase.schedule->of(member.here);
}

// A chunk that is started may be through at once, and its next phase wait in another queue.
void CollectiveRunner::fill_slots(std::int32_t rank) {
  while (refill_) {
    refill_ = false;
    for (std::size_t i = 0; i < scheduler_.queues(rank); ++i) fill_slots(rank, scheduler_.queue(rank, i));
  }
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
  CollectiveInstance& instance = instances_[run.instance];
  Member& member = run.members[member_id];
  member.state = State::active;
  member.holds_slot = holds_slot;
  member.step = 0;
  member.phase_start = queue_.now();
  CollectiveIssue& issue = instance.issues[member_id];
  if (!issue.started) {
    issue.started = true;
    client_.collective_started(rank_of(instance, member_id), issue.node);
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
  const Step& step = member.schedule->steps[member.step];
  if (member.next_send == step.end_send) return;
  const GroupLayout& layout = *run.group->layouts[member_id];
  const PlannedPhase& phase = run.plan->phases[member.phase];
  const std::int32_t rank = run.group->real[member_id];
  while (member.next_send < step.end_send && (step.window == 0 || member.in_flight < step.window)) {
    const std::uint32_t number = member.next_send++;
    const Transfer& transfer = member.schedule->sends[number];
    ++member.in_flight;
    const std::int32_t peer = phase.schedule->peer(member.here, transfer);
    const std::int32_t to = phase.dimension == kAllDimensions
                                ? layout.ranks[static_cast<std::size_t>(peer)]
                                : layout.member(rank, phase.dimension, member.here, peer);
    const std::uint32_t place = place_of(member.phase, static_cast<std::uint32_t>(transfer.step));
    network_->send({rank, to, transfer.bytes, phase.dimension, number, join(run_id, place)});
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
      const std::int32_t rank = rank_of(*runs_[run_id], member_id);
      const Time duration =
          time_to_move(step.reduced * 3, memory_bandwidths_[static_cast<std::size_t>(rank)]);
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
  runs_[run_id]->members[member_id].state = State::reduced;
  note(run_id, member_id);
}

void CollectiveRunner::delivered(const Message& message) {
  const std::uint32_t run_id = high(message.tag), place = low(message.tag);
  const ChunkRun& run = *runs_[run_id];
  const std::uint32_t phase = place >> kStepBits;
  if (run.plan->phases[phase].windowed)
    free_window_slot(run_id, member_of(run, classes_.simulated_rank(message.source)), phase);
  receive(run_id, member_of(run, classes_.simulated_rank(message.destination)), place);
}

// Among messages of one source every one has its own; a symmetric schedule's are told apart by the way they
// come (sim/fold/rank_colours.h), those of others by the sender's position, too.
MessageLabel CollectiveRunner::label(const Message& message) const {
  const ChunkRun& run = *runs_[high(message.tag)];
  const CollectiveInstance& instance = instances_[run.instance];
  const PlannedPhase& phase = run.plan->phases[low(message.tag) >> kStepBits];
  std::int32_t position = 0;
  if (!phase.schedule->is_symmetric()) {
    const std::uint32_t member = member_of(run, classes_.simulated_rank(message.source));
    position = position_in(phase, *run.group->layouts[member], message.source);
  }
  return {{std::uint64_t{graph_.program_of[static_cast<std::size_t>(message.source)]} << 32 | instance.family,
           join(instance.number, run.chunk),
           std::uint64_t{low(message.tag) >> kStepBits} << 56 |
               std::uint64_t{static_cast<std::uint32_t>(position)} << 32 | message.order}};
}

// A step with a window lasts until its last message is delivered, so the sender is still in the step it sent
// in.
void CollectiveRunner::free_window_slot(std::uint32_t run_id, std::uint32_t sender_id, std::uint32_t phase) {
  Member& sender = runs_[run_id]->members[sender_id];
  if (sender.state != State::active || sender.phase != phase ||
      sender.schedule->steps[sender.step].window == 0)
    return;
  --sender.in_flight;
  note(run_id, sender_id);
}

void CollectiveRunner::receive(std::uint32_t run_id, std::uint32_t member_id, std::uint32_t place) {
  Member& member = runs_[run_id]->members[member_id];
  if (member.state == State::active && place == place_of(member.phase, member.step)) {
    if (--member.receives_left == 0) note(run_id, member_id);
    return;
  }
  member.early.push_back(place);
  if (member.state == State::waiting && place >> kStepBits == member.phase) note(run_id, member_id);
}

void CollectiveRunner::note(std::uint32_t run_id, std::uint32_t member_id) {
  ChunkRun& run = *runs_[run_id];
  Member& member = run.members[member_id];
  if (member.noted) return;
  member.noted = true;
  const std::int32_t rank = rank_of(run, member_id);
  std::uint32_t& first = first_note_[static_cast<std::size_t>(rank)];
  notes_.push_back({run_id, member_id, first});
  first = static_cast<std::uint32_t>(notes_.size() - 1);
  turns_.mark(rank);
}

bool CollectiveRunner::goes_first(const Note& a, const Note& b) const {
  const auto key = [&](const Note& note) {
    const ChunkRun& run = *runs_[note.run];
    return std::pair(instances_[run.instance].issues[note.member].sequence, run.chunk);
  };
  return key(a) < key(b);
}

void CollectiveRunner::take_turn(std::int32_t rank) {
  if (evaluator_) evaluator_->take_turn(rank);
  std::uint32_t& first = first_note_[static_cast<std::size_t>(rank)];
  if (first == kNone) return;
  turn_.clear();
  for (; first != kNone; first = notes_[first].next) turn_.push_back(notes_[first]);
  acted_on_ += turn_.size();
  if (acted_on_ == notes_.size()) {
    notes_.clear();
    acted_on_ = 0;
  }
  if (turn_.size() > 1)
    std::sort(turn_.begin(), turn_.end(), [&](const Note& a, const Note& b) { return goes_first(a, b); });
  for (const Note& noted : turn_) act(noted.run, noted.member);
  fill_slots(rank);
}

void CollectiveRunner::act(std::uint32_t run_id, std::uint32_t member_id) {
  ChunkRun& run = *runs_[run_id];
  Member& member = run.members[member_id];
  member.noted = false;
  switch (member.state) {
    case State::waiting:
      scheduler_.start_beyond_limit(rank_of(run, member_id), queue_of(run, member));
      start_phase(run_id, member_id, true);
      return;
    case State::reduced:
      member.state = State::active;
      ++member.step;
      enter_step(run_id, member_id);
      complete_steps(run_id, member_id);
      return;
    case State::active:
      send_within_window(run_id, member_id);
      complete_steps(run_id, member_id);
      return;
    case State::not_issued:
    case State::reducing:
    case State::done:
      return;
  }
}

void CollectiveRunner::finish_phase(std::uint32_t run_id, std::uint32_t member_id) {
  ChunkRun& run = *runs_[run_id];
  CollectiveInstance& instance = instances_[run.instance];
  Member& member = run.members[member_id];
  const std::int32_t rank = rank_of(instance, member_id);
  const std::uint32_t queue = queue_of(run, member);
  ChunkPhase report;
  report.chunk = run.chunk;
  report.dimension = dimension_of(run, member);
  report.phase = member.phase;
  report.ready = report.start = member.phase_start;
  report.end = queue_.now();
  client_.chunk_finished(rank, instance.issues[member_id].node, report);
  if (member.holds_slot) {
    scheduler_.finished(rank, queue);
    refill_ = true;
  }
  ++member.phase;
  enter_phase(run_id, member_id);
}

void CollectiveRunner::finish_chunk(std::uint32_t run_id, std::uint32_t member_id) {
  ChunkRun& run = *runs_[run_id];
  const std::uint32_t instance_id = run.instance;
  CollectiveInstance& instance = instances_[instance_id];
  run.members[member_id].state = State::done;
  if (--run.members_left == 0) runs_[run_id].reset();
  CollectiveIssue& issue = instance.issues[member_id];
  if (--issue.chunks_left > 0) return;
  const std::int32_t rank = rank_of(instance, member_id);
  const std::uint32_t node = issue.node;
  if (!issue.started) client_.collective_started(rank, node);
  instances_.leave(instance_id);
  client_.collective_finished(rank, node);
}

void CollectiveRunner::custom_finished(std::uint64_t argument) {
  const std::uint32_t id = high(argument);
  CollectiveInstance& instance = instances_[id];
  CollectiveIssue& issue = instance.issues[low(argument)];
  issue.chunks_left = 0;
  const std::int32_t rank = rank_of(instance, low(argument));
  const std::uint32_t node = issue.node;
  instances_.leave(id);
  client_.collective_finished(rank, node);
}

bool CollectiveRunner::start_oldest_waiting() {
  std::vector<Note> oldest(static_cast<std::size_t>(classes_.simulated()), Note{kNone, 0, kNone});
  for (std::uint32_t run_id = 0; run_id < runs_.size(); ++run_id) {
    if (!runs_[run_id]) continue;
    const ChunkRun& run = *runs_[run_id];
    for (std::uint32_t m = 0; m < run.members.size(); ++m) {
      if (run.members[m].state != State::waiting) continue;
      const Note waiting{run_id, m, kNone};
      Note& known = oldest[static_cast<std::size_t>(rank_of(run, m))];
      if (known.run == kNone || goes_first(waiting, known)) known = waiting;
    }
  }
  bool found = false;
  for (std::int32_t rank = 0; rank < classes_.simulated(); ++rank) {
    const Note& waiting = oldest[static_cast<std::size_t>(rank)];
    if (waiting.run == kNone) continue;
    found = true;
    act(waiting.run, waiting.member);
    fill_slots(rank);
    turns_.mark(rank);
  }
  return found;
}

}  // namespace armilla
