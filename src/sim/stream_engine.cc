#include "sim/stream_engine.h"

#include <algorithm>
#include <bit>

namespace armilla {
namespace {

// An event's argument: 4 bits of kind, 6 of phase, 22 of slot or packet, 32 of stream.
enum class EventKind : std::uint8_t {
  message,          // has arrived
  late_receive,     // a receive was posted for a message that is here
  handshake,        // has arrived at the sender-to-be
  late_handshake,   // a send was begun for a handshake that is here
  bundle,           // has crossed between endpoint and memory
  bundle_to_reduce  // likewise, and its data is to be reduced
};

constexpr int kSlotShift = 32, kPhaseShift = 54, kKindShift = 60;

std::uint64_t pack(EventKind kind, std::uint32_t stream, std::uint8_t phase, std::int32_t slot) {
  return std::uint64_t{static_cast<std::uint8_t>(kind)} << kKindShift | std::uint64_t{phase} << kPhaseShift |
         std::uint64_t{static_cast<std::uint32_t>(slot)} << kSlotShift | stream;
}

// Stages of the tree's machine, in the order in which they can follow each other.
enum TreeStage : std::uint8_t {
  kBegun,
  kWaitsForTwoChildren,
  kWaitsForOneChild,
  kSendsToParent,
  kWaitsForParent,
  kSendsToChildren,
  kEnds
};

// What another node of the tree is to this one; also the slot of its messages.
constexpr std::int32_t kParent = 0, kLeft = 1, kRight = 2;

// A node of the in-order binary tree over positions 0 .. n-1, n a power of two: the root is the first or the
// last position and has one child, a perfect tree of the others. -1: none.
struct TreeNode {
  std::int32_t parent = -1, left = -1, right = -1;
  bool is_left_child = false;
  bool is_root() const { return parent < 0; }
  bool is_leaf() const { return left < 0 && right < 0; }
};

TreeNode tree_node(std::int32_t position, std::int32_t n, bool first_is_root) {
  const std::int32_t root = first_is_root ? 0 : n - 1;
  const std::int32_t shift = first_is_root ? 0 : 1;  // from a position to the in-order index, from 1
  TreeNode node;
  if (position == root) {
    node.left = n / 2 - shift;
    return node;
  }
  const std::int32_t index = position + shift;
  const std::int32_t height = index & -index;
  if (height > 1) {
    node.left = index - height / 2 - shift;
    node.right = index + height / 2 - shift;
  }
  if (2 * height == n) {
    node.parent = root;
    node.is_left_child = true;
  } else {
    node.is_left_child = (index & (2 * height)) == 0;
    node.parent = (node.is_left_child ? index + height : index - height) - shift;
  }
  return node;
}

}  // namespace

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
      ranks_(static_cast<std::size_t>(graph.ranks)) {
  for (const GroupFamily& family : graph.families) {
    Family& own = families_.emplace_back();
    own.member_of.assign(static_cast<std::size_t>(graph.ranks), -1);
    own.instances.resize(family.groups.size());
    own.issued.resize(static_cast<std::size_t>(graph.ranks));
    for (const std::vector<std::int32_t>& group : family.groups) {
      for (std::size_t i = 0; i < group.size(); ++i)
        own.member_of[static_cast<std::size_t>(group[i])] = static_cast<std::int32_t>(i);
    }
  }
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

// --- Making of streams.

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
  const std::int32_t group = graph_.families[f].group_of[static_cast<std::size_t>(rank)];
  const std::uint32_t index = families_[f].issued[static_cast<std::size_t>(rank)]++;
  std::vector<std::uint32_t>& instances = families_[f].instances[static_cast<std::size_t>(group)];
  if (index == instances.size()) instances.push_back(make_instance(group, call));
  return instances[index];
}

std::uint32_t StreamEngine::make_instance(std::int32_t group, std::uint32_t call_id) {
  const CollectiveCall& call = graph_.collectives[call_id];
  const GroupFamily& family = graph_.families[call.family];
  const std::vector<std::int32_t>& ranks = family.groups[static_cast<std::size_t>(group)];
  const auto size = static_cast<std::int64_t>(ranks.size());
  const auto id = static_cast<std::uint32_t>(instances_.size());
  instances_.push_back(std::make_unique<Instance>());
  Instance& instance = *instances_.back();
  instance.call = call_id;
  instance.family = call.family;
  instance.group = group;
  instance.issues.resize(ranks.size());
  instance.members_left = size;
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
  const std::vector<std::int32_t>& ranks =
      graph_.families[instance.family].groups[static_cast<std::size_t>(instance.group)];
  const auto members = static_cast<std::uint32_t>(ranks.size());
  const auto id = static_cast<std::uint32_t>(chunks_.size());
  chunks_.push_back(std::make_unique<Chunk>());
  Chunk& chunk = *chunks_.back();
  chunk.id = id;
  chunk.instance = instance_id;
  chunk.member_of = families_[instance.family].member_of.data();
  chunk.number = static_cast<std::uint32_t>(instance.chunks.size());
  chunk.members_left = members;
  for (const StreamPhase& phase : phases) chunk.slots = std::max(chunk.slots, phase.slots);
  chunk.mailbox.resize(members * static_cast<std::size_t>(chunk.slots));
  if (system_.rendezvous) chunk.handshake.resize(chunk.mailbox.size());
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
    streams_[chunk.first_stream + m].chunk = &chunk;
    streams_[chunk.first_stream + m].mailbox =
        chunk.mailbox.data() + m * static_cast<std::size_t>(chunk.slots);
    streams_[chunk.first_stream + m].rank = ranks[m];
  }
  return id;
}

std::int32_t StreamEngine::priority_of(Rank& rank, const CollectiveCall& call) {
  switch (call.preference) {
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

// --- Their way through the queues.

// Puts the stream into the queue of its current phase.
void StreamEngine::enter_phase(std::uint32_t id) {
  Stream& stream = streams_[id];
  const Chunk& chunk = *stream.chunk;
  const StreamPhase& phase = chunk.phases[stream.phase];
  stream.current = &phase;
  stream.state = State::waiting;
  stream.ready = queue_.now();
  stream.stage = kBegun;
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
    stream.here = static_cast<std::int32_t>(id - chunk.first_stream);
  } else {
    const auto d = static_cast<std::size_t>(phase.dimension);
    stream.here =
        static_cast<std::int32_t>(stream.rank / planner_.logical_strides()[d] % planner_.logical_sizes()[d]);
  }
  insert(ranks_[static_cast<std::size_t>(stream.rank)].queues[stream.queue], id);
}

// Whether a waiting stream keeps its place before one that comes.
bool StreamEngine::goes_before(const Stream& waiting, const Stream& stream) const {
  const Chunk& a = *waiting.chunk;
  const Chunk& b = *stream.chunk;
  const StreamPhase& phase = b.phases[stream.phase];
  const bool plain = phase.kind == CollectiveKind::all_to_all || phase.kind == CollectiveKind::all_reduce;
  const auto size = [](const StreamPhase& p) { return std::max(p.bytes, final_bytes(p)); };
  if (!plain && system_.intra_dimension == IntraDimensionOrder::smallest_first)
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

void StreamEngine::begin(std::uint32_t id) {
  Stream& stream = streams_[id];
  Chunk& chunk = *stream.chunk;
  stream.state = State::running;
  stream.start = queue_.now();
  Issue& issue = instances_[chunk.instance]->issues[id - chunk.first_stream];
  if (!issue.started) {
    issue.started = true;
    client_.collective_started(stream.rank, issue.node);
  }
  const auto early = chunk.early.find(std::uint64_t{id - chunk.first_stream} << 8 | stream.phase);
  if (early != chunk.early.end()) {
    for (const std::int32_t slot : early->second) {
      // Handshakes are told apart by the sign.
      if (slot >= 0) {
        --stream.mailbox[slot];
      } else {
        --box(chunk.handshake, id, -1 - slot);
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
  const bool finished = streams_[id].phase + std::size_t{1} == chunk.phases.size();
  // The collective may end here, and others begin, before this stream has left its queue: as in the peer.
  if (finished) finish_stream(id);
  std::vector<std::uint32_t>& streams = rank.queues[queue].streams;
  streams.erase(std::find(streams.begin(), streams.end(), id));
  if (finished) {
    stream_removed(rank, queue);
    if (--chunk.members_left == 0) release(chunk);
    return;
  }
  ++streams_[id].phase;
  enter_phase(id);
  stream_removed(rank, queue);
  stream_added(rank, streams_[id].queue);
}

void StreamEngine::finish_stream(std::uint32_t id) {
  streams_[id].state = State::done;
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

// --- The machines of the phases.

void StreamEngine::handle(std::uint64_t argument) {
  const auto id = static_cast<std::uint32_t>(argument);
  const auto slot =
      static_cast<std::int32_t>(argument >> kSlotShift & ((1U << (kPhaseShift - kSlotShift)) - 1));
  const auto phase =
      static_cast<std::uint8_t>(argument >> kPhaseShift & ((1U << (kKindShift - kPhaseShift)) - 1));
  switch (static_cast<EventKind>(argument >> kKindShift)) {
    case EventKind::message:
      arrive(id, phase, slot);
      return;
    case EventKind::late_receive:
      received(id, slot);
      return;
    case EventKind::handshake:
      handshake_arrives(id);
      return;
    case EventKind::late_handshake: {
      const Message message = handshakes_[id];
      free_handshakes_.push_back(id);
      transmit_now(message);
      return;
    }
    case EventKind::bundle:
      bundle_crossed(id, false, slot);
      return;
    case EventKind::bundle_to_reduce:
      bundle_crossed(id, true, slot);
      return;
  }
}

void StreamEngine::bus_crossed(std::uint64_t argument) {
  handle(argument);
}

void StreamEngine::custom_finished(std::uint64_t argument) {
  advance(static_cast<std::uint32_t>(argument));
}

// A packet between the rank's memory and its network endpoint. Communicators have a fixed delay.
void StreamEngine::bundle(std::uint32_t id, bool to_endpoint, bool reduced, bool returned,
                          std::int32_t packet) {
  const Stream& stream = streams_[id];
  const StreamPhase& phase = phase_of(stream);
  const std::uint64_t argument =
      pack(reduced ? EventKind::bundle_to_reduce : EventKind::bundle, id, stream.phase, packet);
  if (buses_ && !phase.local) {
    buses_->cross(stream.rank, to_endpoint, message_bytes(phase, packet), reduced, returned, argument);
    return;
  }
  const Time delay = nanoseconds(phase.local ? 10 : system_.endpoint_delay_ns);
  agenda_.schedule(stream.rank, later(queue_.now(), delay), target_, argument);
}

Time StreamEngine::reduction_time(const Stream& stream, std::int32_t packet) {
  const StreamPhase& phase = phase_of(stream);
  std::int64_t bytes = 0;
  if (phase.method == StreamMethod::scheduled) {
    bytes = phase.schedule->of(stream.here).steps[stream.step].reduced.value;
  } else {
    bytes = message_bytes(phase, packet);
  }
  if (bytes == last_reduction_.first) return last_reduction_.second;
  last_reduction_ = {bytes, reduction_time(bytes)};
  return last_reduction_.second;
}

Time StreamEngine::reduction_time(std::int64_t bytes) const {
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

void StreamEngine::bundle_crossed(std::uint32_t id, bool reduced, std::int32_t packet) {
  if (!reduced) {
    crossed(id);
    return;
  }
  const Stream& stream = streams_[id];
  agenda_.schedule(stream.rank, later(queue_.now(), reduction_time(stream, packet)), target_,
                   pack(EventKind::bundle, id, stream.phase, packet));
}

// Packets alternate between runs that cost nothing on arrival and runs whose data is reduced.
void StreamEngine::insert_packet(std::uint32_t id) {
  Stream& stream = streams_[id];
  const StreamPhase& phase = phase_of(stream);
  if (stream.without_latency == 0 && stream.with_latency == 0) {
    stream.without_latency = phase.parallel;
    switch (phase.method) {
      case StreamMethod::ring:
        stream.with_latency = phase.ranks - 1;
        break;
      case StreamMethod::direct:
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

void StreamEngine::received(std::uint32_t id, std::int32_t slot) {
  Stream& stream = streams_[id];
  if (stream.rank == 0) {
    const Chunk& chunk = *stream.chunk;
    messages_[id].time =
        later(messages_[id].time, queue_.now() - chunk.posted[static_cast<std::size_t>(slot)]);
    ++messages_[id].count;
  }
  ++stream.received;
  switch (phase_of(stream).method) {
    case StreamMethod::ring:
    case StreamMethod::direct:
    case StreamMethod::halving_doubling:
      insert_packet(id);
      return;
    case StreamMethod::double_binary_tree:
      tree_received(id);
      return;
    case StreamMethod::scheduled: {
      const Step& step = phase_of(stream).schedule->of(stream.here).steps[stream.step];
      if (stream.received == step.receives) bundle(id, false, step.reduced > Bytes(0), false, 0);
      return;
    }
    case StreamMethod::custom:
      return;
  }
}

// A packet has crossed, and been reduced where that was due.
void StreamEngine::crossed(std::uint32_t id) {
  Stream& stream = streams_[id];
  const StreamPhase& phase = phase_of(stream);
  if (phase.method == StreamMethod::double_binary_tree) {
    tree_crossed(id);
    return;
  }
  if (phase.method == StreamMethod::scheduled) {
    if (stream.stage != kBegun) ++stream.step;
    stream.stage = kEnds;
    next_schedule_step(id);
    return;
  }
  ++stream.free;
  std::int32_t times = 1;
  // The second half of a direct all-reduce waits for all of the first.
  const bool second_half = phase.method == StreamMethod::direct && phase.kind == CollectiveKind::all_reduce &&
                           phase.sends - stream.sent <= phase.ranks - 1;
  if (second_half) {
    if (stream.received < phase.ranks - 1) return;
    times = phase.parallel;
  }
  for (; times > 0; --times) send_packet(id);
  if (stream.sent == phase.sends && stream.free == phase.parallel) advance(id);
}

// Sends the next packet, if there is one that has crossed, and posts the receive that goes with it.
void StreamEngine::send_packet(std::uint32_t id) {
  Stream& stream = streams_[id];
  const StreamPhase& phase = phase_of(stream);
  if (stream.inserted == stream.sent || stream.sent == phase.sends || stream.free == 0) return;
  const std::int32_t packet = stream.sent++;
  --stream.free;
  std::int32_t slot = 0;
  if (phase.method == StreamMethod::direct) slot = packet % (phase.ranks - 1);
  if (phase.method == StreamMethod::halving_doubling) slot = packet;
  const std::int64_t bytes = message_bytes(phase, packet);
  const std::uint32_t to = stream_at(stream, position_of(stream, packet, false));
  if (!system_.rendezvous) {
    network_.send({stream.rank, streams_[to].rank, Bytes(bytes), target_,
                   pack(EventKind::message, to, stream.phase, slot)});
    post_now(id, slot);
    return;
  }
  transmit({id, to, slot, bytes, slot});
  post({stream_at(stream, position_of(stream, packet, true)), id, slot, bytes, slot});
}

// `relation` is that of the other end: what the sender is to the receiver is its slot there.
void StreamEngine::tree_sends(std::uint32_t id, std::int32_t position, std::int32_t relation,
                              std::int32_t own_relation) {
  const Stream& stream = streams_[id];
  transmit({id, stream_at(stream, position), own_relation, phase_of(stream).bytes, relation});
}

void StreamEngine::tree_posts(std::uint32_t id, std::int32_t position, std::int32_t relation,
                              std::int32_t own_relation) {
  const Stream& stream = streams_[id];
  post({stream_at(stream, position), id, relation, phase_of(stream).bytes, own_relation});
}

void StreamEngine::tree_begins(std::uint32_t id) {
  Stream& stream = streams_[id];
  const StreamPhase& phase = phase_of(stream);
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

void StreamEngine::tree_received(std::uint32_t id) {
  Stream& stream = streams_[id];
  const StreamPhase& phase = phase_of(stream);
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

void StreamEngine::tree_crossed(std::uint32_t id) {
  Stream& stream = streams_[id];
  const StreamPhase& phase = phase_of(stream);
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
void StreamEngine::next_schedule_step(std::uint32_t id) {
  for (;; ++streams_[id].step) {
    Stream& stream = streams_[id];
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
      Message message{id, stream_at(stream, schedule.peer(stream.here, transfer)), transfer.step,
                      transfer.bytes.value};
      message.handshakes = false;
      transmit(message);
    }
    for (std::int32_t r = 0; r < step.receives; ++r) post_now(id, static_cast<std::int32_t>(stream.step));
    if (step.receives > 0) return;
  }
}

// --- Messages.

std::uint32_t StreamEngine::stream_at(const Stream& stream, std::int32_t position) const {
  const Chunk& chunk = *stream.chunk;
  const StreamPhase& phase = *stream.current;
  if (phase.dimension == kFlatStream) return chunk.first_stream + static_cast<std::uint32_t>(position);
  const std::int64_t rank = stream.rank + (position - stream.here) * phase.stride;
  return chunk.first_stream + static_cast<std::uint32_t>(chunk.member_of[rank]);
}

// Where the packet goes to, or where the receive posted with it comes from.
std::int32_t StreamEngine::position_of(const Stream& stream, std::int32_t packet, bool source) const {
  const StreamPhase& phase = phase_of(stream);
  const std::int32_t n = phase.ranks;
  if (phase.method == StreamMethod::halving_doubling) {
    const std::int32_t steps = std::bit_width(static_cast<std::uint32_t>(n)) - 1;
    std::int32_t exponent = packet;
    if (phase.kind == CollectiveKind::all_gather) exponent = steps - 1 - packet;
    if (packet >= steps) exponent = 2 * steps - 1 - packet;
    return stream.here ^ (1 << exponent);
  }
  const std::int32_t distance = phase.method == StreamMethod::direct ? 1 + packet % (n - 1) : 1;
  const bool forwards = source == stream.reversed;
  const std::int32_t position = forwards ? stream.here + distance : stream.here - distance;
  return position >= n ? position - n : position < 0 ? position + n : position;
}

void StreamEngine::transmit(const Message& message) {
  if (!system_.rendezvous || !message.handshakes) {
    transmit_now(message);
    return;
  }
  // Wait for the receiver's handshake.
  std::int32_t& waiting = box(streams_[message.from].chunk->handshake, message.from, message.sender_slot);
  if (waiting++ >= 0) return;
  queue_.schedule(queue_.now(), target_, pack(EventKind::late_handshake, keep_handshake(message), 0, 0));
}

void StreamEngine::transmit_now(const Message& message) {
  const Stream& from = streams_[message.from];
  network_.send({from.rank, streams_[message.to].rank, Bytes(message.bytes), target_,
                 pack(EventKind::message, message.to, from.phase, message.slot)});
}

std::uint32_t StreamEngine::keep_handshake(const Message& message) {
  if (free_handshakes_.empty()) {
    handshakes_.push_back(message);
    return static_cast<std::uint32_t>(handshakes_.size() - 1);
  }
  const std::uint32_t handshake = free_handshakes_.back();
  free_handshakes_.pop_back();
  handshakes_[handshake] = message;
  return handshake;
}

void StreamEngine::post(const Message& message) {
  if (!system_.rendezvous) {
    post_now(message.to, message.slot);
    return;
  }
  network_.send({streams_[message.to].rank, streams_[message.from].rank, kHandshakeBytes, target_,
                 pack(EventKind::handshake, keep_handshake(message), 0, 0)});
}

void StreamEngine::post_now(std::uint32_t id, std::int32_t slot) {
  const Stream& stream = streams_[id];
  Chunk& chunk = *stream.chunk;
  if (stream.rank == 0) {
    chunk.posted.resize(static_cast<std::size_t>(chunk.slots));
    chunk.posted[static_cast<std::size_t>(slot)] = queue_.now();
  }
  if (stream.mailbox[slot]++ < 0)
    queue_.schedule(queue_.now(), target_, pack(EventKind::late_receive, id, stream.phase, slot));
}

void StreamEngine::arrive(std::uint32_t id, std::uint8_t phase, std::int32_t slot) {
  const Stream& stream = streams_[id];
  Chunk& chunk = *stream.chunk;
  if (stream.state != State::running || stream.phase != phase) {
    chunk.early[std::uint64_t{id - chunk.first_stream} << 8 | phase].push_back(slot);
    return;
  }
  if (stream.mailbox[slot]-- > 0) received(id, slot);
}

// The receiver posts its receive; the sender begins, if it has come that far.
void StreamEngine::handshake_arrives(std::uint32_t handshake) {
  const Message message = handshakes_[handshake];
  free_handshakes_.push_back(handshake);
  const std::uint8_t phase = streams_[message.to].phase;
  post_now(message.to, message.slot);
  const Stream& sender = streams_[message.from];
  Chunk& chunk = *sender.chunk;
  if (sender.state != State::running || sender.phase != phase) {
    chunk.early[std::uint64_t{message.from - chunk.first_stream} << 8 | phase].push_back(-1 -
                                                                                         message.sender_slot);
    return;
  }
  if (box(chunk.handshake, message.from, message.sender_slot)-- > 0) transmit_now(message);
}

// --- Who waits for whom.

std::int32_t StreamEngine::missing_member(std::int32_t rank, std::uint32_t node) const {
  for (const std::unique_ptr<Instance>& instance : instances_) {
    if (!instance) continue;
    const std::int32_t member = families_[instance->family].member_of[static_cast<std::size_t>(rank)];
    const std::vector<std::int32_t>& ranks =
        graph_.families[instance->family].groups[static_cast<std::size_t>(instance->group)];
    if (member < 0 || ranks[static_cast<std::size_t>(member)] != rank) continue;
    if (graph_.families[instance->family].group_of[static_cast<std::size_t>(rank)] != instance->group)
      continue;
    const Issue& mine = instance->issues[static_cast<std::size_t>(member)];
    if (mine.chunks_left <= 0 || mine.node != node) continue;
    for (std::size_t m = 0; m < instance->issues.size(); ++m) {
      if (instance->issues[m].chunks_left < 0) return ranks[m];
    }
  }
  return -1;
}

}  // namespace armilla
