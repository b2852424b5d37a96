#include "sim/engine/collective_runner.h"

#include <algorithm>

#include "sim/engine/native_run.h"
#include "sim/plan/senders.h"

namespace armilla {
namespace {

// An event's argument: 3 bits of kind; the message's place, 8 bits of phase and 21 of step; 32 of the part
// that receives it. Of a windowed message, its number instead; of a custom collective, member and instance;
// of one that all members have issued, the instance.
enum class RunnerEvent : std::uint8_t { message, windowed, reduced, custom_done, all_issued };
constexpr std::uint32_t kStepBits = 21;
constexpr int kRunnerKindShift = 61;
constexpr std::uint32_t kPlaceMask = (1U << 29) - 1;

std::uint32_t place_of(std::uint32_t phase, std::uint32_t step) {
  return phase << kStepBits | step;
}
std::uint64_t event(RunnerEvent kind, std::uint32_t place, std::uint32_t part) {
  return std::uint64_t{static_cast<std::uint8_t>(kind)} << kRunnerKindShift | std::uint64_t{place} << 32 |
         part;
}

}  // namespace

CollectiveRunner::CollectiveRunner(const NativePlay& play, const RunContext& context, GroupTable& groups,
                                   CustomRunner& custom, RankWalker& walker)
    : context_(context),
      options_(play.study.collectives),
      every_message_(play.options.every_message),
      dimensions_(static_cast<std::uint32_t>(play.study.machine.dimensions.size())),
      planner_(play.planner),
      groups_(groups),
      custom_(custom),
      walker_(walker),
      target_(context.queue.add_handler(*this)),
      scheduler_(context.classes.real.size(), options_.active_chunks, options_.order),
      instances_(context.graph, context.classes, walker),
      facts_(context.graph.collectives.size()),
      first_noted_(context.classes.real.size(), kNone) {
  for (const std::int32_t rank : context.classes.real)
    memory_bandwidths_.push_back(device_of(play.study.machine, rank).memory_bandwidth);
}

// Flat algorithms come after the machine's dimensions.
std::uint32_t CollectiveRunner::dimension_of(const Part& part) const {
  const std::uint32_t dimension = part.planned->dimension;
  return dimension == kAllDimensions ? dimensions_ : dimension;
}

std::uint32_t CollectiveRunner::queue_of(const Part& part) const {
  // Rings that share a call have a queue each, as have sums that switches give back.
  return instances_[run_of(part).instance].family * (dimensions_ + kMostRings) + dimension_of(part) +
         part.planned->queue;
}

void CollectiveRunner::open_chunks(std::uint32_t id) {
  CollectiveInstance& instance = instances_[id];
  const CollectiveCall& call = context_.graph.collectives[instance.call];
  const GroupMembers& group = groups_.of(instance.family, instance.group);
  if (call.custom >= 0) {
    instance.first_chunk = custom_.open(context_.graph.custom[static_cast<std::size_t>(call.custom)],
                                        group.layouts.front()->ranks, call.bytes);
    instance.chunks = 1;
    return;
  }
  const std::vector<const CollectivePlan*>& plans = plans_of(instance.call, group.layouts.front()->shape);
  instance.chunks = static_cast<std::uint32_t>(plans.size());
  instance.first_chunk = static_cast<std::uint32_t>(runs_.size());
  const auto members = static_cast<std::uint32_t>(group.real.size());
  for (std::uint32_t chunk = 0; chunk < instance.chunks; ++chunk) {
    const std::uint32_t first = parts_.take(members);
    for (std::uint32_t m = 0; m < members; ++m) {
      Part& part = parts_[first + m];
      // Parts are used again by later chunks; the room that the list has is kept.
      std::vector<std::uint32_t> early = std::move(part.early);
      part = {};
      part.early = std::move(early);
      part.early.clear();
      part.rank = (*group.members)[m];
      part.real = group.real[m];
      part.run = static_cast<std::uint32_t>(runs_.size());
    }
    if (spare_runs_.empty()) spare_runs_.push_back(std::make_unique<ChunkRun>());
    *spare_runs_.back() = {id,    chunk,   plans[chunk], &group,
                           first, members, members,      sender_of_family(instance.family)};
    runs_.push_back(std::move(spare_runs_.back()));
    spare_runs_.pop_back();
  }
}

CollectiveRunner::CallFacts& CollectiveRunner::facts_of(std::uint32_t call, std::uint32_t shape) {
  std::vector<CallFacts>& known = facts_[call];
  const auto found = std::ranges::find(known, shape, &CallFacts::shape);
  return found != known.end() ? *found : known.emplace_back(CallFacts{shape, {}, {}});
}

const std::vector<const CollectivePlan*>& CollectiveRunner::plans_of(std::uint32_t number,
                                                                     std::uint32_t shape) {
  std::vector<const CollectivePlan*>& plans = facts_of(number, shape).plans;
  if (!plans.empty()) return plans;
  const CollectiveCall& call = context_.graph.collectives[number];
  const std::int64_t chunks = planner_.chunks(call, shape);
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) plans.push_back(&planner_.plan(call, shape, chunk));
  return plans;
}

void CollectiveRunner::issue(std::int32_t rank, std::uint32_t node, std::uint32_t call,
                             std::uint64_t sequence) {
  const CollectiveInstances::Issued issued = instances_.issue(rank, node, call, sequence);
  if (issued.fresh) open_chunks(issued.id);
  CollectiveInstance& instance = instances_[issued.id];
  instance.issues[issued.member].chunks_left = static_cast<std::int32_t>(instance.chunks);
  // Ranks may come to the collectives of a group in different orders: what the first issued is what all do.
  if (context_.graph.collectives[instance.call].custom < 0) {
    for (std::uint32_t run = instance.first_chunk; run < instance.first_chunk + instance.chunks; ++run) {
      Part& part = parts_[runs_[run]->first_part + issued.member];
      part.state = State::issued;
      part.sequence = sequence;
      part.priority = context_.graph.collectives[call].priority;
    }
  }
  // Through an event, after which all members begin in turns of theirs, whoever was the last.
  if (issued.last)
    context_.queue.schedule(context_.queue.now(), target_, event(RunnerEvent::all_issued, 0, issued.id));
}

// Of a custom collective a member may be through at once, but is told so in an event.
void CollectiveRunner::begin(std::uint32_t id) {
  const CollectiveInstance& instance = instances_[id];
  const auto members = static_cast<std::uint32_t>(instance.issues.size());
  if (context_.graph.collectives[instance.call].custom < 0) {
    for (std::uint32_t run = instance.first_chunk; run < instance.first_chunk + instance.chunks; ++run) {
      for (std::uint32_t member = 0; member < members; ++member)
        note(parts_[runs_[run]->first_part + member]);
    }
    return;
  }
  const GroupMembers& group = groups_.of(instance.family, instance.group);
  for (std::uint32_t member = 0; member < members; ++member) {
    instances_.start(id, member);
    custom_.start(instance.first_chunk, group.layouts[member]->flat_position(group.real[member]),
                  {target_, event(RunnerEvent::custom_done, member, id)});
  }
}

Time CollectiveRunner::beyond(std::int32_t rank, std::uint32_t call) {
  const CollectiveCall& what = context_.graph.collectives[call];
  const std::int32_t group = context_.classes.families[what.family].group_of[static_cast<std::size_t>(rank)];
  const std::uint32_t shape =
      groups_.of(what.family, static_cast<std::uint32_t>(group)).layouts.front()->shape;
  std::optional<Time>& beyond = facts_of(call, shape).beyond;
  if (!beyond) beyond = planner_.overhead(what, shape);
  return *beyond;
}

void CollectiveRunner::enter_phase(std::uint32_t id) {
  Part& part = parts_[id];
  const ChunkRun& run = run_of(part);
  const std::uint32_t member = id - run.first_part;
  const std::vector<PlannedPhase>& phases = run.plan->phases;
  const GroupLayout& layout = *run.group->layouts[member];
  while (part.phase < phases.size() && !takes_part(*run.plan, phases[part.phase], layout, part.real))
    ++part.phase;
  if (part.phase == phases.size()) {
    finish_chunk(id);
    return;
  }
  part.state = State::waiting;
  locate(part);
  const std::vector<Step>& steps = part.schedule->steps;
  if (steps.empty() || steps.front().first_send == steps.front().end_send) {
    // A slot is permission to begin sending. Who first has to receive is gated by the others' slots; were it
    // to hold one while it waits, ranks that enter a dimension in different orders would wait for each other.
    start_phase(id, false);
    return;
  }
  // Others have sent for this phase already, and may hold slots until they hear back: to wait behind chunks
  // that they have not come to yet could stop both for good.
  const bool is_awaited = std::any_of(part.early.begin(), part.early.end(),
                                      [&](std::uint32_t place) { return place >> kStepBits == part.phase; });
  part.queue = scheduler_.queue(part.rank, queue_of(part));
  if (is_awaited) {
    scheduler_.start_beyond_limit(part.rank, part.queue);
    start_phase(id, true);
  } else {
    scheduler_.add(part.rank, part.queue,
                   {part.run, member, part.phase, part.sequence, part.priority, run.chunk});
  }
}

// Where the member stands in its current phase.
void CollectiveRunner::locate(Part& part) {
  const ChunkRun& run = run_of(part);
  const GroupLayout& layout = *run.group->layouts[id_of(part) - run.first_part];
  part.planned = &run.plan->phases[part.phase];
  part.here = position_in(*part.planned, layout, part.real);
  part.tree = part.planned->in_trees ? tree_of(*part.planned, layout, part.real, part.here) : kNoTree;
  part.schedule = &part.planned->schedule->of(part.here);
  part.last_peer = kNobodyYet;
}

// Of the line of ranks that the phase has `rank` in.
std::uint32_t CollectiveRunner::tree_of(const PlannedPhase& phase, const GroupLayout& layout,
                                        std::int32_t rank, std::int32_t here) {
  const auto at = [&](std::int32_t position) { return rank_at(phase, layout, rank, here, position); };
  const auto [found, fresh] = trees_.try_emplace({&layout, phase.dimension, at(0), phase.kind}, kNoTree);
  if (fresh) {
    std::vector<std::int32_t> members;
    for (std::int32_t position = 0; position < phase.schedule->ranks; ++position)
      members.push_back(at(position));
    found->second = context_.network.switch_tree(members, phase.kind);
  }
  return found->second;
}

// A chunk that is started may be through at once, and its next phase wait in another queue.
void CollectiveRunner::fill_slots(std::int32_t rank) {
  while (scheduler_.has_next(rank)) {
    for (std::size_t i = 0; i < scheduler_.queues(rank) && scheduler_.has_next(rank); ++i) {
      const std::uint32_t queue = scheduler_.queue_at(rank, i);
      if (scheduler_.has_next(rank, queue)) fill_slots(rank, queue);
    }
  }
}

void CollectiveRunner::fill_slots(std::int32_t rank, std::uint32_t queue) {
  while (const std::optional<WaitingChunk> chunk = scheduler_.next(rank, queue)) {
    const ChunkRun* const run = runs_[chunk->run].get();
    const std::uint32_t id = run == nullptr ? kNone : run->first_part + chunk->member;
    // Chunks that were started beyond the limit stay in the queue, where looking for them would cost more
    // than passing over them here.
    const bool stale =
        run == nullptr || parts_[id].state != State::waiting || parts_[id].phase != chunk->phase;
    if (stale) {
      scheduler_.drop(rank, queue);
    } else {
      start_phase(id, true);
    }
  }
}

void CollectiveRunner::start_phase(std::uint32_t id, bool holds_slot) {
  Part& part = parts_[id];
  part.state = State::active;
  part.holds_slot = holds_slot;
  part.step = 0;
  part.phase_start = context_.queue.now();
  instances_.start(run_of(part).instance, id - run_of(part).first_part);
  enter_step(part);
  complete_steps(id);
}

void CollectiveRunner::enter_step(Part& part) {
  if (part.step == part.schedule->steps.size()) return;
  const Step& step = part.schedule->steps[part.step];
  part.place = place_of(part.phase, part.step);
  part.next_send = step.first_send;
  part.in_flight = 0;
  part.receives_left = step.receives;
  if (!part.early.empty())
    part.receives_left -= static_cast<std::int32_t>(std::erase(part.early, part.place));
  send_within_window(part);
}

void CollectiveRunner::send_within_window(Part& part) {
  const Step& step = part.schedule->steps[part.step];
  while (part.next_send < step.end_send && (step.window == 0 || part.in_flight < step.window)) {
    const std::uint32_t number = part.next_send++;
    const Transfer& transfer = part.schedule->sends[number];
    ++part.in_flight;
    if (transfer.peer != part.last_peer) find_peer(part, transfer);
    const std::uint32_t place = place_of(part.phase, static_cast<std::uint32_t>(transfer.step));
    std::uint64_t argument = event(RunnerEvent::message, place, part.last_part);
    if (step.window > 0) {
      argument = event(RunnerEvent::windowed, 0, windowed_.add({id_of(part), part.last_part, place}));
    }
    const std::uint32_t row = row_of(part, step);
    part.next_send += row - 1;
    context_.network.send({.source = part.real,
                           .destination = part.last_to,
                           .bytes = transfer.bytes,
                           .dimension = part.planned->dimension,
                           .order = number,
                           .target = target_,
                           .argument = argument,
                           .leg = step.leg,
                           .sender = run_of(part).sender,
                           .share = part.planned->share,
                           .tree = part.tree,
                           .row = row});
  }
}

// How many of the step's messages may go as one row: all, where one rank stands for all members, so that it
// is the receiver of all that it sends, and waits for the last one.
std::uint32_t CollectiveRunner::row_of(const Part& part, const Step& step) const {
  const std::uint32_t sends = step.end_send - step.first_send;
  if (run_of(part).members > 1 || sends == 1 || every_message_ || step.window > 0 || step.leg != Leg::whole ||
      !part.planned->schedule->is_symmetric() || step.receives != static_cast<std::int32_t>(sends) ||
      !context_.network.keeps_rows(part.planned->dimension))
    return 1;
  const std::span<const Transfer> all = part.schedule->sends_of(step);
  const bool are_alike = std::ranges::all_of(all, [&](const Transfer& transfer) {
    return transfer.bytes == all.front().bytes && static_cast<std::uint32_t>(transfer.step) == part.step;
  });
  return are_alike ? sends : 1;
}

// Who receives it, in its line of ranks.
void CollectiveRunner::find_peer(Part& part, const Transfer& transfer) const {
  const ChunkRun& run = run_of(part);
  const GroupLayout& layout = *run.group->layouts[id_of(part) - run.first_part];
  const std::int32_t position = part.planned->schedule->peer(part.here, transfer);
  part.last_peer = transfer.peer;
  part.last_to = rank_at(*part.planned, layout, part.real, part.here, position);
  const std::int32_t simulated = context_.classes.simulated_rank(part.last_to);
  const std::int32_t member = run.group->family->member_of[static_cast<std::size_t>(simulated)];
  part.last_part = run.first_part + static_cast<std::uint32_t>(member);
}

// Goes on for as long as the current step is complete. A local reduction interrupts; act() resumes behind it.
void CollectiveRunner::complete_steps(std::uint32_t id) {
  Part& part = parts_[id];
  while (part.step < part.schedule->steps.size()) {
    const Step& step = part.schedule->steps[part.step];
    const bool sent = part.next_send == step.end_send && (step.window == 0 || part.in_flight == 0);
    if (part.receives_left > 0 || !sent) return;
    if (options_.charge_reductions && step.reduced > Bytes(0)) {
      part.state = State::reducing;
      const Time duration =
          // Both operands are read and the sum is written.
          time_to_move(step.reduced * 3, memory_bandwidths_[static_cast<std::size_t>(part.rank)]);
      context_.order.schedule(part.rank, later(context_.queue.now(), duration), target_,
                              event(RunnerEvent::reduced, 0, id));
      return;
    }
    ++part.step;
    enter_step(part);
  }
  finish_phase(id);
}

void CollectiveRunner::handle(std::uint64_t argument) {
  const auto id = static_cast<std::uint32_t>(argument);
  const std::uint32_t place = static_cast<std::uint32_t>(argument >> 32) & kPlaceMask;
  switch (static_cast<RunnerEvent>(argument >> kRunnerKindShift)) {
    case RunnerEvent::message:
      receive(parts_[id], place);
      return;
    case RunnerEvent::windowed:
      windowed_arrived(id);
      return;
    case RunnerEvent::reduced:
      parts_[id].state = State::reduced;
      note(parts_[id]);
      return;
    case RunnerEvent::custom_done:
      instances_.finish_chunk(id, place);
      return;
    case RunnerEvent::all_issued:
      begin(id);
      return;
  }
}

// Among messages of one source every one has its own; a symmetric schedule's are told apart by the way they
// come (sim/fold/rank_colours.h), those of others by the sender's position, too.
MessageLabel CollectiveRunner::label(const Message& message) const {
  auto id = static_cast<std::uint32_t>(message.argument);
  std::uint32_t place = static_cast<std::uint32_t>(message.argument >> 32) & kPlaceMask;
  if (static_cast<RunnerEvent>(message.argument >> kRunnerKindShift) == RunnerEvent::windowed) {
    place = windowed_[id].place;
    id = windowed_[id].to;
  }
  const ChunkRun& run = run_of(parts_[id]);
  const CollectiveInstance& instance = instances_[run.instance];
  const std::uint64_t phase_number = place >> kStepBits;
  const PlannedPhase& phase = run.plan->phases[phase_number];
  std::int32_t position = 0;
  if (!phase.schedule->is_symmetric()) {
    const std::int32_t simulated = context_.classes.simulated_rank(message.source);
    const std::int32_t member = run.group->family->member_of[static_cast<std::size_t>(simulated)];
    position = position_in(phase, *run.group->layouts[static_cast<std::size_t>(member)], message.source);
  }
  const std::uint64_t program = context_.graph.program_of[static_cast<std::size_t>(message.source)];
  return {{program << 32 | instance.family, std::uint64_t{instance.number} << 32 | run.chunk,
           phase_number << 56 | std::uint64_t{static_cast<std::uint32_t>(position)} << 32 | message.order}};
}

// A step with a window lasts until its last message is delivered, so the sender is still in the step it sent
// in.
void CollectiveRunner::windowed_arrived(std::uint32_t slot) {
  const Windowed message = windowed_.remove(slot);
  Part& sender = parts_[message.from];
  --sender.in_flight;
  note(sender);
  receive(parts_[message.to], message.place);
}

void CollectiveRunner::handle_times(std::uint64_t argument, std::uint32_t times) {
  const std::uint32_t place = static_cast<std::uint32_t>(argument >> 32) & kPlaceMask;
  if (static_cast<RunnerEvent>(argument >> kRunnerKindShift) == RunnerEvent::message) {
    receive(parts_[static_cast<std::uint32_t>(argument)], place, times);
  } else {
    EventHandler::handle_times(argument, times);
  }
}

void CollectiveRunner::receive(Part& part, std::uint32_t place, std::uint32_t times) {
  if (part.state == State::active && place == part.place) {
    part.receives_left -= static_cast<std::int32_t>(times);
    if (part.receives_left == 0) note(part);
    return;
  }
  part.early.insert(part.early.end(), times, place);
  if (part.state == State::waiting && place >> kStepBits == part.phase) note(part);
}

void CollectiveRunner::note(Part& part) {
  if (part.noted) return;
  part.noted = true;
  part.next_noted = std::exchange(first_noted_[static_cast<std::size_t>(part.rank)], id_of(part));
  context_.order.mark(part.rank, TurnPart::runner);
}

void CollectiveRunner::take_turn(std::int32_t rank) {
  std::uint32_t next = std::exchange(first_noted_[static_cast<std::size_t>(rank)], kNone);
  if (parts_[next].next_noted == kNone) {
    act(next);
  } else {
    turn_.clear();
    for (; next != kNone; next = parts_[next].next_noted) turn_.push_back(next);
    std::sort(turn_.begin(), turn_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return goes_first(parts_[a], parts_[b]); });
    for (const std::uint32_t part : turn_) act(part);
  }
  fill_slots(rank);
}

void CollectiveRunner::act(std::uint32_t id) {
  Part& part = parts_[id];
  part.noted = false;
  switch (part.state) {
    case State::issued:
      enter_phase(id);
      return;
    case State::waiting:
      scheduler_.start_beyond_limit(part.rank, part.queue);
      start_phase(id, true);
      return;
    case State::reduced:
      part.state = State::active;
      ++part.step;
      enter_step(part);
      complete_steps(id);
      return;
    case State::active:
      if (part.schedule->steps[part.step].window > 0) send_within_window(part);
      complete_steps(id);
      return;
    case State::not_issued:
    case State::reducing:
    case State::done:
      return;
  }
}

void CollectiveRunner::finish_phase(std::uint32_t id) {
  Part& part = parts_[id];
  if (walker_.keeps_chunks(part.rank)) {
    const ChunkRun& run = run_of(part);
    ChunkInterval report;
    report.node = instances_[run.instance].issues[id - run.first_part].node;
    report.chunk = run.chunk;
    report.dimension = dimension_of(part);
    report.phase = part.phase;
    report.ready = report.start = part.phase_start;
    report.end = context_.queue.now();
    walker_.chunk_finished(part.rank, report);
  }
  if (part.holds_slot) scheduler_.finished(part.rank, part.queue);
  ++part.phase;
  enter_phase(id);
}

void CollectiveRunner::finish_chunk(std::uint32_t id) {
  Part& part = parts_[id];
  ChunkRun& run = run_of(part);
  const std::uint32_t instance = run.instance, member = id - run.first_part;
  part.state = State::done;
  if (--run.members_left == 0) {
    parts_.release(run.first_part, run.members);
    spare_runs_.push_back(std::move(runs_[part.run]));
  }
  instances_.finish_chunk(instance, member);
}

Digest CollectiveRunner::describe_part(std::uint32_t id) const {
  const ChunkRun& run = run_of(parts_[id]);
  const Digest instance = instances_.describe(instances_[run.instance]);
  return digest_of(instance.low, instance.high, run.chunk, id - run.first_part);
}

Digest CollectiveRunner::describe(std::uint64_t argument) const {
  const auto id = static_cast<std::uint32_t>(argument);
  const std::uint64_t kind_and_place = argument >> 32;
  if (static_cast<RunnerEvent>(argument >> kRunnerKindShift) == RunnerEvent::all_issued) {
    const Digest instance = instances_.describe(instances_[id]);
    return digest_of(kind_and_place, instance.low, instance.high);
  }
  if (static_cast<RunnerEvent>(argument >> kRunnerKindShift) != RunnerEvent::windowed) {
    const Digest part = describe_part(id);
    return digest_of(kind_and_place, part.low, part.high);
  }
  const Windowed& message = windowed_[id];
  // The sender may be through with the chunk, but not the receiver.
  const Digest to = describe_part(message.to);
  return digest_of(kind_and_place, to.low, to.high, message.from - run_of(parts_[message.to]).first_part,
                   message.place);
}

// What follows from the rest is left out: schedules, places, who was sent to last.
void CollectiveRunner::add_state(StateDigest& state) const {
  instances_.add_state(state);
  scheduler_.add_state(state);
  while (closed_ < runs_.size() && !runs_[closed_]) ++closed_;
  for (std::size_t r = closed_; r < runs_.size(); ++r) {
    if (!runs_[r]) continue;
    const ChunkRun& run = *runs_[r];
    for (std::uint32_t id = run.first_part; id < run.first_part + run.members; ++id) {
      const Part& part = parts_[id];
      const Digest which = describe_part(id);
      state.add('q', which.low, which.high, static_cast<int>(part.state));
      for (const std::uint32_t place : part.early) state.add('e', which.low, which.high, place);
      if (part.state <= State::issued || part.state == State::done) continue;
      state.add('x', which.low, which.high, part.phase, part.priority,
                walker_.states().age(part.rank, part.sequence));
      if (part.state == State::waiting) continue;
      state.add('y', which.low, which.high, part.holds_slot, part.step, part.receives_left, part.next_send,
                part.in_flight, context_.queue.now().value - part.phase_start.value);
    }
  }
}

bool CollectiveRunner::start_oldest_waiting() {
  std::vector<std::uint32_t> oldest(context_.classes.real.size(), kNone);
  for (const std::unique_ptr<ChunkRun>& run : runs_) {
    if (!run) continue;
    for (std::uint32_t id = run->first_part; id < run->first_part + run->members; ++id) {
      if (parts_[id].state != State::waiting) continue;
      std::uint32_t& known = oldest[static_cast<std::size_t>(parts_[id].rank)];
      if (known == kNone || goes_first(parts_[id], parts_[known])) known = id;
    }
  }
  bool found = false;
  for (std::int32_t rank = 0; rank < context_.classes.simulated(); ++rank) {
    const std::uint32_t waiting = oldest[static_cast<std::size_t>(rank)];
    if (waiting == kNone) continue;
    found = true;
    act(waiting);
    fill_slots(rank);
  }
  return found;
}

}  // namespace armilla
