#include "trace/synthetic.h"

#include <array>
#include <bit>

#include "trace/synthetic/synthetic_builder.h"

namespace armilla {
namespace {

constexpr ParameterInfo kNpus = {"npus", ParameterType::count, "64", "ranks"};
constexpr ParameterInfo kFewNpus = {"npus", ParameterType::count, "8", "ranks"};
constexpr ParameterInfo kRuntime = {"runtime", ParameterType::time, "5us", "of each computation"};
constexpr ParameterInfo kTensor = {"tensor", ParameterType::bytes, "1KiB", "size of the tensor"};
constexpr ParameterInfo kBytes = {"bytes", ParameterType::bytes, "64KiB", "size of the communication"};

constexpr std::array kNpusOnly = {kNpus};
constexpr std::array kNpusTensor = {kNpus, kTensor};
constexpr std::array kNpusRuntime = {kNpus, kRuntime};
constexpr std::array kNpusBytes = {kNpus, kBytes};
constexpr std::array kRing = {kFewNpus, kRuntime, kBytes,
                              ParameterInfo{"rounds", ParameterType::count, "", "default: npus - 1"}};
constexpr std::array kMessages = {kFewNpus, kRuntime, kBytes};
constexpr std::array kIncast = {kFewNpus, kRuntime, kBytes,
                                ParameterInfo{"rounds", ParameterType::count, "1", "times everyone sends"}};
constexpr std::array kPipeline = {
    ParameterInfo{"stages", ParameterType::count, "4", "ranks, one stage each"},
    ParameterInfo{"micro-batches", ParameterType::count, "8", "per iteration"},
    ParameterInfo{"forward", ParameterType::time, "100us", "of a micro-batch in a stage"},
    ParameterInfo{"backward", ParameterType::time, "200us", "of a micro-batch in a stage"}, kBytes};
constexpr std::array kRandom = {kFewNpus,
                                kRuntime,
                                kBytes,
                                ParameterInfo{"nodes", ParameterType::count, "100", "events in all"},
                                ParameterInfo{"messages", ParameterType::fraction, "30%", "of the events"},
                                ParameterInfo{"collectives", ParameterType::fraction, "10%", "of the events"},
                                ParameterInfo{"seed", ParameterType::count, "1", "of the random numbers"}};

constexpr std::int64_t kMaxRanks = 1 << 16;

// The files of Chakra's generator are written in this order by one run that never restarts its ids.
struct ChakraPattern {
  std::string_view name;
  std::uint64_t nodes;  // per rank
};
constexpr std::array kChakraOrder = {ChakraPattern{"one_metadata_node_all_types", 1},
                                     ChakraPattern{"one_remote_mem_load_node", 1},
                                     ChakraPattern{"one_remote_mem_store_node", 1},
                                     ChakraPattern{"one_comp_node", 1},
                                     ChakraPattern{"two_comp_nodes_independent", 2},
                                     ChakraPattern{"two_comp_nodes_dependent", 2},
                                     ChakraPattern{"ALL_REDUCE", 1},
                                     ChakraPattern{"ALL_TO_ALL", 1},
                                     ChakraPattern{"ALL_GATHER", 1},
                                     ChakraPattern{"REDUCE_SCATTER", 1},
                                     ChakraPattern{"BROADCAST", 1},
                                     ChakraPattern{"BARRIER", 1},
                                     ChakraPattern{"one_comm_send_node", 1},
                                     ChakraPattern{"one_comm_recv_node", 1}};

// Per rank, `fill` adds the nodes to a trace whose first id it is given.
template <class Fill>
std::vector<ChakraTrace> chakra_pattern(std::string_view name, const ParameterValues& values, bool as_chakra,
                                        Fill&& fill) {
  const std::int64_t npus = count_up_to(values, "npus", 1, kMaxRanks);
  std::uint64_t before = 0, own = 0;
  for (const ChakraPattern& pattern : kChakraOrder) {
    own = pattern.nodes;
    if (pattern.name == name) break;
    before += pattern.nodes;
  }
  std::vector<ChakraTrace> traces;
  for (std::int64_t rank = 0; rank < npus; ++rank) {
    ChakraTrace& trace = traces.emplace_back();
    trace.version = "1.0.0";
    // The first id of a rank's file: all patterns before this one on all ranks, and this one on the ranks
    // before.
    const auto first = before * static_cast<std::uint64_t>(npus) + own * static_cast<std::uint64_t>(rank);
    // Ours begin with 0 on every rank: only Chakra's generator never restarts.
    fill(trace, as_chakra ? first : 0);
  }
  return traces;
}

void add_device_node(ChakraTrace& trace, std::uint64_t id, ChakraNodeType type, std::string_view name,
                     std::uint64_t micros = 0) {
  trace.add_node(id, type, name, micros);
  trace.add_integer("is_cpu_op", ChakraValueKind::boolean, 0);
}

using Kind = ChakraValueKind;

std::uint64_t bits(std::int64_t value) {
  return std::bit_cast<std::uint64_t>(value);
}
std::uint64_t bits(double value) {
  return std::bit_cast<std::uint64_t>(value);
}

// Attribute by attribute as generator.py writes them, including which of them have a doc string.
void add_all_types(ChakraTrace& trace) {
  const auto scalar = [&](std::string_view name, Kind kind, std::uint64_t value, bool documented) {
    const std::uint32_t text = trace.strings.add(name);
    trace.attribute.push_back({text, documented ? text : 0, static_cast<std::uint8_t>(kind), 0, value});
    trace.first_attribute.back() = trace.end_of(trace.attribute);
  };
  const auto list = [&](std::string_view name, Kind kind, std::span<const std::uint64_t> values) {
    trace.attribute.push_back({trace.strings.add(name), 0,
                               static_cast<std::uint8_t>(static_cast<int>(kind) + 1),
                               static_cast<std::uint32_t>(values.size()), trace.list_values.size()});
    trace.list_values.insert(trace.list_values.end(), values.begin(), values.end());
    trace.first_attribute.back() = trace.end_of(trace.attribute);
  };
  const auto numbers = [&](const std::string& name, Kind kind, std::int64_t value, std::int64_t second,
                           std::int64_t third, bool documented) {
    scalar(name, kind, bits(value), documented);
    list(name + "_list", kind, std::array{bits(second), bits(third)});
  };
  const auto reals = [&](const std::string& name, Kind kind, double a, double b) {
    scalar(name, kind, bits(a), true);
    list(name + "_list", kind, std::array{bits(a), bits(b)});
  };
  constexpr std::int64_t kLong = 9876543210, kOther = 1234567890;
  reals("double", Kind::real64, 1.2345, 2.3456);
  // A float is kept as the double it equals.
  reals("float", Kind::real32, 1.2345F, 2.3456F);
  numbers("int32", Kind::int32, 12345, 12345, 23456, true);
  numbers("int64", Kind::int64, kLong, kLong, kOther, true);
  numbers("uint32", Kind::uint32, 12345, 12345, 23456, true);
  numbers("uint64", Kind::uint64, kLong, kLong, kOther, true);
  numbers("sint32", Kind::sint32, -12345, 12345, -23456, true);
  numbers("sint64", Kind::sint64, -kLong, kLong, -kOther, true);
  numbers("fixed32", Kind::fixed32, 12345, 12345, 23456, false);
  numbers("fixed64", Kind::fixed64, kLong, kLong, kOther, false);
  numbers("sfixed32", Kind::sfixed32, -12345, 12345, -23456, false);
  numbers("sfixed64", Kind::sfixed64, -kLong, kLong, -kOther, false);
  std::array<std::uint64_t, 10> flags, texts;
  for (std::size_t i = 0; i < flags.size(); ++i) {
    flags[i] = i % 2 == 0;
    texts[i] = trace.strings.add(fmt::format("{}", 12345 + i));
  }
  scalar("bool", Kind::boolean, 1, true);
  list("bool_list", Kind::boolean, flags);
  scalar("string", Kind::string, texts[0], true);
  list("string_list", Kind::string, texts);
  scalar("bytes", Kind::bytes, texts[0], false);
  list("bytes_list", Kind::bytes, texts);
}

std::vector<ChakraTrace> make_metadata(const ParameterValues& values, bool as_chakra) {
  return chakra_pattern("one_metadata_node_all_types", values, as_chakra,
                        [](ChakraTrace& trace, std::uint64_t id) {
                          trace.add_node(id, ChakraNodeType::metadata, "METADATA_NODE");
                          add_all_types(trace);
                        });
}

template <ChakraNodeType type>
std::vector<ChakraTrace> make_memory(const ParameterValues& values, bool as_chakra) {
  constexpr bool kLoad = type == ChakraNodeType::memory_load;
  const std::int64_t tensor = values.bytes("tensor").value;
  return chakra_pattern(kLoad ? "one_remote_mem_load_node" : "one_remote_mem_store_node", values, as_chakra,
                        [&](ChakraTrace& trace, std::uint64_t id) {
                          add_device_node(trace, id, type, name_of(type));
                          trace.add_integer("tensor_size", Kind::uint64, tensor);
                        });
}

template <int nodes, bool dependent>
std::vector<ChakraTrace> make_compute(const ParameterValues& values, bool as_chakra) {
  const std::uint64_t micros = micros_of(values, "runtime");
  return chakra_pattern(nodes == 1  ? "one_comp_node"
                        : dependent ? "two_comp_nodes_dependent"
                                    : "two_comp_nodes_independent",
                        values, as_chakra, [&](ChakraTrace& trace, std::uint64_t id) {
                          for (std::uint64_t i = 0; i < nodes; ++i) {
                            add_device_node(trace, id + i, ChakraNodeType::compute, "COMP_NODE", micros);
                            if (dependent && i > 0) trace.add_data_dependence(id);
                          }
                        });
}

template <ChakraCollective kind>
std::vector<ChakraTrace> make_collective(const ParameterValues& values, bool as_chakra) {
  const std::int64_t bytes = kind == ChakraCollective::barrier ? 0 : values.bytes("bytes").value;
  return chakra_pattern(name_of(kind), values, as_chakra, [&](ChakraTrace& trace, std::uint64_t id) {
    add_device_node(trace, id, ChakraNodeType::collective, name_of(kind));
    trace.add_integer("comm_type", Kind::int64, static_cast<std::int64_t>(kind));
    trace.add_integer("comm_size", Kind::int64, bytes);
  });
}

// The generator's nodes name no peers and cannot run, so otherwise everyone sends to the next rank.
template <ChakraNodeType type>
std::vector<ChakraTrace> make_message(const ParameterValues& values, bool as_chakra) {
  constexpr bool kSend = type == ChakraNodeType::send;
  const std::int64_t tensor = values.bytes("tensor").value;
  if (as_chakra) {
    return chakra_pattern(kSend ? "one_comm_send_node" : "one_comm_recv_node", values, true,
                          [&](ChakraTrace& trace, std::uint64_t id) {
                            add_device_node(trace, id, type, name_of(type));
                            trace.add_integer("tensor_size", Kind::uint64, tensor);
                          });
  }
  const auto npus = static_cast<std::int32_t>(count_up_to(values, "npus", 2, kMaxRanks));
  std::vector<SyntheticRank> ranks = synthetic_ranks(npus);
  for (std::int32_t rank = 0; rank < npus; ++rank) {
    // Sends first or receives first: the order of ids is what tells the two patterns apart natively.
    SyntheticRank& own = ranks[static_cast<std::size_t>(rank)];
    if (kSend) own.send((rank + 1) % npus, 0, tensor, {});
    own.receive((rank + npus - 1) % npus, 0, tensor, {});
    if (!kSend) own.send((rank + 1) % npus, 0, tensor, {});
  }
  return taken(ranks);
}

constexpr std::array kPatterns = {
    SyntheticInfo{"one_metadata_node_all_types", "a metadata node with an attribute of every type", kNpusOnly,
                  make_metadata},
    SyntheticInfo{"one_remote_mem_load_node", "a load from remote memory", kNpusTensor,
                  make_memory<ChakraNodeType::memory_load>},
    SyntheticInfo{"one_remote_mem_store_node", "a store to remote memory", kNpusTensor,
                  make_memory<ChakraNodeType::memory_store>},
    SyntheticInfo{"one_comp_node", "a computation", kNpusRuntime, make_compute<1, false>},
    SyntheticInfo{"two_comp_nodes_independent", "two computations that may overlap", kNpusRuntime,
                  make_compute<2, false>},
    SyntheticInfo{"two_comp_nodes_dependent", "two computations, one after the other", kNpusRuntime,
                  make_compute<2, true>},
    SyntheticInfo{"ALL_REDUCE", "an all-reduce", kNpusBytes, make_collective<ChakraCollective::all_reduce>},
    SyntheticInfo{"ALL_TO_ALL", "an all-to-all", kNpusBytes, make_collective<ChakraCollective::all_to_all>},
    SyntheticInfo{"ALL_GATHER", "an all-gather", kNpusBytes, make_collective<ChakraCollective::all_gather>},
    SyntheticInfo{"REDUCE_SCATTER", "a reduce-scatter", kNpusBytes,
                  make_collective<ChakraCollective::reduce_scatter>},
    SyntheticInfo{"BROADCAST", "a broadcast", kNpusBytes, make_collective<ChakraCollective::broadcast>},
    SyntheticInfo{"BARRIER", "a barrier", kNpusOnly, make_collective<ChakraCollective::barrier>},
    SyntheticInfo{"one_comm_send_node", "a message to the next rank, sent first", kNpusTensor,
                  make_message<ChakraNodeType::send>},
    SyntheticInfo{"one_comm_recv_node", "a message to the next rank, received first", kNpusTensor,
                  make_message<ChakraNodeType::receive>},
    SyntheticInfo{"ring", "messages round a ring, each sent on after a computation", kRing, make_ring},
    SyntheticInfo{"tree", "messages up a binary tree to rank 0 and down again", kMessages, make_tree},
    SyntheticInfo{"all-to-all", "a message between every two ranks at once", kMessages, make_all_to_all},
    SyntheticInfo{"incast", "everyone sends to rank 0 at once", kIncast, make_incast},
    SyntheticInfo{"gpipe", "a pipeline: all forward, then all backward", kPipeline, make_gpipe},
    SyntheticInfo{"1f1b", "a pipeline: one forward, one backward after a warm-up", kPipeline, make_1f1b},
    SyntheticInfo{"random", "an acyclic job of computations, messages and all-reduces", kRandom,
                  make_random}};

}  // namespace

std::span<const SyntheticInfo> synthetic_patterns() {
  return kPatterns;
}

std::vector<ChakraTrace> synthesize(const ComponentChoice& choice, bool as_chakra) {
  const SyntheticInfo& info =
      find_component<SyntheticInfo>("synthetic pattern", synthetic_patterns(), choice.name, choice.where);
  bool is_chakras = false;
  for (const ChakraPattern& pattern : kChakraOrder) is_chakras |= pattern.name == info.name;
  if (as_chakra && !is_chakras)
    throw Error(choice.where, fmt::format("Chakra's generator has no pattern '{}'", info.name),
                "omit --as-chakra");
  return info.make(ParameterValues(info.name, info.parameters, choice.parameters), as_chakra);
}

}  // namespace armilla
