// What the communication nodes of a Chakra trace ask for, checked: the attributes that ASTRA-sim 2 reads, of
// any numeric kind, where its own readers throw, abort or take a wrong number.
//
// Errors name file, node, attribute: missing or impossible attributes, a node on the CPU, messages to
// oneself, to ranks that do not exist, of no bytes, or from another rank than the one whose trace it is.
// Source: astra-sim 2.x Workload.cc.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "ir/formats/chakra.h"
#include "ir/graph.h"
#include "trace/graph/trace_groups.h"

namespace armilla {

// ASTRA-sim's tags, made like NCCL's, wrap here.
inline constexpr std::uint32_t kAstraTags = 500'000'000;

bool is_on_cpu(const ChakraTrace& trace, std::size_t node);

// An attribute that must be there and not negative.
std::int64_t required_value(const ChakraTrace& trace, std::size_t node, std::string_view name);

// COMM_SEND and COMM_RECV; comm_src of a send and comm_dst of a receive may be left out. as_astra: tags
// modulo kAstraTags.
PointToPoint transfer_of_node(const ChakraTrace& trace, std::size_t node, std::int32_t rank,
                              std::int64_t ranks, bool as_astra);

struct TraceCollective {
  ChakraCollective kind = ChakraCollective::all_reduce;
  std::uint32_t group = 0;  // into TraceGroups
  Bytes bytes;              // as in ir/collective.h
  std::int32_t root = 0;    // position in the group
  std::int32_t priority = 0;
};
// COMM_COLL. The attribute `root`, Armilla's own, is a position in the group; a barrier needs no comm_size.
TraceCollective collective_of_node(const ChakraTrace& trace, std::size_t node, RankGroups& own,
                                   TraceGroups& groups);

}  // namespace armilla
