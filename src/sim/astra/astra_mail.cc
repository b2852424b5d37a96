#include "sim/astra/astra_mail.h"

#include <algorithm>

namespace armilla {

AstraMail::AstraMail(const RunContext& context, const SystemLayer& system, Blocks<AstraStream>& streams,
                     std::uint32_t target)
    : context_(context),
      system_(system),
      streams_(streams),
      target_(target),
      matches_(system.semantics == Semantics::astra1 && system.network.name.empty() &&
               !context.order.is_watched()) {}

void AstraMail::open(AstraChunk& chunk) const {
  chunk.mail.open.resize(chunk.members * static_cast<std::size_t>(chunk.slots));
  if (system_.rendezvous) chunk.handshakes.open.resize(chunk.mail.open.size());
  if (!matches_) return;
  chunk.mail.arrivals.resize(chunk.mail.open.size());
  chunk.handshakes.arrivals.resize(chunk.handshakes.open.size());
}

void AstraMail::schedule_now(std::uint64_t argument) {
  if (context_.order.is_watched()) context_.order.watch(context_.queue.now(), Order::kOwn);
  context_.queue.schedule(context_.queue.now(), target_, argument);
}

void AstraMail::transmit(const AstraMessage& message) {
  if (!system_.rendezvous || !message.handshakes) {
    transmit_now(message);
    return;
  }
  // Wait for the receiver's handshake.
  Boxes& handshakes = streams_[message.from].chunk->handshakes;
  if (matches_) {
    if (const auto arrival = meets_message(handshakes, place_of(message.from, message.sender_slot)))
      schedule_at(*arrival, pack(AstraEvent::late_handshake, handshakes_.add(message), 0, 0));
    return;
  }
  if (box(handshakes, message.from, message.sender_slot)++ >= 0) return;
  schedule_now(pack(AstraEvent::late_handshake, handshakes_.add(message), 0, 0));
}

// A message is sent that arrives then. Whether its receive is posted; else it waits for that.
bool AstraMail::meets_receive(Boxes& boxes, std::size_t place, Time arrival) {
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
std::optional<Time> AstraMail::meets_message(Boxes& boxes, std::size_t place) {
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

void AstraMail::schedule_at(Time time, std::uint64_t argument) {
  context_.queue.schedule(std::max(time, context_.queue.now()), target_, argument);
}

Message AstraMail::on_network(const AstraMessage& message, std::uint64_t argument) const {
  const AstraStream& from = streams_[message.from];
  Message sent{.source = from.rank,
               .destination = streams_[message.to].rank,
               .bytes = Bytes(message.bytes),
               .target = target_,
               .argument = argument};
  const AstraPhase& phase = *from.current;
  if (system_.boost && system_.semantics == Semantics::astra1 && phase.dimension != kFlatPhase) {
    sent.copies = static_cast<std::uint32_t>(
        phase.method == AstraMethod::double_binary_tree ? phase.stride : context_.graph.ranks / phase.ranks);
  }
  return sent;
}

void AstraMail::transmit_now(const AstraMessage& message) {
  const AstraStream& from = streams_[message.from];
  Message sent = on_network(message, pack(AstraEvent::message, message.to, from.phase, message.slot));
  if (!matches_) {
    context_.network.send(sent);
    return;
  }
  sent.target = kNobody;
  const Time arrival = context_.network.send(sent);
  if (meets_receive(from.chunk->mail, place_of(message.to, message.slot), arrival))
    schedule_at(arrival, pack(AstraEvent::late_receive, message.to, from.phase, message.slot));
}

void AstraMail::post(const AstraMessage& message) {
  Message handshake = on_network(message, pack(AstraEvent::handshake, handshakes_.add(message), 0, 0));
  std::swap(handshake.source, handshake.destination);
  handshake.bytes = kHandshakeBytes;
  const Time arrival = context_.network.send(handshake);
  if (!matches_) return;
  // The sender learns of it next, if it waits already.
  if (meets_receive(streams_[message.from].chunk->handshakes, place_of(message.from, message.sender_slot),
                    arrival))
    schedule_at(arrival, pack(AstraEvent::late_handshake, handshakes_.add(message), 0, 0));
}

void AstraMail::note_posted(AstraChunk& chunk, std::int32_t slot) const {
  chunk.posted.resize(static_cast<std::size_t>(chunk.slots));
  chunk.posted[static_cast<std::size_t>(slot)] = context_.queue.now();
}

void AstraMail::match(std::uint32_t id, std::int32_t slot) {
  const AstraStream& stream = streams_[id];
  if (const auto arrival = meets_message(stream.chunk->mail, place_of(id, slot)))
    schedule_at(*arrival, pack(AstraEvent::late_receive, id, stream.phase, slot));
}

void AstraMail::begin(std::uint32_t id) {
  const AstraStream& stream = streams_[id];
  AstraChunk& chunk = *stream.chunk;
  const auto early = chunk.early.find(early_key(id, stream.phase));
  if (early == chunk.early.end()) return;
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

// Not part of its caller, which handles every message.
[[gnu::noinline]] void AstraMail::late_handshake(std::uint32_t handshake) {
  transmit_now(handshakes_.remove(handshake));
}

// The receiver posts its receive; the sender begins, if it has come that far.
void AstraMail::handshake_arrives(std::uint32_t handshake) {
  const AstraMessage message = handshakes_.remove(handshake);
  const std::uint8_t phase = streams_[message.to].phase;
  post_now(streams_[message.to], message.slot);
  if (matches_) return;
  const AstraStream& sender = streams_[message.from];
  AstraChunk& chunk = *sender.chunk;
  if (sender.state != StreamState::running || sender.phase != phase) {
    chunk.early[early_key(message.from, phase)].push_back(-1 - message.sender_slot);
    return;
  }
  if (box(chunk.handshakes, message.from, message.sender_slot)-- > 0) transmit_now(message);
}

}  // namespace armilla
