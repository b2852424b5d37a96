#include "sim/engine/custom_runner.h"

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

CustomRunner::CustomRunner(const RunContext& context, Messenger& messages)
    : context_(context),
      messages_(messages),
      target_(context.queue.add_handler(*this)),
      waiting_(static_cast<std::size_t>(context.order.in_rounds() ? context.classes.simulated() : 0)) {}

const CustomRunner::Prepared& CustomRunner::prepared(const CustomCollective& collective) {
  const auto [entry, fresh] = prepared_.try_emplace(&collective);
  Prepared& made = entry->second;
  if (!fresh) return made;
  for (const CustomProgram& program : collective.members) {
    made.offset.push_back(static_cast<std::uint32_t>(made.dependences.size()));
    made.dependents.emplace_back(program.first_dependence, program.dependence);
    for (std::uint32_t node = 0; node < program.nodes.size(); ++node)
      made.dependences.push_back(static_cast<std::uint32_t>(program.dependences(node).size()));
  }
  match(collective, made);
  return made;
}

// Where source, destination and tag tell every send and every receive from all others.
void CustomRunner::match(const CustomCollective& collective, Prepared& made) {
  using Key = std::tuple<std::int32_t, std::int32_t, std::uint32_t>;  // source, destination, tag
  std::map<Key, std::uint32_t> receives;
  const auto members = static_cast<std::int32_t>(collective.members.size());
  for (std::int32_t m = 0; m < members; ++m) {
    const std::vector<CustomNode>& nodes = collective.members[static_cast<std::size_t>(m)].nodes;
    for (std::uint32_t n = 0; n < nodes.size(); ++n) {
      if (nodes[n].kind != CustomNode::Kind::receive) continue;
      // Two receives that look alike: which send goes to which is known only as they are posted, and the
      // messenger matches them then.
      if (!receives.try_emplace({nodes[n].peer, m, nodes[n].tag}, n).second) return;
    }
  }
  // From here on every send knows its receive, and no message has to be looked up by its channel.
  made.receive.assign(made.dependences.size(), kNone);
  for (std::int32_t m = 0; m < members; ++m) {
    const std::vector<CustomNode>& nodes = collective.members[static_cast<std::size_t>(m)].nodes;
    for (std::uint32_t n = 0; n < nodes.size(); ++n) {
      const CustomNode& node = nodes[n];
      if (node.kind != CustomNode::Kind::send) continue;
      const auto found = receives.find({m, node.peer, node.tag});
      if (found == receives.end()) return;
      const CustomNode& other = collective.members[static_cast<std::size_t>(node.peer)].nodes[found->second];
      // Sizes must agree as well, as matching goes by them, too.
      if (other.bytes != node.bytes || other.share != node.share || other.shares != node.shares) return;
      made.receive[made.offset[static_cast<std::size_t>(m)] + n] = found->second;
      receives.erase(found);
    }
  }
  made.is_matched = receives.empty();
}

std::uint32_t CustomRunner::open(const CustomCollective& collective, const std::vector<std::int32_t>& ranks,
                                 Bytes bytes) {
  const std::uint32_t id = instances_.take();
  Instance& instance = instances_[id];
  instance.collective = &collective;
  instance.prepared = &prepared(collective);
  instance.ranks = &ranks;
  instance.bytes = bytes;
  instance.members.assign(ranks.size(), {});
  instance.waiting_for = instance.prepared->dependences;
  if (delivers(instance)) instance.receives.assign(instance.waiting_for.size(), Receive::idle);
  instance.members_left = static_cast<std::int64_t>(ranks.size());
  return id;
}

void CustomRunner::start(std::uint32_t id, std::int32_t m, Notice done) {
  Instance& instance = instances_[id];
  const CustomProgram& program = instance.collective->members[static_cast<std::size_t>(m)];
  Member& member = instance.members[static_cast<std::size_t>(m)];
  const auto nodes = static_cast<std::uint32_t>(program.nodes.size());
  member.left = nodes;
  // Instances go by when they began: their numbers are used again.
  member.started = starts_++;
  member.done = done;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    if (program.dependences(node).empty()) issue(id, m, node);
  }
  if (nodes > 0) return;
  // Nobody is told from within its own call.
  const std::int32_t rank = (*instance.ranks)[static_cast<std::size_t>(m)];
  context_.order.schedule(rank, context_.queue.now(), target_, pack(id, m, kBegin));
}

void CustomRunner::make_ready(std::uint32_t id, std::int32_t m, std::uint32_t n) {
  if (!context_.order.in_rounds()) {
    issue(id, m, n);
    return;
  }
  const std::int32_t rank =
      context_.classes.simulated_rank((*instances_[id].ranks)[static_cast<std::size_t>(m)]);
  const std::uint64_t started = instances_[id].members[static_cast<std::size_t>(m)].started;
  waiting_[static_cast<std::size_t>(rank)].push_back({started, id, n, m});
  context_.order.mark(rank, TurnPart::custom);
}

void CustomRunner::take_turn(std::int32_t rank) {
  std::vector<Ready>& ready = waiting_[static_cast<std::size_t>(rank)];
  // What became ready in a round acts in an order that does not depend on the order of its events.
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
    context_.order.schedule(rank, later(context_.queue.now(), node.duration), target_, argument);
    return;
  }
  const std::int32_t peer = ranks[static_cast<std::size_t>(node.peer)];
  const Bytes bytes = bytes_of(node, instance.bytes);
  const bool sends = node.kind == CustomNode::Kind::send;
  if (delivers(instance)) {
    if (sends) {
      messages_.send_unmatched(rank, peer, bytes, {target_, argument});
      return;
    }
    Receive& state = instances_[id].receives[instance.prepared->offset[static_cast<std::size_t>(m)] + n];
    // A message that had come before its receive was posted.
    if (state == Receive::arrived) context_.order.schedule(rank, context_.queue.now(), target_, argument);
    state = Receive::posted;
    return;
  }
  if (sends) {
    messages_.send({id + 1, rank, peer, node.tag, bytes}, {target_, argument});
  } else {
    messages_.receive({id + 1, peer, rank, node.tag, bytes}, {target_, argument});
  }
}

// A send is done, and so is its receive if that was posted.
void CustomRunner::message_arrived(std::uint32_t id, std::int32_t m, std::uint32_t n) {
  Instance& instance = instances_[id];
  const Prepared& made = *instance.prepared;
  const std::int32_t peer = instance.collective->members[static_cast<std::size_t>(m)].nodes[n].peer;
  const std::uint32_t receive = made.receive[made.offset[static_cast<std::size_t>(m)] + n];
  Receive& state = instance.receives[made.offset[static_cast<std::size_t>(peer)] + receive];
  const bool posted = state == Receive::posted;
  if (!posted) state = Receive::arrived;
  node_done(id, m, n);
  if (posted) node_done(id, peer, receive);
}

void CustomRunner::handle(std::uint64_t argument) {
  const auto n = static_cast<std::uint32_t>(argument & kBegin);
  const auto m = static_cast<std::int32_t>(argument >> kNodeBits & ((1U << kMemberBits) - 1));
  const auto id = static_cast<std::uint32_t>(argument >> (kNodeBits + kMemberBits));
  const Instance& instance = instances_[id];
  if (n != kBegin && delivers(instance) &&
      instance.prepared->receive[instance.prepared->offset[static_cast<std::size_t>(m)] + n] != kNone) {
    message_arrived(id, m, n);
  } else {
    node_done(id, m, n);
  }
}

void CustomRunner::node_done(std::uint32_t id, std::int32_t m, std::uint32_t n) {
  if (n != kBegin) {
    const Prepared& made = *instances_[id].prepared;
    const std::uint32_t first = made.offset[static_cast<std::size_t>(m)];
    --instances_[id].members[static_cast<std::size_t>(m)].left;
    for (const std::uint32_t successor : made.dependents[static_cast<std::size_t>(m)].of(n)) {
      if (--instances_[id].waiting_for[first + successor] == 0) make_ready(id, m, successor);
    }
  }
  const Member& member = instances_[id].members[static_cast<std::size_t>(m)];
  if (member.left > 0) return;
  // Released before anybody is told: they may open another instance in its place.
  const Notice done = member.done;
  if (--instances_[id].members_left == 0) instances_.release(id);
  context_.queue.handler(done.target).handle(done.argument);
}

}  // namespace armilla
