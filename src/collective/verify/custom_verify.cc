#include "collective/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <tuple>
#include <vector>

#include "base/checked.h"
#include "base/units_text.h"
#include "collective/verify/members.h"
#include "collective/verify/violation.h"

namespace armilla {
namespace {

using Index = std::uint32_t;  // of a node among all members
constexpr Index kNone = UINT32_MAX;

class CustomVerifier {
 public:
  CustomVerifier(const CustomCollective& collective, const CustomCall& call)
      : collective_(collective), call_(call) {}

  void run() {
    check_form();
    match();
    execute();
    check_knowledge();
    if (call_.bytes) check_volumes(*call_.bytes);
  }

 private:
  const CustomProgram& program(std::int32_t member) const {
    return collective_.members[static_cast<std::size_t>(member)];
  }
  std::int32_t member_of(Index node) const {
    return static_cast<std::int32_t>(std::upper_bound(first_.begin(), first_.end(), node) - first_.begin()) -
           1;
  }
  const CustomNode& at(Index node) const {
    const std::int32_t member = member_of(node);
    return program(member).nodes[node - first_[static_cast<std::size_t>(member)]];
  }
  std::string shown(std::int32_t member, std::uint32_t node) const {
    const std::vector<std::string>& labels = program(member).labels;
    return fmt::format("member {}, {}", member,
                       node < labels.size() ? labels[node] : fmt::format("node {}", node));
  }
  std::string shown(Index node) const {
    const std::int32_t member = member_of(node);
    return shown(member, node - first_[static_cast<std::size_t>(member)]);
  }
  Bytes size_of(const CustomNode& node) const { return bytes_of(node, call_.bytes.value_or(Bytes(0))); }

  void check_form();
  std::vector<std::uint32_t> issue_order(std::int32_t member) const;
  void match();
  void execute();
  [[noreturn]] void report_circle(const std::vector<std::uint32_t>& missing) const;
  void check_knowledge() const;
  void check_volumes(Bytes bytes) const;

  const CustomCollective& collective_;
  const CustomCall& call_;
  std::int32_t n_ = 0;
  std::vector<Index> first_;        // of each member's nodes, and the end
  std::vector<Index> partner_;      // of a send its receive, of a receive its send
  std::vector<Members> knowledge_;  // per member, at the end
};

void CustomVerifier::check_form() {
  n_ = static_cast<std::int32_t>(collective_.members.size());
  if (n_ < 1) violation("the schedule has no members");
  const bool rooted = call_.kind == CollectiveKind::broadcast || call_.kind == CollectiveKind::reduce;
  if (rooted && (call_.root < 0 || call_.root >= n_))
    violation("the root {} is not a member of {}", call_.root, n_);
  std::size_t total = 0;
  for (std::int32_t member = 0; member < n_; ++member) {
    first_.push_back(static_cast<Index>(total));
    const CustomProgram& own = program(member);
    total += own.nodes.size();
    const std::vector<std::uint32_t>& first = own.first_dependence;
    const std::size_t listed = first.empty() ? 0 : first.size() - 1;
    if (first.empty() || listed != own.nodes.size())
      violation("member {} has dependences for {} of {} nodes", member, listed, own.nodes.size());
    if (first.front() != 0 || first.back() != own.dependence.size() || !std::ranges::is_sorted(first))
      violation("member {}: its lists of dependences do not follow each other", member);
    for (std::uint32_t i = 0; i < own.nodes.size(); ++i) {
      const CustomNode& node = own.nodes[i];
      for (const std::uint32_t on : own.dependences(i))
        if (on >= own.nodes.size()) violation("{}: depends on a node that does not exist", shown(member, i));
      if (node.kind == CustomNode::Kind::compute) continue;
      if (node.peer < 0 || node.peer >= n_)
        violation("{}: its peer {} is not a member of {}", shown(member, i), node.peer, n_);
      if (node.peer == member) violation("{}: its peer is the member itself", shown(member, i));
    }
  }
  if (total >= kNone) violation("the schedule has {} nodes", total);
  first_.push_back(static_cast<Index>(total));
}

// The order in which a member that never has to wait for a message issues its nodes: of those whose
// dependences are done the first of the file.
std::vector<std::uint32_t> CustomVerifier::issue_order(std::int32_t member) const {
  const CustomProgram& own = program(member);
  const auto count = static_cast<std::uint32_t>(own.nodes.size());
  std::vector<std::uint32_t> missing(count), order;
  std::vector<std::vector<std::uint32_t>> dependents(count);
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t i = 0; i < count; ++i) {
    for (const std::uint32_t on : own.dependences(i)) dependents[on].push_back(i);
    missing[i] = static_cast<std::uint32_t>(own.dependences(i).size());
    if (missing[i] == 0) ready.push(i);
  }
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (const std::uint32_t next : dependents[order.back()])
      if (--missing[next] == 0) ready.push(next);
  }
  if (order.size() != count) {
    const auto stuck = std::find_if(missing.begin(), missing.end(), [](std::uint32_t m) { return m != 0; });
    violation("{}: waits for itself through its dependences",
              shown(member, static_cast<std::uint32_t>(stuck - missing.begin())));
  }
  return order;
}

void CustomVerifier::match() {
  struct Queue {
    std::vector<Index> sends, receives;
  };
  std::map<std::tuple<std::int32_t, std::int32_t, std::uint32_t>, Queue> queues;
  for (std::int32_t member = 0; member < n_; ++member) {
    // In the order of issue, as the k-th send meets the k-th receive: by their places in the file they would
    // be other pairs.
    for (const std::uint32_t i : issue_order(member)) {
      const CustomNode& node = program(member).nodes[i];
      const Index index = first_[static_cast<std::size_t>(member)] + i;
      if (node.kind == CustomNode::Kind::send) queues[{member, node.peer, node.tag}].sends.push_back(index);
      if (node.kind == CustomNode::Kind::receive)
        queues[{node.peer, member, node.tag}].receives.push_back(index);
    }
  }
  partner_.assign(first_.back(), kNone);
  for (const auto& [key, queue] : queues) {
    const auto [source, destination, tag] = key;
    for (std::size_t k = 0; k < std::max(queue.sends.size(), queue.receives.size()); ++k) {
      if (k >= queue.receives.size())
        violation("{}: sends message {} with tag {} to member {}, which receives {} of them",
                  shown(queue.sends[k]), k + 1, tag, destination, queue.receives.size());
      if (k >= queue.sends.size())
        violation("{}: waits for message {} with tag {} from member {}, which sends {} of them",
                  shown(queue.receives[k]), k + 1, tag, source, queue.sends.size());
      const Index send = queue.sends[k], receive = queue.receives[k];
      const CustomNode &sent = at(send), &awaited = at(receive);
      if (size_of(sent) != size_of(awaited) ||
          // Shares of a call whose size is not known are equal if their fractions are.
          std::int64_t{sent.share} * awaited.shares != std::int64_t{awaited.share} * sent.shares)
        violation("{}: receives {}, but {} sends {}", shown(receive),
                  typed_count(size_of(awaited).value, "byte"), shown(send), size_of(sent).value);
      partner_[send] = receive;
      partner_[receive] = send;
    }
  }
}

// Plays all nodes in some order that dependences and messages allow. What a node knows is what it depends on
// knows, and a receive what its send knows; a node's set is dropped once all that need it have it.
void CustomVerifier::execute() {
  const Index count = first_.back();
  std::vector<std::uint32_t> missing(count), users(count);
  std::vector<std::vector<Index>> dependents(count);
  std::vector<Index> ready;
  for (std::int32_t member = 0; member < n_; ++member) {
    const Index base = first_[static_cast<std::size_t>(member)];
    for (std::uint32_t i = 0; i < program(member).nodes.size(); ++i) {
      for (const std::uint32_t on : program(member).dependences(i)) dependents[base + on].push_back(base + i);
      missing[base + i] = static_cast<std::uint32_t>(program(member).dependences(i).size());
      if (program(member).nodes[i].kind == CustomNode::Kind::receive) {
        dependents[partner_[base + i]].push_back(base + i);
        ++missing[base + i];
      }
      if (missing[base + i] == 0) ready.push_back(base + i);
    }
    knowledge_.push_back(Members::only(n_, member));
  }
  std::vector<Members> known(count);
  std::vector<bool> touched(count);
  Index done = 0;
  while (!ready.empty()) {
    const Index node = ready.back();
    ready.pop_back();
    ++done;
    const std::int32_t member = member_of(node);
    if (!touched[node]) known[node] = Members(n_);
    known[node].add(member);
    knowledge_[static_cast<std::size_t>(member)].add(known[node]);
    for (const Index next : dependents[node]) {
      if (!touched[next]) known[next] = Members(n_);
      touched[next] = true;
      known[next].add(known[node]);
      if (--missing[next] == 0) ready.push_back(next);
    }
    // Nobody needs it any more: the sets of all nodes at once would be most of the memory.
    known[node] = Members();
  }
  if (done != count) report_circle(missing);
}

void CustomVerifier::report_circle(const std::vector<std::uint32_t>& missing) const {
  const auto waits_for = [&](Index node) {
    const std::int32_t member = member_of(node);
    const Index base = first_[static_cast<std::size_t>(member)];
    for (const std::uint32_t on : program(member).dependences(node - base))
      if (missing[base + on] != 0) return base + on;
    return partner_[node];
  };
  Index node = 0;
  while (missing[node] == 0) ++node;
  std::vector<bool> visited(missing.size());
  for (; !visited[node]; node = waits_for(node)) visited[node] = true;
  // From here on the way repeats: what led to the circle is not part of it.
  std::string text = shown(node);
  const Index start = node;
  do {
    node = waits_for(node);
    text += " waits for " + shown(node);
    if (node != start) text += ", which";
  } while (node != start);
  violation("never ends: {}", text);
}

void CustomVerifier::check_knowledge() const {
  const auto demand = [&](std::int32_t member, std::int32_t of) {
    if (!knowledge_[static_cast<std::size_t>(member)].has(of))
      violation("member {} ends without having heard of member {}", member, of);
  };
  for (std::int32_t member = 0; member < n_; ++member) {
    if (call_.kind == CollectiveKind::broadcast) {
      demand(member, call_.root);
    } else if (call_.kind != CollectiveKind::reduce || member == call_.root) {
      for (std::int32_t other = 0; other < n_; ++other) demand(member, other);
    }
  }
}

void CustomVerifier::check_volumes(Bytes bytes) const {
  struct Bound {
    std::int64_t send = 0, receive = 0;
  };
  // Rounded in favour of the schedule, since parts of a member may differ by a byte.
  const std::int64_t all = bytes.value, others = all - ceil_divide(all, n_);
  const auto bound = [&](std::int32_t member) -> Bound {
    const bool is_root = member == call_.root;
    switch (call_.kind) {
      case CollectiveKind::all_reduce:
        return {all, all};
      case CollectiveKind::reduce_scatter:
        return {others, all / n_};
      case CollectiveKind::all_gather:
        return {all / n_, others};
      case CollectiveKind::all_to_all:
        return {others, others};
      case CollectiveKind::broadcast:
        return is_root ? Bound{all, 0} : Bound{0, all};
      case CollectiveKind::reduce:
        return is_root ? Bound{0, all} : Bound{all, 0};
      case CollectiveKind::barrier:
        break;
    }
    return {};
  };
  if (n_ < 2) return;
  Bytes total;
  for (std::int32_t member = 0; member < n_; ++member) {
    Bytes sent, received;
    for (const CustomNode& node : program(member).nodes) {
      if (node.kind == CustomNode::Kind::send) sent = saturating_add(sent, size_of(node));
      if (node.kind == CustomNode::Kind::receive) received = saturating_add(received, size_of(node));
    }
    const Bound least = bound(member);
    if (sent.value < least.send)
      violation("member {} sends {}; {} of {} among {} takes at least {}", member,
                typed_count(sent.value, "byte"), name_of(call_.kind), typed_count(all, "byte"), n_,
                least.send);
    if (received.value < least.receive)
      violation("member {} receives {}; {} of {} among {} takes at least {}", member,
                typed_count(received.value, "byte"), name_of(call_.kind), typed_count(all, "byte"), n_,
                least.receive);
    total = saturating_add(total, sent);
  }
  // Combining takes n-1 messages per byte, and so does spreading the result.
  if (call_.kind == CollectiveKind::all_reduce && total.value / (2 * (n_ - std::int64_t{1})) < all)
    violation("all members send {} bytes; all-reduce of {} bytes among {} takes at least {} times as many",
              total.value, all, n_, 2 * (n_ - std::int64_t{1}));
}

}  // namespace

std::string verify_custom(const CustomCollective& collective, const CustomCall& call) {
  return violation_of(CustomVerifier(collective, call));
}

}  // namespace armilla
