// The binary trees of ASTRA-sim's double-binary-tree all-reduce (BinaryTree.cc), and the stages of a rank in one:
// data goes up to the root, is reduced on the way, and comes down again.
#pragma once

#include <cstdint>

namespace armilla {

// In the order in which they can follow each other.
enum TreeStage : std::uint8_t {
  kBegun,
  kWaitsForTwoChildren,
  kWaitsForOneChild,
  kSendsToParent,
  kWaitsForParent,
  kSendsToChildren,
  kEnds
};

// What another node of the tree is to this one; also the slot of its messages.
inline constexpr std::int32_t kParent = 0, kLeft = 1, kRight = 2;

// A node of the in-order binary tree over positions 0 .. n-1, n a power of two: the root is the first or the
// last position and has one child, a perfect tree of the others. -1: none.
struct TreeNode {
  std::int32_t parent = -1, left = -1, right = -1;
  bool is_left_child = false;
  bool is_root() const { return parent < 0; }
  bool is_leaf() const { return left < 0 && right < 0; }
};

inline TreeNode tree_node(std::int32_t position, std::int32_t n, bool first_is_root) {
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

}  // namespace armilla
