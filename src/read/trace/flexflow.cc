#include "read/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"
#include "base/units_text.h"
#include "read/trace/dot_graph.h"

namespace armilla {
namespace {

constexpr std::int64_t kMaxDevices = 1 << 16;

struct Task {
  std::uint64_t id = 0;
  std::string name;
  std::int64_t device = 0;  // of a communication: its link
  bool is_message = false;
  double milliseconds = 0;
  std::int64_t source = 0, destination = 0, bytes = 0;
  std::string where;
  std::vector<std::size_t> waits_for;  // tasks, in the order of the edges
};

template <class Number>
Number number(std::string_view text, const std::string& where, std::string_view what, Number lowest,
              Number highest) {
  const auto value = number_from<Number>(text);
  if (!value || !(*value >= lowest && *value <= highest))
    throw Error(where, fmt::format("'{:.60}' is not a {} from {} to {}", text, what, lowest, highest));
  return *value;
}

std::uint64_t id_of(const std::string& name, const std::string& where) {
  if (!name.starts_with("node"))
    throw Error(where, fmt::format("'{:.60}' is not a node of a FlexFlow graph", name),
                "its nodes are called node0, node1 ...");
  return number<std::uint64_t>(std::string_view(name).substr(4), where, "number of a node", 0,
                               UINT64_MAX / 4);
}

// A Graphviz record: fields between bars, in braces.
class Label {
 public:
  Label(std::string_view text, const std::string& where) : where_(where) {
    if (text.size() < 2 || text.front() != '{' || text.back() != '}')
      throw Error(where, fmt::format("the label '{:.60}' is not a record in braces", text));
    text = text.substr(1, text.size() - 2);
    for (;;) {
      const std::size_t bar = text.find('|');
      fields_.push_back(trimmed(text.substr(0, bar)));
      if (bar == text.npos) break;
      text.remove_prefix(bar + 1);
    }
    if (fields_.size() < 5)
      throw Error(where,
                  fmt::format("the label has {}, not 5 or more", typed_count(fields_.size(), "field")));
  }
  std::string_view field(std::size_t index) const { return fields_[index]; }
  std::string_view value(std::string_view key) const {
    for (const std::string_view field : fields_) {
      if (field.size() > key.size() && field.starts_with(key) && field[key.size()] == '=')
        return trimmed(field.substr(key.size() + 1));
    }
    throw Error(where_, fmt::format("the label has no field '{}='", key));
  }

 private:
  const std::string& where_;
  std::vector<std::string_view> fields_;
};

Task task_of(const DotNode& node) {
  const auto found = node.attributes.find("label");
  if (found == node.attributes.end()) throw Error(node.where, fmt::format("{} has no label", node.name));
  const Label label(found->second, node.where);
  Task task;
  task.where = node.where;
  task.id = id_of(node.name, node.where);
  task.name = label.field(1);
  task.device = number<std::int64_t>(label.value("device_id"), node.where, "device", 0, INT32_MAX);
  const auto device = [&](std::string_view key) {
    return number<std::int64_t>(label.value(key), node.where, "device", 0, kMaxDevices - 1);
  };
  // Times are milliseconds; a computation names its device, a communication the link and both devices.
  if (label.field(3) == "COMP_NODE") {
    device("device_id");
    task.milliseconds = number<double>(label.value("simulated_run_time"), node.where, "time in ms", 0, 1e12);
  } else if (label.field(3) == "COMM_SEND_RECV_NODE") {
    task.is_message = true;
    task.source = device("src_device_id");
    task.destination = device("dst_device_id");
    task.bytes = number<std::int64_t>(label.value("comm_size"), node.where, "size in bytes", 0, INT64_MAX);
    if (task.source == task.destination)
      throw Error(node.where, fmt::format("device {} sends to itself", task.source));
  } else {
    throw Error(node.where, fmt::format("unknown type of node '{:.60}'", label.field(3)),
                "known: COMP_NODE, COMM_SEND_RECV_NODE");
  }
  return task;
}

std::vector<Task> tasks_of(const DotGraph& graph) {
  std::vector<Task> tasks;
  std::unordered_map<std::uint64_t, std::size_t> index_of;
  for (const DotNode& node : graph.nodes) {
    tasks.push_back(task_of(node));
    if (!index_of.emplace(tasks.back().id, tasks.size() - 1).second)
      throw Error(node.where, fmt::format("{} is there twice", node.name));
  }
  // The converter's graph library keeps the edges between two nodes together, where the first of them stands.
  // Parallel edges are kept: each is a dependence of its own in the converter's output.
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> count_of;
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  for (const DotEdge& edge : graph.edges) {
    const auto end = [&](const std::string& name) {
      const auto found = index_of.find(id_of(name, edge.where));
      if (found == index_of.end())
        throw Error(edge.where,
                    fmt::format("{} -> {}: {} has no statement of its own", edge.from, edge.to, name));
      return found->second;
    };
    const std::size_t from = end(edge.from);
    const std::pair ends(from, end(edge.to));
    if (++count_of[ends] == 1) edges.push_back(ends);
  }
  for (const auto& ends : edges)
    for (std::size_t i = 0; i < count_of[ends]; ++i) tasks[ends.second].waits_for.push_back(ends.first);
  return tasks;
}

void add_message(ChakraTrace& trace, bool sends, std::uint64_t id, const std::string& name,
                 std::int64_t source, std::int64_t destination, std::int64_t bytes, std::int64_t tag) {
  trace.add_node(id, sends ? ChakraNodeType::send : ChakraNodeType::receive,
                 (sends ? "COMM_SEND_NODE_" : "COMM_RECV_NODE_") + name);
  trace.add_integer("comm_src", ChakraValueKind::int64, source);
  trace.add_integer("comm_dst", ChakraValueKind::int64, destination);
  trace.add_integer("comm_size", ChakraValueKind::int64, bytes);
  trace.add_integer("comm_tag", ChakraValueKind::int64, tag);
}

std::vector<std::size_t> by_id(const std::vector<Task>& tasks) {
  std::vector<std::size_t> order(tasks.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return tasks[a].id < tasks[b].id; });
  return order;
}

// Tags as Chakra's converter numbers them: rank by rank, in the order of the file, at the first end that is
// met. Only ranks that compute are met.
std::vector<std::int64_t> peer_tags(const std::vector<Task>& tasks, const std::vector<bool>& computes) {
  std::vector<std::int64_t> tags(tasks.size(), -1);
  std::int64_t next = 0;
  for (std::size_t rank = 0; rank < computes.size(); ++rank) {
    if (!computes[rank]) continue;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const Task& task = tasks[i];
      const auto own = static_cast<std::int64_t>(rank);
      if (task.is_message && tags[i] < 0 && (task.source == own || task.destination == own)) tags[i] = next++;
    }
  }
  return tags;
}

class PeerConverter {
 public:
  PeerConverter(const std::vector<Task>& tasks, const FlexflowOptions& options)
      : tasks_(tasks), hertz_(static_cast<double>(options.megahertz * 1'000'000)) {}

  void convert(std::vector<ChakraTrace>& traces) const {
    std::vector<bool> computes(traces.size());
    for (const Task& task : tasks_)
      if (!task.is_message) computes[static_cast<std::size_t>(task.device)] = true;
    const std::vector<std::int64_t> tags = peer_tags(tasks_, computes);
    for (ChakraTrace& trace : traces) trace.has_metadata = false;
    for (const std::size_t i : by_id(tasks_)) {
      const Task& task = tasks_[i];
      if (!task.is_message) {
        ChakraTrace& trace = traces[static_cast<std::size_t>(task.device)];
        trace.add_node(task.id, ChakraNodeType::compute, "COMP_NODE_" + task.name, cycles(task));
        for (const std::size_t parent : task.waits_for) trace.add_data_dependence(tasks_[parent].id);
        continue;
      }
      // A communication becomes a node on both its devices, under the same id.
      for (const std::int64_t rank : {task.source, task.destination}) {
        if (!computes[static_cast<std::size_t>(rank)]) continue;
        ChakraTrace& trace = traces[static_cast<std::size_t>(rank)];
        add_message(trace, rank == task.source, task.id, task.name, task.source, task.destination, task.bytes,
                    tags[i]);
        for (const std::size_t parent : task.waits_for)
          if (tasks_[parent].device == rank) trace.add_data_dependence(tasks_[parent].id);
      }
    }
  }

 private:
  std::uint64_t cycles(const Task& task) const {
    // To the nearest, ties to even, as Python rounds.
    const double cycles = std::nearbyint(task.milliseconds * hertz_);
    if (cycles >= 0x1p63) throw Error(task.where, "the time in cycles is beyond 64 bits");
    return static_cast<std::uint64_t>(cycles);
  }

  const std::vector<Task>& tasks_;
  double hertz_;
};

class Converter {
 public:
  // Ids and tags of our own messages begin behind those of the file.
  explicit Converter(const std::vector<Task>& tasks) : tasks_(tasks) {
    for (const Task& task : tasks) {
      next_id_ = std::max(next_id_, task.id + 1);
      next_tag_ += task.is_message ? 1 : 0;
    }
  }

  // Traces natively: a dependence between devices, which no trace can express, becomes a message of one byte.
  std::int64_t convert(std::vector<ChakraTrace>& traces) {
    const auto trace_of = [&](std::int64_t rank) -> ChakraTrace& {
      return traces[static_cast<std::size_t>(rank)];
    };
    std::int64_t tag = 0;
    for (const std::size_t i : by_id(tasks_)) {
      const Task& task = tasks_[i];
      const std::int64_t starts_on = task.is_message ? task.source : task.device;
      // What must be told comes first, so that the waiting node is the last of its trace.
      std::vector<std::uint64_t> waits;
      for (const std::size_t parent : task.waits_for)
        waits.push_back(is_seen(tasks_[parent], starts_on) ? tasks_[parent].id
                                                           : tell(tasks_[parent], starts_on, traces));
      ChakraTrace& trace = trace_of(starts_on);
      if (task.is_message) {
        add_message(trace, true, task.id, task.name, task.source, task.destination, task.bytes, tag);
      } else {
        // Milliseconds to microseconds.
        trace.add_node(task.id, ChakraNodeType::compute, "COMP_NODE_" + task.name,
                       static_cast<std::uint64_t>(std::llround(task.milliseconds * 1000)));
      }
      for (const std::uint64_t id : waits) trace.add_data_dependence(id);
      if (!task.is_message) continue;
      add_message(trace_of(task.destination), false, task.id, task.name, task.source, task.destination,
                  task.bytes, tag++);
    }
    return told_;
  }

 private:
  // Whether a node of `rank` ends when `task` does, or, for a sender, when its message has left.
  static bool is_seen(const Task& task, std::int64_t rank) {
    return task.is_message ? task.source == rank || task.destination == rank : task.device == rank;
  }

  // One message per task and rank that waits for it, however many nodes there do.
  std::uint64_t tell(const Task& parent, std::int64_t rank, std::vector<ChakraTrace>& traces) {
    const std::int64_t from = parent.is_message ? parent.destination : parent.device;
    const auto [entry, is_new] = told_to_.emplace(std::pair(parent.id, rank), next_id_);
    if (!is_new) return entry->second;
    ++next_id_;
    ++told_;
    const std::string name = "done_" + parent.name;
    ChakraTrace& sender = traces[static_cast<std::size_t>(from)];
    add_message(sender, true, entry->second, name, from, rank, 1, next_tag_);
    sender.add_data_dependence(parent.id);
    add_message(traces[static_cast<std::size_t>(rank)], false, entry->second, name, from, rank, 1,
                next_tag_++);
    return entry->second;
  }

  const std::vector<Task>& tasks_;
  std::uint64_t next_id_ = 0;
  std::int64_t next_tag_ = 0, told_ = 0;
  std::map<std::pair<std::uint64_t, std::int64_t>, std::uint64_t> told_to_;  // task, rank -> node
};

}  // namespace

FlexflowTraces parse_flexflow(std::string_view text, const std::string& name,
                              const FlexflowOptions& options) {
  const std::vector<Task> tasks = tasks_of(parse_dot(text, name));
  std::int64_t devices = 0;
  for (const Task& task : tasks) {
    devices =
        std::max(devices, task.is_message ? std::max(task.source, task.destination) + 1 : task.device + 1);
  }
  if (devices == 0) throw Error(name, "the graph has no nodes");
  FlexflowTraces result;
  result.ranks.resize(static_cast<std::size_t>(devices));
  if (options.as_chakra) {
    PeerConverter(tasks, options).convert(result.ranks);
  } else {
    result.told = Converter(tasks).convert(result.ranks);
    for (ChakraTrace& trace : result.ranks) {
      trace.version = "1.0.0";
      trace.source = name;
    }
  }
  return result;
}

}  // namespace armilla
