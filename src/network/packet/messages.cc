#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <span>

#include "base/error.h"
#include "network/packet/transport.h"

namespace armilla {

void PacketSimulation::post(std::uint32_t connection, std::int64_t bytes, std::uint64_t message,
                            std::int64_t at_ns) {
  Mail& mail = mail_[connection];
  // What takes no bytes is told of, too.
  const auto least = static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 1));
  const auto largest = static_cast<std::uint64_t>(settings_.payload);
  const std::uint64_t begin = mail.end;
  mail.end += (least + largest - 1) / largest * largest;
  mail.messages.push_back({mail.end, begin + least, message});
  posts_.push_back({at_ns, connection});
  std::ranges::push_heap(posts_, std::greater());
  ++pending_;
}

void PacketSimulation::begin(TrafficFlow flow, std::uint64_t message, std::int64_t at_ns) {
  flow.bytes = std::max<std::int64_t>(flow.bytes, 1);  // what takes no bytes is told of, too
  const auto source = static_cast<std::uint32_t>(flow.source),
             destination = static_cast<std::uint32_t>(flow.destination);
  std::uint16_t& port =
      next_source_port_.try_emplace(std::uint64_t{source} << 32 | destination, kFirstSourcePort)
          .first->second;
  const FlowAddress address = {source, destination, port++, static_cast<std::uint16_t>(flow.port)};
  auto index = static_cast<std::uint32_t>(flows_.size());
  if (free_flows_.empty()) {
    add_flow(flow, address);
    message_of_.push_back(message);
  } else {
    index = free_flows_.back();
    free_flows_.pop_back();
    // Timers of the one that was forgotten are out of date.
    const Flow& before = flows_[index];
    Flow fresh;
    fresh.life = before.life + 1;
    fresh.increase_stamp = before.increase_stamp + 1;
    flows_[index] = fresh;
    outcome_.flows[index] = {};
    transport_->forget(index);
    set_up_flow(index, flow, address);
    message_of_[index] = message;
  }
  // As ASTRA-sim does: an application of ns-3 that is due at once.
  schedule(at_ns, kInstall, index);
}

// All that are the next to begin, at one nanosecond.
void PacketSimulation::begin_messages() {
  const std::int64_t ns = posts_.front().ns;
  events_.pass_to(ns);
  beginning_.clear();
  while (!posts_.empty() && posts_.front().ns == ns) {
    if (posts_.front().connection != kNone) beginning_.push_back(posts_.front().connection);
    std::ranges::pop_heap(posts_, std::greater());
    posts_.pop_back();
    --pending_;
  }
  if (can_repeat_) {
    for (const std::uint32_t node : std::exchange(crowded_, {})) join_at_switch(node);
    for (const std::uint32_t connection : beginning_) {
      if (sets_.of_connection(connection) == ConnectionSets::kNone) join_sets(connection);
    }
    order_events();
  }
  for (const std::uint32_t connection : beginning_) begin_message(connection);
}

// A new connection, whose first message begins.
void PacketSimulation::join_sets(std::uint32_t connection) {
  std::vector<std::uint32_t> ports;
  for_each_port(flows_[connection], [&](std::uint32_t port, bool) { ports.push_back(port); });
  for (std::size_t i = ports.size(); i-- > 0;) {
    const std::uint32_t node = ports_[ports[i]].node;
    if (!switches_[node].joins) continue;
    // Any that is in a set: all of them are in one.
    for (std::uint32_t port = first_ports_[node]; port < first_ports_[node + 1]; ++port) {
      if (sets_.of_port(node_ports_[port]) == ConnectionSets::kNone) continue;
      ports.push_back(node_ports_[port]);
      break;
    }
  }
  if (forward_) forward_->connects(ports);
  sets_.add(connection, ports, [&](std::uint32_t into, std::uint32_t from) { join(into, from); });
  if (forward_) forward_->connected(connection);
}

// What comes in at a switch's port may soon make it pause its peer. When all else of this nanosecond
// has happened, too, nobody has yet been paused (Switch::calm), and what uses the switch becomes one
// set, for good.
void PacketSimulation::crowded(std::uint32_t entry) {
  if (forward_) forward_->crowded(entry);
  const std::uint32_t node = ports_[entry].node;
  if (!can_repeat_ || std::exchange(switches_[node].joins, true)) return;
  crowded_.push_back(node);
  posts_.push_back({events_.now(), kNone});
  std::ranges::push_heap(posts_, std::greater());
  ++pending_;
}

void PacketSimulation::join_at_switch(std::uint32_t node) {
  std::vector<std::uint32_t> ports;
  for (std::uint32_t i = first_ports_[node]; i < first_ports_[node + 1]; ++i) {
    for (const std::uint32_t port : {node_ports_[i], node_ports_[i] ^ 1}) {
      if (sets_.of_port(port) != ConnectionSets::kNone) ports.push_back(port);
    }
  }
  if (forward_) forward_->connects(ports);
  const std::uint32_t set =
      sets_.unite(ports, [&](std::uint32_t into, std::uint32_t from) { join(into, from); });
  if (forward_) forward_->connected(sets_[set].first);
}

void PacketSimulation::join(std::uint32_t into, std::uint32_t from) {
  note_order(into, from);
  if (forward_) forward_->join(into, from);
}

// Sets that become one, for `order_events`.
void PacketSimulation::note_order(std::uint32_t set, std::uint32_t other) {
  const auto has_begun = [&](std::uint32_t one) {
    return std::ranges::any_of(sets_[one].connections,
                               [&](std::uint32_t connection) { return flows_[connection].started; });
  };
  if (!has_begun(other) || !has_begun(set)) return;
  order_of_port_.resize(ports_.size(), kNone);
  for (const std::uint32_t one : {set, other}) {
    if (order_of_port_[sets_[one].ports.front()] != kNone) continue;
    for (const std::uint32_t port : sets_[one].ports) order_of_port_[port] = sets_[one].first;
    ordered_.insert(ordered_.end(), sets_[one].ports.begin(), sets_[one].ports.end());
  }
}

// What sets that have become one do at one nanosecond: first the one with the first connection, and so on.
void PacketSimulation::order_events() {
  if (ordered_.empty()) return;
  const auto order_of = [&](const WheelEvent& event) {
    switch (event.kind) {
      case kSent:
      case kWake:
        return order_of_port_[event.subject];
      case kArrived:
        return order_of_port_[packets_[event.subject].port ^ 1];
      default:
        return set_of(event) == kNone ? kNone : order_of_port_[flows_[event.subject].port];
    }
  };
  struct Due {
    std::int64_t time;
    std::uint32_t order;
    WheelEvent event;
  };
  std::vector<Due> due;
  events_.take_out([&](const WheelEvent& event) { return order_of(event) != kNone; },
                   [&](std::int64_t time, const WheelEvent& event) {
                     due.push_back({time, order_of(event), event});
                   });
  std::ranges::stable_sort(
      due, [](const Due& a, const Due& b) { return a.time != b.time ? a.time < b.time : a.order < b.order; });
  for (const auto& [time, order, event] : due) events_.schedule(time, event.kind, event.subject, event.stamp);
  for (const std::uint32_t port : ordered_) order_of_port_[port] = kNone;
  ordered_.clear();
}

std::uint32_t PacketSimulation::set_of(const WheelEvent& event) const {
  switch (event.kind) {
    case kSent:
    case kWake:
      return sets_.of_port(event.subject);
    case kArrived:
      return sets_.of_port(packets_[event.subject].port ^ 1);
    case kTimeout:
      return sets_.of_connection(event.subject);
    default:
      return event.kind == kTimer || event.kind >= kIdleTimers ? sets_.of_connection(event.subject) : kNone;
  }
}

void PacketSimulation::begin_message(std::uint32_t connection) {
  Flow& flow = flows_[connection];
  Mail& mail = mail_[connection];
  if (forward_) forward_->begins(connection);
  if (mail.arrived == mail.posted) {
    mail.forgotten = mail.arrived;
    // No more than these move up, however many are posted ahead.
    if (mail.messages.size() - mail.forgotten <= mail.forgotten) {
      mail.messages.erase(mail.messages.begin(),
                          mail.messages.begin() + static_cast<std::ptrdiff_t>(mail.forgotten));
      mail.posted = mail.arrived = mail.forgotten = 0;
    }
  }
  flow.size = mail.messages[mail.posted++].end;
  transport_->extend(connection);
  if (flow.finished) restart(connection);
  refresh(connection);
  serve(flow.port);
}

void PacketSimulation::restart(std::uint32_t connection) {
  Flow& flow = flows_[connection];
  flow.finished = false;
  flow.started = true;
  ++flow.life;
  ++flow.increase_stamp;
  flow.retries = 0;
  flow.next = std::max(flow.next, flow.acknowledged);
  const std::int64_t silent_ns = events_.now() - flow.next_send_ns;
  flow.start_ns = flow.next_send_ns = events_.now();
  flow.rate = flow.line_rate = ports_[flow.port].rate;
  transport_->begin_again(connection, silent_ns);
  if (flow.turn == kNone) join_nic(connection);
}

void PacketSimulation::note_arrivals(std::uint32_t connection) {
  Mail& mail = mail_[connection];
  while (mail.arrived < mail.posted && mail.messages[mail.arrived].end <= flows_[connection].expected) {
    arrived_.push_back(mail.messages[mail.arrived++].number);
    if (forward_) forward_->arrived(connection);
  }
}

// What has arrived and was forgotten is sent again in full packets.
std::uint32_t PacketSimulation::wire_payload(std::uint32_t connection, std::uint64_t sequence,
                                             std::uint64_t payload) const {
  const Mail& mail = mail_[connection];
  const std::span<const Mail::Message> messages = std::span(mail.messages).subspan(mail.forgotten);
  const std::size_t known = mail.arrived - mail.forgotten;
  // Most often that of the first message to arrive, or of one soon after; what has arrived can be many.
  const bool arrived = known > 0 && sequence < messages[known - 1].end;
  const auto message =
      arrived ? std::ranges::upper_bound(messages, sequence, {}, &Mail::Message::end)
              : std::find_if(messages.begin() + static_cast<std::ptrdiff_t>(known), messages.end(),
                             [&](const Mail::Message& one) { return sequence < one.end; });
  if (message == messages.end() || sequence >= message->bytes_end) return static_cast<std::uint32_t>(payload);
  return static_cast<std::uint32_t>(std::min(payload, message->bytes_end - sequence));
}

void PacketSimulation::explain_standstill() const {
  explain_deadlock();
  for (std::uint32_t connection = 0; connection < flows_.size(); ++connection) {
    if (mail_.empty() ? flows_[connection].finished
                      : mail_[connection].arrived == mail_[connection].messages.size())
      continue;
    throw Error(
        job_.where,
        fmt::format("after {} ns host {} gave up sending to host {}: {} packets were lost on links and "
                    "{} dropped by full buffers",
                    events_.now(), ports_[flows_[connection].port].node, ports_[flows_[connection].exit].node,
                    outcome_.lost_packets, outcome_.dropped_packets),
        "a larger buffer, or links that lose less");
  }
  throw Error(job_.where, fmt::format("nothing moves any more after {} ns", events_.now()));
}

}  // namespace armilla
