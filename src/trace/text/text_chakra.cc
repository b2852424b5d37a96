#include "trace/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/units_text.h"

namespace armilla {
namespace {

// Over all ranks, to bound memory.
constexpr std::uint64_t kMostNodes = std::uint64_t{1} << 25;
constexpr std::int64_t kPicosecondsPerMicrosecond = 1'000'000;

std::string_view part_name(TextPart part) {
  switch (part) {
    case TextPart::forward:
      return "FWD";
    case TextPart::input_gradient:
      return "BWD_IG";
    case TextPart::weight_gradient:
      break;
  }
  return "BWD_WG";
}

TextPart part_of(Phase phase) {
  return phase == Phase::forward          ? TextPart::forward
         : phase == Phase::input_gradient ? TextPart::input_gradient
                                          : TextPart::weight_gradient;
}

ChakraCollective chakra_kind(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::reduce_scatter:
      return ChakraCollective::reduce_scatter;
    case CollectiveKind::all_gather:
      return ChakraCollective::all_gather;
    case CollectiveKind::all_to_all:
      return ChakraCollective::all_to_all;
    case CollectiveKind::broadcast:
      return ChakraCollective::broadcast;
    case CollectiveKind::reduce:
      return ChakraCollective::reduce;
    case CollectiveKind::barrier:
      return ChakraCollective::barrier;
    case CollectiveKind::all_reduce:
      break;
  }
  return ChakraCollective::all_reduce;
}

// How the traces name a family of groups: not at all (all ranks), by dimensions, or by process group.
struct Naming {
  std::unique_ptr<bool[]> dimensions;
  std::size_t dimension_count = 0;
  std::vector<std::string> group_names;  // per group of the family
};

class Translator {
 public:
  Translator(const TextGraph& text, const TextChakraOptions& options)
      : text_(text), program_(text.graph.programs[0]), node_names_(program_.size()) {
    for (const GroupFamily& family : text.graph.families) namings_.push_back(naming(family, options));
    name_nodes();
  }

  Communicators take_communicators() { return std::move(communicators_); }

  // What tells a rank's trace from others: the process groups it is in.
  std::vector<std::int32_t> key(std::int32_t rank) const {
    // Only process groups differ from rank to rank: dimensions are the same words on all.
    std::vector<std::int32_t> groups;
    for (std::size_t f = 0; f < namings_.size(); ++f) {
      if (!namings_[f].group_names.empty())
        groups.push_back(text_.graph.families[f].group_of[static_cast<std::size_t>(rank)]);
    }
    return groups;
  }

  ChakraTrace trace(std::int32_t rank) const {
    ChakraTrace trace;
    trace.schema = "v0.0.4";
    ChakraAttribute schema;
    schema.name = trace.strings.add("schema");
    schema.field = static_cast<std::uint8_t>(ChakraValueKind::string);
    schema.value = trace.strings.add("1.0.2-chakra.1.0.0");
    trace.metadata.push_back(schema);
    for (std::uint32_t node = 0; node < program_.size(); ++node) {
      if (program_.kind[node] == NodeKind::collective) {
        add_collective(trace, node, rank);
      } else {
        add_delay(trace, node);
      }
      for (const std::uint32_t before : program_.dependences(node)) trace.add_data_dependence(before);
    }
    return trace;
  }

 private:
  Naming naming(const GroupFamily& family, const TextChakraOptions& options) {
    Naming naming;
    // One group is that of all ranks, which needs no name.
    if (family.groups.size() == 1) return naming;
    const std::size_t dimensions = options.graph.dimensions.size();
    // `involved_dim` names whole dimensions: groups along a part of one, or along none, have to be listed.
    const bool by_group = options.process_groups || family.dimension_mask == 0 || text_.split_dimension >= 0;
    if (!by_group) {
      naming.dimension_count = dimensions;
      naming.dimensions = std::make_unique<bool[]>(dimensions);
      for (std::size_t d = 0; d < dimensions; ++d)
        naming.dimensions[d] = (family.dimension_mask >> d & 1) != 0;
      return naming;
    }
    for (const std::vector<std::int32_t>& group : family.groups) {
      naming.group_names.push_back(std::to_string(communicators_.size() + 1));
      communicators_[naming.group_names.back()] = {group, family.name};
    }
    return naming;
  }

  // As Chakra's tools expect them: their first words say the type.
  void name_nodes() {
    for (std::uint32_t node = 0; node < program_.size(); ++node) {
      if (program_.kind[node] == NodeKind::collective) continue;
      const std::string& layer = layer_name(program_.layer[node]);
      node_names_[node] =
          names_.add(program_.lane[node] == Lane::device
                         ? fmt::format("COMP_NODE_{}_{}", layer, part_name(part_of(program_.phase[node])))
                         : fmt::format("COMP_NODE_{}_STEP", layer));
    }
    for (const TextCollective& collective : text_.collectives) {
      const std::string& layer = layer_name(collective.layer);
      const std::string_view part = part_name(collective.part);
      const CollectiveKind kind = text_.graph.collectives[program_.payload[collective.node]].kind;
      node_names_[collective.done] = names_.add(fmt::format("COMP_NODE_{}_{}_UPDATE", layer, part));
      node_names_[collective.node] = names_.add(
          fmt::format("COMM_COLL_NODE_{}_{}_{}", layer, part, armilla::name_of(chakra_kind(kind))));
    }
  }

  const std::string& layer_name(std::int32_t layer) const {
    return text_.graph.layers[static_cast<std::size_t>(layer)];
  }
  std::string_view name(std::uint32_t node) const { return names_.at(node_names_[node]); }

  void add_delay(ChakraTrace& trace, std::uint32_t node) const {
    const auto time = static_cast<std::int64_t>(program_.payload[node]);
    trace.add_node(node, ChakraNodeType::compute, name(node),
                   static_cast<std::uint64_t>(time / kPicosecondsPerMicrosecond));
    trace.add_integer("is_cpu_op", ChakraValueKind::boolean, 0);
    // Chakra has whole microseconds; what is finer goes to an attribute of our own, so that no time is lost.
    if (time % kPicosecondsPerMicrosecond != 0)
      trace.add_real(kDurationNs, ChakraValueKind::real64, static_cast<double>(time) / 1000);
    if (program_.lane[node] == Lane::none) trace.add_text(kLaneAttribute, "none");
  }

  void add_collective(ChakraTrace& trace, std::uint32_t node, std::int32_t rank) const {
    const CollectiveCall& call = text_.graph.collectives[program_.payload[node]];
    const GroupFamily& family = text_.graph.families[call.family];
    const std::int32_t group = family.group_of[static_cast<std::size_t>(rank)];
    std::int64_t bytes = call.bytes.value;
    // Chakra gives an all-gather's size as the rank's own part, a graph as the whole output.
    if (call.kind == CollectiveKind::all_gather)
      bytes /= static_cast<std::int64_t>(family.groups[static_cast<std::size_t>(group)].size());
    trace.add_node(node, ChakraNodeType::collective, name(node));
    trace.add_integer("is_cpu_op", ChakraValueKind::boolean, 0);
    trace.add_integer("comm_type", ChakraValueKind::int64, static_cast<std::int64_t>(chakra_kind(call.kind)));
    trace.add_integer("comm_size", ChakraValueKind::int64, bytes);
    const Naming& naming = namings_[call.family];
    if (naming.dimensions)
      trace.add_booleans("involved_dim", std::span(naming.dimensions.get(), naming.dimension_count));
    if (!naming.group_names.empty())
      trace.add_text("pg_name", naming.group_names[static_cast<std::size_t>(group)]);
    switch (call.preference) {
      case ChunkPreference::policy:
        break;
      case ChunkPreference::fifo:
        trace.add_text(kPreferenceAttribute, "fifo");
        break;
      case ChunkPreference::lifo:
        trace.add_text(kPreferenceAttribute, "lifo");
        break;
      case ChunkPreference::highest:
        trace.add_text(kPreferenceAttribute, "highest");
        break;
    }
  }

  const TextGraph& text_;
  const Program& program_;
  StringTable names_;
  std::vector<std::uint32_t> node_names_;  // into names_
  std::vector<Naming> namings_;
  Communicators communicators_;
};

}  // namespace

TextChakra text_chakra(const TextWorkload& workload, const TextChakraOptions& options) {
  TextGraph text = text_graph(workload, options.graph);
  const auto nodes = static_cast<std::uint64_t>(text.graph.programs[0].size());
  if (nodes * static_cast<std::uint64_t>(text.graph.ranks) > kMostNodes) {
    throw Error("passes",
                fmt::format("{} of {} nodes {} more than {}", typed_count(text.graph.ranks, "rank"), nodes,
                            text.graph.ranks == 1 ? "is" : "are", kMostNodes),
                "translate fewer passes");
  }
  Translator translator(text, options);
  TextChakra chakra;
  std::map<std::vector<std::int32_t>, std::size_t> first;  // rank with the same trace
  for (std::int32_t rank = 0; rank < text.graph.ranks; ++rank) {
    // Ranks in the same groups get one trace; it is copied, not made again.
    const auto [entry, fresh] = first.try_emplace(translator.key(rank), chakra.ranks.size());
    chakra.ranks.push_back(fresh ? translator.trace(rank) : chakra.ranks[entry->second]);
  }
  chakra.communicators = translator.take_communicators();
  chakra.warnings = std::move(text.warnings);
  return chakra;
}

}  // namespace armilla
