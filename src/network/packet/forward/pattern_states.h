// The states of contention patterns (patterns.h): in words, and taken over from them.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "network/packet/forward/words.h"
#include "network/packet/parts.h"

namespace armilla::packets {

using State = std::vector<std::uint64_t>;
struct StateHash {
  std::size_t operator()(const State& words) const;
};

// A set whose members are in the order of their labels.
struct SetMembers {
  const std::vector<std::uint32_t>&connections, &ports;
  const std::vector<std::uint64_t>& bases;  // by connection: from where its sequence numbers count
};

class PatternStates {
 public:
  explicit PatternStates(Parts& parts);

  // Puts its connections and ports in an order that does not depend on which of several alike it is, as far
  // as jobs make connections in the same order everywhere, and labels them by their places there. Returns a
  // number for what never changes of it.
  std::uint64_t sort(ConnectionSets::Set& set);
  std::uint32_t label_of(std::uint32_t connection) const { return flow_label_[connection]; }

  // Writes, or reads, the state; where the ends of messages matter, they are a part of it.
  void code(const SetMembers& set, std::vector<HeldEvent>& events, bool ends_matter, Words& words);
  // What is yet to arrive: that is not taken over, but what arrives, and how large its last packet is,
  // depends on it.
  void code_messages(const SetMembers& set, State& state) const;

 private:
  void code_flow(const SetMembers& set, std::size_t place, bool ends_matter, Words& words);
  void code_port(const SetMembers& set, std::uint32_t port, Words& words);
  void code_queue(const SetMembers& set, Queue& queue, Words& words);
  void code_packet(const SetMembers& set, std::uint32_t& number, Words& words);
  void code_events(const SetMembers& set, std::vector<HeldEvent>& events, Words& words);
  void code_label(const std::vector<std::uint32_t>& of, const std::vector<std::uint32_t>& label,
                  std::uint32_t& number, Words& words) const;

  Core& core_;
  Links& links_;
  WayFinder& ways_;
  Flows& flows_;
  const Mail& mail_;
  Switches& switches_;
  Hosts& hosts_;
  const ConnectionSets& sets_;
  std::vector<std::uint32_t> port_label_;  // per port
  std::vector<std::uint32_t> flow_label_;  // per flow
  std::unordered_map<State, std::uint64_t, StateHash> structures_;
};

}  // namespace armilla::packets
