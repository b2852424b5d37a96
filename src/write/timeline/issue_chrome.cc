#include "write/trace.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <set>

#include "base/error.h"
#include "write/format/json_text.h"

namespace armilla {
namespace {

// 1 to 4 are the threads of Chakra's visualizer.
constexpr std::array<std::string_view, 6> kThreads = {"",        "local memory",  "remote memory",
                                                      "compute", "communication", "other"};

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

// The index of the thread; 0 when the name does not tell, by Chakra's visualizer's rules.
int thread_by_name(std::string_view name) {
  const bool memory = has(name, "MEM_LOAD_NODE") || has(name, "MEM_STORE_NODE");
  if (memory && has(name, "LOCAL_MEMORY")) return 1;
  if (memory && has(name, "REMOTE_MEMORY")) return 2;
  if (has(name, "COMP_NODE")) return 3;
  if (has(name, "COMM_SEND_NODE") || has(name, "COMM_RECV_NODE") || has(name, "COMM_COLL_NODE")) return 4;
  return 0;
}

// The recorded type is better than the name; only records without one fall back on it.
int thread_of(const IssuedNode& node) {
  switch (node.type) {
    case ChakraNodeType::compute:
      return 3;
    case ChakraNodeType::send:
    case ChakraNodeType::receive:
    case ChakraNodeType::collective:
      return 4;
    case ChakraNodeType::memory_load:
    case ChakraNodeType::memory_store:
      return has(node.name, "LOCAL_MEMORY") ? 1 : 2;
    default:
      break;
  }
  const int told = thread_by_name(node.name);
  return told != 0 ? told : 5;
}

// As Python's json prints it: always with a point or an exponent.
std::string real(double value) {
  std::string text = to_inline_text(value);
  if (const std::size_t e = text.find('e'); e != text.npos && text[e + 1] != '-' && text[e + 1] != '+')
    text.insert(e + 1, "+");
  return text;
}

// Byte for byte what Chakra's visualizer writes: its keys, its order, its spelling of numbers.
std::string write_as_chakra(const IssueLog& log, const IssueChromeOptions& options) {
  std::string text = "{\"meta_user\": \"aras\", \"traceEvents\": [";
  bool first = true;
  for (const IssuedNode& node : log.nodes) {
    const int thread = thread_by_name(node.name);
    if (thread == 0)
      throw Error(fmt::format("node {} '{:.60}' of rank {}", node.id, node.name, node.rank),
                  "the name does not tell what kind of node it is", "omit --as-chakra");
    // In Chakra's visualizer's order of operations, which decides the last digit.
    const double start = static_cast<double>(node.issued) / options.megahertz / 1000;
    const double duration = static_cast<double>(node.finished - node.issued) / (options.megahertz * 1000);
    text += fmt::format(
        "{}{{\"pid\": {}, \"tid\": {}, \"ts\": {}, \"dur\": {}, \"ph\": \"X\", \"name\": {}, \"args\": "
        "{{\"ms\": "
        "{}}}}}",
        first ? "" : ", ", node.rank, thread, real(start), real(duration), to_inline_text(node.name),
        real(duration));
    first = false;
  }
  return text + fmt::format("], \"meta_cpu_count\": {}}}", options.ranks > 0 ? options.ranks : log.ranks);
}

std::string metadata(std::string_view kind, std::int32_t rank, int thread, const std::string& name) {
  return fmt::format(
      "{{\"ph\": \"M\", \"name\": \"{}\", \"pid\": {}, \"tid\": {}, \"args\": {{\"name\": {}}}}}", kind, rank,
      thread, to_inline_text(name));
}

}  // namespace

std::string write_issue_chrome(const IssueLog& log, const IssueChromeOptions& options) {
  if (options.as_chakra) return write_as_chakra(log, options);
  std::set<std::pair<std::int32_t, int>> threads;
  for (const IssuedNode& node : log.nodes) threads.emplace(node.rank, thread_of(node));
  std::string text = "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [";
  // A process's name has to be said once, before its threads.
  std::int32_t named = -1;
  const char* separator = "\n";
  const auto add = [&](const std::string& event) {
    text += separator + event;
    separator = ",\n";
  };
  for (const auto& [rank, thread] : threads) {
    if (rank != named) add(metadata("process_name", rank, 0, fmt::format("rank {}", rank)));
    named = rank;
    add(metadata("thread_name", rank, thread, std::string(kThreads[static_cast<std::size_t>(thread)])));
  }
  for (const IssuedNode& node : log.nodes) {
    add(fmt::format(
        "{{\"ph\": \"X\", \"pid\": {}, \"tid\": {}, \"ts\": {}, \"dur\": {}, \"name\": {}, \"args\": "
        "{{\"node\": {}}}}}",
        node.rank, thread_of(node), to_inline_text(static_cast<double>(node.issued) / options.megahertz),
        to_inline_text(static_cast<double>(node.finished - node.issued) / options.megahertz),
        to_inline_text(node.name), node.id));
  }
  return text + "\n]}\n";
}

}  // namespace armilla
