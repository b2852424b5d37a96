#include "trace/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "base/string_table.h"
#include "base/units_text.h"
#include "trace/graph/trace_groups.h"
#include "trace/graph/trace_nodes.h"
#include "trace/graph/trace_order.h"

namespace armilla {
namespace {

using Severity = TraceProblem::Severity;

constexpr std::size_t kShownPerTrace = 8;  // of one kind
constexpr std::size_t kShownInTotal = 100;
constexpr std::size_t kShownOfCircle = 8;

std::string exact_bytes(Bytes bytes) {
  return counted(bytes.value, "byte");
}

}  // namespace

class TraceChecker::Impl {
 public:
  explicit Impl(const TraceCheckOptions& options)
      : options_(options), groups_(options.dimension_sizes, options.as_astra) {}

  void add(std::span<const std::int32_t> ranks, const ChakraTrace& trace) {
    if (ranks.empty()) return;
    if (trace.size() == 0) report(Severity::warning, trace.source, "has no nodes");
    const NodeOrder order(trace);
    const bool waits_backwards = check_dependences(trace, order);
    // Collectives are compared in the order in which they would be issued, so circles have to be known first:
    // what is in one is never issued.
    std::optional<std::vector<std::uint32_t>> issued;
    if (!waits_backwards) issued = issue_order(trace, order);
    if (issued && issued->size() < order.size()) report_circle(trace, order, *issued);
    check_memory(trace);
    if (options_.replay_only) return;
    try {
      RankGroups own{ranks[0], communicators_of(trace, options_.communicators, groups_.ranks()), {}};
      add_calls(ranks, trace, order, issued, own);
    } catch (const Error& error) {
      report(Severity::error, error.where, error.message, error.hint);
    }
    add_transfers(ranks, trace, order);
  }

  std::vector<TraceProblem> finish() {
    match_transfers();
    match_calls();
    // Errors before warnings, otherwise in the order of traces.
    std::stable_sort(problems_.begin(), problems_.end(),
                     [](const TraceProblem& a, const TraceProblem& b) { return a.severity > b.severity; });
    if (problems_.size() > kShownInTotal) {
      const std::size_t more = problems_.size() - kShownInTotal;
      const Severity severity = problems_[kShownInTotal].severity;
      problems_.resize(kShownInTotal);
      problems_.push_back({severity, "", typed_count(more, "more problem"), ""});
    }
    return std::move(problems_);
  }

 private:
  // What is needed of a node for messages, once its trace is gone.
  struct NodeName {
    std::uint32_t source = 0;  // into names_
    std::uint32_t name = 0;    // into names_
    std::uint64_t id = 0;
  };
  struct Message {
    std::uint32_t tag = 0;
    std::int64_t bytes = 0;
    NodeName node;
  };
  struct Line {  // from one rank to another
    std::vector<Message> sends, receives;
  };
  struct Call {
    ChakraCollective kind = ChakraCollective::all_reduce;
    std::int64_t bytes = 0;  // comm_size
    std::int32_t root = 0;
    NodeName node;
    bool same(const Call& other) const {
      // comm_size is as the file says it; for a broadcast or gather the root is a part of the agreement, too.
      return kind == other.kind && bytes == other.bytes && root == other.root;
    }
  };
  struct Calls {  // of one trace in one group
    std::vector<Call> by_id, by_issue;
  };

  void report(Severity severity, std::string where, std::string message, std::string hint = {}) {
    problems_.push_back({severity, std::move(where), std::move(message), std::move(hint)});
  }

  NodeName named(const ChakraTrace& trace, std::size_t node, std::uint32_t source) {
    return {source, names_.add(trace.name_of_node(node)), trace.id[node]};
  }
  std::string shown(const NodeName& node) const {
    return fmt::format("{}: node {} '{}'", names_.at(node.source), node.id, names_.at(node.name));
  }

  // Says no after kShownPerTrace times, and once that there were more.
  class Flood {
   public:
    Flood(Impl& checker, const ChakraTrace& trace, std::string what)
        : checker_(checker), trace_(trace), what_(std::move(what)) {}
    // One line for the rest, when the kind of problem is done with: a broken trace has thousands of one kind.
    ~Flood() {
      if (count_ > kShownPerTrace)
        checker_.report(Severity::error, trace_.source,
                        fmt::format("{} more {}", count_ - kShownPerTrace, what_));
    }
    Flood(const Flood&) = delete;
    Flood& operator=(const Flood&) = delete;
    bool shows() { return ++count_ <= kShownPerTrace; }

   private:
    Impl& checker_;
    const ChakraTrace& trace_;
    std::string what_;
    std::size_t count_ = 0;
  };

  // Returns whether every node waits for nodes of smaller ids only: then that is the order in which they are
  // issued.
  bool check_dependences(const ChakraTrace& trace, const NodeOrder& order) {
    {
      Flood flood(*this, trace, "nodes whose id another node has");
      for (const std::uint32_t place : order.repeated()) {
        if (flood.shows())
          report(Severity::error, location(trace, order.node_at(place)), "another node has the same id");
      }
    }
    Flood flood(*this, trace, "impossible dependences");
    bool backwards = true;
    for (std::size_t node = 0; node < trace.size(); ++node) {
      const std::size_t own = order.is_order_of_file() ? node : order.place_of(trace.id[node]);
      const auto check = [&](std::uint64_t id) {
        const bool itself = id == trace.id[node];
        const std::uint32_t place = order.place_of(id);
        if (!itself && place < order.size()) {
          backwards = backwards && place < own;
          return;
        }
        if (!flood.shows()) return;
        report(Severity::error, location(trace, node),
               itself ? "waits for itself" : fmt::format("waits for node {}, which does not exist", id),
               itself ? "" : "the file may have been cut short");
      };
      for (const std::uint64_t id : trace.data_dependences(node)) check(id);
      for (const std::uint64_t id : trace.control_dependences(node)) check(id);
    }
    return backwards;
  }

  void report_circle(const ChakraTrace& trace, const NodeOrder& order,
                     std::span<const std::uint32_t> issued) {
    const std::vector<std::uint32_t> circle = find_circle(trace, order, issued);
    std::string text = "its nodes wait for each other in a circle: ";
    for (std::size_t i = 0; i < std::min(circle.size(), kShownOfCircle); ++i) {
      const std::size_t node = order.node_at(circle[i]);
      text += fmt::format("{} '{}' waits for ", trace.id[node], trace.name_of_node(node));
    }
    if (circle.size() > kShownOfCircle)
      text += fmt::format("{} more, which wait for ", circle.size() - kShownOfCircle);
    text += fmt::format("{}", trace.id[order.node_at(circle.front())]);
    report(Severity::error, trace.source, text);
  }

  // Runs `parse` for a node and keeps what it throws.
  // One impossible node does not keep the others from being checked.
  template <class Parse>
  void attempt(Flood& flood, Parse parse) {
    try {
      parse();
    } catch (const Error& error) {
      if (flood.shows()) report(Severity::error, error.where, error.message, error.hint);
    }
  }

  void check_memory(const ChakraTrace& trace) {
    if (options_.replay_only) return;
    Flood flood(*this, trace, "impossible memory accesses");
    for (std::size_t node = 0; node < trace.size(); ++node) {
      if (trace.type[node] == ChakraNodeType::memory_load || trace.type[node] == ChakraNodeType::memory_store)
        attempt(flood, [&] { required_value(trace, node, "tensor_size"); });
    }
  }

  void add_transfers(std::span<const std::int32_t> ranks, const ChakraTrace& trace, const NodeOrder& order) {
    Flood flood(*this, trace, "impossible messages");
    const std::uint32_t source = names_.add(trace.source);
    for (std::uint32_t place = 0; place < order.size(); ++place) {
      const std::size_t node = order.node_at(place);
      const bool sends = trace.type[node] == ChakraNodeType::send;
      if (!sends && trace.type[node] != ChakraNodeType::receive) continue;
      attempt(flood, [&] {
        // A trace may stand for many ranks; messages are those of every one of them.
        for (const std::int32_t rank : ranks) {
          const PointToPoint found = transfer_of_node(trace, node, rank, groups_.ranks(), options_.as_astra);
          const Message message{found.tag, found.bytes.value, named(trace, node, source)};
          if (sends) {
            lines_[{rank, found.peer}].sends.push_back(message);
          } else {
            lines_[{found.peer, rank}].receives.push_back(message);
          }
        }
      });
    }
  }

  void add_calls(std::span<const std::int32_t> ranks, const ChakraTrace& trace, const NodeOrder& order,
                 const std::optional<std::vector<std::uint32_t>>& issued, RankGroups& own) {
    Flood flood(*this, trace, "impossible collectives");
    std::map<std::uint32_t, Calls> found;  // by group
    // Mostly ids and dependences agree on the order; then the second list is not needed.
    const bool in_order = !issued || std::is_sorted(issued->begin(), issued->end());
    const std::uint32_t source = names_.add(trace.source);
    std::map<std::size_t, std::pair<std::uint32_t, Call>> call_of;  // unless in order
    const std::uint32_t nodes = order.size();
    for (std::uint32_t place = 0; place < nodes; ++place) {
      const std::size_t node = order.node_at(place);
      if (trace.type[node] != ChakraNodeType::collective) continue;
      attempt(flood, [&] {
        const TraceCollective parsed = collective_of_node(trace, node, own, groups_);
        // The other ranks of the trace have to be members, too.
        for (const std::int32_t rank : ranks.subspan(1)) {
          RankGroups other{rank, own.communicators, {}};
          if (!groups_.has(parsed.group, rank)) group_of_node(trace, node, other, groups_);
        }
        if (parsed.group == TraceGroups::kNobody) return;
        // ASTRA-sim does not communicate here at all, so there is nothing to agree on.
        if (options_.as_astra && parsed.kind == ChakraCollective::broadcast) return;
        // As the file says it: of an all-gather the shard.
        const bool gathers = parsed.kind == ChakraCollective::all_gather;
        const std::int64_t bytes = parsed.bytes.value / (gathers ? groups_.size(parsed.group) : 1);
        const Call call{parsed.kind, bytes, parsed.root, named(trace, node, source)};
        found[parsed.group].by_id.push_back(call);
        if (!in_order) call_of[place] = {parsed.group, call};
      });
    }
    for (const std::uint32_t place : in_order ? std::span<const std::uint32_t>() : std::span(*issued)) {
      const auto call = call_of.find(place);
      if (call != call_of.end()) found[call->second.first].by_issue.push_back(call->second.second);
    }
    const auto trace_number = static_cast<std::uint32_t>(calls_.size());
    calls_.push_back(std::move(found));
    for (const std::int32_t rank : ranks) trace_of_[rank] = trace_number;
  }

  void match_transfers() {
    for (auto& [ends, line] : lines_) {
      // Tag and size are what ASTRA-sim's back end matches messages by. Both sides sorted, what has no
      // counterpart is the difference of two multisets.
      const auto before = [](const Message& a, const Message& b) {
        return std::tie(a.tag, a.bytes) < std::tie(b.tag, b.bytes);
      };
      std::stable_sort(line.sends.begin(), line.sends.end(), before);
      std::stable_sort(line.receives.begin(), line.receives.end(), before);
      std::vector<Message> sends, receives;
      std::set_difference(line.sends.begin(), line.sends.end(), line.receives.begin(), line.receives.end(),
                          std::back_inserter(sends), before);
      std::set_difference(line.receives.begin(), line.receives.end(), line.sends.begin(), line.sends.end(),
                          std::back_inserter(receives), before);
      explain(ends.first, ends.second, sends, receives);
    }
  }

  // Pairs what is left over as the user may have meant it: same tag, then same size, then anything.
  void explain(std::int32_t source, std::int32_t destination, std::vector<Message>& sends,
               std::vector<Message>& receives) {
    for (const Message& receive : receives) {
      const auto meant = [&](auto condition) { return std::find_if(sends.begin(), sends.end(), condition); };
      auto send = meant([&](const Message& m) { return m.tag == receive.tag; });
      if (send == sends.end()) send = meant([&](const Message& m) { return m.bytes == receive.bytes; });
      if (send == sends.end()) send = sends.begin();
      const std::string waits =
          fmt::format("rank {} waits for {} with tag {} from rank {}, which ", destination,
                      exact_bytes(Bytes(receive.bytes)), receive.tag, source);
      if (send == sends.end()) {
        report(Severity::error, shown(receive.node), waits + "sends no such message");
        continue;
      }
      const std::string sent =
          send->tag == receive.tag ? fmt::format("sends {}", exact_bytes(Bytes(send->bytes)))
          : send->bytes == receive.bytes
              ? fmt::format("sends tag {}", send->tag)
              : fmt::format("sends {} with tag {}", exact_bytes(Bytes(send->bytes)), send->tag);
      report(Severity::error, shown(receive.node), fmt::format("{}{} ({})", waits, sent, shown(send->node)));
      sends.erase(send);
    }
    for (const Message& send : sends)
      report(Severity::warning, shown(send.node),
             fmt::format("rank {} sends {} with tag {} to rank {}, which receives no such message", source,
                         exact_bytes(Bytes(send.bytes)), send.tag, destination));
  }

  void match_calls() {
    static const Calls kNone;
    for (std::uint32_t group = 0; group < groups_.count(); ++group) {
      std::map<std::int32_t, bool> compared;  // by the group's first rank
      // Groups of a grid (involved_dim) are many under one number, each named by its first rank; a
      // communicator is one group.
      for (const auto& [rank, trace] : trace_of_) {
        if (!calls_[trace].contains(group)) continue;
        if (!groups_.is_grid(group) && !compared.empty()) break;
        const std::vector<std::int32_t> members = groups_.members(group, rank);
        if (!compared.try_emplace(members.front(), true).second) continue;
        const Calls& expected = calls_[trace].at(group);
        // A trace that several members share is compared once.
        std::map<std::uint32_t, bool> seen = {{trace, true}};
        for (const std::int32_t member : members) {
          const auto other = trace_of_.find(member);
          if (other == trace_of_.end() || !seen.try_emplace(other->second, true).second) continue;
          const auto found = calls_[other->second].find(group);
          compare({group, rank, member}, expected,
                  found == calls_[other->second].end() ? kNone : found->second);
        }
      }
    }
  }

  struct Pair {
    std::uint32_t group;
    std::int32_t first, second;
  };

  // Agreement in the order of issue is all that matters. If that fails but the ids agree, dependences are to
  // blame, and the run may still work.
  void compare(const Pair& pair, const Calls& expected, const Calls& given) {
    const auto issue = [](const Calls& calls) -> const std::vector<Call>& {
      return calls.by_issue.empty() ? calls.by_id : calls.by_issue;
    };
    const std::size_t by_issue = first_difference(issue(expected), issue(given));
    if (by_issue == SIZE_MAX) return;
    const std::size_t by_id = first_difference(expected.by_id, given.by_id);
    if (by_id == SIZE_MAX) {
      describe(Severity::warning, pair, issue(expected), issue(given), by_issue);
    } else {
      describe(Severity::error, pair, expected.by_id, given.by_id, by_id);
    }
  }

  static std::size_t first_difference(const std::vector<Call>& a, const std::vector<Call>& b) {
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (!a[i].same(b[i])) return i;
    }
    return a.size() == b.size() ? SIZE_MAX : std::min(a.size(), b.size());
  }

  std::string shown(const Call& call) const {
    std::string text{name_of(call.kind)};
    if (call.kind != ChakraCollective::barrier) text += fmt::format(" of {}", exact_bytes(Bytes(call.bytes)));
    return text + (call.root != 0 ? fmt::format(" with root {}", call.root) : "");
  }

  void describe(Severity severity, const Pair& pair, const std::vector<Call>& expected,
                const std::vector<Call>& given, std::size_t at) {
    const std::string among = fmt::format("collective {} among {}", at + 1, groups_.describe(pair.group));
    const bool first_ends = at >= expected.size(), second_ends = at >= given.size();
    if (first_ends || second_ends) {
      const Call& extra = first_ends ? given[at] : expected[at];
      report(severity, shown(extra.node),
             fmt::format("{}: rank {} calls {}, but rank {} calls no more", among,
                         first_ends ? pair.second : pair.first, shown(extra),
                         first_ends ? pair.first : pair.second));
      return;
    }
    report(severity, shown(given[at].node),
           fmt::format("{}: rank {} calls {}, but rank {} calls {} ({})", among, pair.second,
                       shown(given[at]), pair.first, shown(expected[at]), shown(expected[at].node)),
           severity == Severity::warning ? "their ids agree, but dependences put them in another order" : "");
  }

  TraceCheckOptions options_;
  TraceGroups groups_;
  StringTable names_;
  std::vector<TraceProblem> problems_;
  std::map<std::pair<std::int32_t, std::int32_t>, Line> lines_;  // by source and destination
  std::vector<std::map<std::uint32_t, Calls>> calls_;            // per trace, by group
  std::map<std::int32_t, std::uint32_t> trace_of_;               // by rank
};

TraceChecker::TraceChecker(const TraceCheckOptions& options) : impl_(std::make_unique<Impl>(options)) {}
TraceChecker::~TraceChecker() = default;

void TraceChecker::add_ranks(std::span<const std::int32_t> ranks, const ChakraTrace& trace) {
  impl_->add(ranks, trace);
}

std::vector<TraceProblem> TraceChecker::finish() {
  return impl_->finish();
}

// One error with the first few problems: the user sees more than one at a time, and the caller needs one
// exception.
void refuse_problems(const std::vector<TraceProblem>& problems, std::size_t shown) {
  std::vector<const TraceProblem*> errors;
  for (const TraceProblem& problem : problems) {
    if (problem.severity == Severity::error) errors.push_back(&problem);
  }
  if (errors.empty()) return;
  std::string message = errors[0]->message;
  for (std::size_t i = 1; i < std::min(errors.size(), shown); ++i)
    message += fmt::format("\n  and {}{}{}", errors[i]->where, errors[i]->where.empty() ? "" : ": ",
                           errors[i]->message);
  if (errors.size() > shown) message += "\n  and " + typed_count(errors.size() - shown, "more problem");
  throw Error(errors[0]->where, message, errors[0]->hint);
}

}  // namespace armilla
