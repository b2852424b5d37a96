// Reader of the inputs of the HPCC authors' ns-3, and of ASTRA-sim's: a config.txt of "KEY value..." lines,
// the topology.txt and the flow.txt that it names. They are read as ns-3 reads them: what follows a key's
// values on a line is a comment.
//
// topology.txt (or SimAI's): nodes, switches, links; the switches' numbers; per link: two nodes, rate
// ("100Gbps"), delay ("1000ns"), probability of losing a packet. flow.txt: how many flows; per flow: source,
// destination, priority, port, bytes, start in seconds.
//
// Beyond ns-3's keys (docs/models/packet.md): SEED, RECOVERY (go-back-n, go-back-0, selective),
// RETRANSMIT_TIMEOUT (us, 0: never), TIMELY_TIMESTAMPS (0: as ASTRA-sim's ns-3, whose packets carry none),
// CC_MODE swift and tcp-...
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/flow_traffic.h"

namespace armilla {

struct RoceInput {
  FlowJob job;
  std::string topology;            // the path of TOPOLOGY_FILE
  std::vector<std::string> notes;  // what has no effect, or not the one it seems to have
};

// Reads `path` and the two files it names, relative to its folder or else as given. Throws Error with
// file:line for unknown values, numbers out of range, nodes that are not there, a link's speed without
// thresholds for ECN.
RoceInput read_roce_config(const std::string& path);
// The same without flows, whatever FLOW_FILE names: those of ASTRA-sim's ns-3 come from its system layer.
RoceInput read_roce_network(const std::string& path);

// The parts, of text that errors call `name`.
// `notes`: what is left out of it. `surplus`: where there are more flows than are announced, and that they
// are; empty: there are not.
NetworkGraph parse_roce_topology(std::string_view text, const std::string& name,
                                 std::vector<std::string>* notes = nullptr);
std::vector<TrafficFlow> parse_roce_flows(std::string_view text, const std::string& name,
                                          const NetworkGraph& graph, std::string* surplus = nullptr);

}  // namespace armilla
