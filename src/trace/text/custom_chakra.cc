#include "trace/text.h"

#include <algorithm>

namespace armilla {
namespace {

std::string labelled(std::string_view type, const std::string& label) {
  std::string name = std::string(type) + "_" + label;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

void add_message(ChakraTrace& trace, const CustomNode& node, std::optional<Bytes> call) {
  const bool sends = node.kind == CustomNode::Kind::send;
  trace.add_integer(sends ? "comm_dst" : "comm_src", ChakraValueKind::int32, node.peer);
  trace.add_integer("comm_tag", ChakraValueKind::int32, static_cast<std::int32_t>(node.tag));
  // Shares of a call are ASTRA-sim 2's own extension; with a call they become bytes.
  if (node.shares > 0 && !call) {
    trace.add_integer("msg_chunk_cnt", ChakraValueKind::int32, node.share);
    trace.add_integer("total_chunk_cnt", ChakraValueKind::int32, node.shares);
  } else {
    trace.add_integer("comm_size", ChakraValueKind::int64, bytes_of(node, call.value_or(Bytes(0))).value);
  }
}

ChakraTrace trace_of(const CustomProgram& program, std::optional<Bytes> call) {
  ChakraTrace trace;
  trace.version = "1.0.0";
  for (std::uint32_t i = 0; i < program.nodes.size(); ++i) {
    const CustomNode& node = program.nodes[i];
    const ChakraNodeType type = node.kind == CustomNode::Kind::send      ? ChakraNodeType::send
                                : node.kind == CustomNode::Kind::receive ? ChakraNodeType::receive
                                                                         : ChakraNodeType::compute;
    trace.add_node(i, type, labelled(armilla::name_of(type), program.labels[i]),
                   static_cast<std::uint64_t>(node.duration.value / microseconds(1).value));
    for (const std::uint32_t on : program.dependences(i)) trace.add_data_dependence(on);
    if (type != ChakraNodeType::compute) add_message(trace, node, call);
  }
  return trace;
}

}  // namespace

std::vector<ChakraTrace> custom_chakra(const CustomCollective& collective, std::optional<Bytes> call) {
  std::vector<ChakraTrace> traces;
  for (const CustomProgram& program : collective.members) traces.push_back(trace_of(program, call));
  return traces;
}

}  // namespace armilla
