#include "network/packet/connections.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "network/packet/transport/transport.h"

namespace armilla::packets {

void Connections::await(std::uint32_t connection, std::int64_t at_ns) {
  posts_.push_back({at_ns, connection});
  std::ranges::push_heap(posts_, std::greater());
  core_.events.await();
}

// All that are the next to begin, at one nanosecond.
void Connections::begin_messages() {
  const std::int64_t ns = posts_.front().ns;
  core_.events.pass_to(ns);
  beginning_.clear();
  while (!posts_.empty() && posts_.front().ns == ns) {
    if (posts_.front().connection != kNone) beginning_.push_back(posts_.front().connection);
    std::ranges::pop_heap(posts_, std::greater());
    posts_.pop_back();
    core_.events.came();
  }
  if (core_.repeats) {
    // Sets come together before any message begins: what that one does must meet its set as it will be.
    for (const std::uint32_t node : std::exchange(crowded_, {})) join_at_switch(node);
    for (const std::uint32_t connection : beginning_) {
      if (sets_.of_connection(connection) == ConnectionSets::kNone) join_sets(connection);
    }
    order_events();
  }
  for (const std::uint32_t connection : beginning_) begin_message(connection);
}

// A new connection, whose first message begins.
void Connections::join_sets(std::uint32_t connection) {
  std::vector<std::uint32_t> ports;
  ways_.for_each_port(flows_[connection], [&](std::uint32_t port, bool) { ports.push_back(port); });
  for (std::size_t i = ports.size(); i-- > 0;) {
    const std::uint32_t node = links_[ports[i]].node;
    if (!switches_[node].joins) continue;
    // Any that is in a set: all of them are in one.
    for (const std::uint32_t port : links_.of_node(node)) {
      if (sets_.of_port(port) == ConnectionSets::kNone) continue;
      ports.push_back(port);
      break;
    }
  }
  core_.watcher.connects(ports);
  sets_.add(connection, ports, [&](std::uint32_t into, std::uint32_t from) { join(into, from); });
  core_.watcher.connected(connection);
}

void Connections::crowded(std::uint32_t entry) {
  const std::uint32_t node = links_[entry].node;
  if (!core_.repeats || std::exchange(switches_[node].joins, true)) return;
  crowded_.push_back(node);
  await(kNone, core_.events.now());
}

void Connections::join_at_switch(std::uint32_t node) {
  std::vector<std::uint32_t> ports;
  for (const std::uint32_t here : links_.of_node(node)) {
    for (const std::uint32_t port : {here, here ^ 1}) {
      if (sets_.of_port(port) != ConnectionSets::kNone) ports.push_back(port);
    }
  }
  core_.watcher.connects(ports);
  const std::uint32_t set =
      sets_.unite(ports, [&](std::uint32_t into, std::uint32_t from) { join(into, from); });
  core_.watcher.connected(sets_[set].first);
}

void Connections::join(std::uint32_t into, std::uint32_t from) {
  note_order(into, from);
  core_.watcher.join(into, from);
}

// Sets that become one, for `order_events`.
void Connections::note_order(std::uint32_t set, std::uint32_t other) {
  const auto has_begun = [&](std::uint32_t one) {
    return std::ranges::any_of(sets_[one].connections,
                               [&](std::uint32_t connection) { return flows_[connection].started; });
  };
  if (!has_begun(other) || !has_begun(set)) return;
  order_of_port_.resize(links_.size(), kNone);
  for (const std::uint32_t one : {set, other}) {
    if (order_of_port_[sets_[one].ports.front()] != kNone) continue;
    for (const std::uint32_t port : sets_[one].ports) order_of_port_[port] = sets_[one].first;
    ordered_.insert(ordered_.end(), sets_[one].ports.begin(), sets_[one].ports.end());
  }
}

// What sets that have become one do at one nanosecond: first the one with the first connection, and so on.
void Connections::order_events() {
  if (ordered_.empty()) return;
  const auto order_of = [&](const WheelEvent& event) {
    switch (event.kind) {
      case kSent:
      case kWake:
        return order_of_port_[event.subject];
      case kArrived:
        return order_of_port_[core_.packets[event.subject].port ^ 1];
      default:
        return set_of(event) == kNone ? kNone : order_of_port_[flows_[event.subject].port];
    }
  };
  struct Due {
    std::uint32_t order = kNone;
    HeldEvent held;
  };
  std::vector<Due> due;
  core_.events.take_out([&](const WheelEvent& event) { return order_of(event) != kNone; },
                        [&](const HeldEvent& held) {
                          due.push_back({order_of(held.event), held});
                        });
  std::ranges::stable_sort(due, [](const Due& a, const Due& b) {
    return a.held.time != b.held.time ? a.held.time < b.held.time : a.order < b.order;
  });
  for (const Due& one : due) core_.events.schedule(one.held);
  for (const std::uint32_t port : ordered_) order_of_port_[port] = kNone;
  ordered_.clear();
}

std::uint32_t Connections::set_of(const WheelEvent& event) const {
  switch (event.kind) {
    case kSent:
    case kWake:
      return sets_.of_port(event.subject);
    case kArrived:
      return sets_.of_port(core_.packets[event.subject].port ^ 1);
    case kTimeout:
      return sets_.of_connection(event.subject);
    default:
      return event.kind == kTimer || event.kind >= kIdleTimers ? sets_.of_connection(event.subject) : kNone;
  }
}

void Connections::begin_message(std::uint32_t connection) {
  Flow& flow = flows_[connection];
  core_.watcher.begins(connection);
  flow.size = mail_.begin_next(connection);
  hosts_.transport().extend(connection);
  if (flow.finished) restart(connection);
  hosts_.refresh(connection);
  hosts_.serve(flow.port);
}

void Connections::restart(std::uint32_t connection) {
  Flow& flow = flows_[connection];
  flow.finished = false;
  flow.started = true;
  ++flow.life;
  ++flow.increase_stamp;
  flow.retries = 0;
  flow.next = std::max(flow.next, flow.acknowledged);
  const std::int64_t silent_ns = core_.events.now() - flow.next_send_ns;
  flow.start_ns = flow.next_send_ns = core_.events.now();
  flow.rate = flow.line_rate = links_[flow.port].rate;
  hosts_.transport().begin_again(connection, silent_ns);
  if (flow.turn == kNone) hosts_.join(connection);
}

}  // namespace armilla::packets
