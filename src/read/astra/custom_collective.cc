#include "read/astra.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "base/file_status.h"
#include "base/units_text.h"
#include "ir/formats/chakra.h"
#include "read/file_format.h"
#include "read/trace.h"

namespace armilla {
namespace {

constexpr Time kReduction = nanoseconds(1);  // ASTRA-sim 2's cost of a computation without a duration

std::int64_t attribute(const ChakraTrace& trace, std::size_t node, std::string_view name, std::int64_t lowest,
                       std::int64_t highest, std::optional<std::int64_t> otherwise = {}) {
  const ChakraAttribute* found = trace.find(node, name);
  if (found == nullptr) {
    if (otherwise) return *otherwise;
    throw Error(location(trace, node), fmt::format("has no attribute '{}'", name));
  }
  const std::int64_t value = integer_value(trace, node, *found);
  if (value < lowest || value > highest)
    throw Error(location(trace, node),
                fmt::format("{} is {}, not between {} and {}", name, value, lowest, highest));
  return value;
}

// ASTRA-sim 2's extension: a message as a share of the collective's size.
void read_size(const ChakraTrace& trace, std::size_t node, CustomNode& message) {
  if (trace.find(node, "comm_size") == nullptr && trace.find(node, "msg_chunk_cnt") != nullptr) {
    message.share = static_cast<std::int32_t>(attribute(trace, node, "msg_chunk_cnt", 1, INT32_MAX));
    message.shares = static_cast<std::int32_t>(attribute(trace, node, "total_chunk_cnt", 1, INT32_MAX));
    return;
  }
  message.bytes = Bytes(attribute(trace, node, "comm_size", 0, INT64_MAX));
}

CustomNode read_node(const ChakraTrace& trace, std::size_t node, std::int32_t position,
                     std::int32_t members) {
  CustomNode result;
  if (trace.type[node] == ChakraNodeType::compute) {
    // Whole microseconds are all that a trace's duration has.
    const std::uint64_t micros = trace.duration_micros[node];
    if (micros > static_cast<std::uint64_t>(kEndOfTime.value / microseconds(1).value))
      throw Error(location(trace, node),
                  fmt::format("a duration of {} us is beyond what is simulated", micros));
    result.duration = micros == 0 ? kReduction : microseconds(static_cast<std::int64_t>(micros));
    return result;
  }
  const bool is_send = trace.type[node] == ChakraNodeType::send;
  if (!is_send && trace.type[node] != ChakraNodeType::receive)
    throw Error(location(trace, node),
                fmt::format("a {} has no place in a custom collective", name_of(trace.type[node])),
                "its nodes are COMM_SEND_NODE, COMM_RECV_NODE and COMP_NODE");
  const std::string_view peer = is_send ? "comm_dst" : "comm_src";
  result.kind = is_send ? CustomNode::Kind::send : CustomNode::Kind::receive;
  result.peer = static_cast<std::int32_t>(attribute(trace, node, peer, 0, members - 1));
  if (result.peer == position)
    throw Error(location(trace, node), fmt::format("{} is the member's own position {}", peer, position));
  result.tag = static_cast<std::uint32_t>(attribute(trace, node, "comm_tag", 0, UINT32_MAX, 0));
  read_size(trace, node, result);
  return result;
}

// Kahn: whoever is left over waits in a circle. ASTRA-sim 2 ends such a collective early without a word.
void check_order(const CustomProgram& program, const std::string& source) {
  const auto count = static_cast<std::uint32_t>(program.nodes.size());
  std::vector<std::vector<std::uint32_t>> dependents(count);
  std::vector<std::size_t> missing(count);
  std::vector<std::uint32_t> ready;
  for (std::uint32_t node = 0; node < count; ++node) {
    missing[node] = program.dependences(node).size();
    if (missing[node] == 0) ready.push_back(node);
    for (const std::uint32_t on : program.dependences(node)) dependents[on].push_back(node);
  }
  std::size_t done = 0;
  while (!ready.empty()) {
    const std::uint32_t node = ready.back();
    ready.pop_back();
    ++done;
    for (const std::uint32_t next : dependents[node])
      if (--missing[next] == 0) ready.push_back(next);
  }
  if (done == count) return;
  // From any node left over, going to a dependence that is left over must come round.
  std::uint32_t at = 0;
  while (missing[at] == 0) ++at;
  std::vector<bool> visited(count);
  const auto waits_for = [&](std::uint32_t node) {
    const auto on = program.dependences(node);
    return *std::find_if(on.begin(), on.end(), [&](std::uint32_t d) { return missing[d] != 0; });
  };
  for (; !visited[at]; at = waits_for(at)) visited[at] = true;
  std::string circle = program.labels[at];
  const std::uint32_t first = at;
  do {
    at = waits_for(at);
    circle += fmt::format(", which waits for {}", program.labels[at]);
  } while (at != first);
  throw Error(source, fmt::format("nodes wait for each other in a circle: {}", circle));
}

CustomProgram read_member(const std::string& path, std::int32_t position, std::int32_t members) {
  // Two passes: a node may depend on one that stands behind it.
  const ChakraTrace trace = read_chakra_file(path);
  CustomProgram program;
  std::unordered_map<std::uint64_t, std::uint32_t> index_of;
  std::vector<std::size_t> kept;
  for (std::size_t node = 0; node < trace.size(); ++node) {
    if (trace.type[node] == ChakraNodeType::metadata) continue;
    if (!index_of.emplace(trace.id[node], static_cast<std::uint32_t>(kept.size())).second)
      throw Error(location(trace, node), "another node has the same id");
    kept.push_back(node);
    program.nodes.push_back(read_node(trace, node, position, members));
    program.labels.push_back(fmt::format("node {}", trace.id[node]));
  }
  for (const std::size_t node : kept) {
    const auto depend = [&](std::uint64_t id) {
      const auto found = index_of.find(id);
      if (found == index_of.end())
        throw Error(location(trace, node), fmt::format("depends on node {}, which does not exist", id));
      program.dependence.push_back(found->second);
    };
    for (const std::uint64_t id : trace.data_dependences(node)) depend(id);
    for (const std::uint64_t id : trace.control_dependences(node)) depend(id);
    program.first_dependence.push_back(static_cast<std::uint32_t>(program.dependence.size()));
  }
  check_order(program, path);
  return program;
}

// The nodes of one step: receive, computation and send, as far as the operation has them.
void add_nodes(const MscclStep& step, const MscclBlock& block, std::int32_t shares, const std::string& label,
               CustomProgram& program) {
  const auto message = [&](CustomNode::Kind kind, std::int32_t peer) {
    CustomNode node;
    node.kind = kind;
    node.peer = peer;
    node.tag = static_cast<std::uint32_t>(block.channel);
    node.share = step.count;
    node.shares = shares;
    program.nodes.push_back(node);
  };
  const auto computation = [&](Time duration) {
    program.nodes.push_back({CustomNode::Kind::compute, 0, 0, {}, duration, 0, 0});
  };
  if (receives(step.operation)) message(CustomNode::Kind::receive, block.receive_peer);
  switch (step.operation) {
    case MscclOperation::receive_reduce_send:
    case MscclOperation::receive_reduce_copy:
    case MscclOperation::receive_reduce_copy_send:
    case MscclOperation::copy:
    case MscclOperation::reduce:
      computation(kReduction);
      break;
    case MscclOperation::nop:
      computation(Time(0));
      break;
    case MscclOperation::send:
    case MscclOperation::receive:
    case MscclOperation::receive_copy_send:
      break;
  }
  if (sends(step.operation)) message(CustomNode::Kind::send, block.send_peer);
  program.labels.resize(program.nodes.size(), label);
}

CustomProgram program_of(const MscclGpu& gpu, std::int32_t shares) {
  CustomProgram program;
  // Steps of a threadblock follow each other; a step that waits for another block's waits for that one's last
  // node.
  // Per block, where the nodes of each step begin; one more entry closes the last.
  std::vector<std::vector<std::uint32_t>> begin(gpu.blocks.size());
  const auto size = [&] { return static_cast<std::uint32_t>(program.nodes.size()); };
  for (std::size_t b = 0; b < gpu.blocks.size(); ++b) {
    const MscclBlock& block = gpu.blocks[b];
    for (std::size_t s = 0; s < block.steps.size(); ++s) {
      begin[b].push_back(size());
      add_nodes(block.steps[s], block, shares, fmt::format("tb {} step {}", block.id, s), program);
    }
    begin[b].push_back(size());
  }
  for (std::size_t b = 0; b < gpu.blocks.size(); ++b) {
    for (std::size_t s = 0; s < gpu.blocks[b].steps.size(); ++s) {
      const MscclStep& step = gpu.blocks[b].steps[s];
      if (s > 0) program.dependence.push_back(begin[b][s] - 1);
      if (step.awaited_block >= 0)
        program.dependence.push_back(begin[static_cast<std::size_t>(step.awaited_block)]
                                          [static_cast<std::size_t>(step.awaited_step) + 1] -
                                     1);
      program.first_dependence.push_back(static_cast<std::uint32_t>(program.dependence.size()));
      for (std::uint32_t node = begin[b][s] + 1; node < begin[b][s + 1]; ++node) {
        program.dependence.push_back(node - 1);
        program.first_dependence.push_back(static_cast<std::uint32_t>(program.dependence.size()));
      }
    }
  }
  return program;
}

void check_members(std::int32_t has, std::int32_t wanted, const std::string& source) {
  if (has != wanted)
    throw Error(source, fmt::format("is a schedule for {}, but the group has {}", typed_count(has, "member"),
                                    wanted));
}

}  // namespace

CustomCollective custom_collective(const MscclAlgorithm& algorithm) {
  CustomCollective result;
  result.name = algorithm.source;
  result.kind = algorithm.kind;
  for (std::size_t g = 0; g < algorithm.gpus.size(); ++g) {
    result.members.push_back(program_of(algorithm.gpus[g], algorithm.chunks_per_loop));
    check_order(result.members.back(), fmt::format("{}: GPU {}", algorithm.source, g));
  }
  return result;
}

// A file that exists is judged by its contents, a missing one by its name.
bool is_msccl_file(const std::string& path_or_prefix) {
  if (is_file(path_or_prefix) && sniff_file(path_or_prefix) == FileKind::msccl) return true;
  return path_or_prefix.ends_with(".xml");  // its errors are then those of such a file
}

CustomCollective read_custom_collective(const std::string& path_or_prefix, std::int32_t members) {
  if (is_msccl_file(path_or_prefix)) {
    const MscclAlgorithm algorithm = read_msccl(path_or_prefix);
    check_members(static_cast<std::int32_t>(algorithm.gpus.size()), members, path_or_prefix);
    return custom_collective(algorithm);
  }
  CustomCollective result;
  result.name = path_or_prefix;
  for (std::int32_t position = 0; position < members; ++position)
    result.members.push_back(
        read_member(fmt::format("{}.{}.et", path_or_prefix, position), position, members));
  return result;
}

}  // namespace armilla
