#include "network/packet/transport/pulled.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "base/splitmix.h"

namespace armilla::packets {

Traits pulled_traits(const PacketSettings&) {
  return {.header = kPulledHeader,
          .control = kPulledHeader,
          .discipline = SwitchDiscipline::trim,
          .in_line = true,
          .sprays = true,
          .backs_off = true};
}

bool Pulled::Pieces::lose(std::uint64_t packet) {
  Word& here = word(packet / 64);
  const std::uint64_t bit = std::uint64_t{1} << (packet % 64);
  if (((here.known | here.lost) & bit) != 0) return false;
  here.lost |= bit;
  // `first_lost` need not be lost itself: it is a place before which nothing is.
  first_lost = losses++ == 0 ? packet : std::min(first_lost, packet);
  return true;
}

void Pulled::Pieces::learn(std::size_t place, std::uint64_t bits) {
  Word& here = word(place);
  here.known |= bits;
  losses -= std::popcount(here.lost & bits);
  here.lost &= ~bits;
}

std::uint64_t Pulled::Pieces::take_lost() {
  // There is one, or nobody would ask: `losses` counts them.
  std::uint64_t place = first_lost / 64;
  while (word(place).lost == 0) ++place;
  Word& here = word(place);
  const std::uint64_t packet = place * 64 + static_cast<std::uint64_t>(std::countr_zero(here.lost));
  here.lost &= here.lost - 1;
  first_lost = packet;
  --losses;
  return packet;
}

// Ways together may be as wide as the host's own link, whatever each is.
std::int64_t Pulled::window(const Flow& flow) const {
  constexpr double kLeast = 8, kMore = 1.25;
  if (settings_.pull_window > 0) return settings_.pull_window;
  const double bytes = static_cast<double>(flow.round_trip_ns) * static_cast<double>(flow.line_rate) / 8e9;
  return static_cast<std::int64_t>(
      std::max(kLeast, std::ceil(kMore * bytes / static_cast<double>(settings_.payload))));
}

// ---- Ways

// Switches know nothing of each other's ways: names are hashed to them at random, several to one.
std::uint32_t Pulled::way_of(std::uint32_t index, std::uint32_t path) const {
  const Flow& flow = flows_[index];
  const std::uint64_t hash = splitmix((settings_.seed << 32 ^ index) * 0x9e3779b97f4a7c15U + path);
  return static_cast<std::uint32_t>(hash % flow.ways);
}

std::uint32_t Pulled::choose_way(std::uint32_t index, Packet& packet) {
  Flow& flow = flows_[index];
  if (flow.ways == 1 || is_adaptive(core_.job.choice)) return Transport::choose_way(index, packet);
  const auto paths = static_cast<std::uint32_t>(settings_.paths);
  std::uint32_t& next = paths_[index].next_there;
  while (!shunned_.empty() && shunned_[std::size_t{index} * paths + next] != 0) {
    // A name on which a packet was cut is skipped once, and then is as good as any.
    shunned_[std::size_t{index} * paths + next] = 0;
    next = (next + 1) % paths;
  }
  packet.path = static_cast<std::uint16_t>(next);
  next = (next + 1) % paths;
  return ways_.store().of_list(flow.ways_there, way_of(index, packet.path));
}

std::uint32_t Pulled::way_back(const Packet& packet) const {
  const Flow& flow = flows_[packet.flow];
  if (flow.ways == 1 || is_adaptive(core_.job.choice)) return flow.way_back;
  return ways_.store().of_list(flow.ways_back, way_of(packet.flow, packet.path));
}

// ---- Packets

bool Pulled::note_data(std::uint32_t index, const Packet& data) {
  Flow& flow = flows_[index];
  Pieces& pieces = pieces_[index];
  const std::uint64_t place = data.sequence / payload();
  if (pieces.has_arrived(place)) return false;
  pieces.word(place / 64).arrived |= std::uint64_t{1} << (place % 64);
  if (data.sequence == flow.expected) {
    std::uint64_t next = place + 1;
    while (next * payload() < flow.size && pieces.has_arrived(next)) ++next;
    flow.expected = std::min(next * payload(), flow.size);
  }
  if (mail_.is_used()) mail_.note_arrivals(index);
  return true;
}

void Pulled::receive_acknowledgement(std::uint32_t number) {
  const Packet packet = packets_[number];
  flows_.free_packet(number);
  const std::uint32_t index = packet.flow;
  note_acknowledged(index, packet.sequence);
  if (packet.kind == PacketKind::nack) pieces_[index].lose(packet.repeat);
  heard(index, packet);
  hosts_.refresh(index);
  hosts_.serve(flows_[index].port);
}

// Pulls overtake each other on the ways they are sprayed over: each tells of all before it, and an older one
// of nothing new.
std::uint64_t Pulled::newly_pulled(std::uint64_t& had, const Packet& packet) {
  return packet.pull > had ? packet.pull - std::exchange(had, packet.pull) : 0;
}

void Pulled::note_acknowledged(std::uint32_t index, std::uint64_t sequence) {
  Flow& flow = flows_[index];
  const std::uint64_t end = (sequence + payload() - 1) / payload();
  // A word at a time: an acknowledgement may tell of many packets.
  for (std::uint64_t packet = flow.acknowledged / payload(); packet < end;) {
    const std::uint64_t after = std::min(end, (packet / 64 + 1) * 64);
    pieces_[index].learn(packet / 64, ~std::uint64_t{0} >> (64 - (after - packet)) << (packet % 64));
    packet = after;
  }
  flow.acknowledged = std::max(flow.acknowledged, sequence);
  if (flow.acknowledged >= flow.size) hosts_.finish(index);
}

std::int64_t Pulled::lose_all(std::uint32_t index) {
  const Flow& flow = flows_[index];
  std::int64_t news = 0;
  for (std::uint64_t packet = flow.acknowledged / payload(); packet * payload() < flow.next; ++packet)
    news += pieces_[index].lose(packet) ? 1 : 0;
  return news;
}

void Pulled::reply(std::uint32_t number, PacketKind kind, std::uint64_t pull) {
  Packet& packet = packets_[number];
  packet.priority = 0;
  packet.trimmed = false;
  packet.pull = pull;
  hosts_.answer(number, kind);
}

void Pulled::send_control(std::uint32_t index, PacketKind kind, std::uint64_t pull) {
  const Flow& flow = flows_[index];
  const bool back = kind != PacketKind::request;
  const std::uint32_t number = packets_.make();
  Packet& packet = packets_[number];
  packet.flow = index;
  packet.kind = kind;
  packet.priority = 0;
  packet.size = core_.traits.control;
  packet.sequence = flow.expected;
  packet.pull = pull;
  if (back) {
    std::uint32_t& next = paths_[index].next_back;
    packet.path = static_cast<std::uint16_t>(next);
    next = (next + 1) % static_cast<std::uint32_t>(settings_.paths);
    packet.step = way_back(packet);
  } else {
    packet.step = choose_way(index, packet);
  }
  core_.outcome.acknowledgements.sent += packet.size;
  const std::uint32_t exit = back ? flow.exit : flow.port;
  packets_.append(links_[exit].acknowledgements, number);
  hosts_.serve(exit);
}

// ---- Pulls

std::uint32_t Pulled::nic_of_receiver(std::uint32_t index) {
  if (pacers_.empty()) {
    pacers_.resize(hosts_.nics());
    for (std::uint32_t number = 0; number < links_.size(); ++number) {
      const Port& port = links_[number];
      if (!port.at_switch)
        pacers_[port.nic].interval_ps = std::llround(interval_bytes_ * 8e12 / static_cast<double>(port.rate));
    }
  }
  return links_[flows_[index].exit].nic;
}

bool Pulled::pull_at_once(std::uint32_t index) {
  Pacer& pacer = pacers_[nic_of_receiver(index)];
  // While others stand in line nobody is pulled out of turn.
  const std::int64_t now_ps = events_.now() * 1000;
  if (pacer.ticks || now_ps < pacer.free_ps) return false;
  pacer.free_ps = now_ps + pacer.interval_ps;
  return true;
}

void Pulled::stand_in_line(std::uint32_t index, std::size_t line) {
  Place& place = places_[index];
  if (place.waits[line]) return;
  place.waits[line] = true;
  place.next[line] = kNone;
  const std::uint32_t nic = nic_of_receiver(index);
  Pacer& pacer = pacers_[nic];
  Pacer::Line& here = pacer.lines[line];
  (here.head == kNone ? here.head : places_[here.tail].next[line]) = index;
  here.tail = index;
  if (!pacer.ticks) tick_later(nic);
}

void Pulled::tick_later(std::uint32_t nic) {
  Pacer& pacer = pacers_[nic];
  pacer.ticks = true;
  // Rounded up to whole nanoseconds; what that is too late is made good at the next pull (below).
  events_.schedule(std::max(events_.now(), (pacer.free_ps + 999) / 1000), kTimer, nic);
}

void Pulled::timer(const WheelEvent& event) {
  const std::uint32_t nic = event.subject;
  const std::int64_t now_ps = events_.now() * 1000;
  // Lines by rank: one is asked only when all before it are empty. Who no longer wants a pull costs none.
  for (std::size_t line = 0; line < kLines;) {
    const std::uint32_t index = pacers_[nic].lines[line].head;
    if (index == kNone) {
      ++line;
      continue;
    }
    pacers_[nic].lines[line].head = places_[index].next[line];
    places_[index].waits[line] = false;
    const std::optional<std::uint64_t> pulled = pull(index, line);
    if (!pulled) continue;
    send_control(index, PacketKind::pull, *pulled);
    Pacer& pacer = pacers_[nic];
    // Not later for times that are whole nanoseconds here.
    pacer.free_ps = (now_ps - pacer.free_ps < 1000 ? pacer.free_ps : now_ps) + pacer.interval_ps;
    break;
  }
  Pacer& pacer = pacers_[nic];
  pacer.ticks = false;
  if (std::ranges::any_of(pacer.lines, [](const Pacer::Line& line) { return line.head != kNone; }))
    tick_later(nic);
}

}  // namespace armilla::packets
