#include "trace/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "base/error.h"
#include "base/suggest.h"
#include "trace/graph/merge_programs.h"
#include "trace/graph/trace_groups.h"
#include "trace/graph/trace_nodes.h"
#include "trace/graph/trace_order.h"

namespace armilla {
namespace {

// Times beyond 26 days are refused, as the simulator cannot count them.
constexpr std::int64_t kLongestNs = kEndOfTime.value / 1000 - 1;
constexpr std::int64_t kLongestMicros = kLongestNs / 1000;

struct Payload {
  NodeKind kind = NodeKind::delay;
  std::uint64_t value = 0;
  Lane lane = Lane::none;
};

// The collective kind that stands for Chakra's.
// GATHER and SCATTER have no kind of their own: they are custom schedules of a reduce and a broadcast.
CollectiveKind graph_kind(ChakraCollective kind) {
  switch (kind) {
    case ChakraCollective::all_reduce:
      return CollectiveKind::all_reduce;
    case ChakraCollective::all_gather:
      return CollectiveKind::all_gather;
    case ChakraCollective::all_to_all:
      return CollectiveKind::all_to_all;
    case ChakraCollective::reduce_scatter:
    case ChakraCollective::reduce_scatter_block:
      return CollectiveKind::reduce_scatter;
    case ChakraCollective::broadcast:
    case ChakraCollective::scatter:
      return CollectiveKind::broadcast;
    case ChakraCollective::reduce:
    case ChakraCollective::gather:
      return CollectiveKind::reduce;
    case ChakraCollective::barrier:
      break;
  }
  return CollectiveKind::barrier;
}

// One message of the call's bytes between the root and each other member.
// Shares of the call (1 of 1) instead of bytes, so that calls of any size use one schedule.
CustomCollective star(bool gathers, std::int64_t members, std::int32_t root) {
  CustomCollective result;
  result.name = gathers ? "direct gather" : "direct scatter";
  result.members.resize(static_cast<std::size_t>(members));
  const auto add = [&](std::int32_t member, std::int32_t peer, bool sends) {
    CustomProgram& program = result.members[static_cast<std::size_t>(member)];
    CustomNode node;
    node.kind = sends ? CustomNode::Kind::send : CustomNode::Kind::receive;
    node.peer = peer;
    node.share = node.shares = 1;
    program.nodes.push_back(node);
    program.first_dependence.push_back(0);
    program.labels.push_back(fmt::format("message {} position {}", sends ? "to" : "from", peer));
  };
  for (std::int32_t member = 0; member < members; ++member) {
    if (member == root) continue;
    add(member, root, gathers);
    add(root, member, !gathers);
  }
  return result;
}

}  // namespace

class TraceGraphBuilder::Impl {
 public:
  explicit Impl(TraceGraphOptions options)
      : options_(std::move(options)), groups_(options_.dimension_sizes, options_.as_astra) {
    if (options_.roofline && !(options_.peak_flops > 0 && options_.memory_bytes_per_second > 0))
      throw Error("", "the roofline needs a peak and a memory bandwidth above 0");
    graph_.ranks = groups_.ranks();
    graph_.program_of.assign(static_cast<std::size_t>(graph_.ranks), kNoProgram);
    graph_.custom = std::move(options_.custom);
  }

  void add(std::span<const std::int32_t> ranks, const ChakraTrace& trace) {
    if (ranks.empty()) return;
    if (trace.size() == 0) warnings_.push_back(fmt::format("{}: has no nodes", trace.source));
    const auto program = static_cast<std::uint32_t>(graph_.programs.size());
    for (const std::int32_t rank : ranks) {
      if (rank < 0 || rank >= graph_.ranks)
        throw Error(trace.source, fmt::format("rank {} does not exist", rank));
      std::uint32_t& own = graph_.program_of[static_cast<std::size_t>(rank)];
      if (own != kNoProgram) throw Error(trace.source, fmt::format("rank {} has two traces", rank));
      own = program;
    }
    // Ranks that share a trace share a program; group numbers are relative to whom they belong to, so the
    // first rank stands for all, and the others are only checked.
    RankGroups own{ranks[0], communicators_of(trace, options_.communicators, graph_.ranks), {}};
    graph_.programs.push_back(convert(own, trace));
    for (const std::int32_t rank : ranks.subspan(1)) check_communication(rank, own, trace);
  }

  Graph finish() {
    const auto orphan = std::find(graph_.program_of.begin(), graph_.program_of.end(), kNoProgram);
    if (orphan != graph_.program_of.end())
      throw Error("", fmt::format("rank {} has no trace", orphan - graph_.program_of.begin()));
    if (lonely_ > 0)
      warnings_.push_back(
          fmt::format("{} with groups of fewer than two ranks, which take no time; the first is {}",
                      lonely_ == 1 ? "1 collective" : fmt::format("{} collectives", lonely_), first_lonely_));
    std::vector<std::uint32_t> family_of;
    // Families can be formed once all groups of all ranks are known; until then calls carry the group's
    // number.
    graph_.families = groups_.families(family_of);
    for (CollectiveCall& call : graph_.collectives) call.family = family_of[call.family];
    // Programs differ rank by rank until groups have become families. A program whose utilisation differs has
    // to keep its own report.
    const std::vector<std::uint32_t> kept =
        merge_equal_programs(graph_, [&](std::uint32_t a, std::uint32_t b) {
          return !options_.roofline || same_use(roofline_use_[a], roofline_use_[b]);
        });
    if (options_.roofline) {
      std::vector<RooflineUse> use;
      for (const std::uint32_t program : kept) use.push_back(roofline_use_[program]);
      roofline_use_ = std::move(use);
    }
    return std::move(graph_);
  }

  const std::vector<std::string>& warnings() const { return warnings_; }
  const std::vector<RooflineUse>& roofline_use() const { return roofline_use_; }

 private:
  static constexpr std::uint32_t kNoProgram = UINT32_MAX;

  static bool same_use(const RooflineUse& a, const RooflineUse& b) {
    return a.time == b.time && a.compute_bound_time == b.compute_bound_time &&
           a.compute_utilisation == b.compute_utilisation && a.memory_utilisation == b.memory_utilisation &&
           a.operation_intensity == b.operation_intensity;
  }

  // Chakra gives no order of nodes beyond their ids: places are ids sorted, and the smallest goes first among
  // what is ready.
  Program convert(RankGroups& own, const ChakraTrace& trace) {
    const NodeOrder order(trace);
    if (const std::vector<std::uint32_t> repeated = order.repeated(); !repeated.empty())
      throw Error(location(trace, order.node_at(repeated[0])), "another node has the same id");
    is_cpu_op_ = trace.strings.find("is_cpu_op");
    duration_ns_ = trace.strings.find(kDurationNs);
    lane_ = trace.strings.find(kLaneAttribute);
    preference_ = trace.strings.find(kPreferenceAttribute);
    if (options_.roofline) roofline_use_.emplace_back();
    Program program;
    program.role = fmt::format("rank {}", own.rank);
    const std::size_t nodes = order.size();
    program.kind.reserve(nodes);
    program.phase.assign(nodes, Phase::other);
    program.name = names(trace, order);
    program.layer.assign(nodes, -1);
    program.payload.reserve(nodes);
    program.lane.reserve(nodes);
    program.first_dependence.reserve(nodes + 1);
    program.dependence.reserve(trace.data_dependence.size() + trace.control_dependence.size());
    for (std::uint32_t place = 0; place < order.size(); ++place) {
      const std::size_t node = order.node_at(place);
      const Payload payload = payload_of(trace, node, own);
      program.kind.push_back(payload.kind);
      program.payload.push_back(payload.value);
      program.lane.push_back(payload.lane);
      add_dependences(program, trace, node, order);
    }
    program.file_id = order.shown_ids();
    return program;
  }

  // Searching a table of strings for every node would dominate: ranks whose traces are alike ask for names in
  // the order in which the first one added them. Of the first, most names are new, and each look-up would
  // wait for memory.
  std::vector<std::uint32_t> names(const ChakraTrace& trace, const NodeOrder& order) {
    constexpr std::uint32_t kAhead = 16;
    StringTable& known = graph_.names;
    std::vector<std::uint32_t> numbers;
    numbers.reserve(order.size());
    if (known.size() == 1) known.reserve(std::min<std::size_t>(trace.strings.size(), order.size()));
    for (std::uint32_t place = 0; place < order.size(); ++place) {
      const std::string_view text = trace.name_of_node(order.node_at(place));
      const std::uint32_t next = last_name_ + 1;
      if (next < known.size() && known.at(next) == text) {
        last_name_ = next;
      } else {
        if (place + kAhead < order.size()) known.expect(trace.name_of_node(order.node_at(place + kAhead)));
        last_name_ = known.add(text);
      }
      numbers.push_back(last_name_);
    }
    return numbers;
  }

  static void add_dependences(Program& program, const ChakraTrace& trace, std::size_t node,
                              const NodeOrder& order) {
    const std::size_t first = program.dependence.size();
    const auto add = [&](std::uint64_t id) {
      const std::uint32_t place = order.place_of(id);
      if (place == order.size())
        throw Error(location(trace, node), fmt::format("waits for node {}, which does not exist", id),
                    "the file may have been cut short");
      if (id == trace.id[node]) throw Error(location(trace, node), "waits for itself");
      program.dependence.push_back(place);
    };
    for (const std::uint64_t id : trace.data_dependences(node)) add(id);
    for (const std::uint64_t id : trace.control_dependences(node)) add(id);
    // A dependence may be both of data and of control: one is enough.
    if (program.dependence.size() - first > 1) {
      const auto begin = program.dependence.begin() + static_cast<std::ptrdiff_t>(first);
      std::sort(begin, program.dependence.end());
      program.dependence.erase(std::unique(begin, program.dependence.end()), program.dependence.end());
    }
    if (program.dependence.size() > UINT32_MAX) throw Error(trace.source, "more than 2^32 dependences");
    program.first_dependence.push_back(static_cast<std::uint32_t>(program.dependence.size()));
  }

  static const ChakraAttribute* find(const ChakraTrace& trace, std::size_t node,
                                     std::uint32_t attribute_name) {
    if (attribute_name == UINT32_MAX) return nullptr;
    for (const ChakraAttribute& attribute : trace.attributes(node)) {
      if (attribute.name == attribute_name) return &attribute;
    }
    return nullptr;
  }

  bool on_cpu(const ChakraTrace& trace, std::size_t node) const {
    const ChakraAttribute* attribute = find(trace, node, is_cpu_op_);
    return attribute != nullptr && integer_value(trace, node, *attribute) != 0;
  }

  // In picoseconds.
  std::uint64_t duration(const ChakraTrace& trace, std::size_t node) const {
    const std::uint64_t micros = trace.duration_micros[node];
    if (micros > static_cast<std::uint64_t>(kLongestMicros))
      throw Error(location(trace, node), fmt::format("lasts {} microseconds, more than 26 days", micros));
    // ASTRA-sim counts in whole nanoseconds and gives every node at least one.
    if (options_.as_astra) return std::max<std::uint64_t>(micros * 1'000'000, 1'000);
    const ChakraAttribute* precise = find(trace, node, duration_ns_);
    if (precise == nullptr) return micros * 1'000'000;
    const double ns = real_value(trace, node, *precise);
    if (!(ns >= 0 && ns <= static_cast<double>(kLongestNs)))
      throw Error(location(trace, node),
                  fmt::format("attribute '{}' is {}, expected 0 to 26 days", kDurationNs, ns));
    return static_cast<std::uint64_t>(std::llround(ns * 1000));
  }

  Payload payload_of(const ChakraTrace& trace, std::size_t node, RankGroups& own) {
    const ChakraNodeType type = trace.type[node];
    if (options_.replay_only) return {NodeKind::delay, duration(trace, node), usual_lane_of(trace, node)};
    switch (type) {
      case ChakraNodeType::compute:
        return {NodeKind::delay, compute(trace, node), lane_of(trace, node)};
      case ChakraNodeType::memory_load:
      case ChakraNodeType::memory_store:
        return {type == ChakraNodeType::memory_load ? NodeKind::memory_load : NodeKind::memory_store,
                static_cast<std::uint64_t>(required_value(trace, node, "tensor_size")),
                usual_lane_of(trace, node)};
      case ChakraNodeType::send:
      case ChakraNodeType::receive:
        return {type == ChakraNodeType::send ? NodeKind::send : NodeKind::receive,
                transfer(transfer_of_node(trace, node, own.rank, graph_.ranks, options_.as_astra)),
                usual_lane_of(trace, node)};
      case ChakraNodeType::collective:
        return collective(trace, node, collective_of_node(trace, node, own, groups_));
      case ChakraNodeType::invalid:
      case ChakraNodeType::metadata:
        break;
    }
    return {};
  }

  // One of `words`, at the same place of `values`; the attribute is Armilla's own, so ASTRA-sim ignores it.
  template <class Value, std::size_t n>
  Value own_choice(const ChakraTrace& trace, std::size_t node, std::uint32_t name,
                   const std::array<std::string_view, n>& words, const std::array<Value, n>& values,
                   Value otherwise) const {
    const ChakraAttribute* attribute = options_.as_astra ? nullptr : find(trace, node, name);
    if (attribute == nullptr) return otherwise;
    const std::string_view word = text_value(trace, node, *attribute);
    const auto found = std::find(words.begin(), words.end(), word);
    if (found == words.end())
      throw Error(location(trace, node),
                  fmt::format("attribute '{}' is '{:.60}'", trace.strings.at(name), word),
                  suggest(word, std::span<const std::string_view>(words)));
    return values[static_cast<std::size_t>(found - words.begin())];
  }

  Lane lane_of(const ChakraTrace& trace, std::size_t node) const {
    static constexpr std::array<std::string_view, 4> kWords = {"device", "host", "communication", "none"};
    static constexpr std::array kLanes = {Lane::device, Lane::host, Lane::communication, Lane::none};
    return own_choice(trace, node, lane_, kWords, kLanes, usual_lane_of(trace, node));
  }

  ChunkPreference preference_of(const ChakraTrace& trace, std::size_t node) const {
    static constexpr std::array<std::string_view, 3> kWords = {"fifo", "lifo", "highest"};
    static constexpr std::array kPreferences = {ChunkPreference::fifo, ChunkPreference::lifo,
                                                ChunkPreference::highest};
    return own_choice(trace, node, preference_, kWords, kPreferences, ChunkPreference::policy);
  }

  // Lanes are what occupies: computations the device, CPU operators the host, everything else the
  // communication; a receive waits without occupying anything.
  Lane usual_lane_of(const ChakraTrace& trace, std::size_t node) const {
    if (on_cpu(trace, node)) return Lane::host;
    switch (trace.type[node]) {
      case ChakraNodeType::compute:
        return Lane::device;
      case ChakraNodeType::receive:
        return Lane::none;
      case ChakraNodeType::invalid:
      case ChakraNodeType::metadata:
        return options_.as_astra ? Lane::communication : Lane::none;
      default:
        return Lane::communication;
    }
  }

  std::uint64_t compute(const ChakraTrace& trace, std::size_t node) {
    if (!options_.roofline) return duration(trace, node);
    RooflineUse& use = roofline_use_.back();
    if (on_cpu(trace, node)) {
      const std::uint64_t time = duration(trace, node);
      use.time += static_cast<double>(time) / 1000;
      return time;
    }
    // num_ops and tensor_size as ASTRA-sim's Roofline reads them.
    const auto operations = static_cast<double>(required_value(trace, node, "num_ops"));
    const auto bytes = static_cast<double>(required_value(trace, node, "tensor_size"));
    if (bytes == 0) return 0;
    // In ASTRA-sim's order of operations, which decides about the last nanosecond.
    const double intensity = operations / bytes;
    const double rate = std::min(options_.memory_bytes_per_second * intensity, options_.peak_flops);
    const double seconds = operations > 0 ? operations / rate : bytes / options_.memory_bytes_per_second;
    const double ns = seconds * 1e9;
    if (!(ns <= static_cast<double>(kLongestNs)))
      throw Error(location(trace, node), "by the roofline it lasts more than 26 days",
                  "check num_ops, tensor_size, the peak and the memory bandwidth");
    // Truncated as in ASTRA-sim, which converts to an integer number of nanoseconds.
    const auto whole_ns = static_cast<std::uint64_t>(ns);
    const auto time = static_cast<double>(whole_ns);
    use.time += time;
    if (!(rate < options_.peak_flops)) use.compute_bound_time += time;
    use.compute_utilisation += rate / options_.peak_flops * time;
    if (intensity > 0) use.memory_utilisation += rate / intensity / options_.memory_bytes_per_second * time;
    use.operation_intensity += intensity * time;
    return whole_ns * 1000;
  }

  std::uint64_t transfer(const PointToPoint& message) {
    const auto [found, fresh] = transfers_.try_emplace({message.peer, message.tag, message.bytes.value},
                                                       static_cast<std::uint32_t>(graph_.transfers.size()));
    if (fresh) graph_.transfers.push_back(message);
    return found->second;
  }

  Payload collective(const ChakraTrace& trace, std::size_t node, const TraceCollective& traced) {
    // ASTRA-sim 2 has no broadcast: the node only lasts as long as it says.
    if (options_.as_astra && traced.kind == ChakraCollective::broadcast)
      return {NodeKind::delay, duration(trace, node), Lane::communication};
    // Nothing is sent among fewer than two ranks; one warning for all of them.
    if (traced.group == TraceGroups::kNobody) {
      if (lonely_++ == 0) first_lonely_ = location(trace, node);
      return {};
    }
    CollectiveCall call;
    call.kind = graph_kind(traced.kind);
    call.bytes = traced.bytes;
    call.family = traced.group;  // until the families are known
    call.root = traced.root;
    call.priority = traced.priority;
    call.preference = preference_of(trace, node);
    call.custom = custom(trace.id[node], traced, call.kind);
    const auto [found, fresh] = calls_.try_emplace(
        {call.kind, call.bytes.value, call.family, call.root, call.priority, call.custom, call.preference},
        static_cast<std::uint32_t>(graph_.collectives.size()));
    if (fresh) graph_.collectives.push_back(call);
    return {NodeKind::collective, found->second, Lane::communication};
  }

  // In order of precedence: a schedule given for this node, gather and scatter, a schedule given for the
  // kind.
  std::int32_t custom(std::uint64_t id, const TraceCollective& traced, CollectiveKind kind) {
    if (const auto own = options_.custom_of_node.find(id); own != options_.custom_of_node.end())
      return own->second;
    const bool gathers = traced.kind == ChakraCollective::gather;
    if (gathers || traced.kind == ChakraCollective::scatter) {
      const std::int64_t members = groups_.size(traced.group);
      const auto [found, fresh] = stars_.try_emplace({gathers, members, traced.root},
                                                     static_cast<std::int32_t>(graph_.custom.size()));
      if (fresh) graph_.custom.push_back(star(gathers, members, traced.root));
      return found->second;
    }
    const auto of_kind = options_.custom_of_kind.find(kind);
    return of_kind == options_.custom_of_kind.end() ? -1 : of_kind->second;
  }

  // What a program shared with another rank must not get wrong for this one.
  void check_communication(std::int32_t rank, const RankGroups& like, const ChakraTrace& trace) {
    if (options_.replay_only) return;
    RankGroups own{rank, like.communicators, {}};
    for (std::size_t node = 0; node < trace.size(); ++node) {
      if (trace.type[node] == ChakraNodeType::send || trace.type[node] == ChakraNodeType::receive)
        transfer_of_node(trace, node, rank, graph_.ranks, options_.as_astra);
      if (trace.type[node] == ChakraNodeType::collective) group_of_node(trace, node, own, groups_);
    }
  }

  TraceGraphOptions options_;
  TraceGroups groups_;
  Graph graph_;
  std::vector<std::string> warnings_;
  std::vector<RooflineUse> roofline_use_;
  std::map<std::tuple<std::int32_t, std::uint32_t, std::int64_t>, std::uint32_t> transfers_;
  std::map<std::tuple<CollectiveKind, std::int64_t, std::uint32_t, std::int32_t, std::int32_t, std::int32_t,
                      ChunkPreference>,
           std::uint32_t>
      calls_;
  std::map<std::tuple<bool, std::int64_t, std::int32_t>, std::int32_t> stars_;
  std::uint32_t last_name_ = 0;
  // Names in the trace's strings.
  std::uint32_t is_cpu_op_ = UINT32_MAX, duration_ns_ = UINT32_MAX, lane_ = UINT32_MAX,
                preference_ = UINT32_MAX;
  std::int64_t lonely_ = 0;
  std::string first_lonely_;
};

TraceGraphBuilder::TraceGraphBuilder(TraceGraphOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
TraceGraphBuilder::~TraceGraphBuilder() = default;

void TraceGraphBuilder::add_ranks(std::span<const std::int32_t> ranks, const ChakraTrace& trace) {
  impl_->add(ranks, trace);
}

const std::vector<std::string>& TraceGraphBuilder::warnings() const {
  return impl_->warnings();
}

const std::vector<RooflineUse>& TraceGraphBuilder::roofline_use() const {
  return impl_->roofline_use();
}

Graph TraceGraphBuilder::finish() {
  return impl_->finish();
}

}  // namespace armilla
