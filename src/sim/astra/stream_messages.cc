// Messages of the stream engine: where they go, how receives are posted, rendezvous.
#include <algorithm>
#include <bit>

#include "sim/astra/stream_engine.h"
#include "sim/astra/stream_events.h"

namespace armilla {

std::uint32_t StreamEngine::stream_at(const Stream& stream, std::int32_t position) const {
  const Chunk& chunk = *stream.chunk;
  const StreamPhase& phase = *stream.current;
  if (phase.dimension == kFlatStream) return stream.base + static_cast<std::uint32_t>(position);
  const std::int64_t rank = stream.rank + (position - stream.here) * phase.stride;
  return chunk.first_stream + static_cast<std::uint32_t>(chunk.member_of[rank]);
}

std::int32_t StreamEngine::rank_at(const Stream& stream, std::int32_t position) const {
  const StreamPhase& phase = *stream.current;
  if (phase.dimension == kFlatStream)
    return streams_[stream.base + static_cast<std::uint32_t>(position)].rank;
  return static_cast<std::int32_t>(stream.rank + (position - stream.here) * phase.stride);
}

void StreamEngine::schedule_now(std::uint64_t argument) {
  if (ties_) ties_->add(queue_.now(), queue_.now(), TieWatch::kOwn);
  queue_.schedule(queue_.now(), target_, argument);
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
  Boxes& handshakes = streams_[message.from].chunk->handshakes;
  if (matches_) {
    if (const auto arrival = meets_message(handshakes, place_of(message.from, message.sender_slot)))
      schedule_at(*arrival, pack(StreamEvent::late_handshake, keep_handshake(message), 0, 0));
    return;
  }
  if (box(handshakes, message.from, message.sender_slot)++ >= 0) return;
  schedule_now(pack(StreamEvent::late_handshake, keep_handshake(message), 0, 0));
}

// A message is sent that arrives then. Whether its receive is posted; else it waits for that.
bool StreamEngine::meets_receive(Boxes& boxes, std::size_t place, Time arrival) {
  const std::int32_t before = boxes.open[place]--;
  if (before > 0) return true;
  if (before == 0) {
    boxes.arrivals[place] = arrival;
  } else {
    boxes.further.emplace_back(place, arrival);
  }
  return false;
}

// A receive is posted. When the message that waits for it arrives, or has arrived; else it waits for that.
std::optional<Time> StreamEngine::meets_message(Boxes& boxes, std::size_t place) {
  if (boxes.open[place]++ >= 0) return std::nullopt;
  const Time arrival = boxes.arrivals[place];
  if (boxes.open[place] < 0) {
    const auto next = std::find_if(boxes.further.begin(), boxes.further.end(),
                                   [&](const auto& further) { return further.first == place; });
    boxes.arrivals[place] = next->second;
    boxes.further.erase(next);
  }
  return arrival;
}

void StreamEngine::schedule_at(Time time, std::uint64_t argument) {
  queue_.schedule(std::max(time, queue_.now()), target_, argument);
}

StreamMessage StreamEngine::on_network(const Message& message, std::uint64_t argument) const {
  const Stream& from = streams_[message.from];
  StreamMessage sent{from.rank, streams_[message.to].rank, Bytes(message.bytes), target_, argument};
  const StreamPhase& phase = phase_of(from);
  if (system_.boost && together_ && phase.dimension != kFlatStream) {
    sent.copies = phase.method == StreamMethod::double_binary_tree
                      ? phase.stride
                      : static_cast<std::int64_t>(ranks_.size()) / phase.ranks;
  }
  return sent;
}

void StreamEngine::transmit_now(const Message& message) {
  const Stream& from = streams_[message.from];
  const StreamMessage sent =
      on_network(message, pack(StreamEvent::message, message.to, from.phase, message.slot));
  if (!matches_) {
    network_.send(sent);
    return;
  }
  const Time arrival = network_.carry(sent);
  if (meets_receive(from.chunk->mail, place_of(message.to, message.slot), arrival))
    schedule_at(arrival, pack(StreamEvent::late_receive, message.to, from.phase, message.slot));
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
  StreamMessage handshake = on_network(message, pack(StreamEvent::handshake, keep_handshake(message), 0, 0));
  std::swap(handshake.source, handshake.destination);
  handshake.bytes = kHandshakeBytes;
  const Time arrival = network_.send(handshake);
  if (!matches_) return;
  // The sender learns of it next, if it waits already.
  if (meets_receive(streams_[message.from].chunk->handshakes, place_of(message.from, message.sender_slot),
                    arrival))
    schedule_at(arrival, pack(StreamEvent::late_handshake, keep_handshake(message), 0, 0));
}

void StreamEngine::post_now(std::uint32_t id, std::int32_t slot) {
  const Stream& stream = streams_[id];
  Chunk& chunk = *stream.chunk;
  if (stream.rank == 0) {
    chunk.posted.resize(static_cast<std::size_t>(chunk.slots));
    chunk.posted[static_cast<std::size_t>(slot)] = queue_.now();
  }
  if (matches_) {
    if (const auto arrival = meets_message(chunk.mail, place_of(id, slot)))
      schedule_at(*arrival, pack(StreamEvent::late_receive, id, stream.phase, slot));
    return;
  }
  if (stream.mailbox[slot]++ < 0) schedule_now(pack(StreamEvent::late_receive, id, stream.phase, slot));
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
  if (matches_) return;
  const Stream& sender = streams_[message.from];
  Chunk& chunk = *sender.chunk;
  if (sender.state != State::running || sender.phase != phase) {
    chunk.early[std::uint64_t{message.from - chunk.first_stream} << 8 | phase].push_back(-1 -
                                                                                         message.sender_slot);
    return;
  }
  if (box(chunk.handshakes, message.from, message.sender_slot)-- > 0) transmit_now(message);
}

}  // namespace armilla
