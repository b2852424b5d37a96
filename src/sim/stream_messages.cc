// Messages of the stream engine: where they go, how receives are posted, rendezvous.
#include <bit>

#include "sim/stream_engine.h"
#include "sim/stream_events.h"

namespace armilla {

std::uint32_t StreamEngine::stream_at(const Stream& stream, std::int32_t position) const {
  const Chunk& chunk = *stream.chunk;
  const StreamPhase& phase = *stream.current;
  if (phase.dimension == kFlatStream) return chunk.first_stream + static_cast<std::uint32_t>(position);
  const std::int64_t rank = stream.rank + (position - stream.here) * phase.stride;
  return chunk.first_stream + static_cast<std::uint32_t>(chunk.member_of[rank]);
}

std::int32_t StreamEngine::rank_at(const Stream& stream, std::int32_t position) const {
  const StreamPhase& phase = *stream.current;
  if (phase.dimension == kFlatStream)
    return streams_[stream.chunk->first_stream + static_cast<std::uint32_t>(position)].rank;
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
  std::int32_t& waiting = box(streams_[message.from].chunk->handshake, message.from, message.sender_slot);
  if (waiting++ >= 0) return;
  schedule_now(pack(StreamEvent::late_handshake, keep_handshake(message), 0, 0));
}

void StreamEngine::transmit_now(const Message& message) {
  const Stream& from = streams_[message.from];
  network_.send({from.rank, streams_[message.to].rank, Bytes(message.bytes), target_,
                 pack(StreamEvent::message, message.to, from.phase, message.slot)});
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
                 pack(StreamEvent::handshake, keep_handshake(message), 0, 0)});
}

void StreamEngine::post_now(std::uint32_t id, std::int32_t slot) {
  const Stream& stream = streams_[id];
  Chunk& chunk = *stream.chunk;
  if (stream.rank == 0) {
    chunk.posted.resize(static_cast<std::size_t>(chunk.slots));
    chunk.posted[static_cast<std::size_t>(slot)] = queue_.now();
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
  const Stream& sender = streams_[message.from];
  Chunk& chunk = *sender.chunk;
  if (sender.state != State::running || sender.phase != phase) {
    chunk.early[std::uint64_t{message.from - chunk.first_stream} << 8 | phase].push_back(-1 -
                                                                                         message.sender_slot);
    return;
  }
  if (box(chunk.handshake, message.from, message.sender_slot)-- > 0) transmit_now(message);
}

}  // namespace armilla
