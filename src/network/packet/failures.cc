#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "network/packet/transport.h"

namespace armilla {

void PacketSimulation::drop(std::uint32_t number, bool on_link) {
  const Packet& packet = packets_[number];
  ++(on_link ? outcome_.lost_packets : outcome_.dropped_packets);
  if (PacketBytes* bytes = account_of(packet)) {
    bytes->dropped += packet.size;
    // A host's timer runs from its last progress. It can only fire after a loss, and so begins with one.
    Flow& flow = flows_[packet.flow];
    flow.lost_on_link = flow.lost_on_link || on_link;
    if (settings_.retransmit_timeout_ns > 0 && !flow.timer && !flow.finished) {
      flow.timer = true;
      flow.timer_mark = flow.acknowledged;
      schedule(events_.now() + settings_.retransmit_timeout_ns, kTimeout, packet.flow);
    }
  }
  if (packet.kind == PacketKind::resume && on_link && ports_[packet.port].up) {
    schedule(events_.now() + longest_pause_ns(ports_[packet.port].rate), kPauseOver, packet.port,
             packet.priority);
  }
  free_packet(number);
}

void PacketSimulation::timeout(std::uint32_t index) {
  Flow& flow = flows_[index];
  flow.timer = false;
  if (flow.finished) {
    events_.forget();
    if (forgets_) forget_if_over(index);
    return;
  }
  std::int64_t since_ns = events_.now();
  if (flow.acknowledged > flow.timer_mark) {
    flow.retries = 0;
    since_ns = transport_->progress_ns(index);
  } else {
    // A NIC gives up. A sender that is pulled does only while links lose what it sends: full buffers
    // have room again.
    const bool hopeless = discipline_ != SwitchDiscipline::trim || flow.lost_on_link;
    if (flow.retries == kRetries && hopeless) return;
    flow.retries = std::min(flow.retries + 1, kRetries);
    ++outcome_.timeouts;
    flow.ask = true;
    transport_->timed_out(index);
  }
  flow.timer = true;
  flow.lost_on_link = false;
  flow.timer_mark = flow.acknowledged;
  // What was heard of in a wait that had been doubled may be longer ago than a simple one.
  const std::int64_t wait_ns = settings_.retransmit_timeout_ns
                               << (transport_->traits.backs_off ? flow.retries : 0);
  schedule(std::max(events_.now(), since_ns + wait_ns), kTimeout, index);
  refresh(index);
  serve(flow.port);
}

void PacketSimulation::link_down() {
  for (std::uint32_t link = 0; link < job_.graph.links.size(); ++link) {
    const GraphLink& cable = job_.graph.links[link];
    const bool same = (cable.a == settings_.link_down_a && cable.b == settings_.link_down_b) ||
                      (cable.a == settings_.link_down_b && cable.b == settings_.link_down_a);
    if (!same) continue;
    failed_.push_back(link);
    for (const std::uint32_t index : {2 * link, 2 * link + 1}) {
      Port& port = ports_[index];
      port.up = false;
      while (port.acknowledgements.head != kNone) drop(take(port.acknowledgements), true);
      for (std::size_t queue = 0; queue < kPriorities; ++queue) {
        Queue& waiting = shares_[index][queue].queue;
        while (waiting.head != kNone) {
          const std::uint32_t packet = take(waiting);
          port.queued -= packets_[packet].size;
          // The buffer is free again.
          if (queue != 0) leave_switch(index, packet, static_cast<std::uint8_t>(queue));
          drop(packet, true);
        }
      }
      port.waiting = 0;
    }
  }
  routes_ = Routes(job_.graph, settings_.payload, ends_, failed_);
  hashed_ = true;
  for (Nic& nic : nics_) {
    for (const Turn& turn : nic.turns) {
      flows_[turn.flow].turn = kNone;
      if (forgets_) forget_if_over(turn.flow);
    }
    nic.turns.clear();
    if (flows_in_line_) nic.last = 0;
  }
  for (std::uint32_t index = 0; index < flows_.size(); ++index) {
    Flow& flow = flows_[index];
    if (!flow.started || flow.finished) continue;
    find_ways(index);
    join_nic(index);
    serve(flow.port);
  }
}

void PacketSimulation::explain_deadlock() const {
  // A port that is paused waits for the queues that the packets it paused for wait in: at the switch that
  // paused it, the paused ports that still hold packets.
  std::vector<std::uint32_t> way;
  std::vector<char> state(ports_.size());
  const auto blocked = [&](std::uint32_t port) {
    return ports_[port].at_switch && (ports_[port].waiting & ports_[port].paused) != 0;
  };
  for (std::uint32_t start = 0; start < ports_.size(); ++start) {
    if (!blocked(start) || state[start] != 0) continue;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> stack = {{start, 0}};
    state[start] = 1;
    way = {start};
    while (!stack.empty()) {
      const std::uint32_t node = ports_[stack.back().first ^ 1].node;
      const std::uint32_t at = first_ports_[node] + stack.back().second++;
      if (at >= first_ports_[node + 1]) {
        state[stack.back().first] = 2;
        stack.pop_back();
        way.pop_back();
        continue;
      }
      const std::uint32_t next = node_ports_[at];
      if (next == (stack.back().first ^ 1) || !blocked(next)) continue;
      if (state[next] == 1) {
        std::string cycle;
        for (auto port = std::find(way.begin(), way.end(), next); port != way.end(); ++port) {
          cycle += fmt::format("{} -> ", ports_[*port].node);
        }
        throw Error(job_.where,
                    fmt::format("PFC deadlock after {} ns: switches wait for each other in the cycle {}{}, "
                                "each paused by the "
                                "next with a full buffer",
                                events_.now(), cycle, ports_[next].node),
                    "routes that go up and then only down, a larger BUFFER_SIZE, or congestion control with "
                    "a window avoid "
                    "it");
      }
      if (state[next] == 0) {
        state[next] = 1;
        stack.emplace_back(next, 0);
        way.push_back(next);
      }
    }
  }
}

}  // namespace armilla
