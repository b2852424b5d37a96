// EQDS (Olteanu et al., "An edge-queued datagram service for all datacenter traffic", NSDI 2022): a sender
// sends what it may owe without being asked until it hears from its receiver; its packets say up to where it
// would like to be pulled, and receivers pull those who want most of a packet in turn: first those whose
// packets were cut, last those who want nothing, for as much as they may owe.
#include <algorithm>
#include <bit>

#include "network/packet/transport/pulled.h"

namespace armilla::packets {

namespace {

class Eqds final : public Pulled {
 public:
  explicit Eqds(Hosts& hosts)
      : Pulled(hosts, static_cast<double>(units(hosts.core().settings.payload + kPulledHeader) * kUnit +
                                          kPulledHeader + kBetweenFrames) *
                          kPullRate),
        units_per_pull_(units(wire_bytes())) {}

  void add_flow(bool open) override {
    Pulled::add_flow(open);
    ends_.emplace_back();
    shunned_.resize(ends_.size() * static_cast<std::size_t>(settings_.paths));
  }
  void extend(std::uint32_t index) override {
    Pulled::extend(index);
    if (flows_[index].started && !flows_[index].finished) ask(index);
  }
  void fetch(std::uint32_t index) const override {
    Pulled::fetch(index);
    __builtin_prefetch(&ends_[index], 1);
  }
  void begin(std::uint32_t index) override {
    Ends& ends = ends_[index];
    ends.may_owe = window_bytes(index) - std::max<std::int64_t>(ends.credit, 0);
  }
  void begin_again(std::uint32_t index, std::int64_t) override { begin(index); }

  bool may_send(std::uint32_t index) const override {
    const Flow& flow = flows_[index];
    const Ends& ends = ends_[index];
    return (ends.credit > 0 || ends.may_owe > 0) && (pieces_[index].losses > 0 || flow.next < flow.size);
  }

  void next_data(std::uint32_t index, Packet& data) override {
    const Flow& flow = flows_[index];
    Ends& ends = ends_[index];
    const bool again = pieces_[index].losses > 0;
    data.sequence = again ? pieces_[index].take_lost() * payload() : flow.next;
    data.payload = static_cast<std::uint16_t>(std::min(payload(), flow.size - data.sequence));
    const std::int64_t bytes = data.payload + core_.traits.header;
    (ends.credit > 0 ? ends.credit : ends.may_owe) -= bytes;
    if (again) ends.unpulled = std::max<std::int64_t>(ends.unpulled - bytes, 0);
    const std::uint64_t after = again ? flow.next : flow.next + data.payload;
    ends.told = std::max(ends.told, target_from(index, after));
    data.pull = ends.told;
    data.asks = again || after >= flow.size || ends.credit < 0;
  }

  void receive_data(std::uint32_t number) override {
    if (frees_late(number)) return;
    const Packet& packet = packets_[number];
    const std::uint32_t index = packet.flow;
    const Flow& flow = flows_[index];
    Ends& ends = ends_[index];
    if (packet.pull > ends.target) {
      ends.target = packet.pull;
      if (ends.behind == 0) stand_in_line(index, kWanting);
    }
    if (packet.kind == PacketKind::request) {
      flows_.free_packet(number);
      return;
    }
    if (packet.trimmed && !pieces_[index].has_arrived(packet.sequence / payload())) {
      ends.behind += units(wire_bytes());
      stand_in_line(index, kCut);
      packets_[number].repeat = packet.sequence / payload();
      reply(number, PacketKind::nack, ends.pulled);
      return;
    }
    bool at_once = packet.asks || packet.marked || packet.trimmed;
    if (!packet.trimmed) {
      ends.unanswered += packet.size;
      const bool first = flow.expected == 0 && ends.latest == 0;
      const bool news = note_data(index, packet);
      ends.latest = std::max(ends.latest, packet.sequence + packet.payload);
      ends.wants_answer = ends.wants_answer || packet.asks;
      const bool whole = flow.expected >= ends.latest;
      at_once = at_once || first || !news || ends.unanswered > kAnswerAfter || (whole && ends.wants_answer);
      if (whole && at_once) ends.wants_answer = false;
    }
    if (!at_once) {
      flows_.free_packet(number);
      return;
    }
    ends.unanswered = 0;
    packets_[number].repeat = arrived_beyond(index);
    reply(number, PacketKind::ack, ends.pulled);
  }

  void timed_out(std::uint32_t index) override {
    Ends& ends = ends_[index];
    ends.unpulled += lose_all(index) * wire_bytes();
    ends.may_owe = 0;
    ends.credit = std::max<std::int64_t>(ends.credit, 1);
  }

 private:
  static constexpr std::int64_t kUnit = 512;            // bytes; what pulls count
  static constexpr std::int64_t kAnswerAfter = 16'384;  // bytes
  static constexpr std::int64_t kBetweenFrames = 38;  // bytes: Ethernet's header, check sum, preamble and gap
  static constexpr std::size_t kCut = 0, kWanting = 1, kContent = 2;  // lines
  static constexpr std::uint64_t units(std::int64_t bytes) {
    return static_cast<std::uint64_t>((bytes + kUnit - 1) / kUnit);
  }

  struct Ends {
    // The sender
    std::int64_t credit = 0;    // bytes that it was pulled for; the last packet may overdraw it
    std::int64_t may_owe = 0;   // bytes that it may send beyond, until it hears of its receiver
    std::int64_t unpulled = 0;  // bytes to be sent again that the receiver has no knowledge of
    std::uint64_t had = 0;      // units, of all pulls
    std::uint64_t told = 0;     // the largest target
    // The receiver
    std::uint64_t pulled = 0, target = 0;  // units
    std::uint64_t behind = 0;              // units, of cut packets
    std::uint64_t latest = 0;              // the end of what has arrived, sequence number
    std::int64_t unanswered = 0;           // bytes
    bool wants_answer = false;             // once nothing is missing
  };

  std::int64_t window_bytes(std::uint32_t index) const { return window(flows_[index]) * wire_bytes(); }

  // Up to where the sender would like to be pulled, with `next` to be sent next.
  std::uint64_t target_from(std::uint32_t index, std::uint64_t next) const {
    const Flow& flow = flows_[index];
    const Ends& ends = ends_[index];
    const std::uint64_t left = flow.size - next;
    const auto bytes =
        static_cast<std::int64_t>(left + (left + payload() - 1) / payload() * core_.traits.header) +
        ends.unpulled;
    const std::int64_t wanted = std::min(bytes, window_bytes(index)) - ends.credit;
    return ends.had + units(std::max<std::int64_t>(wanted, 0));
  }
  // No packet will tell the receiver that there is more.
  void ask(std::uint32_t index) {
    Ends& ends = ends_[index];
    if (ends.credit > 0 || ends.may_owe > 0) return;
    const std::uint64_t target = target_from(index, flows_[index].next);
    if (target <= ends.told) return;
    ends.told = target;
    send_control(index, PacketKind::request, target);
  }

  // Bit per packet, of those behind the first one that is missing.
  std::uint64_t arrived_beyond(std::uint32_t index) const {
    const Pieces& pieces = pieces_[index];
    const std::uint64_t first = (flows_[index].expected + payload() - 1) / payload() + 1;
    const std::uint64_t word = first / 64, shift = first % 64;
    std::uint64_t bits = word < pieces.words() ? pieces.word(word).arrived >> shift : 0;
    if (shift != 0 && word + 1 < pieces.words()) bits |= pieces.word(word + 1).arrived << (64 - shift);
    return bits;
  }

  void heard(std::uint32_t index, const Packet& packet) override {
    Ends& ends = ends_[index];
    if (packet.kind == PacketKind::ack) {
      const std::uint64_t base = (packet.sequence + payload() - 1) / payload() + 1;
      for (std::uint64_t bits = packet.repeat; bits != 0; bits &= bits - 1)
        pieces_[index].learn(base + static_cast<std::uint64_t>(std::countr_zero(bits)));
    }
    if (packet.kind == PacketKind::nack || packet.echo)
      shunned_[std::size_t{index} * static_cast<std::size_t>(settings_.paths) + packet.path] = true;
    ends.credit += static_cast<std::int64_t>(newly_pulled(ends.had, packet)) * kUnit;
    // It has heard of its receiver, and is pulled from now on.
    ends.may_owe = 0;
    if (!flows_[index].finished) ask(index);
  }

  std::optional<std::uint64_t> pull(std::uint32_t index, std::size_t line) override {
    const Flow& flow = flows_[index];
    Ends& ends = ends_[index];
    // Of a flow that is there as a whole nobody waits for pulls; a connection's sender may have more.
    if (!mail_.is_used() && flow.expected >= flow.size) return {};
    ends.behind -= std::min(ends.behind, units_per_pull_);
    ends.pulled += units_per_pull_;
    const bool wants = ends.target > ends.pulled;
    if (line == kCut && ends.behind > 0) stand_in_line(index, kCut);
    if (line == kCut && ends.behind == 0 && wants) stand_in_line(index, kWanting);
    if (line == kWanting) stand_in_line(index, wants ? kWanting : kContent);
    if (line == kContent && !wants &&
        static_cast<std::int64_t>(ends.pulled - ends.target) * kUnit < window_bytes(index))
      stand_in_line(index, kContent);
    return ends.pulled;
  }

  const std::uint64_t units_per_pull_;
  std::vector<Ends> ends_;
};

std::unique_ptr<Transport> make_eqds(Hosts& hosts) {
  return std::make_unique<Eqds>(hosts);
}

}  // namespace

const TransportRow kEqds = {pulled_traits, make_eqds};

}  // namespace armilla::packets
