#include "read/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "base/text.h"

namespace armilla {
namespace {

constexpr std::string_view kIssue = "issue,", kCallback = "callback,";

// The part of a line that begins with its event; empty when it has none. Words in names do not count.
std::string_view event_of(std::string_view line) {
  for (const std::string_view kind : {kIssue, kCallback}) {
    const std::size_t found = line.find(kind);
    if (found != line.npos && (found == 0 || line[found - 1] == ' ')) return line.substr(found);
  }
  return {};
}

class LogParser {
 public:
  explicit LogParser(const std::string& name) : name_(name) {}

  IssueLog run(std::string_view text) {
    while (!text.empty()) {
      ++line_;
      const std::size_t end = std::min(text.find('\n'), text.size());
      if (const std::string_view event = event_of(text.substr(0, end)); !event.empty()) take(trimmed(event));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    for (auto& [key, node] : open_) log_.unfinished.push_back(std::move(node));
    return std::move(log_);
  }

 private:
  [[noreturn]] void fail(std::string message, std::string hint = {}) const {
    throw Error(fmt::format("{}:{}", name_, line_), std::move(message), std::move(hint));
  }

  std::uint64_t number(std::string_view field, std::string_view what, std::uint64_t highest) const {
    const std::size_t equals = field.find('=');
    const std::string_view text =
        equals == field.npos ? std::string_view() : trimmed(field.substr(equals + 1));
    const auto value = number_from<std::uint64_t>(text);
    if (!value || *value > highest) fail(fmt::format("'{:.60}' is not a {} up to {}", field, what, highest));
    return *value;
  }

  // "issue,sys->id=R, tick=T, node->id=N, node->name=NAME[, node->type=K]", as ASTRA-sim's logger prints it;
  // of each field only what stands behind '=' is read.
  void take(std::string_view event) {
    const bool is_issue = event.starts_with(kIssue);
    std::string_view rest = event.substr(is_issue ? kIssue.size() : kCallback.size());
    std::array<std::string_view, 3> fields;
    for (std::string_view& field : fields) {
      const std::size_t comma = rest.find(',');
      if (comma == rest.npos) fail("the line ends before rank, tick, node and name were given");
      field = trimmed(rest.substr(0, comma));
      rest.remove_prefix(comma + 1);
    }
    IssuedNode node;
    node.rank = static_cast<std::int32_t>(number(fields[0], "rank", (1 << 24) - 1));
    const std::uint64_t tick = number(fields[1], "tick", INT64_MAX);
    node.id = number(fields[2], "node", UINT64_MAX);
    // Names may contain commas; a type, if there is one, is the last field.
    if (const std::size_t type = rest.rfind(",");
        type != rest.npos && rest.find("type=", type) != rest.npos) {
      node.type = static_cast<ChakraNodeType>(number(trimmed(rest.substr(type + 1)), "type of node", 7));
      rest = rest.substr(0, type);
    }
    const std::size_t equals = rest.find('=');
    if (equals == rest.npos) fail(fmt::format("'{:.60}' is not the name of a node", trimmed(rest)));
    node.name = trimmed(rest.substr(equals + 1));
    log_.ranks = std::max(log_.ranks, node.rank + 1);
    is_issue ? issue(std::move(node), tick) : finish(node, tick);
  }

  // A node may be issued again only after it has finished.
  void issue(IssuedNode node, std::uint64_t tick) {
    node.issued = tick;
    const std::pair key(node.rank, node.id);
    if (!open_.emplace(key, std::move(node)).second)
      fail(fmt::format("node {} of rank {} is issued again before it has finished", key.second, key.first));
  }

  void finish(const IssuedNode& node, std::uint64_t tick) {
    const auto found = open_.find({node.rank, node.id});
    if (found == open_.end())
      fail(fmt::format("node {} of rank {} finishes without having been issued", node.id, node.rank));
    IssuedNode done = std::move(found->second);
    open_.erase(found);
    if (tick < done.issued)
      fail(fmt::format("node {} of rank {} finishes at {}, before it was issued at {}", node.id, node.rank,
                       tick, done.issued));
    done.finished = tick;
    log_.nodes.push_back(std::move(done));
  }

  const std::string& name_;
  std::size_t line_ = 0;
  std::map<std::pair<std::int32_t, std::uint64_t>, IssuedNode> open_;
  IssueLog log_;
};

}  // namespace

bool is_issue_log(std::string_view beginning) {
  while (!beginning.empty()) {
    const std::size_t end = std::min(beginning.find('\n'), beginning.size());
    if (event_of(beginning.substr(0, end)).find('=') != beginning.npos) return true;
    beginning.remove_prefix(std::min(end + 1, beginning.size()));
  }
  return false;
}

IssueLog parse_issue_log(std::string_view text, const std::string& name) {
  return LogParser(name).run(text);
}

}  // namespace armilla
