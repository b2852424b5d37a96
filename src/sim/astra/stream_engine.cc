#include "sim/astra/stream_engine.h"

#include <algorithm>

namespace armilla {

StreamEngine::StreamEngine(const Graph& graph, const SystemLayer& system, EventQueue& queue,
                           RankAgenda& agenda, StreamNetwork& network, CustomRunner& custom,
                           CollectiveClient& client)
    : graph_(graph),
      system_(system),
      queue_(queue),
      agenda_(agenda),
      network_(network),
      custom_(custom),
      client_(client),
      planner_(system),
      target_(queue.add_handler(*this)),
      running_limit_((system.active_chunks + system.queues_per_dimension - 1) / system.queues_per_dimension),
      together_(system.semantics == Semantics::astra1),
      matches_(together_),
      ranks_(static_cast<std::size_t>(graph.ranks)) {
  for (const GroupFamily& family : graph.families) add_family(family);
  const std::size_t levels = planner_.logical_sizes().size();
  const auto queues = static_cast<std::int32_t>(system.queues_per_dimension);
  for (Rank& rank : ranks_) {
    rank.queues.resize(levels * static_cast<std::size_t>(queues));
    rank.allocators.assign(levels, {0, 0, queues / 2});
  }
  if (system.shared_bus) buses_ = std::make_unique<SharedBuses>(system, graph.ranks, agenda, queue, *this);
  custom.use(*this);
}

StreamEngine::~StreamEngine() = default;

void StreamEngine::add_family(const GroupFamily& family) {
  Family& own = families_.emplace_back();
  own.member_of.assign(ranks_.size(), -1);
  own.base_of.resize(ranks_.size());
  own.issued.resize(ranks_.size());
  own.members.resize(together_ ? 1 : family.groups.size());
  own.instances.resize(own.members.size());
  for (std::size_t g = 0; g < family.groups.size(); ++g) {
    std::vector<std::int32_t>& members = own.members[together_ ? 0 : g];
    const auto base = static_cast<std::uint32_t>(members.size());
    for (const std::int32_t rank : family.groups[g]) {
      own.member_of[static_cast<std::size_t>(rank)] = static_cast<std::int32_t>(members.size());
      own.base_of[static_cast<std::size_t>(rank)] = base;
      members.push_back(rank);
    }
  }
}

void StreamEngine::issue(std::int32_t rank, std::uint32_t node, std::uint32_t call_id) {
  const CollectiveCall& call = graph_.collectives[call_id];
  if (rank == 0) planner_.first_rank_issues(queue_.now());
  const std::uint32_t id = instance_for(rank, call_id);
  const auto member =
      static_cast<std::uint32_t>(families_[call.family].member_of[static_cast<std::size_t>(rank)]);
  const std::vector<std::uint32_t> chunks = instances_[id]->chunks;
  instances_[id]->issues[member] = {node, static_cast<std::int32_t>(chunks.size()), false};
  const std::int32_t priority = priority_of(ranks_[static_cast<std::size_t>(rank)], call);
  for (const std::uint32_t chunk : chunks) create_stream(*chunks_[chunk], member, rank, priority);
  if (!chunks.empty()) return;
  client_.collective_started(rank, node);
  if (--instances_[id]->members_left == 0) instances_[id].reset();
  client_.collective_finished(rank, node);
}

std::uint32_t StreamEngine::instance_for(std::int32_t rank, std::uint32_t call) {
  const std::uint32_t f = graph_.collectives[call].family;
  const std::int32_t group = together_ ? 0 : graph_.families[f].group_of[static_cast<std::size_t>(rank)];
  const std::uint32_t index = families_[f].issued[static_cast<std::size_t>(rank)]++;
  std::vector<std::uint32_t>& instances = families_[f].instances[static_cast<std::size_t>(group)];
  if (index == instances.size()) instances.push_back(make_instance(group, call));
  return instances[index];
}

std::uint32_t StreamEngine::make_instance(std::int32_t group, std::uint32_t call_id) {
  const CollectiveCall& call = graph_.collectives[call_id];
  const GroupFamily& family = graph_.families[call.family];
  const auto size = static_cast<std::int64_t>(family.groups[static_cast<std::size_t>(group)].size());
  const auto id = static_cast<std::uint32_t>(instances_.size());
  instances_.push_back(std::make_unique<Instance>());
  Instance& instance = *instances_.back();
  instance.call = call_id;
  instance.family = call.family;
  instance.group = group;
  instance.issues.resize(ties_ ? 1 : families_[call.family].members[static_cast<std::size_t>(group)].size());
  instance.members_left = static_cast<std::int64_t>(instance.issues.size());
  const StreamPlanner::ChunkSizes sizes = planner_.chunk_sizes(call, size);
  // A communicator of all ranks has the network's dimensions, whatever its order.
  const std::uint32_t mask = size == graph_.ranks ? UINT32_MAX : family.dimension_mask;
  for (std::int64_t remaining = sizes.total; remaining > 0;) {
    std::vector<StreamPhase> phases = planner_.next_chunk(call, mask, size, sizes.chunk, remaining);
    if (phases.empty()) break;
    instance.chunks.push_back(make_chunk(id, std::move(phases)));
  }
  return id;
}

std::uint32_t StreamEngine::make_chunk(std::uint32_t instance_id, std::vector<StreamPhase> phases) {
  const Instance& instance = *instances_[instance_id];
  const Family& family = families_[instance.family];
  const std::vector<std::int32_t>& ranks = family.members[static_cast<std::size_t>(instance.group)];
  const auto members = static_cast<std::uint32_t>(instance.issues.size());
  const auto id = static_cast<std::uint32_t>(chunks_.size());
  chunks_.push_back(std::make_unique<Chunk>());
  Chunk& chunk = *chunks_.back();
  chunk.id = id;
  chunk.instance = instance_id;
  chunk.member_of = family.member_of.data();
  chunk.number = static_cast<std::uint32_t>(instance.chunks.size());
  chunk.members_left = members;
  for (const StreamPhase& phase : phases) chunk.slots = std::max(chunk.slots, phase.slots);
  chunk.mail.open.resize(members * static_cast<std::size_t>(chunk.slots));
  if (system_.rendezvous) chunk.handshakes.open.resize(chunk.mail.open.size());
  if (matches_) {
    chunk.mail.arrivals.resize(chunk.mail.open.size());
    chunk.handshakes.arrivals.resize(chunk.handshakes.open.size());
  }
  if (system_.queues_per_dimension > 1) chunk.queues.resize(members * phases.size());
  if (phases.front().method == StreamMethod::custom) {
    const CollectiveCall& call = graph_.collectives[instance.call];
    chunk.custom = custom_.open(graph_.custom[static_cast<std::size_t>(call.custom)], ranks, call.bytes);
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
  std::fill_n(streams_.begin() + chunk.first_stream, members, Stream{});
  for (std::uint32_t m = 0; m < members; ++m) {
    Stream& stream = streams_[chunk.first_stream + m];
    stream.chunk = &chunk;
    stream.mailbox = chunk.mail.open.data() + m * static_cast<std::size_t>(chunk.slots);
    stream.rank = ranks[m];
    stream.base = chunk.first_stream + family.base_of[static_cast<std::size_t>(ranks[m])];
  }
  return id;
}

std::int32_t StreamEngine::priority_of(Rank& rank, const CollectiveCall& call) {
  const bool ignored = system_.tutorial_release && call.preference != ChunkPreference::highest;
  switch (ignored ? ChunkPreference::policy : call.preference) {
    case ChunkPreference::lifo:
      return rank.priority++;
    case ChunkPreference::fifo:
      return rank.priority--;
    case ChunkPreference::highest:
      return 100'000'000;
    case ChunkPreference::policy:
      break;
  }
  switch (system_.scheduling) {
    case ChunkOrder::lifo:
      return rank.priority++;
    case ChunkOrder::fifo:
      return rank.priority--;
    case ChunkOrder::priority:
      break;
  }
  return call.priority;
}

// A queue of the level, and whether its messages go anticlockwise.
std::pair<std::uint32_t, bool> StreamEngine::allocate_queue(Rank& rank, const StreamPhase& phase) {
  const std::int32_t queues = planner_.queues_per_level();
  Allocator& allocator = rank.allocators[static_cast<std::size_t>(phase.queue_level)];
  std::int32_t number = 0;
  bool reversed = false;
  switch (phase.share) {
    case QueueShare::any:
      reversed = queues > 1 && allocator.any >= queues / 2;
      number = allocator.any;
      allocator.any = (allocator.any + 1) % queues;
      break;
    case QueueShare::first:
      number = allocator.first++;
      if (allocator.first >= queues / 2) allocator.first = 0;
      break;
    case QueueShare::second:
      reversed = true;
      number = allocator.second++;
      if (allocator.second >= queues) allocator.second = queues / 2;
      break;
  }
  return {static_cast<std::uint32_t>(phase.queue_level * queues + number), reversed};
}

void StreamEngine::create_stream(Chunk& chunk, std::uint32_t member, std::int32_t rank,
                                 std::int32_t priority) {
  const std::uint32_t id = chunk.first_stream + member;
  streams_[id].priority = priority;
  if (!chunk.queues.empty()) {
    for (std::size_t p = 0; p < chunk.phases.size(); ++p) {
      const auto [queue, reversed] = allocate_queue(ranks_[static_cast<std::size_t>(rank)], chunk.phases[p]);
      chunk.queues[member * chunk.phases.size() + p] =
          static_cast<std::uint16_t>(queue << 1 | (reversed ? 1U : 0U));
    }
  }
  enter_phase(id);
  stream_added(ranks_[static_cast<std::size_t>(rank)], streams_[id].queue);
}

// Puts the stream into the queue of its current phase.
void StreamEngine::enter_phase(std::uint32_t id) {
  Stream& stream = streams_[id];
  const Chunk& chunk = *stream.chunk;
  const StreamPhase& phase = chunk.phases[stream.phase];
  stream.current = &phase;
  stream.state = State::waiting;
  stream.ready = queue_.now();
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
  if (phase.dimension == kFlatStream) {
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
    insert(ranks_[static_cast<std::size_t>(stream.rank)].queues[stream.queue], id);
  }
}

// Whether its rank is not in line with rank 0 (RingTopology.cc and BinaryTree.hh, is_enabled).
bool StreamEngine::is_idle(const Stream& stream) const {
  const StreamPhase& phase = phase_of(stream);
  if (!together_ || !system_.boost || phase.dimension == kFlatStream) return false;
  if (stream.rank % phase.stride != 0) return true;
  return phase.method != StreamMethod::double_binary_tree && stream.rank >= phase.stride * phase.ranks;
}

// Whether a waiting stream keeps its place before one that comes.
bool StreamEngine::goes_before(const Stream& waiting, const Stream& stream) const {
  const Chunk& a = *waiting.chunk;
  const Chunk& b = *stream.chunk;
  const StreamPhase& phase = b.phases[stream.phase];
  const bool plain = phase.kind == CollectiveKind::all_to_all || phase.kind == CollectiveKind::all_reduce;
  const auto size = [](const StreamPhase& p) { return std::max(p.bytes, final_bytes(p)); };
  const bool smallest_first = !plain && system_.intra_dimension == IntraDimensionOrder::smallest_first;
  if (smallest_first && system_.tutorial_release) return a.phases[waiting.phase].bytes < phase.bytes;
  if (smallest_first)
    return b.phases.size() - stream.phase == 2 || size(a.phases[waiting.phase]) < size(phase);
  if (!plain && system_.intra_dimension == IntraDimensionOrder::less_remaining_phase_first)
    return a.phases.size() - waiting.phase < b.phases.size() - stream.phase;
  return waiting.priority >= stream.priority;
}

void StreamEngine::insert(Queue& queue, std::uint32_t id) {
  const Stream& stream = streams_[id];
  const CollectiveKind kind = phase_of(stream).kind;
  const bool alternates = system_.intra_dimension == IntraDimensionOrder::rg &&
                          kind != CollectiveKind::all_to_all && kind != CollectiveKind::all_reduce;
  std::size_t place = 0;
  if (!alternates) {
    while (place < queue.streams.size() && (streams_[queue.streams[place]].state == State::running ||
                                            goes_before(streams_[queue.streams[place]], stream)))
      ++place;
  } else {
    // "RG": a reduce-scatter and an all-gather that stand next to each other are not torn apart.
    const auto kind_at = [&](std::size_t i) { return phase_of(streams_[queue.streams[i]]).kind; };
    const auto runs = [&](std::size_t i) { return streams_[queue.streams[i]].state == State::running; };
    const auto opposite = [](CollectiveKind a, CollectiveKind b) {
      return (a == CollectiveKind::reduce_scatter && b == CollectiveKind::all_gather) ||
             (a == CollectiveKind::all_gather && b == CollectiveKind::reduce_scatter);
    };
    bool has_last = false, has_one_before = false;
    CollectiveKind last{}, one_before{};
    while (place < queue.streams.size()) {
      has_one_before = has_last;
      one_before = last;
      has_last = true;
      last = kind_at(place);
      if (runs(place)) {
        ++place;
        if (place < queue.streams.size() && !runs(place)) {
          has_one_before = true;
          one_before = last;
          last = kind_at(place);
          ++place;
        }
      } else if (streams_[queue.streams[place]].priority > stream.priority ||
                 (has_one_before && opposite(last, one_before))) {
        ++place;
      } else {
        break;
      }
    }
  }
  queue.streams.insert(queue.streams.begin() + static_cast<std::ptrdiff_t>(place), id);
}

void StreamEngine::stream_added(Rank& rank, std::uint32_t queue) {
  start_streams(rank, queue);
}

void StreamEngine::stream_removed(Rank& rank, std::uint32_t queue) {
  --rank.queues[queue].running;
  start_streams(rank, queue);
}

void StreamEngine::start_streams(Rank& rank, std::uint32_t q) {
  Queue& queue = rank.queues[q];
  while (queue.running < running_limit_ && queue.running < static_cast<std::int64_t>(queue.streams.size())) {
    begin(queue.streams[static_cast<std::size_t>(queue.running)]);
    ++queue.running;
  }
}

void StreamEngine::begin_collective(std::uint32_t id) {
  Stream& stream = streams_[id];
  stream.start = queue_.now();
  Issue& issue = instances_[stream.chunk->instance]->issues[id - stream.chunk->first_stream];
  if (issue.started) return;
  issue.started = true;
  client_.collective_started(stream.rank, issue.node);
}

void StreamEngine::begin(std::uint32_t id) {
  begin_collective(id);
  Stream& stream = streams_[id];
  Chunk& chunk = *stream.chunk;
  stream.state = State::running;
  const auto early = chunk.early.find(std::uint64_t{id - chunk.first_stream} << 8 | stream.phase);
  if (early != chunk.early.end()) {
    for (const std::int32_t slot : early->second) {
      // Handshakes are told apart by the sign.
      if (slot >= 0) {
        --stream.mailbox[slot];
      } else {
        --box(chunk.handshakes, id, -1 - slot);
      }
    }
    chunk.early.erase(early);
  }
  const StreamPhase& phase = chunk.phases[stream.phase];
  switch (phase.method) {
    case StreamMethod::ring:
    case StreamMethod::direct:
    case StreamMethod::halving_doubling:
      for (std::int32_t i = 0; i < phase.parallel; ++i) insert_packet(id);
      return;
    case StreamMethod::double_binary_tree:
      tree_begins(id);
      return;
    case StreamMethod::scheduled:
      bundle(id, true, false, false, 0);
      return;
    case StreamMethod::custom:
      custom_.start(chunk.custom, stream.here, id);
      return;
  }
}

// The stream has done its part of the current phase.
void StreamEngine::advance(std::uint32_t id) {
  if (system_.semantics != Semantics::astra1) {
    proceed(id);
    return;
  }
  Chunk& chunk = *streams_[id].chunk;
  chunk.at_barrier.push_back(id);
  const std::size_t members = instances_[chunk.instance]->issues.size();
  if (chunk.at_barrier.size() < members) return;
  if (ties_) ties_->meet(queue_.now());
  const std::vector<std::uint32_t> together = std::move(chunk.at_barrier);
  chunk.at_barrier.clear();
  for (const std::uint32_t stream : together) proceed(stream);
}

void StreamEngine::report_phase(std::uint32_t id) {
  const Stream& stream = streams_[id];
  const Chunk& chunk = *stream.chunk;
  const StreamPhase& phase = chunk.phases[stream.phase];
  ChunkPhase report;
  report.chunk = chunk.number;
  report.dimension = phase.dimension == kFlatStream
                         ? static_cast<std::uint32_t>(planner_.logical_sizes().size())
                         : static_cast<std::uint32_t>(phase.dimension);
  report.phase = stream.phase;
  report.ready = stream.ready;
  report.start = stream.start;
  report.end = queue_.now();
  report.message_time = messages_[id].time;
  report.messages = messages_[id].count;
  messages_[id] = {};
  client_.chunk_finished(stream.rank, instances_[chunk.instance]->issues[id - chunk.first_stream].node,
                         report);
}

void StreamEngine::proceed(std::uint32_t id) {
  report_phase(id);
  Chunk& chunk = *streams_[id].chunk;
  Rank& rank = ranks_[static_cast<std::size_t>(streams_[id].rank)];
  const std::uint32_t queue = streams_[id].queue;
  const bool was_idle = streams_[id].idle;
  const bool finished = streams_[id].phase + std::size_t{1} == chunk.phases.size();
  // The collective may end here, and others begin, before this stream has left its queue: as in the peer.
  if (finished) finish_stream(id);
  std::vector<std::uint32_t>& streams = rank.queues[queue].streams;
  if (!was_idle) streams.erase(std::find(streams.begin(), streams.end(), id));
  if (finished) {
    streams_[id].state = State::done;
    if (!was_idle) stream_removed(rank, queue);
    if (--chunk.members_left == 0) release(chunk);
    return;
  }
  ++streams_[id].phase;
  enter_phase(id);
  if (!was_idle) stream_removed(rank, queue);
  stream_added(rank, streams_[id].queue);
}

void StreamEngine::finish_stream(std::uint32_t id) {
  const Chunk& chunk = *streams_[id].chunk;
  const std::uint32_t instance_id = chunk.instance;
  Issue& issue = instances_[instance_id]->issues[id - chunk.first_stream];
  if (--issue.chunks_left > 0) return;
  client_.collective_finished(streams_[id].rank, issue.node);
}

void StreamEngine::release(Chunk& chunk) {
  Instance& instance = *instances_[chunk.instance];
  const std::uint32_t instance_id = chunk.instance;
  free_streams_.emplace_back(chunk.first_stream, static_cast<std::uint32_t>(instance.issues.size()));
  chunks_[chunk.id].reset();
  const bool over = std::all_of(instance.chunks.begin(), instance.chunks.end(),
                                [&](std::uint32_t other) { return chunks_[other] == nullptr; });
  if (over) instances_[instance_id].reset();
}

std::int32_t StreamEngine::missing_member(std::int32_t rank, std::uint32_t node) const {
  for (const std::unique_ptr<Instance>& instance : instances_) {
    if (!instance) continue;
    const Family& family = families_[instance->family];
    const std::int32_t member = family.member_of[static_cast<std::size_t>(rank)];
    const std::vector<std::int32_t>& ranks = family.members[static_cast<std::size_t>(instance->group)];
    const auto place = static_cast<std::size_t>(member);
    if (member < 0 || place >= ranks.size() || ranks[place] != rank) continue;
    const Issue& mine = instance->issues[static_cast<std::size_t>(member)];
    if (mine.chunks_left <= 0 || mine.node != node) continue;
    for (std::size_t m = 0; m < instance->issues.size(); ++m) {
      if (instance->issues[m].chunks_left < 0) return ranks[m];
    }
  }
  return -1;
}

}  // namespace armilla
