// The transport of hosts that speak TCP: a handshake of one round trip; acknowledgements of every second segment, at once
// where one is missing, the last, or marked otherwise than the one before; each of those tells which segment it is for,
// as selective acknowledgements do (RFC 2018); what is sent keeps to the window by what is under way (RFC 6675).
#include <algorithm>

#include "network/packet/simulation.h"

namespace armilla {

bool PacketSimulation::tcp_may_send(std::uint32_t index) const {
  const Tcp& tcp = tcp_[index];
  if (!tcp.open) return !tcp.asked;
  const Flow& flow = flows_[index];
  const Selective& losses = selective_[index];
  const bool has_data = flow.next < flow.size || losses.resend < tcp.lost_below;
  return has_data && static_cast<double>((tcp.under_way + 1) * settings_.payload) <= tcp.window;
}

// Whether anything is to be sent again: `resend` is the first of it.
bool PacketSimulation::tcp_find_lost(std::uint32_t index) {
  Selective& losses = selective_[index];
  const Tcp& tcp = tcp_[index];
  while (losses.resend < tcp.lost_below && losses.knows(losses.resend)) ++losses.resend;
  return losses.resend < tcp.lost_below;
}

void PacketSimulation::tcp_receive_data(std::uint32_t number) {
  constexpr std::int32_t kAnswerEvery = 2;
  Packet& data = packets_[number];
  const std::uint32_t index = data.flow;
  Flow& flow = flows_[index];
  if (flow.finished && mail_.empty()) {
    free_packet(number);
    return;
  }
  Tcp& tcp = tcp_[index];
  bool at_once = data.payload == 0;
  if (data.payload > 0) {
    Selective& losses = selective_[index];
    const auto largest = static_cast<std::uint64_t>(settings_.payload);
    std::uint64_t next = data.sequence / largest;
    losses.arrived[next / 64] |= std::uint64_t{1} << (next % 64);
    losses.highest_arrived = std::max(losses.highest_arrived, next);
    at_once = data.sequence != flow.expected || losses.highest_arrived > next || data.marked != tcp.marked;
    if (data.sequence == flow.expected) {
      while (next * largest < flow.size && (losses.arrived[next / 64] >> (next % 64) & 1) != 0) ++next;
      flow.expected = std::min(next * largest, flow.size);
      at_once = at_once || flow.expected >= flow.size;
    }
    data.repeat = data.sequence;
    tcp.marked = data.marked;
  }
  if (!mail_.empty()) note_arrivals(index);
  if (at_once || ++tcp.unanswered >= kAnswerEvery) {
    tcp.unanswered = 0;
    answer(number, false);
    return;
  }
  free_packet(number);
  if (tcp.will_answer) return;
  tcp.will_answer = true;
  schedule(events_.now() + settings_.delayed_ack_ns, kAnswer, index);
}

// Nothing has come for a while to be acknowledged together with what waits for that.
void PacketSimulation::tcp_answer_late(std::uint32_t index) {
  Tcp& tcp = tcp_[index];
  const Flow& flow = flows_[index];
  tcp.will_answer = false;
  if (tcp.unanswered == 0 || flow.finished) {
    events_.forget();
    return;
  }
  tcp.unanswered = 0;
  const std::uint32_t number = new_packet();
  Packet& packet = packets_[number];
  packet.flow = index;
  packet.priority = flow.priority;
  packet.marked = tcp.marked;
  packet.repeat = flow.expected - 1;
  packet.sent_ns = events_.now();
  answer(number, false);
}

void PacketSimulation::tcp_receive_acknowledgement(std::uint32_t number) {
  constexpr std::uint64_t kReordered = 3;  // segments that may overtake one before it is taken for lost
  const Packet packet = packets_[number];
  free_packet(number);
  const std::uint32_t index = packet.flow;
  Flow& flow = flows_[index];
  Tcp& tcp = tcp_[index];
  Selective& losses = selective_[index];
  const auto largest = static_cast<std::uint64_t>(settings_.payload);
  if (!tcp.open) {
    tcp.open = true;
    refresh(index);
    serve(flow.port);
    return;
  }

  const std::uint64_t before = flow.acknowledged;
  flow.acknowledged = std::max(flow.acknowledged, packet.sequence);
  flow.next = std::max(flow.next, flow.acknowledged);
  if (flow.acknowledged >= flow.size) finish(index);
  // What is lost and not sent again yet is no longer counted as under way.
  const auto arrived = [&](std::uint64_t segment) {
    if (losses.knows(segment)) return;
    losses.known[segment / 64] |= std::uint64_t{1} << (segment % 64);
    if (segment < losses.resend || segment >= tcp.lost_below) --tcp.under_way;
  };
  const std::uint64_t first = (flow.acknowledged + largest - 1) / largest;
  for (std::uint64_t segment = before / largest; segment < first; ++segment) arrived(segment);
  const std::uint64_t told = packet.repeat / largest;
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
      losses.recover_until = (flow.highest + largest - 1) / largest;
      tcp.lost(bytes_under_way, settings_);
    } else if (bytes > 0) {
      tcp.acknowledged(events_.now(), events_.now() - packet.sent_ns, bytes, flow.acknowledged, flow.next,
                       settings_);
    }
  }
  refresh(index);
  serve(flow.port);
}

// All that is not known to have arrived is lost.
void PacketSimulation::tcp_timeout(std::uint32_t index) {
  Flow& flow = flows_[index];
  Tcp& tcp = tcp_[index];
  if (!tcp.open) {
    tcp.asked = false;
    return;
  }
  const auto largest = static_cast<std::uint64_t>(settings_.payload);
  tcp.timed_out(static_cast<double>(tcp.under_way * settings_.payload), settings_);
  tcp.under_way = 0;
  tcp.recovering = false;
  selective_[index].resend = flow.acknowledged / largest;
  tcp.lost_below = selective_[index].recover_until = (flow.highest + largest - 1) / largest;
}

}  // namespace armilla
