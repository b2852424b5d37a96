#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/units_text.h"
#include "read/file_format.h"
#include "read/roce.h"
#include "read/traffic/roce_words.h"
#include "read/traffic_patterns.h"
#include "zoo/zoo.h"

namespace armilla {
namespace {

constexpr std::int64_t kMostFlows = 100'000'000;
constexpr ParameterInfo kFlowBytes = {"bytes", ParameterType::bytes, "1MB", "of every flow"};
using Foreseen = std::function<void(std::int64_t flows)>;
constexpr ParameterInfo kPatternSeed = {"seed", ParameterType::count, "1", "of the random numbers"};

std::int64_t flow_bytes(const ParameterValues& values) {
  const std::int64_t bytes = values.bytes("bytes").value;
  if (bytes < 1) throw Error(values.where("bytes"), "a flow has at least a byte");
  return bytes;
}

constexpr std::array kIncastParameters = {
    ParameterInfo{"senders", ParameterType::count, "16", "hosts that send to host 0 at once"}, kFlowBytes};
std::vector<TrafficFlow> make_incast(const ParameterValues& values, std::int64_t hosts, const Foreseen&) {
  const std::int64_t senders = values.count("senders");
  if (senders < 1 || senders >= hosts) {
    throw Error(values.where("senders"),
                fmt::format("{}, and there {} {} beside the receiver", counted(senders, "sender"),
                            hosts == 2 ? "is" : "are", counted(hosts - 1, "host")),
                fmt::format("incast:{}", hosts - 1));
  }
  std::vector<TrafficFlow> flows;
  for (std::int64_t from = 1; from <= senders; ++from) flows.push_back({from, 0, flow_bytes(values)});
  return flows;
}

constexpr std::array kPermutationParameters = {kPatternSeed, kFlowBytes};
// One cycle through all hosts (Sattolo 1986), so that nobody sends to itself.
std::vector<TrafficFlow> make_permutation(const ParameterValues& values, std::int64_t hosts,
                                          const Foreseen&) {
  std::mt19937_64 random(static_cast<std::uint64_t>(values.count("seed")));
  std::vector<std::int64_t> to(static_cast<std::size_t>(hosts));
  std::iota(to.begin(), to.end(), std::int64_t{0});
  for (std::size_t i = to.size(); i-- > 1;) std::swap(to[i], to[random() % i]);
  std::vector<TrafficFlow> flows;
  for (std::int64_t from = 0; from < hosts; ++from)
    flows.push_back({from, to[static_cast<std::size_t>(from)], flow_bytes(values)});
  return flows;
}

constexpr std::array kAllToAllParameters = {
    ParameterInfo{"hosts", ParameterType::count, "", "that take part, the first ones; else all"}, kFlowBytes};
std::vector<TrafficFlow> make_all_to_all(const ParameterValues& values, std::int64_t hosts,
                                         const Foreseen& foreseen) {
  const std::int64_t part = values.is_set("hosts") ? values.count("hosts") : hosts;
  if (part < 2 || part > hosts)
    throw Error(values.where("hosts"), fmt::format("{} of {} hosts", part, hosts), "from 2 to all");
  if (part > 10'000)
    throw Error(
        values.where("hosts"),
        fmt::format("{} flows, between {} hosts", with_separators(part * (part - 1)), with_separators(part)),
        "at most 10,000 hosts: all-to-all:hosts=10000");
  // Before they are made: the caller refuses what would not fit into memory.
  foreseen(part * (part - 1));
  std::vector<TrafficFlow> flows;
  flows.reserve(static_cast<std::size_t>(part * (part - 1)));
  // Step after step as in a ring, so that not everybody begins with the same receiver.
  for (std::int64_t step = 1; step < part; ++step) {
    for (std::int64_t from = 0; from < part; ++from)
      flows.push_back({from, (from + step) % part, flow_bytes(values)});
  }
  return flows;
}

constexpr std::array kRingParameters = {
    ParameterInfo{"distance", ParameterType::count, "1", "hosts further that each sends to"}, kFlowBytes};
std::vector<TrafficFlow> make_shift(const ParameterValues& values, std::int64_t hosts, const Foreseen&) {
  const std::int64_t distance = values.count("distance");
  if (distance == hosts) throw Error(values.where("distance"), "every host would send to itself");
  if (distance > hosts)
    throw Error(values.where("distance"),
                fmt::format("{} further, of {}", typed_count(distance, "host"), counted(hosts, "host")),
                fmt::format("from 1 to {}", hosts - 1));
  std::vector<TrafficFlow> flows;
  for (std::int64_t from = 0; from < hosts; ++from)
    flows.push_back({from, (from + distance) % hosts, flow_bytes(values)});
  return flows;
}

constexpr std::array kTrafficPatterns = {
    TrafficPattern{"incast", "many hosts send to one", kIncastParameters, make_incast},
    TrafficPattern{"permutation", "every host sends to another one, at random, and hears from one",
                   kPermutationParameters, make_permutation},
    TrafficPattern{"all-to-all", "every host sends to every other one", kAllToAllParameters, make_all_to_all},
    TrafficPattern{"shift", "every host sends to the one that is so much further, as in a step of a ring",
                   kRingParameters, make_shift},
};

// "Nodes N", "Connections C", then per flow "A->B id I start PS size BYTES", its keys in any order.
std::vector<TrafficFlow> parse_connections(std::string_view text, const std::string& name, std::int64_t hosts,
                                           std::vector<std::string>* notes) {
  RoceWords words(text, name);
  std::vector<TrafficFlow> flows;
  std::optional<std::int64_t> announced;
  std::string announced_at;
  while (const auto next = words.next()) {
    const std::string word(*next);
    if (word.starts_with('#')) {
      words.skip_line();
      continue;
    }
    if (word == "Nodes") {
      // htsim refuses a matrix of other hosts than its topology has. Flows beyond those are refused here.
      const std::int64_t nodes = words.whole(word, 1, kMostFlows, true);
      if (nodes != hosts && notes != nullptr)
        notes->push_back(fmt::format("{}: the flows are those of {}, and there are {}", words.where(),
                                     counted(nodes, "host"), hosts));
      continue;
    }
    if (word == "Connections") {
      if (announced) words.fail("Connections is given twice");
      announced = words.whole(word, 1, kMostFlows, true);
      announced_at = words.where();
      continue;
    }
    const std::size_t arrow = word.find("->");
    if (arrow == std::string::npos)
      words.fail(fmt::format("'{:.60}' is not a flow", word), "such as 0->1 id 1 start 0 size 1000000");
    TrafficFlow flow;
    const auto end = [&](const std::string& digits) {
      RoceWords one(digits, words.where());
      const std::optional<std::string_view> number = one.next();
      if (!number || number->find_first_not_of("0123456789") != std::string_view::npos ||
          number->size() > 9 || std::stoll(std::string(*number)) >= hosts)
        words.fail(fmt::format("'{:.60}' is not one of the {}", digits, typed_count(hosts, "host")),
                   "they count from 0");
      return std::stoll(std::string(*number));
    };
    flow.source = end(word.substr(0, arrow));
    flow.destination = end(word.substr(arrow + 2));
    if (flow.source == flow.destination)
      words.fail(fmt::format("a flow from host {} to itself", flow.source));
    while (const auto key = words.next(true)) {
      if (*key == "start") {
        flow.start_ns = words.whole("start", 0, std::int64_t{1} << 53, true) / 1000;
      } else if (*key == "size") {
        flow.bytes = words.whole("size", 1, std::int64_t{1} << 50, true);
      } else if (*key == "id" || *key == "prio" || *key == "priority") {
        words.word(*key, true);
      } else {
        words.fail(fmt::format("'{:.60}' of a flow is not known", *key), "flows have id, start and size");
      }
    }
    if (flow.bytes == 0) words.fail("a flow has no size");
    flows.push_back(flow);
  }
  // As htsim, which refuses both: one is a file that was cut off, the other a count that was not kept.
  if (const auto found = static_cast<std::int64_t>(flows.size()); announced && *announced != found)
    throw Error(announced_at,
                fmt::format("{} announced, and {}{} follow{}",
                            counted(*announced, "flow") + (*announced == 1 ? " is" : " are"),
                            found < *announced ? "only " : "", found, found == 1 ? "s" : ""),
                found < *announced ? "the file may have been cut off" : fmt::format("Connections {}", found));
  return flows;
}

}  // namespace

std::span<const TrafficPattern> traffic_patterns() {
  return kTrafficPatterns;
}

std::vector<TrafficFlow> read_flow_file(const std::string& path, const NetworkGraph& graph,
                                        std::vector<std::string>* notes) {
  const MappedFile file(path);
  // What is known to be something else is no list of flows with a strange first line.
  if (const FileKind kind = sniff(file.bytes());
      kind != FileKind::hpcc_flows && kind != FileKind::htsim_connections && kind < FileKind::json)
    throw wrong_kind(path, kind, "flows of HPCC's ns-3 or of htsim");
  const std::string_view contents(file.bytes().data(), file.bytes().size());
  RoceWords head(contents, path);
  const auto first = head.next();
  const bool counts = first && first->find_first_not_of("0123456789") == std::string_view::npos;
  const std::int64_t hosts = std::count(graph.is_switch.begin(), graph.is_switch.end(), false);
  std::string surplus;
  std::vector<TrafficFlow> flows = counts ? parse_roce_flows(contents, path, graph, &surplus)
                                          : parse_connections(contents, path, hosts, notes);
  if (!surplus.empty()) throw Error("", surplus + " would be left out", "announce as many as there are");
  if (flows.empty()) throw Error(path, "has no flows");
  return flows;
}

std::vector<TrafficFlow> read_traffic_flows(const std::string& text, const std::string& where,
                                            const NetworkGraph& graph, std::vector<std::string>* notes,
                                            const Foreseen& foreseen) {
  const std::int64_t hosts = std::count(graph.is_switch.begin(), graph.is_switch.end(), false);
  if (hosts < 2) throw Error(where, "there are no two hosts");
  if (is_path(text)) {
    std::vector<TrafficFlow> flows = read_flow_file(text, graph, notes);
    foreseen(static_cast<std::int64_t>(flows.size()));
    return flows;
  }
  std::string full = text;
  if (const std::size_t colon = text.find(':'); colon != std::string::npos) {
    const std::size_t end = text.find_first_not_of("0123456789", colon + 1);
    if (end != colon + 1 && colon + 1 < text.size() && (end == std::string::npos || text[end] == ',')) {
      const TrafficPattern& row = find_component("traffic", traffic_patterns(), text.substr(0, colon), where);
      full = fmt::format("{}:{}={}", row.name, row.parameters.front().name, text.substr(colon + 1));
    }
  }
  if (const std::size_t colon = full.find(':');
      colon != std::string::npos && full.find('=') == std::string::npos) {
    const TrafficPattern& row = find_component("traffic", traffic_patterns(), full.substr(0, colon), where);
    std::vector<std::string_view> names;
    for (const ParameterInfo& info : row.parameters) names.push_back(info.name);
    throw Error(where, fmt::format("'{:.60}' has no name", full.substr(colon + 1)),
                fmt::format("{} has {}, such as {}:bytes=1MB", row.name, fmt::join(names, ", "), row.name));
  }
  const ComponentChoice choice = parse_component(full, where);
  const TrafficPattern& row = find_component("traffic", traffic_patterns(), choice.name, where);
  return row.make(ParameterValues(row.name, row.parameters, choice.parameters), hosts, foreseen);
}

}  // namespace armilla
