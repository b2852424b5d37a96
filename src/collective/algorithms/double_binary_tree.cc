// Double binary tree: two complementary trees, each carrying half of the data; a member that is an inner node
// of one is a leaf of the other, so that nobody's links idle (Sanders, Speck, Traeff 2009, "Two-tree
// algorithms for full bandwidth broadcast, reduction and scan").
//
// The first tree is the in-order binary tree over positions 1..m: i's level is the number of trailing zero
// bits, odd positions are leaves. The second is its mirror image for even m and itself shifted by one for odd
// m. Depth h = floor(log2 m) edges.
//
//   all-reduce  m = n: up both trees, then down: 2h (alpha + beta C/2)
//   broadcast   m = n-1, the root feeds both trees: (h+1)(alpha + beta C/2); reduce likewise, backwards
//   barrier     as all-reduce of nothing on one tree; chunks take turns
// A message is half of the chunk, whole: pipelining comes from cutting the collective into chunks. Size of a
// schedule: O(n), one role per member.
#include <array>
#include <bit>

#include "collective/algorithms/algorithms.h"
#include "collective/algorithms/schedule_builder.h"

namespace armilla {
namespace {

// Relations within one of the two trees; members are 0..size-1.
class Tree {
 public:
  Tree(std::int32_t size, bool second) : size_(size), second_(second) {}

  std::int32_t root() const {
    return member_at(static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(size_))));
  }
  bool is_inner(std::int32_t member) const { return position_of(member) % 2 == 0; }

  std::int32_t parent(std::int32_t member) const {
    const std::int32_t position = position_of(member), bit = position & -position;
    const std::int32_t above = (position ^ bit) | (bit << 1);
    // Where the tree is cut off, the next ancestor that exists is the one below that it hangs from.
    return member_at(above <= size_ ? above : position ^ bit);
  }

  std::vector<std::int32_t> children(std::int32_t member) const {
    const std::int32_t position = position_of(member), reach = (position & -position) / 2;
    std::vector<std::int32_t> found;
    if (reach > 0) found.push_back(member_at(position - reach));
    for (std::int32_t right = reach; right > 0; right /= 2) {
      if (position + right > size_) continue;
      found.push_back(member_at(position + right));
      break;
    }
    return found;
  }

 private:
  std::int32_t position_of(std::int32_t member) const {
    if (!second_) return member + 1;
    return size_ % 2 == 0 ? size_ - member : (member + 1) % size_ + 1;
  }
  std::int32_t member_at(std::int32_t position) const {
    if (!second_) return position - 1;
    return size_ % 2 == 0 ? size_ - position : (position + size_ - 2) % size_;
  }

  std::int32_t size_;
  bool second_;
};

// Both trees as one member sees them: inner in at most one of them (`own`), a leaf in the other.
struct View {
  View(std::int32_t size, std::int32_t member)
      : own_index(Tree(size, true).is_inner(member) ? 1 : 0),
        own(size, own_index == 1),
        other(size, own_index == 0),
        is_inner(own.is_inner(member)),
        is_root(own.root() == member) {}
  std::int32_t own_index;
  Tree own, other;
  bool is_inner, is_root;  // in `own`
};

Payload half_of(std::int32_t tree, bool reduce) {
  return {{tree}, reduce};
}

// Steps of an inner node: 0 collect from the children, 1 hand up and wait for the result (not the root), last
// pass it down. A leaf of both has one step. The tree in which a member is a leaf asks for no work but to
// send at the start and to receive at the end.
std::int32_t result_step(std::int32_t size, std::int32_t member, std::int32_t tree) {
  const View view(size, member);
  if (!view.is_inner) return 0;
  return view.own_index == tree || view.is_root ? 1 : 2;
}

void describe_all_reduce(RoleBuilder& role, std::int32_t size, std::int32_t member, Bytes half) {
  const View view(size, member);
  const std::int32_t own = view.own_index, other = 1 - own;
  const auto hand_up = [&](const Tree& tree, std::int32_t index) {
    role.send(tree.parent(member), 0, half, [&] { return half_of(index, true); });
  };
  if (!view.is_inner) {
    role.begin_step(2);
    hand_up(view.own, own);
    hand_up(view.other, other);
    return;
  }
  const std::vector<std::int32_t> children = view.own.children(member);
  const auto count = static_cast<std::int32_t>(children.size());
  role.begin_step(count, half * count);
  hand_up(view.other, other);
  if (!view.is_root) {
    role.begin_step(1);
    hand_up(view.own, own);
  }
  role.begin_step(1);
  for (const std::int32_t child : children)
    role.send(child, result_step(size, child, own), half, [&] { return half_of(own, false); });
}

void describe_barrier(RoleBuilder& role, const Tree& tree, std::int32_t member) {
  const auto nothing = [] { return Payload{}; };
  const std::vector<std::int32_t> children = tree.children(member);
  if (!children.empty()) role.begin_step(static_cast<std::int32_t>(children.size()));
  if (member != tree.root()) {
    role.begin_step(1);
    role.send(tree.parent(member), 0, Bytes(0), nothing);
  }
  if (!children.empty()) role.begin_step(0);
  for (const std::int32_t child : children)
    role.send(child, tree.children(child).empty() ? 0 : 1, Bytes(0), nothing);
}

// Broadcast and reduce use trees over all members but the root, numbered from the one after it.
class Rooted {
 public:
  explicit Rooted(const ScheduleRequest& request)
      : ranks_(request.ranks), root_(request.root), half_(block_size(request.bytes, 2)) {}

  void broadcast(RoleBuilder& role, std::int32_t member) const {
    const std::int32_t size = ranks_ - 1;
    const auto pass_down = [&](std::int32_t child, std::int32_t tree) {
      const View view(size, child);
      const std::int32_t step = view.is_inner && view.own_index != tree ? 1 : 0;
      role.send(member_of(child), step, half_, [&] { return half_of(tree, false); });
    };
    if (member == root_) {
      role.begin_step(0);
      for (const std::int32_t tree : {0, 1}) pass_down(Tree(size, tree == 1).root(), tree);
      return;
    }
    const View view(size, number_of(member));
    if (!view.is_inner) return role.begin_step(2);
    role.begin_step(1);
    role.begin_step(1);
    for (const std::int32_t child : view.own.children(number_of(member))) pass_down(child, view.own_index);
  }

  void reduce(RoleBuilder& role, std::int32_t member) const {
    if (member == root_) return role.begin_step(2, half_ * 2);
    const std::int32_t number = number_of(member);
    const View view(ranks_ - 1, number);
    const auto hand_up = [&](const Tree& tree, std::int32_t index) {
      const std::int32_t to = tree.root() == number ? root_ : member_of(tree.parent(number));
      role.send(to, 0, half_, [&] { return half_of(index, true); });
    };
    const std::vector<std::int32_t> children =
        view.is_inner ? view.own.children(number) : std::vector<std::int32_t>{};
    const auto count = static_cast<std::int32_t>(children.size());
    role.begin_step(count, half_ * count);
    hand_up(view.other, 1 - view.own_index);
    if (view.is_inner) role.begin_step(0);
    hand_up(view.own, view.own_index);
  }

 private:
  std::int32_t number_of(std::int32_t member) const { return wrap(std::int64_t{member} - root_ - 1, ranks_); }
  std::int32_t member_of(std::int32_t number) const { return wrap(std::int64_t{number} + root_ + 1, ranks_); }

  std::int32_t ranks_, root_;
  Bytes half_;
};

Schedule make_double_binary_tree(const ScheduleRequest& request, const ParameterValues&) {
  const auto describe = [&](RoleBuilder& role, std::int32_t member) {
    switch (request.kind) {
      case CollectiveKind::broadcast:
        return Rooted(request).broadcast(role, member);
      case CollectiveKind::reduce:
        return Rooted(request).reduce(role, member);
      case CollectiveKind::barrier:
        return describe_barrier(role, Tree(request.ranks, request.chunk % 2 != 0), member);
      default:
        return describe_all_reduce(role, request.ranks, member, block_size(request.bytes, 2));
    }
  };
  return schedule_by_role(
      request, Addressing::absolute, 2, [](std::int32_t member) { return member; }, describe);
}

constexpr std::array kKinds = {CollectiveKind::all_reduce, CollectiveKind::broadcast, CollectiveKind::reduce,
                               CollectiveKind::barrier};

}  // namespace

AlgorithmInfo double_binary_tree_algorithm() {
  return {"double-binary-tree",
          "two trees, half of the data on each: few steps; best with several chunks",
          {},
          kKinds,
          make_double_binary_tree};
}

}  // namespace armilla
