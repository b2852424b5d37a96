#include "network/packet/failures.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/units_text.h"

namespace armilla::packets {

void Losses::drop(std::uint32_t number, bool on_link) {
  const Packet& packet = core_.packets[number];
  ++(on_link ? core_.outcome.lost_packets : core_.outcome.dropped_packets);
  if (PacketBytes* bytes = core_.account_of(packet)) {
    bytes->dropped += packet.size;
    // A host's timer runs from its last progress. It can only fire after a loss, and so begins with one.
    Flow& flow = flows_[packet.flow];
    flow.lost_on_link = flow.lost_on_link || on_link;
    if (core_.settings.retransmit_timeout_ns > 0 && !flow.timer && !flow.finished) {
      flow.timer = true;
      flow.timer_mark = flow.acknowledged;
      core_.events.schedule(core_.events.now() + core_.settings.retransmit_timeout_ns, kTimeout, packet.flow);
    }
  }
  // A pause is over by itself after the time that it was for, should the word that ends it be lost.
  if (packet.kind == PacketKind::resume && on_link && links_[packet.port].up) {
    core_.events.schedule(core_.events.now() + longest_pause_ns(links_[packet.port].rate), kPauseOver,
                          packet.port, packet.priority);
  }
  flows_.free_packet(number);
}

namespace {

// "; 12 of 56 flows had finished"; nothing where messages come one by one.
std::string finished_text(const Core& core) {
  if (core.job.flows.empty()) return "";
  const auto finished = std::ranges::count_if(core.outcome.flows,
                                              [](const PacketFlowOutcome& flow) { return flow.fct_ns >= 0; });
  return fmt::format("; {} of {} had finished", with_separators(finished),
                     counted(static_cast<std::int64_t>(core.job.flows.size()), "flow"));
}

}  // namespace

void explain_deadlock(const Core& core, const Links& links) {
  // A port that is paused waits for the queues that the packets it paused for wait in: at the switch that
  // paused it, the paused ports that still hold packets.
  std::vector<std::uint32_t> way;
  std::vector<char> state(links.size());
  const auto blocked = [&](std::uint32_t port) {
    return links[port].at_switch && (links[port].waiting & links[port].paused) != 0;
  };
  for (std::uint32_t start = 0; start < links.size(); ++start) {
    if (!blocked(start) || state[start] != 0) continue;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> stack = {{start, 0}};
    state[start] = 1;
    way = {start};
    while (!stack.empty()) {
      const std::uint32_t node = links[stack.back().first ^ 1].node;
      const std::uint32_t at = stack.back().second++;
      if (at >= links.of_node(node).size()) {
        state[stack.back().first] = 2;
        stack.pop_back();
        way.pop_back();
        continue;
      }
      const std::uint32_t next = links.of_node(node)[at];
      if (next == (stack.back().first ^ 1) || !blocked(next)) continue;
      if (state[next] == 1) {
        std::string cycle;
        for (auto port = std::find(way.begin(), way.end(), next); port != way.end(); ++port) {
          cycle += core.job.graph.called(links[*port].node, "") + " -> ";
        }
        throw Error(
            core.job.where,
            fmt::format(
                "PFC deadlock after {}: switches wait for each other in the cycle {}{}, each paused by the "
                "next with a full buffer{}",
                to_text(from_seconds(static_cast<double>(core.events.now()) * 1e-9)), cycle,
                core.job.graph.called(links[next].node, ""), finished_text(core)),
            // Files of ns-3 have no other ways.
            fmt::format(
                "{}cc=ndp, cc=eqds and cc=tcp-cubic do without pauses; a larger buffer= may do, and on the "
                "network flow nothing waits",
                core.job.usual_settings ? "routing=up-down has no such cycles; " : ""));
      }
      if (state[next] == 0) {
        state[next] = 1;
        stack.emplace_back(next, 0);
        way.push_back(next);
      }
    }
  }
}

}  // namespace armilla::packets
