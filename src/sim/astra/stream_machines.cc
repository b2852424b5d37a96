// The machines of the stream engine's phases: what a beginning, a received message and a packet that has
// crossed between endpoint and memory make each algorithm do.
#include <algorithm>
#include <bit>

#include "sim/astra/stream_engine.h"
#include "sim/astra/stream_events.h"

namespace armilla {
namespace {

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

void StreamEngine::handle(std::uint64_t argument) {
  const auto id = static_cast<std::uint32_t>(argument);
  const std::int32_t slot = slot_of_event(argument);
  switch (event_of(argument)) {
    case StreamEvent::message:
      arrive(id, phase_of_event(argument), slot);
      return;
    case StreamEvent::late_receive:
      received(id, slot);
      return;
    case StreamEvent::handshake:
      handshake_arrives(id);
      return;
    case StreamEvent::late_handshake: {
      const Message message = handshakes_[id];
      free_handshakes_.push_back(id);
      transmit_now(message);
      return;
    }
    case StreamEvent::bundle:
      bundle_crossed(id, false, slot);
      return;
    case StreamEvent::bundle_to_reduce:
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
      pack(reduced ? StreamEvent::bundle_to_reduce : StreamEvent::bundle, id, stream.phase, packet);
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
                   pack(StreamEvent::bundle, id, stream.phase, packet));
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
  const std::int32_t position = position_of(stream, packet, false);
  const std::uint32_t to = ties_ ? id : stream_at(stream, position);
  if (ties_) {
    const std::int32_t destination = rank_at(stream, position);
    const Time arrival = network_.send({stream.rank, destination, Bytes(bytes), target_,
                                        pack(StreamEvent::message, to, stream.phase, slot)});
    ties_->add(arrival, queue_.now(), destination);
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

}  // namespace armilla
