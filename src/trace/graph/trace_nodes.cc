#include "trace/graph/trace_nodes.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/units_text.h"

namespace armilla {
namespace {

void refuse_cpu(const ChakraTrace& trace, std::size_t node) {
  if (is_on_cpu(trace, node))
    throw Error(location(trace, node), "a communication node cannot run on the CPU (is_cpu_op is true)",
                "set is_cpu_op to false or leave it out");
}

// A rank named by the attribute, or `otherwise` when it is absent.
std::int32_t rank_of(const ChakraTrace& trace, std::size_t node, std::string_view name, std::int64_t ranks,
                     std::int32_t otherwise) {
  const ChakraAttribute* attribute = trace.find(node, name);
  if (attribute == nullptr) return otherwise;
  const std::int64_t rank = integer_value(trace, node, *attribute);
  if (rank < 0 || rank >= ranks)
    throw Error(location(trace, node), fmt::format("attribute '{}' is {}, but the job has the ranks 0 to {}",
                                                   name, rank, ranks - 1));
  return static_cast<std::int32_t>(rank);
}

}  // namespace

bool is_on_cpu(const ChakraTrace& trace, std::size_t node) {
  const ChakraAttribute* attribute = trace.find(node, "is_cpu_op");
  return attribute != nullptr && integer_value(trace, node, *attribute) != 0;
}

std::int64_t required_value(const ChakraTrace& trace, std::size_t node, std::string_view name) {
  const ChakraAttribute* attribute = trace.find(node, name);
  if (attribute == nullptr)
    throw Error(location(trace, node), fmt::format("attribute '{}' is missing", name));
  const std::int64_t value = integer_value(trace, node, *attribute);
  if (value < 0)
    throw Error(location(trace, node), fmt::format("attribute '{}' is {}, below 0", name, value));
  return value;
}

// A rank's own end (comm_src of a send) may be left out; given, it has to be the rank.
PointToPoint transfer_of_node(const ChakraTrace& trace, std::size_t node, std::int32_t rank,
                              std::int64_t ranks, bool as_astra) {
  refuse_cpu(trace, node);
  const bool sends = trace.type[node] == ChakraNodeType::send;
  const std::string_view own_name = sends ? "comm_src" : "comm_dst";
  const std::string_view peer_name = sends ? "comm_dst" : "comm_src";
  const std::int32_t own = rank_of(trace, node, own_name, ranks, rank);
  if (own != rank)
    throw Error(location(trace, node),
                fmt::format("attribute '{}' is {}, but this is the trace of rank {}", own_name, own, rank));
  const std::int32_t peer = rank_of(trace, node, peer_name, ranks, -1);
  if (peer < 0) throw Error(location(trace, node), fmt::format("attribute '{}' is missing", peer_name));
  if (peer == rank)
    throw Error(location(trace, node),
                fmt::format("rank {} {} itself", rank, sends ? "sends to" : "receives from"));
  const std::int64_t tag = required_value(trace, node, "comm_tag");
  if (tag > UINT32_MAX)
    throw Error(location(trace, node), fmt::format("attribute 'comm_tag' is {}, beyond 32 bits", tag));
  const std::int64_t bytes = required_value(trace, node, "comm_size");
  if (bytes == 0) throw Error(location(trace, node), "a message of 0 bytes");
  const auto tag_bits = static_cast<std::uint32_t>(tag);
  // ASTRA-sim 2 packs tags into a number below kAstraTags.
  return {peer, as_astra ? tag_bits % kAstraTags : tag_bits, Bytes(bytes)};
}

TraceCollective collective_of_node(const ChakraTrace& trace, std::size_t node, RankGroups& own,
                                   TraceGroups& groups) {
  refuse_cpu(trace, node);
  TraceCollective call;
  const std::int64_t type = required_value(trace, node, "comm_type");
  if (type > static_cast<std::int64_t>(ChakraCollective::barrier))
    throw Error(location(trace, node), fmt::format("unknown collective type {}", type),
                "Chakra has the types 0 (ALL_REDUCE) to 9 (BARRIER)");
  call.kind = static_cast<ChakraCollective>(type);
  call.group = group_of_node(trace, node, own, groups);
  const bool barrier = call.kind == ChakraCollective::barrier;
  if (!barrier) call.bytes = Bytes(required_value(trace, node, "comm_size"));
  // Chakra gives the shard of an all-gather, the graph the whole.
  if (call.kind == ChakraCollective::all_gather &&
      __builtin_mul_overflow(call.bytes.value, groups.size(call.group), &call.bytes.value))
    throw Error(location(trace, node), fmt::format("gathers more than 2^63 bytes from {}",
                                                   typed_count(groups.size(call.group), "rank")));
  if (trace.find(node, "root") != nullptr) {
    const std::int64_t root = required_value(trace, node, "root");
    if (root >= groups.size(call.group))
      throw Error(location(trace, node),
                  fmt::format("attribute 'root' is {}, but the group has {}", root,
                              typed_count(groups.size(call.group), "rank")),
                  "the root is a position in the group");
    call.root = static_cast<std::int32_t>(root);
  }
  if (trace.find(node, "comm_priority") != nullptr) {
    const std::int64_t priority = required_value(trace, node, "comm_priority");
    if (priority > INT32_MAX)
      throw Error(location(trace, node),
                  fmt::format("attribute 'comm_priority' is {}, beyond 31 bits", priority));
    call.priority = static_cast<std::int32_t>(priority);
  }
  return call;
}

}  // namespace armilla
