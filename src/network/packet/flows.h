// The flows of a packet simulation: those that the job has, those that come one by one, and connections. A
// flow that is over can be forgotten as soon as nothing of it is under way; another one has its number then.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/huge_pages.h"
#include "network/packet/flow.h"
#include "network/packet/links.h"
#include "network/packet/way_finder.h"

namespace armilla::packets {

class Flows {
 public:
  Flows(Core& core, const Links& links, WayFinder& ways);

  Flow& operator[](std::uint32_t flow) { return flows_[flow]; }
  const Flow& operator[](std::uint32_t flow) const { return flows_[flow]; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(flows_.size()); }
  // But those that were forgotten.
  std::size_t remembered() const { return flows_.size() - free_.size(); }

  void add(const TrafficFlow& asked, const FlowAddress& address);
  // One of those that come while time goes on; `fresh`: no other had its number.
  struct Coming {
    std::uint32_t flow = 0;
    bool fresh = true;
  };
  Coming come(TrafficFlow flow);
  // A connection over these ways; returns its number.
  std::uint32_t connect(std::span<const std::vector<std::uint32_t>> ways);

  void find_ways(std::uint32_t flow);

  void note_sent(Flow& flow) {
    if (forgets_) ++flow.under_way;
  }
  // Pauses and resumes are no flow's.
  void free_packet(std::uint32_t number) {
    const Packet& packet = core_.packets[number];
    if (forgets_ && packet.kind < PacketKind::pause) {
      --flows_[packet.flow].under_way;
      forget_if_over(packet.flow);
    }
    core_.packets.release(number);
  }
  void forget_if_over(std::uint32_t index) {
    if (!forgets_) return;
    Flow& flow = flows_[index];
    if (!flow.started || !flow.finished || flow.turn != kNone || flow.under_way > 0 || flow.timer) return;
    flow.started = false;
    free_.push_back(index);
  }

 private:
  void set_up(std::uint32_t flow, const TrafficFlow& asked, const FlowAddress& address);

  Core& core_;
  const Links& links_;
  WayFinder& ways_;
  const bool forgets_;
  HugeVector<Flow> flows_;
  std::vector<std::uint32_t> free_;
  std::unordered_map<std::uint64_t, std::uint16_t>
      next_source_port_;  // by pair of hosts, for those that come
};

}  // namespace armilla::packets
