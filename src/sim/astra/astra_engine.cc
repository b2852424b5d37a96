#include "sim/astra/astra_engine.h"

#include <algorithm>
#include <memory>

#include "sim/engine/rank_walker.h"

namespace armilla {

AstraEngine::AstraEngine(const RunContext& context, const SystemLayer& system, CustomRunner& custom,
                         RankWalker& walker)
    : context_(context),
      system_(system),
      custom_(custom),
      walker_(walker),
      planner_(system),
      target_(context.queue.add_handler(*this)),
      together_(system.semantics == Semantics::astra1),
      instances_(context.graph, context.classes, walker),
      queues_(system, context.classes.real.size(), planner_.logical_sizes().size(), streams_),
      mail_(context, system, streams_, target_),
      buses_(context, system, target_) {}

void AstraEngine::issue(std::int32_t rank, std::uint32_t node, std::uint32_t call_id,
                        std::uint64_t sequence) {
  const CollectiveCall& call = context_.graph.collectives[call_id];
  // Themis follows rank 0's loads, whichever rank is the first to issue.
  if (rank == 0) planner_.first_rank_issues(context_.queue.now());
  const CollectiveInstances::Issued issued = instances_.issue(rank, node, call_id, sequence);
  if (issued.fresh) make_chunks(issued.id);
  const std::uint32_t first = instances_[issued.id].first_chunk, chunks = instances_[issued.id].chunks;
  instances_[issued.id].issues[issued.member].chunks_left = std::max(static_cast<std::int32_t>(chunks), 1);
  const std::int32_t priority = queues_.priority_of(rank, call);
  for (std::uint32_t chunk = first; chunk < first + chunks; ++chunk)
    create_stream(*chunks_[chunk], issued.member, rank, priority);
  // Nothing to move: the call is over as it is issued.
  if (chunks == 0) instances_.finish_chunk(issued.id, issued.member);
}

void AstraEngine::make_chunks(std::uint32_t id) {
  const CollectiveInstance& instance = instances_[id];
  const CollectiveCall& call = context_.graph.collectives[instance.call];
  const GroupFamily& family = context_.graph.families[call.family];
  const auto rank = static_cast<std::size_t>(context_.classes.real_rank(instance.members->front()));
  const auto group = static_cast<std::size_t>(together_ ? 0 : family.group_of[rank]);
  const auto size = static_cast<std::int64_t>(family.groups[group].size());
  instances_[id].first_chunk = static_cast<std::uint32_t>(chunks_.size());
  planner_.for_each_chunk(context_.graph, call, size, [&](std::vector<AstraPhase> phases) {
    make_chunk(id, std::move(phases));
    ++instances_[id].chunks;
    return true;
  });
}

void AstraEngine::make_chunk(std::uint32_t instance_id, std::vector<AstraPhase> phases) {
  const CollectiveInstance& instance = instances_[instance_id];
  const GroupFamily& family = context_.graph.families[instance.family];
  const FoldedFamily& folded = context_.classes.families[instance.family];
  const std::vector<std::int32_t>& ranks = *instance.members;
  const auto members = static_cast<std::uint32_t>(ranks.size());
  const auto id = static_cast<std::uint32_t>(chunks_.size());
  chunks_.push_back(std::make_unique<AstraChunk>());
  AstraChunk& chunk = *chunks_.back();
  chunk.id = id;
  chunk.instance = instance_id;
  chunk.member_of = folded.member_of.data();
  chunk.number = instance.chunks;
  chunk.members = chunk.members_left = members;
  if (phases.front().method == AstraMethod::custom) {
    const CollectiveCall& call = context_.graph.collectives[instance.call];
    chunk.custom =
        custom_.open(context_.graph.custom[static_cast<std::size_t>(call.custom)], ranks, call.bytes);
  } else {
    for (const AstraPhase& phase : phases) chunk.slots = std::max(chunk.slots, phase.schedule->slots);
  }
  mail_.open(chunk);
  if (system_.queues_per_dimension > 1) chunk.queues.resize(members * phases.size());
  chunk.phases = std::move(phases);
  chunk.first_stream = streams_.take(members);
  messages_.resize(streams_.size());
  for (std::uint32_t m = 0; m < members; ++m) {
    AstraStream& stream = streams_[chunk.first_stream + m];
    stream = {};
    stream.id = chunk.first_stream + m;
    stream.chunk = &chunk;
    stream.mailbox = chunk.mail.open.data() + m * static_cast<std::size_t>(chunk.slots);
    stream.rank = context_.classes.real_rank(ranks[m]);
    const std::int32_t group = family.group_of[static_cast<std::size_t>(stream.rank)];
    const std::int32_t first = family.groups[static_cast<std::size_t>(group)].front();
    // Where groups are joined, positions count from the first member of the rank's own.
    const std::int32_t base =
        folded.member_of[static_cast<std::size_t>(context_.classes.simulated_rank(first))];
    stream.base = chunk.first_stream + static_cast<std::uint32_t>(base);
  }
}

void AstraEngine::create_stream(AstraChunk& chunk, std::uint32_t member, std::int32_t rank,
                                std::int32_t priority) {
  const std::uint32_t id = chunk.first_stream + member;
  streams_[id].priority = priority;
  if (!chunk.queues.empty()) {
    for (std::size_t p = 0; p < chunk.phases.size(); ++p) {
      const auto [queue, reversed] = queues_.allocate(rank, chunk.phases[p]);
      chunk.queues[member * chunk.phases.size() + p] = queue << 1U | (reversed ? 1U : 0U);
    }
  }
  enter_phase(id);
  start_streams(rank, streams_[id].queue);
}

// Puts the stream into the queue of its current phase.
void AstraEngine::enter_phase(std::uint32_t id) {
  AstraStream& stream = streams_[id];
  const AstraChunk& chunk = *stream.chunk;
  const AstraPhase& phase = chunk.phases[stream.phase];
  stream.current = &phase;
  stream.state = StreamState::waiting;
  stream.ready = context_.queue.now();
  stream.step_times = stream.crossing_times = 0;
  stream.crossed = stream.received = stream.unanswered = 0;
  stream.last_peer = AstraStream::kNobodyYet;
  if (chunk.queues.empty()) {
    stream.queue = static_cast<std::uint32_t>(phase.queue_level());
    stream.reversed = phase.share == QueueShare::second;
  } else {
    const std::size_t member = id - chunk.first_stream;
    const std::uint32_t packed = chunk.queues[member * chunk.phases.size() + stream.phase];
    stream.queue = packed >> 1U;
    stream.reversed = (packed & 1U) != 0;
  }
  if (phase.dimension == kFlatPhase) {
    stream.here = static_cast<std::int32_t>(id - stream.base);
  } else {
    const auto d = static_cast<std::size_t>(phase.dimension);
    stream.here =
        static_cast<std::int32_t>(stream.rank / planner_.logical_strides()[d] % planner_.logical_sizes()[d]);
  }
  // Idle ranks begin at once and wait at the barrier only: their queues see nothing of the phase.
  stream.idle = is_idle(stream);
  if (stream.idle) {
    begin_collective(id);
    streams_[id].chunk->at_barrier.push_back(id);
  } else {
    queues_.add(id);
  }
}

// Whether its rank is not in line with rank 0 (RingTopology.cc and BinaryTree.hh, is_enabled).
bool AstraEngine::is_idle(const AstraStream& stream) const {
  const AstraPhase& phase = phase_of(stream);
  if (!together_ || !system_.boost || phase.dimension == kFlatPhase) return false;
  if (stream.rank % phase.stride != 0) return true;
  return phase.method != AstraMethod::double_binary_tree && stream.rank >= phase.stride * phase.ranks;
}

void AstraEngine::start_streams(std::int32_t rank, std::uint32_t queue) {
  while (const std::optional<std::uint32_t> id = queues_.next(rank, queue)) begin(*id);
}

void AstraEngine::begin_collective(std::uint32_t id) {
  AstraStream& stream = streams_[id];
  stream.start = context_.queue.now();
  instances_.start(stream.chunk->instance, id - stream.chunk->first_stream);
}

void AstraEngine::begin(std::uint32_t id) {
  begin_collective(id);
  AstraStream& stream = streams_[id];
  AstraChunk& chunk = *stream.chunk;
  stream.state = StreamState::running;
  mail_.begin(id);
  const AstraPhase& phase = chunk.phases[stream.phase];
  if (phase.method == AstraMethod::custom) {
    custom_.start(chunk.custom, stream.here, {target_, pack(AstraEvent::custom_done, id, 0, 0)});
    return;
  }
  stream.role = &phase.schedule->of(stream.here);
  stream.step = stream.role->steps.data();
  stream.crossing = stream.role->crossings.data();
  for (std::int32_t i = 0; i < stream.role->at_begin; ++i) cross(stream);
  go_on(stream);
}

// The stream has done its part of the current phase. Not part of `handle`, through which every message comes.
[[gnu::noinline]] void AstraEngine::advance(std::uint32_t id) {
  if (system_.semantics != Semantics::astra1) {
    proceed(id);
    return;
  }
  AstraChunk& chunk = *streams_[id].chunk;
  chunk.at_barrier.push_back(id);
  if (chunk.at_barrier.size() < chunk.members) return;
  // All leave together whatever the order in which they came, so ranks that are watched may meet here.
  if (context_.order.is_watched()) context_.order.meet();
  const std::vector<std::uint32_t> together = std::move(chunk.at_barrier);
  chunk.at_barrier.clear();
  for (const std::uint32_t stream : together) proceed(stream);
}

void AstraEngine::report_phase(std::uint32_t id) {
  const AstraStream& stream = streams_[id];
  const AstraChunk& chunk = *stream.chunk;
  const AstraPhase& phase = chunk.phases[stream.phase];
  ChunkInterval report;
  report.node = instances_[chunk.instance].issues[id - chunk.first_stream].node;
  report.chunk = chunk.number;
  report.dimension = phase.dimension == kFlatPhase
                         ? static_cast<std::uint32_t>(planner_.logical_sizes().size())
                         : static_cast<std::uint32_t>(phase.dimension);
  report.phase = stream.phase;
  report.ready = stream.ready;
  report.start = stream.start;
  report.end = context_.queue.now();
  report.message_time = messages_[id].time;
  report.messages = messages_[id].count;
  messages_[id] = {};
  walker_.chunk_finished(stream.rank, report);
}

void AstraEngine::proceed(std::uint32_t id) {
  report_phase(id);
  AstraChunk& chunk = *streams_[id].chunk;
  const std::int32_t rank = streams_[id].rank;
  const std::uint32_t queue = streams_[id].queue;
  const bool was_idle = streams_[id].idle;
  const bool finished = streams_[id].phase + std::size_t{1} == chunk.phases.size();
  // The collective may end here, and others begin, before this stream has left its queue: as in ASTRA-sim.
  if (finished) instances_.finish_chunk(chunk.instance, id - chunk.first_stream);
  if (!was_idle) queues_.take_out(rank, queue, id);
  if (finished) {
    streams_[id].state = StreamState::done;
  } else {
    ++streams_[id].phase;
    enter_phase(id);
  }
  if (!was_idle) {
    queues_.finished(rank, queue);
    start_streams(rank, queue);
  }
  if (!finished) {
    start_streams(rank, streams_[id].queue);
  } else if (--chunk.members_left == 0) {
    release(chunk);
  }
}

void AstraEngine::release(AstraChunk& chunk) {
  streams_.release(chunk.first_stream, chunk.members);
  chunks_[chunk.id].reset();
}

// Of the other end.
std::int32_t AstraEngine::position_of(const AstraStream& stream, const AstraTransfer& transfer) const {
  const AstraSchedule& schedule = *phase_of(stream).schedule;
  if (schedule.addressing == Addressing::absolute) return transfer.peer;
  if (schedule.addressing == Addressing::exchange) return stream.here ^ transfer.peer;
  const std::int32_t n = phase_of(stream).ranks;
  const bool turns = schedule.turns && stream.reversed;
  const std::int32_t position = turns ? stream.here - transfer.peer : stream.here + transfer.peer;
  return position >= n ? position - n : position < 0 ? position + n : position;
}

std::uint32_t AstraEngine::stream_at(const AstraStream& stream, std::int32_t position) const {
  const AstraChunk& chunk = *stream.chunk;
  const AstraPhase& phase = *stream.current;
  if (phase.dimension == kFlatPhase) return stream.base + static_cast<std::uint32_t>(position);
  const std::int64_t rank = stream.rank + (position - stream.here) * phase.stride;
  return chunk.first_stream + static_cast<std::uint32_t>(chunk.member_of[rank]);
}

std::int32_t AstraEngine::rank_at(const AstraStream& stream, std::int32_t position) const {
  const AstraPhase& phase = *stream.current;
  if (phase.dimension == kFlatPhase) return streams_[stream.base + static_cast<std::uint32_t>(position)].rank;
  return static_cast<std::int32_t>(stream.rank + (position - stream.here) * phase.stride);
}

void AstraEngine::handle(std::uint64_t argument) {
  const auto id = static_cast<std::uint32_t>(argument);
  const std::int32_t slot = slot_of_event(argument);
  switch (event_of(argument)) {
    case AstraEvent::message:
      if (mail_.arrives(id, phase_of_event(argument), slot)) received(streams_[id], slot);
      return;
    case AstraEvent::late_receive:
      received(streams_[id], slot);
      return;
    case AstraEvent::handshake:
      mail_.handshake_arrives(id);
      return;
    case AstraEvent::late_handshake:
      mail_.late_handshake(id);
      return;
    case AstraEvent::bundle:
      ++streams_[id].crossed;
      go_on(streams_[id]);
      return;
    case AstraEvent::bundle_to_reduce:
      reduce(streams_[id], slot);
      return;
    case AstraEvent::custom_done:
      advance(id);
      return;
  }
}

// The next packet crosses between the rank's memory and its network endpoint. Communicators have a
// fixed delay.
void AstraEngine::cross(AstraStream& stream) {
  const AstraPhase& phase = phase_of(stream);
  const AstraCrossing& crossing = *stream.crossing;
  const std::vector<AstraCrossing>& all = stream.role->crossings;
  const auto row = static_cast<std::int32_t>(&crossing - all.data());
  if (++stream.crossing_times == crossing.times) {
    stream.crossing_times = 0;
    if (++stream.crossing == std::to_address(all.end())) stream.crossing = all.data();
  }
  const std::uint64_t argument = pack(crossing.is_reduced ? AstraEvent::bundle_to_reduce : AstraEvent::bundle,
                                      stream.id, stream.phase, row);
  if (system_.shared_bus && !phase.local) {
    const std::int64_t bytes = phase.schedule->alike ? phase.each : crossing.bytes;
    buses_.cross(stream.rank, crossing.to_endpoint, bytes, crossing.is_reduced, crossing.returned, argument);
    return;
  }
  const Time delay = nanoseconds(phase.local ? 10 : system_.endpoint_delay_ns);
  context_.order.schedule(stream.rank, later(context_.queue.now(), delay), target_, argument);
}

Time AstraEngine::reduction_time(std::int64_t bytes) {
  if (bytes == last_reduction_.first) return last_reduction_.second;
  const auto size = static_cast<double>(bytes);
  double pass = 0;  // nanoseconds
  if (system_.semantics == Semantics::astra1) {
    pass = size / 500000;
  } else if (system_.memory_bytes_per_second > 0) {
    pass = size / system_.memory_bytes_per_second * 1e9;
  }
  Time time = kEndOfTime;
  if (pass < static_cast<double>(kEndOfTime.value / 4000))
    time = nanoseconds(3 * static_cast<std::int64_t>(pass));
  last_reduction_ = {bytes, time};
  return time;
}

// A packet of that row has crossed, and is now reduced, too.
void AstraEngine::reduce(const AstraStream& stream, std::int32_t row) {
  const AstraPhase& phase = phase_of(stream);
  const std::int64_t bytes =
      phase.schedule->alike ? phase.each : stream.role->crossings[static_cast<std::size_t>(row)].reduced;
  context_.order.schedule(stream.rank, later(context_.queue.now(), reduction_time(bytes)), target_,
                          pack(AstraEvent::bundle, stream.id, stream.phase, row));
}

void AstraEngine::received(AstraStream& stream, std::int32_t slot) {
  if (stream.rank == 0) {
    Messages& messages = messages_[stream.id];
    messages.time =
        later(messages.time, context_.queue.now() - stream.chunk->posted[static_cast<std::size_t>(slot)]);
    ++messages.count;
  }
  // Several messages may have to be there before one packet goes on.
  ++stream.received;
  if (++stream.unanswered < stream.crossing->receives) return;
  stream.unanswered = 0;
  cross(stream);
}

// Takes the steps that are due.
void AstraEngine::go_on(AstraStream& stream) {
  const AstraRole& role = *stream.role;
  const AstraTransfer* const transfers = role.transfers.data();
  while (stream.step != std::to_address(role.steps.end())) {
    const AstraStep& step = *stream.step;
    if (stream.crossed < step.crossings || stream.received < step.received) return;
    stream.crossed -= step.crossings;
    if (++stream.step_times == step.times) {
      stream.step_times = 0;
      ++stream.step;
    }
    for (std::uint32_t i = step.first_send; i < step.first_receive; ++i) send(stream, transfers[i]);
    for (std::uint32_t i = step.first_receive; i < step.end_receive; ++i) post(stream, transfers[i]);
  }
  if (stream.crossed == role.crossings_at_end) advance(stream.id);
}

void AstraEngine::send(AstraStream& stream, const AstraTransfer& transfer) {
  const AstraPhase& phase = phase_of(stream);
  const std::int64_t bytes = phase.schedule->alike ? phase.each : transfer.bytes;
  if (transfer.peer != stream.last_peer) find_peer(stream, transfer);
  if (!mail_.is_direct(transfer.handshakes)) {
    mail_.transmit(
        {stream.id, stream.last_stream, transfer.slot, bytes, transfer.sender_slot, transfer.handshakes});
    return;
  }
  const Time arrival = context_.network.send(
      {.source = stream.rank,
       .destination = stream.last_to,
       .bytes = Bytes(bytes),
       .target = target_,
       .argument = pack(AstraEvent::message, stream.last_stream, stream.phase, transfer.slot)});
  if (context_.order.is_watched()) context_.order.watch(arrival, stream.last_to);
}

// Where the order is watched, the one rank hears what it sends, as from a neighbour.
void AstraEngine::find_peer(AstraStream& stream, const AstraTransfer& transfer) const {
  const std::int32_t position = position_of(stream, transfer);
  stream.last_peer = transfer.peer;
  stream.last_to = rank_at(stream, position);
  stream.last_stream = context_.order.is_watched() ? stream.id : stream_at(stream, position);
}

// Only a handshake has to know from whom.
void AstraEngine::post(AstraStream& stream, const AstraTransfer& transfer) {
  if (!system_.rendezvous || !transfer.handshakes) {
    mail_.post_now(stream, transfer.slot);
    return;
  }
  const std::int64_t bytes = phase_of(stream).schedule->alike ? phase_of(stream).each : transfer.bytes;
  mail_.post({stream_at(stream, position_of(stream, transfer)), stream.id, transfer.slot, bytes,
              transfer.sender_slot});
}

}  // namespace armilla
