// Which ranks' messages meet whom and what: the facts that rank colouring (sim/fold/rank_colours.h) works on.
//
// A *channel* names messages that ranks of one program send at the same point of it; a rank sends at most one
// message of a channel at a time. Channels are fewer than messages: calls that differ in size alone share
// theirs, and so do nodes with the same peer.
//
// Links are places of the rank that owns them (network/topology.h). A message that crosses only links of its
// source and destination in one dimension needs no route: its source is the only one to use its first link,
// apart from routed messages, and its destination's link carries nothing but what comes in. All others have
// their hops listed. On a graph of links (network/message_links.h) all messages have: links then are vertices
// that come after the ranks, and own themselves. Memory: 8 bytes per hop, 12 per message of a node.
#pragma once

#include <cstdint>
#include <vector>

#include "base/splitmix.h"
#include "network/message_links.h"
#include "network/topology.h"
#include "sim/collective_plan.h"
#include "sim/fold/group_types.h"
#include "sim/plan/study_job.h"

namespace armilla {

// A message of a program's node, or the peer that a receive waits for.
struct NodeMessage {
  std::int32_t source = 0, destination = 0;
  std::uint32_t channel = 0;
};

struct Hop {
  std::int32_t owner = 0;  // of the link
  std::uint32_t link = 0;  // dimension and number among the owner's; of a graph the share in units
};

struct RoutedMessage {
  std::int32_t source = 0, destination = 0;
  std::uint32_t channel = 0;
  std::uint32_t label = 0;                 // equal for messages whose labels (network/network.h) may be
  std::size_t first_hop = 0, end_hop = 0;  // into RankMessages::hops
};

// Nodes of a program that send, or receive: their peers without repetition.
struct ProgramPeers {
  std::vector<std::uint32_t> transfers;  // into Graph::transfers, one per peer
  std::vector<std::uint32_t> all;        // every one that the program uses, once
};

struct RankMessages {
  GroupTypes groups;
  std::vector<ProgramPeers> sends, receives;  // by program
  std::vector<NodeMessage> sent, awaited;     // for all ranks
  std::vector<RoutedMessage> routed;
  std::vector<Hop> hops;
  // Per rank, of everything above that is not another rank; of a graph then per link.
  std::vector<std::uint64_t> signatures;
  bool on_graph = false;
  bool too_many = false;  // to be looked at; the rest is incomplete then
};

// On the links of the machine's dimensions. O(ranks x channels + hops).
RankMessages find_messages(const StudyJob& input, CollectivePlanner& planner);
// On those of a graph.
RankMessages find_messages_on(MessageLinks& links, const StudyJob& input, CollectivePlanner& planner);

// What is known, and another number: hashes stand for colours, and all of their bits count.
inline std::uint64_t mix_in(std::uint64_t hash, std::uint64_t value) {
  return splitmix(hash * 0x9e3779b97f4a7c15U + value + 1);
}

}  // namespace armilla
