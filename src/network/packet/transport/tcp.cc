// TCP: a handshake of one round trip; acknowledgements of every second segment, at once
// where one is missing, the last, or marked otherwise than the one before; each of those tells which
// segment it is for, as selective acknowledgements do (RFC 2018); what is sent keeps to the window by what
// is under way (RFC 6675). A segment is lost when the third one behind it has arrived (RFC 6675), or when
// the timer runs out.
#include <algorithm>

#include "network/packet/transport/selective.h"
#include "network/packet/transport/transport.h"

namespace armilla::packets {

namespace {

Traits tcp_traits(const PacketSettings&) {
  return {.header = kLinkAndIp + kTcpHeader,
          .control = kLinkAndIp + kTcpHeader,
          .discipline = SwitchDiscipline::drop,
          .backs_off = true};
}

class Tcp final : public Transport {
 public:
  using Transport::Transport;

  void add_flow(bool open) override {
    Connection& connection = connections_.emplace_back();
    connection.begin(settings_);
    connection.open = open;
  }
  void extend(std::uint32_t index) override { connections_[index].losses.grow(words(index)); }
  void begin(std::uint32_t) override {}

  // What nobody awaits any more is not under way. A window is forgotten after a while of silence (RFC 2861).
  void begin_again(std::uint32_t index, std::int64_t silent_ns) override {
    Connection& tcp = connections_[index];
    tcp.under_way = 0;
    tcp.lost_below = tcp.losses.resend = flows_[index].acknowledged / payload();
    if (silent_ns > settings_.retransmit_timeout_ns)
      tcp.window = std::min(tcp.window, static_cast<double>(settings_.initial_window * settings_.payload));
  }

  std::int64_t progress_ns(std::uint32_t index) const override { return connections_[index].progress_ns; }

  bool may_send(std::uint32_t index) const override {
    const Connection& tcp = connections_[index];
    if (!tcp.open) return !tcp.asked;
    const Flow& flow = flows_[index];
    const bool has_data = flow.next < flow.size || tcp.losses.resend < tcp.lost_below;
    return has_data && static_cast<double>((tcp.under_way + 1) * settings_.payload) <= tcp.window;
  }

  void next_data(std::uint32_t index, Packet& data) override {
    Connection& tcp = connections_[index];
    const Flow& flow = flows_[index];
    data.sequence = flow.next;
    if (!tcp.open) {
      tcp.asked = true;
      return;
    }
    ++tcp.under_way;
    Selective& losses = tcp.losses;
    while (losses.resend < tcp.lost_below && losses.knows(losses.resend)) ++losses.resend;
    if (losses.resend < tcp.lost_below) data.sequence = losses.resend++ * payload();
    data.payload = static_cast<std::uint16_t>(std::min(payload(), flow.size - data.sequence));
  }

  void receive_data(std::uint32_t number) override {
    if (frees_late(number)) return;
    constexpr std::int32_t kAnswerEvery = 2;
    Packet& data = packets_[number];
    const std::uint32_t index = data.flow;
    Flow& flow = flows_[index];
    Connection& tcp = connections_[index];
    bool at_once = data.payload == 0 || settings_.delayed_ack_ns == 0;
    if (data.payload > 0) {
      Selective& losses = tcp.losses;
      const std::uint64_t next = data.sequence / payload();
      Selective::set(losses.arrived, next);
      losses.highest_arrived = std::max(losses.highest_arrived, next);
      // Out of order, filling a gap, or marked otherwise than before, of which DCTCP's receiver tells at once
      // (RFC 8257, section 3.2).
      at_once = data.sequence != flow.expected || losses.highest_arrived > next ||
                data.marked != tcp.marked || at_once;
      if (data.sequence == flow.expected) {
        flow.expected = losses.expected(next, payload(), flow.size);
        at_once = at_once || flow.expected >= flow.size;
      }
      data.repeat = data.sequence;
      tcp.marked = data.marked;
    }
    if (mail_.is_used()) mail_.note_arrivals(index);
    if (at_once || ++tcp.unanswered >= kAnswerEvery) {
      tcp.unanswered = 0;
      hosts_.answer(number, PacketKind::ack);
      return;
    }
    flows_.free_packet(number);
    if (tcp.will_answer) return;
    tcp.will_answer = true;
    events_.schedule(events_.now() + settings_.delayed_ack_ns, kTimer, index);
  }

  void receive_acknowledgement(std::uint32_t number) override {
    constexpr std::uint64_t kReordered = 3;  // segments that may overtake one before it is taken for lost
    const Packet packet = packets_[number];
    flows_.free_packet(number);
    const std::uint32_t index = packet.flow;
    Flow& flow = flows_[index];
    Connection& tcp = connections_[index];
    Selective& losses = tcp.losses;
    if (!tcp.open) {
      tcp.open = true;
      hosts_.refresh(index);
      hosts_.serve(flow.port);
      return;
    }

    const std::uint64_t before = flow.acknowledged;
    flow.acknowledged = std::max(flow.acknowledged, packet.sequence);
    flow.next = std::max(flow.next, flow.acknowledged);
    if (flow.acknowledged > before) tcp.progress_ns = events_.now();
    if (flow.acknowledged >= flow.size) hosts_.finish(index);
    // What is lost and not sent again yet is no longer counted as under way.
    const auto arrived = [&](std::uint64_t segment) {
      if (losses.knows(segment)) return;
      Selective::set(losses.known, segment);
      if (segment < losses.resend || segment >= tcp.lost_below) --tcp.under_way;
    };
    const std::uint64_t first = (flow.acknowledged + payload() - 1) / payload();
    for (std::uint64_t segment = before / payload(); segment < first; ++segment) arrived(segment);
    const std::uint64_t told = packet.repeat / payload();
    arrived(told);
    losses.highest_known = std::max(losses.highest_known, told);
    losses.resend = std::max(losses.resend, first);
    tcp.lost_below = std::max(tcp.lost_below, first);
    const auto bytes = static_cast<double>(flow.acknowledged - before);
    const auto bytes_under_way = static_cast<double>(tcp.under_way * settings_.payload);
    const bool more_lost = [&] {
      bool any = false;
      for (; tcp.lost_below + kReordered <= losses.highest_known; ++tcp.lost_below) {
        if (losses.knows(tcp.lost_below)) continue;
        --tcp.under_way;
        any = true;
      }
      return any;
    }();

    if (tcp.recovering && first >= losses.recover_until) tcp.recovering = false;
    tcp.told_of_marks(flow.acknowledged, flow.next, bytes, packet.echo, settings_);
    if (!tcp.recovering) {
      if (more_lost) {
        tcp.recovering = true;
        losses.recover_until = (flow.highest + payload() - 1) / payload();
        tcp.lost(bytes_under_way, settings_);
      } else if (bytes > 0) {
        tcp.acknowledged(events_.now(), events_.now() - packet.sent_ns, bytes, flow.acknowledged, flow.next,
                         settings_);
      }
    }
    hosts_.refresh(index);
    hosts_.serve(flow.port);
  }

  // All that is not known to have arrived is lost.
  void timed_out(std::uint32_t index) override {
    Flow& flow = flows_[index];
    Connection& tcp = connections_[index];
    if (!tcp.open) {
      tcp.asked = false;
      return;
    }
    tcp.timed_out(static_cast<double>(tcp.under_way * settings_.payload), settings_);
    tcp.under_way = 0;
    tcp.recovering = false;
    tcp.losses.resend = flow.acknowledged / payload();
    tcp.lost_below = tcp.losses.recover_until = (flow.highest + payload() - 1) / payload();
  }

  // Nothing has come for a while to be acknowledged together with what waits for that.
  void timer(const WheelEvent& event) override {
    const std::uint32_t index = event.subject;
    Connection& tcp = connections_[index];
    const Flow& flow = flows_[index];
    tcp.will_answer = false;
    if (tcp.unanswered == 0 || flow.finished) {
      events_.forget();
      return;
    }
    tcp.unanswered = 0;
    const std::uint32_t number = packets_.make();
    Packet& packet = packets_[number];
    packet.flow = index;
    packet.priority = flow.priority;
    packet.marked = tcp.marked;
    // Of the last segment that is there: any one that has been told of does.
    packet.repeat = flow.expected - 1;
    packet.sent_ns = events_.now();
    hosts_.answer(number, PacketKind::ack);
  }

 private:
  struct Connection : TcpState {
    Selective losses;
    bool asked = false, open = false;  // the sender has sent its SYN, and had the answer
    bool recovering = false;           // until all that had been sent when the loss was noticed is there
    std::int64_t under_way = 0;        // segments sent and neither acknowledged nor lost
    std::int64_t progress_ns = 0;      // the last acknowledgement of something new
    std::uint64_t lost_below = 0;      // what is before it and not known to have arrived is lost
    // The receiver
    std::int32_t unanswered = 0;  // segments in order
    bool marked = false;          // the last one was
    bool will_answer = false;     // the timer of delayed acknowledgements runs
  };

  std::vector<Connection> connections_;
};

std::unique_ptr<Transport> make_tcp(Hosts& hosts) {
  return std::make_unique<Tcp>(hosts);
}

}  // namespace

const TransportRow kTcp = {tcp_traits, make_tcp};

}  // namespace armilla::packets
