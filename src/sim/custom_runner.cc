#include "sim/custom_runner.h"

#include <algorithm>
#include <tuple>

namespace armilla {
namespace {

// An event's argument: 20 bits of instance, 20 of member, 24 of node; the highest node means "just begun".
constexpr std::uint32_t kNodeBits = 24, kMemberBits = 20;
constexpr std::uint32_t kBegin = (1U << kNodeBits) - 1;

std::uint64_t pack(std::uint32_t instance, std::int32_t member, std::uint32_t node) {
  return (std::uint64_t{instance} << kMemberBits | static_cast<std::uint32_t>(member)) << kNodeBits | node;
}

}  // namespace

CustomRunner::CustomRunner(EventQueue& queue, RankAgenda* agenda, Messenger& messages)
    : queue_(queue), agenda_(agenda), messages_(messages), target_(queue.add_handler(*this)) {}

const std::vector<CustomRunner::Successors>& CustomRunner::successors_of(const CustomCollective& collective) {
  const auto [entry, fresh] = successors_.try_emplace(&collective);
  if (!fresh) return entry->second;
  for (const CustomProgram& program : collective.members) {
    Successors& successors = entry->second.emplace_back();
    successors.first.assign(program.nodes.size() + 1, 0);
    for (const std::uint32_t node : program.dependence) ++successors.first[node + std::size_t{1}];
    for (std::size_t i = 1; i < successors.first.size(); ++i) successors.first[i] += successors.first[i - 1];
    successors.node.resize(program.dependence.size());
    std::vector<std::uint32_t> next(successors.first.begin(), successors.first.end() - 1);
    for (std::uint32_t node = 0; node < program.nodes.size(); ++node) {
      for (const std::uint32_t dependence : program.dependences(node))
        successors.node[next[dependence]++] = node;
    }
  }
  return entry->second;
}

std::uint32_t CustomRunner::open(const CustomCollective& collective, const std::vector<std::int32_t>& ranks,
                                 Bytes bytes) {
  Instance instance{&collective, &successors_of(collective),        &ranks,
                    bytes,       std::vector<Member>(ranks.size()), static_cast<std::int64_t>(ranks.size())};
  if (free_.empty()) {
    instances_.push_back(std::move(instance));
    return static_cast<std::uint32_t>(instances_.size() - 1);
  }
  const std::uint32_t id = free_.back();
  free_.pop_back();
  instances_[id] = std::move(instance);
  return id;
}

void CustomRunner::schedule(std::int32_t rank, Time time, std::uint64_t argument) {
  if (agenda_) {
    agenda_->schedule(rank, time, target_, argument);
  } else {
    queue_.schedule(time, target_, argument);
  }
}

void CustomRunner::start(std::uint32_t id, std::int32_t m, std::uint64_t argument) {
  Instance& instance = instances_[id];
  const CustomProgram& program = instance.collective->members[static_cast<std::size_t>(m)];
  Member& member = instance.members[static_cast<std::size_t>(m)];
  const auto nodes = static_cast<std::uint32_t>(program.nodes.size());
  member.left = nodes;
  member.started = starts_++;
  member.argument = argument;
  member.waiting_for.resize(nodes);
  for (std::uint32_t node = 0; node < nodes; ++node)
    member.waiting_for[node] = static_cast<std::uint32_t>(program.dependences(node).size());
  for (std::uint32_t node = 0; node < nodes; ++node) {
    if (program.dependences(node).empty()) issue(id, m, node);
  }
  if (nodes == 0) schedule((*instance.ranks)[static_cast<std::size_t>(m)], queue_.now(), pack(id, m, kBegin));
}

void CustomRunner::make_ready(std::uint32_t id, std::int32_t m, std::uint32_t n) {
  if (turns_ == nullptr) {
    issue(id, m, n);
    return;
  }
  const std::int32_t rank = classes_->simulated_rank((*instances_[id].ranks)[static_cast<std::size_t>(m)]);
  const std::uint64_t started = instances_[id].members[static_cast<std::size_t>(m)].started;
  waiting_[static_cast<std::size_t>(rank)].push_back({started, id, n, m});
  turns_->mark(rank);
}

void CustomRunner::take_turn(std::int32_t rank) {
  std::vector<Ready>& ready = waiting_[static_cast<std::size_t>(rank)];
  std::sort(ready.begin(), ready.end(), [](const Ready& a, const Ready& b) {
    return std::tie(a.started, a.node) < std::tie(b.started, b.node);
  });
  for (const Ready& node : ready) issue(node.instance, node.member, node.node);
  ready.clear();
}

void CustomRunner::issue(std::uint32_t id, std::int32_t m, std::uint32_t n) {
  const Instance& instance = instances_[id];
  const std::vector<std::int32_t>& ranks = *instance.ranks;
  const CustomNode& node = instance.collective->members[static_cast<std::size_t>(m)].nodes[n];
  const std::int32_t rank = ranks[static_cast<std::size_t>(m)];
  const std::uint64_t argument = pack(id, m, n);
  if (node.kind == CustomNode::Kind::compute) {
    schedule(rank, later(queue_.now(), node.duration), argument);
    return;
  }
  const std::int32_t peer = ranks[static_cast<std::size_t>(node.peer)];
  if (node.kind == CustomNode::Kind::send) {
    messages_.send({id + 1, rank, peer, node.tag, bytes_of(node, instance.bytes)}, {target_, argument});
  } else {
    messages_.receive({id + 1, peer, rank, node.tag, bytes_of(node, instance.bytes)}, {target_, argument});
  }
}

void CustomRunner::handle(std::uint64_t argument) {
  const auto n = static_cast<std::uint32_t>(argument & kBegin);
  const auto m = static_cast<std::int32_t>(argument >> kNodeBits & ((1U << kMemberBits) - 1));
  const auto id = static_cast<std::uint32_t>(argument >> (kNodeBits + kMemberBits));
  const Successors& successors = (*instances_[id].successors)[static_cast<std::size_t>(m)];
  Member& member = instances_[id].members[static_cast<std::size_t>(m)];
  if (n != kBegin) {
    --member.left;
    for (std::uint32_t i = successors.first[n]; i < successors.first[n + std::size_t{1}]; ++i) {
      const std::uint32_t successor = successors.node[i];
      if (--member.waiting_for[successor] == 0) make_ready(id, m, successor);
    }
  }
  if (member.left > 0) return;
  const std::uint64_t finished = member.argument;
  member = {};
  if (--instances_[id].members_left == 0) free_.push_back(id);
  client_->custom_finished(finished);
}

}  // namespace armilla
