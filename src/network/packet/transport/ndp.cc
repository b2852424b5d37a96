// NDP (Handley et al., "Re-architecting datacenter networks and stacks for low latency and high performance",
// SIGCOMM 2017): a sender sends a window at line rate; then every packet that arrives, whole or cut, lets its
// receiver pull one.
#include <algorithm>
#include <utility>

#include "network/packet/transport/pulled.h"

namespace armilla::packets {

namespace {

class Ndp final : public Pulled {
 public:
  explicit Ndp(Hosts& hosts)
      : Pulled(hosts, static_cast<double>(hosts.core().settings.payload + kPulledHeader) / kPullRate) {}

  void add_flow(bool open) override {
    Pulled::add_flow(open);
    ends_.emplace_back();
  }
  void fetch(std::uint32_t index) const override {
    Pulled::fetch(index);
    __builtin_prefetch(&ends_[index], 1);
  }
  void begin(std::uint32_t index) override { ends_[index].credit = window(flows_[index]); }
  void begin_again(std::uint32_t index, std::int64_t) override { begin(index); }

  bool may_send(std::uint32_t index) const override {
    const Flow& flow = flows_[index];
    return ends_[index].credit > 0 && (pieces_[index].losses > 0 || flow.next < flow.size);
  }

  void next_data(std::uint32_t index, Packet& data) override {
    const Flow& flow = flows_[index];
    --ends_[index].credit;
    data.sequence = pieces_[index].losses > 0 ? pieces_[index].take_lost() * payload() : flow.next;
    data.payload = static_cast<std::uint16_t>(std::min(payload(), flow.size - data.sequence));
  }

  void receive_data(std::uint32_t number) override {
    if (frees_late(number)) return;
    Packet& data = packets_[number];
    const std::uint32_t index = data.flow;
    const Flow& flow = flows_[index];
    Ends& ends = ends_[index];
    data.repeat = data.sequence / payload();
    const bool cut = data.trimmed;
    if (!cut) note_data(index, data);
    if (pull_at_once(index)) {
      ++ends.pulled;
    } else {
      ++ends.waiting;
      stand_in_line(index, 0);
    }
    // Nothing is left to be pulled, until the sender has more.
    if (flow.expected >= flow.size) ends.pulled += std::exchange(ends.waiting, 0U);
    reply(number, cut ? PacketKind::nack : PacketKind::ack, ends.pulled);
  }

  void timed_out(std::uint32_t index) override {
    const Flow& flow = flows_[index];
    lose_all(index);
    // Half as much each time: the windows of many senders at once may leave no room for the headers of any.
    ends_[index].credit =
        std::max({ends_[index].credit, window(flow) >> (flow.retries - 1), std::int64_t{1}});
  }

 private:
  struct Ends {
    // The sender
    std::int64_t credit = 0;  // packets
    std::uint64_t had = 0;    // of all pulls
    // The receiver
    std::uint64_t pulled = 0, waiting = 0;  // pulls sent, and those that wait to be
  };

  void heard(std::uint32_t index, const Packet& packet) override {
    if (packet.kind == PacketKind::ack) pieces_[index].learn(packet.repeat);
    ends_[index].credit += static_cast<std::int64_t>(newly_pulled(ends_[index].had, packet));
  }

  std::optional<std::uint64_t> pull(std::uint32_t index, std::size_t line) override {
    Ends& ends = ends_[index];
    if (ends.waiting == 0) return {};
    ++ends.pulled;
    if (--ends.waiting > 0) stand_in_line(index, line);
    return ends.pulled;
  }

  std::vector<Ends> ends_;
};

std::unique_ptr<Transport> make_ndp(Hosts& hosts) {
  return std::make_unique<Ndp>(hosts);
}

}  // namespace

const TransportRow kNdp = {pulled_traits, make_ndp};

}  // namespace armilla::packets
