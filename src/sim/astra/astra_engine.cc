#include "sim/astra/astra_engine.h"

#include <algorithm>
#include <bit>

#include "sim/astra/astra_tree.h"

namespace armilla {

AstraEngine::AstraEngine(const RunContext& context, const SystemLayer& system, CustomRunner& custom,
                         CollectiveClient& client)
    : context_(context),
      system_(system),
      custom_(custom),
      client_(client),
      planner_(system),
      target_(context.queue.add_handler(*this)),
      together_(system.semantics == Semantics::astra1),
      instances_(context.graph, context.classes),
      queues_(system, context.classes.real.size(), planner_.logical_sizes().size(), streams_),
      mail_(context, system, streams_, target_) {
  if (system.shared_bus) buses_ = std::make_unique<SharedBuses>(context, system, target_);
}

AstraEngine::~AstraEngine() = default;

void AstraEngine::issue(std::int32_t rank, std::uint32_t node, std::uint32_t call_id,
                        std::uint64_t sequence) {
  const CollectiveCall& call = context_.graph.collectives[call_id];
  if (rank == 0) planner_.first_rank_issues(context_.queue.now());
  const CollectiveInstances::Issued issued = instances_.issue(rank, node, call_id, sequence);
  if (issued.fresh) make_chunks(issued.id);
  const std::uint32_t first = instances_[issued.id].first_chunk, chunks = instances_[issued.id].chunks;
  instances_[issued.id].issues[issued.member].chunks_left = static_cast<std::int32_t>(chunks);
  const std::int32_t priority = queues_.priority_of(rank, call);
  for (std::uint32_t chunk = first; chunk < first + chunks; ++chunk)
    create_stream(*chunks_[chunk], issued.member, rank, priority);
  if (chunks > 0) return;
  client_.collective_started(rank, node);
  instances_.leave(issued.id);
  client_.collective_finished(rank, node);
}

void AstraEngine::make_chunks(std::uint32_t id) {
  const CollectiveInstance& instance = instances_[id];
  const CollectiveCall& call = context_.graph.collectives[instance.call];
  const GroupFamily& family = context_.graph.families[call.family];
  const auto rank = static_cast<std::size_t>(context_.classes.real_rank(instance.ranks->members.front()));
  const auto group = static_cast<std::size_t>(together_ ? 0 : family.group_of[rank]);
  const auto size = static_cast<std::int64_t>(family.groups[group].size());
  instances_[id].first_chunk = static_cast<std::uint32_t>(chunks_.size());
  const AstraPlanner::ChunkSizes sizes = planner_.chunk_sizes(call, size);
  // A communicator of all ranks has the network's dimensions, whatever its order.
  const std::uint32_t mask = size == context_.graph.ranks ? UINT32_MAX : family.dimension_mask;
  for (std::int64_t remaining = sizes.total; remaining > 0;) {
    std::vector<AstraPhase> phases = planner_.next_chunk(call, mask, size, sizes.chunk, remaining);
    if (phases.empty()) break;
    make_chunk(id, std::move(phases));
    ++instances_[id].chunks;
  }
}

void AstraEngine::make_chunk(std::uint32_t instance_id, std::vector<AstraPhase> phases) {
  const CollectiveInstance& instance = instances_[instance_id];
  const GroupFamily& family = context_.graph.families[instance.family];
  const FoldedFamily& folded = context_.classes.families[instance.family];
  const std::vector<std::int32_t>& ranks = instance.ranks->members;
  const auto members = static_cast<std::uint32_t>(ranks.size());
  const auto id = static_cast<std::uint32_t>(chunks_.size());
  chunks_.push_back(std::make_unique<AstraChunk>());
  AstraChunk& chunk = *chunks_.back();
  chunk.id = id;
  chunk.instance = instance_id;
  chunk.member_of = folded.member_of.data();
  chunk.number = instance.chunks;
  chunk.members = chunk.members_left = members;
  for (const AstraPhase& phase : phases) chunk.slots = std::max(chunk.slots, phase.slots);
  mail_.open(chunk);
  if (system_.queues_per_dimension > 1) chunk.queues.resize(members * phases.size());
  if (phases.front().method == AstraMethod::custom) {
    const CollectiveCall& call = context_.graph.collectives[instance.call];
    chunk.custom =
        custom_.open(context_.graph.custom[static_cast<std::size_t>(call.custom)], ranks, call.bytes);
  }
  chunk.phases = std::move(phases);
  const auto block = std::find_if(free_streams_.begin(), free_streams_.end(),
                                  [&](const auto& free) { return free.second == members; });
  if (block != free_streams_.end()) {
    chunk.first_stream = block->first;
    *block = free_streams_.back();
    free_streams_.pop_back();
  } else {
    chunk.first_stream = static_cast<std::uint32_t>(streams_.size());
    streams_.resize(streams_.size() + members);
    messages_.resize(streams_.size());
  }
  std::fill_n(streams_.begin() + chunk.first_stream, members, AstraStream{});
  for (std::uint32_t m = 0; m < members; ++m) {
    AstraStream& stream = streams_[chunk.first_stream + m];
    stream.chunk = &chunk;
    stream.mailbox = chunk.mail.open.data() + m * static_cast<std::size_t>(chunk.slots);
    stream.rank = context_.classes.real_rank(ranks[m]);
    const std::int32_t group = family.group_of[static_cast<std::size_t>(stream.rank)];
    const std::int32_t first = family.groups[static_cast<std::size_t>(group)].front();
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
      chunk.queues[member * chunk.phases.size() + p] =
          static_cast<std::uint16_t>(queue << 1 | (reversed ? 1U : 0U));
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
  stream.stage = 0;
  stream.toggle = false;
  stream.inserted = stream.sent = stream.received = stream.free = 0;
  stream.without_latency = stream.with_latency = 0;
  stream.step = 0;
  if (chunk.queues.empty()) {
    stream.queue = static_cast<std::uint32_t>(phase.queue_level);
    stream.reversed = phase.share == QueueShare::second;
  } else {
    const std::size_t member = id - chunk.first_stream;
    const std::uint16_t packed = chunk.queues[member * chunk.phases.size() + stream.phase];
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
  CollectiveIssue& issue = instances_[stream.chunk->instance].issues[id - stream.chunk->first_stream];
  if (issue.started) return;
  issue.started = true;
  client_.collective_started(stream.rank, issue.node);
}

void AstraEngine::begin(std::uint32_t id) {
  begin_collective(id);
  AstraStream& stream = streams_[id];
  AstraChunk& chunk = *stream.chunk;
  stream.state = StreamState::running;
  mail_.begin(id);
  const AstraPhase& phase = chunk.phases[stream.phase];
  switch (phase.method) {
    case AstraMethod::ring:
    case AstraMethod::direct:
    case AstraMethod::halving_doubling:
      for (std::int32_t i = 0; i < phase.parallel; ++i) insert_packet(id);
      return;
    case AstraMethod::double_binary_tree:
      tree_begins(id);
      return;
    case AstraMethod::scheduled:
      bundle(id, true, false, false, 0);
      return;
    case AstraMethod::custom:
      custom_.start(chunk.custom, stream.here, {target_, pack(AstraEvent::custom_done, id, 0, 0)});
      return;
  }
}

// The stream has done its part of the current phase.
void AstraEngine::advance(std::uint32_t id) {
  if (system_.semantics != Semantics::astra1) {
    proceed(id);
    return;
  }
  AstraChunk& chunk = *streams_[id].chunk;
  chunk.at_barrier.push_back(id);
  if (chunk.at_barrier.size() < chunk.members) return;
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
  client_.chunk_finished(stream.rank, report);
}

void AstraEngine::proceed(std::uint32_t id) {
  report_phase(id);
  AstraChunk& chunk = *streams_[id].chunk;
  const std::int32_t rank = streams_[id].rank;
  const std::uint32_t queue = streams_[id].queue;
  const bool was_idle = streams_[id].idle;
  const bool finished = streams_[id].phase + std::size_t{1} == chunk.phases.size();
  // The collective may end here, and others begin, before this stream has left its queue: as in ASTRA-sim.
  if (finished) finish_stream(id);
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

void AstraEngine::finish_stream(std::uint32_t id) {
  const AstraChunk& chunk = *streams_[id].chunk;
  const std::uint32_t instance = chunk.instance;
  CollectiveIssue& issue = instances_[instance].issues[id - chunk.first_stream];
  if (--issue.chunks_left > 0) return;
  const std::uint32_t node = issue.node;
  instances_.leave(instance);
  client_.collective_finished(streams_[id].rank, node);
}

void AstraEngine::release(AstraChunk& chunk) {
  free_streams_.emplace_back(chunk.first_stream, chunk.members);
  chunks_[chunk.id].reset();
}

// Where the packet goes to, or where the receive posted with it comes from.
std::int32_t AstraEngine::position_of(const AstraStream& stream, std::int32_t packet, bool source) const {
  const AstraPhase& phase = phase_of(stream);
  const std::int32_t n = phase.ranks;
  if (phase.method == AstraMethod::halving_doubling) {
    const std::int32_t steps = std::bit_width(static_cast<std::uint32_t>(n)) - 1;
    std::int32_t exponent = packet;
    if (phase.kind == CollectiveKind::all_gather) exponent = steps - 1 - packet;
    if (packet >= steps) exponent = 2 * steps - 1 - packet;
    return stream.here ^ (1 << exponent);
  }
  const std::int32_t distance = phase.method == AstraMethod::direct ? 1 + packet % (n - 1) : 1;
  const bool forwards = source == stream.reversed;
  const std::int32_t position = forwards ? stream.here + distance : stream.here - distance;
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
      if (mail_.arrives(id, phase_of_event(argument), slot)) received(id, slot);
      return;
    case AstraEvent::late_receive:
      received(id, slot);
      return;
    case AstraEvent::handshake:
      mail_.handshake_arrives(id);
      return;
    case AstraEvent::late_handshake:
      mail_.late_handshake(id);
      return;
    case AstraEvent::bundle:
      bundle_crossed(id, false, slot);
      return;
    case AstraEvent::bundle_to_reduce:
      bundle_crossed(id, true, slot);
      return;
    case AstraEvent::custom_done:
      advance(id);
      return;
  }
}

// A packet between the rank's memory and its network endpoint. Communicators have a fixed delay.
void AstraEngine::bundle(std::uint32_t id, bool to_endpoint, bool reduced, bool returned,
                         std::int32_t packet) {
  const AstraStream& stream = streams_[id];
  const AstraPhase& phase = phase_of(stream);
  const std::uint64_t argument =
      pack(reduced ? AstraEvent::bundle_to_reduce : AstraEvent::bundle, id, stream.phase, packet);
  if (buses_ && !phase.local) {
    buses_->cross(stream.rank, to_endpoint, message_bytes(phase, packet), reduced, returned, argument);
    return;
  }
  const Time delay = nanoseconds(phase.local ? 10 : system_.endpoint_delay_ns);
  context_.order.schedule(stream.rank, later(context_.queue.now(), delay), target_, argument);
}

Time AstraEngine::reduction_time(const AstraStream& stream, std::int32_t packet) {
  const AstraPhase& phase = phase_of(stream);
  std::int64_t bytes = 0;
  if (phase.method == AstraMethod::scheduled) {
    bytes = phase.schedule->of(stream.here).steps[stream.step].reduced.value;
  } else {
    bytes = message_bytes(phase, packet);
  }
  if (bytes == last_reduction_.first) return last_reduction_.second;
  last_reduction_ = {bytes, reduction_time(bytes)};
  return last_reduction_.second;
}

Time AstraEngine::reduction_time(std::int64_t bytes) const {
  const auto size = static_cast<double>(bytes);
  double pass = 0;  // nanoseconds
  if (system_.semantics == Semantics::astra1) {
    pass = size / 500000;
  } else if (system_.memory_bytes_per_second > 0) {
    pass = size / system_.memory_bytes_per_second * 1e9;
  }
  if (!(pass < static_cast<double>(kEndOfTime.value / 4000))) return kEndOfTime;
  return nanoseconds(3 * static_cast<std::int64_t>(pass));
}

void AstraEngine::bundle_crossed(std::uint32_t id, bool reduced, std::int32_t packet) {
  if (!reduced) {
    crossed(id);
    return;
  }
  const AstraStream& stream = streams_[id];
  context_.order.schedule(stream.rank, later(context_.queue.now(), reduction_time(stream, packet)), target_,
                          pack(AstraEvent::bundle, id, stream.phase, packet));
}

// Packets alternate between runs that cost nothing on arrival and runs whose data is reduced.
void AstraEngine::insert_packet(std::uint32_t id) {
  AstraStream& stream = streams_[id];
  const AstraPhase& phase = phase_of(stream);
  if (stream.without_latency == 0 && stream.with_latency == 0) {
    stream.without_latency = phase.parallel;
    switch (phase.method) {
      case AstraMethod::ring:
        stream.with_latency = phase.ranks - 1;
        break;
      case AstraMethod::direct:
        stream.with_latency = phase.local ? (phase.ranks - 1) * phase.parallel : phase.parallel;
        break;
      default:
        stream.with_latency = std::bit_width(static_cast<std::uint32_t>(phase.ranks)) - 2;
    }
    stream.toggle = !stream.toggle;
  }
  const std::int32_t packet = stream.inserted++;
  if (stream.without_latency > 0) {
    --stream.without_latency;
    bundle(id, true, false, false, packet);
    return;
  }
  const bool reduced = phase.kind == CollectiveKind::reduce_scatter ||
                       (phase.kind == CollectiveKind::all_reduce && stream.toggle);
  const bool returned = stream.with_latency > phase.parallel;
  --stream.with_latency;
  bundle(id, false, reduced, returned, packet);
}

void AstraEngine::received(std::uint32_t id, std::int32_t slot) {
  AstraStream& stream = streams_[id];
  if (stream.rank == 0) {
    const AstraChunk& chunk = *stream.chunk;
    messages_[id].time =
        later(messages_[id].time, context_.queue.now() - chunk.posted[static_cast<std::size_t>(slot)]);
    ++messages_[id].count;
  }
  ++stream.received;
  switch (phase_of(stream).method) {
    case AstraMethod::ring:
    case AstraMethod::direct:
    case AstraMethod::halving_doubling:
      insert_packet(id);
      return;
    case AstraMethod::double_binary_tree:
      tree_received(id);
      return;
    case AstraMethod::scheduled: {
      const Step& step = phase_of(stream).schedule->of(stream.here).steps[stream.step];
      if (stream.received == step.receives) bundle(id, false, step.reduced > Bytes(0), false, 0);
      return;
    }
    case AstraMethod::custom:
      return;
  }
}

// A packet has crossed, and been reduced where that was due.
void AstraEngine::crossed(std::uint32_t id) {
  AstraStream& stream = streams_[id];
  const AstraPhase& phase = phase_of(stream);
  if (phase.method == AstraMethod::double_binary_tree) {
    tree_crossed(id);
    return;
  }
  if (phase.method == AstraMethod::scheduled) {
    if (stream.stage != kBegun) ++stream.step;
    stream.stage = kEnds;
    next_schedule_step(id);
    return;
  }
  ++stream.free;
  std::int32_t times = 1;
  // The second half of a direct all-reduce waits for all of the first.
  const bool second_half = phase.method == AstraMethod::direct && phase.kind == CollectiveKind::all_reduce &&
                           phase.sends - stream.sent <= phase.ranks - 1;
  if (second_half) {
    if (stream.received < phase.ranks - 1) return;
    times = phase.parallel;
  }
  for (; times > 0; --times) send_packet(id);
  if (stream.sent == phase.sends && stream.free == phase.parallel) advance(id);
}

// Sends the next packet, if there is one that has crossed, and posts the receive that goes with it.
void AstraEngine::send_packet(std::uint32_t id) {
  AstraStream& stream = streams_[id];
  const AstraPhase& phase = phase_of(stream);
  if (stream.inserted == stream.sent || stream.sent == phase.sends || stream.free == 0) return;
  const std::int32_t packet = stream.sent++;
  --stream.free;
  std::int32_t slot = 0;
  if (phase.method == AstraMethod::direct) slot = packet % (phase.ranks - 1);
  if (phase.method == AstraMethod::halving_doubling) slot = packet;
  const std::int64_t bytes = message_bytes(phase, packet);
  const std::int32_t position = position_of(stream, packet, false);
  // The one rank hears what it sends, as from a neighbour.
  if (context_.order.is_watched()) {
    const std::int32_t destination = rank_at(stream, position);
    const Time arrival =
        context_.network.send({stream.rank, destination, Bytes(bytes), kAllDimensions, 0, target_, 1,
                               pack(AstraEvent::message, id, stream.phase, slot)});
    context_.order.watch(arrival, destination);
    mail_.post_now(id, slot);
    return;
  }
  mail_.transmit({id, stream_at(stream, position), slot, bytes, slot});
  mail_.post({stream_at(stream, position_of(stream, packet, true)), id, slot, bytes, slot});
}

// `relation` is that of the other end: what the sender is to the receiver is its slot there.
void AstraEngine::tree_sends(std::uint32_t id, std::int32_t position, std::int32_t relation,
                             std::int32_t own_relation) {
  const AstraStream& stream = streams_[id];
  mail_.transmit({id, stream_at(stream, position), own_relation, phase_of(stream).bytes, relation});
}

void AstraEngine::tree_posts(std::uint32_t id, std::int32_t position, std::int32_t relation,
                             std::int32_t own_relation) {
  const AstraStream& stream = streams_[id];
  mail_.post({stream_at(stream, position), id, relation, phase_of(stream).bytes, own_relation});
}

void AstraEngine::tree_begins(std::uint32_t id) {
  AstraStream& stream = streams_[id];
  const AstraPhase& phase = phase_of(stream);
  const TreeNode node = tree_node(stream.here, phase.ranks, phase.first_is_root);
  if (node.is_root()) {
    stream.stage = kWaitsForOneChild;
    tree_posts(id, node.left, kLeft, kParent);
  } else if (node.is_leaf()) {
    stream.stage = kSendsToParent;
    bundle(id, true, false, false, 0);
  } else {
    stream.stage = kWaitsForTwoChildren;
    tree_posts(id, node.left, kLeft, kParent);
    tree_posts(id, node.right, kRight, kParent);
  }
}

void AstraEngine::tree_received(std::uint32_t id) {
  AstraStream& stream = streams_[id];
  const AstraPhase& phase = phase_of(stream);
  const TreeNode node = tree_node(stream.here, phase.ranks, phase.first_is_root);
  if (node.is_root()) {
    stream.stage = kSendsToChildren;
    bundle(id, false, true, true, 0);
  } else if (node.is_leaf()) {
    stream.stage = kEnds;
    bundle(id, false, false, false, 0);
  } else if (stream.stage == kWaitsForTwoChildren) {
    stream.stage = kWaitsForOneChild;
    bundle(id, false, true, false, 0);
  } else {
    stream.stage = stream.stage == kWaitsForOneChild ? kSendsToParent : kSendsToChildren;
    bundle(id, false, true, true, 0);
  }
}

void AstraEngine::tree_crossed(std::uint32_t id) {
  AstraStream& stream = streams_[id];
  const AstraPhase& phase = phase_of(stream);
  const TreeNode node = tree_node(stream.here, phase.ranks, phase.first_is_root);
  const bool inner = !node.is_root() && !node.is_leaf();
  // The first of two children is only counted.
  if (inner && stream.free == 0) {
    stream.free = 1;
    return;
  }
  switch (stream.stage) {
    case kSendsToParent:
      stream.stage = kWaitsForParent;
      tree_sends(id, node.parent, kParent, node.is_left_child ? kLeft : kRight);
      tree_posts(id, node.parent, kParent, node.is_left_child ? kLeft : kRight);
      return;
    case kSendsToChildren:
      tree_sends(id, node.left, kLeft, kParent);
      if (node.right >= 0) tree_sends(id, node.right, kRight, kParent);
      advance(id);
      return;
    case kEnds:
      advance(id);
      return;
    default:
      return;
  }
}

// Begins the current step, and those after it that wait for nothing.
void AstraEngine::next_schedule_step(std::uint32_t id) {
  for (;; ++streams_[id].step) {
    AstraStream& stream = streams_[id];
    const Schedule& schedule = *phase_of(stream).schedule;
    const RankSchedule& own = schedule.of(stream.here);
    if (stream.step == own.steps.size()) {
      advance(id);
      return;
    }
    const Step& step = own.steps[stream.step];
    stream.received = 0;
    for (std::uint32_t s = step.first_send; s < step.end_send; ++s) {
      const Transfer& transfer = own.sends[s];
      AstraMessage message{id, stream_at(stream, schedule.peer(stream.here, transfer)), transfer.step,
                           transfer.bytes.value};
      message.handshakes = false;
      mail_.transmit(message);
    }
    for (std::int32_t r = 0; r < step.receives; ++r)
      mail_.post_now(id, static_cast<std::int32_t>(stream.step));
    if (step.receives > 0) return;
  }
}

}  // namespace armilla
