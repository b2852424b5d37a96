#include "sim/astra/astra_schedule.h"

#include <algorithm>
#include <bit>

namespace armilla {
namespace {

void add_step(AstraRole& role, const AstraStep& step, const std::vector<AstraTransfer>& sends,
              const std::vector<AstraTransfer>& receives) {
  AstraStep& added = role.steps.emplace_back(step);
  std::vector<AstraTransfer>& all = role.transfers;
  added.first_send = static_cast<std::uint32_t>(all.size());
  all.insert(all.end(), sends.begin(), sends.end());
  added.first_receive = static_cast<std::uint32_t>(all.size());
  all.insert(all.end(), receives.begin(), receives.end());
  added.end_receive = static_cast<std::uint32_t>(all.size());
}

// Packets alternate between a window of them that goes to the endpoint and `back` that come from there; every
// second such run of an all-reduce is not reduced any more.
void add_runs(AstraRole& role, CollectiveKind kind, std::int32_t window, std::int32_t back) {
  for (const bool first : {true, false}) {
    const bool reduced =
        kind == CollectiveKind::reduce_scatter || (kind == CollectiveKind::all_reduce && first);
    const std::int32_t kept = std::min(window, back);
    role.crossings.push_back({.times = window, .to_endpoint = true});
    if (back > kept)
      role.crossings.push_back({.times = back - kept, .is_reduced = reduced, .returned = true});
    if (kept > 0) role.crossings.push_back({.times = kept, .is_reduced = reduced});
  }
  role.at_begin = role.crossings_at_end = window;
}

// A node of the in-order binary tree over positions 0 .. n-1 (BinaryTree.cc): the root is the first or the
// last position and has one child, a perfect tree of the others. -1: none.
struct TreeNode {
  std::int32_t parent = -1, left = -1, right = -1;
  bool is_left_child = false;
};

TreeNode tree_node(std::int32_t position, std::int32_t n, bool first_is_root) {
  const std::int32_t root = first_is_root ? 0 : n - 1;
  const std::int32_t shift = first_is_root ? 0 : 1;  // from a position to the in-order index, from 1
  TreeNode node;
  if (position == root) {
    node.left = n / 2 - shift;
    return node;
  }
  const std::int32_t index = position + shift;
  const std::int32_t height = index & -index;
  if (height > 1) {
    node.left = index - height / 2 - shift;
    node.right = index + height / 2 - shift;
  }
  if (2 * height == n) {
    node.parent = root;
    node.is_left_child = true;
  } else {
    node.is_left_child = (index & (2 * height)) == 0;
    node.parent = (node.is_left_child ? index + height : index - height) - shift;
  }
  return node;
}

}  // namespace

AstraSchedule astra_ring(CollectiveKind kind, std::int32_t n, std::int32_t sends) {
  AstraSchedule made;
  made.turns = true;
  AstraRole& role = made.roles.emplace_back();
  add_runs(role, kind, 1, n - 1);
  add_step(role, {.times = sends}, {{.peer = 1}}, {{.peer = -1}});
  return made;
}

AstraSchedule astra_direct(CollectiveKind kind, std::int32_t n, std::int32_t sends, std::int32_t window,
                           bool local) {
  AstraSchedule made;
  made.turns = true;
  const std::int32_t others = n - 1;
  made.slots = others;
  AstraRole& role = made.roles.emplace_back();
  add_runs(role, kind, window, local ? others * window : window);
  for (std::int32_t packet = 0; packet < sends; ++packet) {
    const std::int32_t slot = packet % others;
    const bool second_half = kind == CollectiveKind::all_reduce && packet >= others;
    add_step(role, {.received = second_half ? others : 0}, {{1 + slot, slot, slot}},
             {{-1 - slot, slot, slot}});
  }
  return made;
}

AstraSchedule astra_halving_doubling(CollectiveKind kind, std::int32_t n, std::int64_t bytes) {
  const std::int32_t steps = std::bit_width(static_cast<std::uint32_t>(n)) - 1;
  const std::int32_t sends = kind == CollectiveKind::all_reduce ? 2 * steps : steps;
  // Odd sizes lose bytes on the way down.
  const auto bytes_of = [&](std::int32_t packet) {
    if (kind == CollectiveKind::all_gather) return bytes << std::min(packet, 40);
    const std::int64_t half = bytes / 2;
    if (kind == CollectiveKind::reduce_scatter || packet < steps) return half >> std::min(packet, 62);
    return (half >> steps) << std::min(packet - steps + 1, 40);
  };
  AstraSchedule made;
  made.addressing = Addressing::exchange;
  made.alike = false;
  made.slots = sends;
  AstraRole runs, &role = made.roles.emplace_back();
  add_runs(runs, kind, 1, steps - 1);
  role.at_begin = runs.at_begin;
  role.crossings_at_end = runs.crossings_at_end;
  for (std::size_t row = 0; static_cast<std::int32_t>(role.crossings.size()) <= sends;
       row = (row + 1) % runs.crossings.size()) {
    for (std::int32_t i = 0; i < runs.crossings[row].times; ++i) {
      AstraCrossing& crossing = role.crossings.emplace_back(runs.crossings[row]);
      crossing.times = 1;
      crossing.bytes = crossing.reduced = bytes_of(static_cast<std::int32_t>(role.crossings.size()) - 1);
    }
  }
  for (std::int32_t packet = 0; packet < sends; ++packet) {
    std::int32_t exponent = kind == CollectiveKind::all_gather ? steps - 1 - packet : packet;
    if (packet >= steps) exponent = 2 * steps - 1 - packet;
    const AstraTransfer transfer{1 << exponent, packet, packet, true, bytes_of(packet)};
    add_step(role, {}, {transfer}, {transfer});
  }
  return made;
}

// Data goes up to the root, is reduced on the way, and comes down again.
AstraSchedule astra_tree(std::int32_t n, bool first_is_root) {
  // What another node of the tree is to this one is the slot of its messages.
  constexpr std::int32_t kParent = 0, kLeft = 1, kRight = 2;
  AstraSchedule made;
  made.addressing = Addressing::absolute;
  made.slots = 3;
  for (std::int32_t position = 0; position < n; ++position) {
    const TreeNode node = tree_node(position, n, first_is_root);
    const std::int32_t own = node.is_left_child ? kLeft : kRight;  // to the parent
    const AstraTransfer to_parent{node.parent, own, kParent};
    const AstraTransfer from_parent{node.parent, kParent, own};
    std::vector<AstraTransfer> to_children, from_children;
    for (const auto& [child, relation] : {std::pair(node.left, kLeft), std::pair(node.right, kRight)}) {
      if (child < 0) continue;
      to_children.push_back({child, kParent, relation});
      from_children.push_back({child, relation, kParent});
    }
    AstraRole& role = made.roles.emplace_back();
    made.role_of.push_back(static_cast<std::uint32_t>(position));
    const auto children = static_cast<std::int32_t>(to_children.size());
    if (children == 0) {
      role.crossings = {{.to_endpoint = true}, {}};
      add_step(role, {}, {to_parent}, {from_parent});
      role.crossings_at_end = 1;
      continue;
    }
    role.at_begin = 0;
    const AstraCrossing reduced{.is_reduced = true}, returned{.is_reduced = true, .returned = true};
    add_step(role, {.crossings = 0}, {}, from_children);
    if (node.parent < 0) {
      role.crossings = {returned};
      add_step(role, {}, to_children, {});
    } else {
      role.crossings = {reduced, returned, returned};
      add_step(role, {.crossings = children}, {to_parent}, {from_parent});
      add_step(role, {}, to_children, {});
    }
  }
  return made;
}

AstraSchedule astra_scheduled(const Schedule& schedule, std::int64_t each) {
  AstraSchedule made;
  made.addressing = schedule.addressing;
  made.alike = false;
  made.role_of = schedule.role_of;
  for (const RankSchedule& own : schedule.roles) {
    AstraRole& role = made.roles.emplace_back();
    made.slots = std::max(made.slots, static_cast<std::int32_t>(own.steps.size()));
    role.crossings.push_back({.bytes = each, .to_endpoint = true});
    role.crossings_at_end = 1;  // of the last packet that no step waited for
    for (std::size_t s = 0; s < own.steps.size(); ++s) {
      const Step& step = own.steps[s];
      std::vector<AstraTransfer> sends;
      for (const Transfer& transfer : own.sends_of(step))
        sends.push_back({.peer = transfer.peer,
                         .slot = transfer.step,
                         .handshakes = false,
                         .bytes = transfer.bytes.value});
      const AstraTransfer receive{.slot = static_cast<std::int32_t>(s), .handshakes = false};
      add_step(role, {.crossings = role.crossings_at_end}, sends,
               std::vector(static_cast<std::size_t>(step.receives), receive));
      role.crossings_at_end = step.receives > 0 ? 1 : 0;
      if (step.receives == 0) continue;
      role.crossings.push_back({.bytes = each,
                                .reduced = step.reduced.value,
                                .receives = step.receives,
                                .is_reduced = step.reduced > Bytes(0)});
    }
  }
  return made;
}

}  // namespace armilla
