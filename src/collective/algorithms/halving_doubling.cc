// Halving-doubling: partners at distances 1, 2, 4 ..., a logarithmic number of steps (Thakur, Rabenseifner,
// Gropp 2005, "Optimization of Collective Communication Operations in MPICH").
// With k = log2 n:
//
//   reduce-scatter  recursive halving: C/2 with the partner at distance 1, C/4 at distance 2 ...; a member
//                   keeps the blocks whose owner agrees with it in the distance's bit, so that the largest
//                   messages travel least: k alpha + (n-1)/n beta C
//   all-gather      recursive doubling, the same steps backwards
//   all-reduce      both (Rabenseifner 2004): 2k alpha + 2 (n-1)/n beta C
//   all-to-all      k steps of C/2: step i carries the blocks whose way has bit i set (Bruck et al. 1997)
//   broadcast       binomial tree, one message of C at a time: k (alpha + beta C); reduce likewise, backwards
//   barrier         k steps of 0 bytes (dissemination; Hensgen, Finkel, Manber 1988)
//
// Any n: with q the largest power of two in n, the first 2(n-q) members form pairs. For all-reduce,
// reduce-scatter and all-gather the even one of a pair hands its data to the odd one (fold-in), which acts
// for both among the q, and gets its result back at the end (fold-out). All-reduce: 2 (alpha + beta C) on top
// of that of q ranks. The other kinds work for any n by themselves, in k = ceil(log2 n) steps.
// Size of a schedule: O(log n) for powers of two and for all-to-all and barrier, O(n) for broadcast and
// reduce, else O(n log n).
#include <bit>

#include "base/checked.h"
#include "collective/algorithms/algorithms.h"
#include "collective/algorithms/schedule_builder.h"

namespace armilla {
namespace {

using Blocks = std::vector<std::int32_t>;

std::int32_t ceil_log2(std::int32_t n) {
  return std::bit_width(static_cast<std::uint32_t>(n - 1));
}

// The members that take part in halving and doubling, renumbered from 0 to core - 1, and the blocks that each
// of them is to own: those of the members it acts for, or one of `core` pieces in an all-reduce.
class Core {
 public:
  explicit Core(const ScheduleRequest& request)
      : ranks_(request.ranks),
        core_(static_cast<std::int32_t>(std::bit_floor(static_cast<std::uint32_t>(request.ranks)))),
        extra_(ranks_ - core_),
        own_blocks_(request.kind != CollectiveKind::all_reduce),
        block_(block_size(request.bytes, pieces())) {}

  std::int32_t rounds() const { return std::countr_zero(static_cast<std::uint32_t>(core_)); }
  std::int32_t pieces() const { return own_blocks_ ? ranks_ : core_; }
  Bytes block() const { return block_; }
  bool is_whole() const { return extra_ == 0; }

  bool is_folded(std::int32_t member) const { return member < 2 * extra_ && member % 2 == 0; }
  // Acts for the member before it.
  bool is_proxy(std::int32_t member) const { return member < 2 * extra_ && member % 2 == 1; }
  std::int32_t number_of(std::int32_t member) const {
    return member < 2 * extra_ ? member / 2 : member - extra_;
  }
  // A proxy has folded in during its step 0.
  std::int32_t first_step_of(std::int32_t number) const { return number < extra_ ? 1 : 0; }

  std::int32_t peer(std::int32_t number, std::int32_t round) const {
    const std::int32_t partner = number ^ (1 << round);
    if (is_whole()) return 1 << round;
    return partner < extra_ ? 2 * partner + 1 : partner + extra_;
  }

  // Blocks whose owners agree with `number` in bits 0 to `round`.
  Blocks blocks_like(std::int32_t number, std::int32_t round) const {
    const std::int32_t stride = 2 << round;
    Blocks blocks;
    for (std::int32_t owner = number % stride; owner < core_; owner += stride) {
      if (!own_blocks_) {
        blocks.push_back(owner);
      } else if (owner < extra_) {
        blocks.insert(blocks.end(), {2 * owner, 2 * owner + 1});
      } else {
        blocks.push_back(owner + extra_);
      }
    }
    return blocks;
  }
  // Their size, in constant time.
  Bytes size_like(std::int32_t number, std::int32_t round) const {
    const std::int32_t stride = 2 << round;
    std::int32_t count = core_ / stride;
    if (own_blocks_) count += extra_ / stride + (number % stride < extra_ % stride ? 1 : 0);
    return block_ * count;
  }

 private:
  std::int32_t ranks_, core_, extra_;
  bool own_blocks_;
  Bytes block_;
};

void halve(const Core& core, RoleBuilder& role, std::int32_t number) {
  for (std::int32_t round = 0; round < core.rounds(); ++round) {
    const std::int32_t partner = number ^ (1 << round);
    role.begin_step(1, core.size_like(number, round));
    role.send(core.peer(number, round), core.first_step_of(partner) + round, core.size_like(partner, round),
              [&] {
                return Payload{core.blocks_like(partner, round), true};
              });
  }
}

// `rounds_before`: rounds of halving that came first.
void double_up(const Core& core, RoleBuilder& role, std::int32_t number, std::int32_t rounds_before) {
  for (std::int32_t round = core.rounds() - 1; round >= 0; --round) {
    const std::int32_t partner = number ^ (1 << round);
    const std::int32_t receiver_step =
        core.first_step_of(partner) + rounds_before + core.rounds() - 1 - round;
    role.begin_step(1);
    role.send(core.peer(number, round), receiver_step, core.size_like(number, round), [&] {
      return Payload{core.blocks_like(number, round), false};
    });
  }
}

Blocks all_but(std::int32_t pieces, std::int32_t left_out) {
  Blocks blocks;
  for (std::int32_t block = 0; block < pieces; ++block)
    if (block != left_out) blocks.push_back(block);
  return blocks;
}

// What a folded member gives to its proxy and gets back.
struct FoldMessages {
  Blocks in, out;
  bool reduce = false;
};
FoldMessages fold_messages(const Core& core, CollectiveKind kind, std::int32_t folded) {
  switch (kind) {
    case CollectiveKind::reduce_scatter:
      return {all_but(core.pieces(), -1), {folded}, true};
    case CollectiveKind::all_gather:
      return {{folded}, all_but(core.pieces(), folded), false};
    default:
      return {all_but(core.pieces(), -1), all_but(core.pieces(), -1), true};
  }
}
struct FoldSizes {
  Bytes in, out, reduced;
};
FoldSizes fold_sizes(const Core& core, CollectiveKind kind) {
  const Bytes all = core.block() * core.pieces();
  switch (kind) {
    case CollectiveKind::reduce_scatter:
      return {all, core.block(), all};
    case CollectiveKind::all_gather:
      return {core.block(), all - core.block(), Bytes(0)};
    default:
      return {all, all, all};
  }
}

void describe_core_kind(const Core& core, CollectiveKind kind, RoleBuilder& role, std::int32_t member) {
  const FoldSizes sizes = fold_sizes(core, kind);
  const bool halves = kind != CollectiveKind::all_gather, doubles = kind != CollectiveKind::reduce_scatter;
  const std::int32_t rounds = core.rounds() * (halves && doubles ? 2 : 1);
  if (core.is_folded(member)) {
    role.begin_step(1);
    role.send(member + 1, 0, sizes.in, [&] {
      const FoldMessages fold = fold_messages(core, kind, member);
      return Payload{fold.in, fold.reduce};
    });
    return;
  }
  const std::int32_t number = core.number_of(member);
  if (core.is_proxy(member)) role.begin_step(1, sizes.reduced);
  if (halves) halve(core, role, number);
  if (doubles) double_up(core, role, number, rounds - core.rounds());
  if (core.is_proxy(member)) {
    role.begin_step(0);
    role.send(member - 1, 0, sizes.out, [&] {
      return Payload{fold_messages(core, kind, member - 1).out, false};
    });
  }
}

Schedule core_schedule(const ScheduleRequest& request) {
  const Core core(request);
  const auto describe = [&](RoleBuilder& role, std::int32_t member) {
    describe_core_kind(core, request.kind, role, member);
  };
  if (core.is_whole()) return symmetric_schedule(request, Addressing::exchange, core.pieces(), describe);
  return schedule_by_role(
      request, Addressing::absolute, core.pieces(), [](std::int32_t member) { return member; }, describe);
}

// Numbers from 1 to n - 1 that have bit `round` set.
std::int32_t count_with_bit(std::int32_t n, std::int32_t round) {
  const std::int32_t half = 1 << round, rest = n & (2 * half - 1);
  return (n >> (round + 1)) * half + (rest > half ? rest - half : 0);
}

// All-to-all and barrier. A block's way is destination - source modulo n, for powers of two the exclusive or;
// in round i it moves if bit i of its way is set.
Schedule rounds_schedule(const ScheduleRequest& request) {
  const std::int32_t n = request.ranks;
  const bool hypercube = is_power_of_two(n);
  const Bytes block = block_size(request.bytes, n);
  const auto go = [&](std::int32_t from, std::int32_t way) {
    return hypercube ? from ^ way : wrap(std::int64_t{from} + way, n);
  };
  const auto come = [&](std::int32_t to, std::int32_t way) {
    return hypercube ? to ^ way : wrap(std::int64_t{to} - way, n);
  };
  const auto describe = [&](RoleBuilder& role, std::int32_t member) {
    for (std::int32_t round = 0; round < ceil_log2(n); ++round) {
      const bool moves_data = request.kind == CollectiveKind::all_to_all;
      role.begin_step(1);
      role.send(1 << round, round, moves_data ? block * count_with_bit(n, round) : Bytes(0), [&] {
        Payload payload;
        for (std::int32_t way = 1; way < n && moves_data; ++way) {
          if ((way >> round & 1) == 0) continue;
          const std::int32_t source = come(member, way & ((1 << round) - 1));
          payload.blocks.push_back(source * n + go(source, way));
        }
        return payload;
      });
    }
  };
  return symmetric_schedule(request, hypercube ? Addressing::exchange : Addressing::shift, n, describe);
}

// A binomial tree over positions relative to the root: v's parent is v without its lowest bit, its children
// are v + 2^i for all i below that bit, as far as they exist.
struct BinomialNode {
  std::int32_t parent_distance = 0;  // 0: the root
  std::int32_t children = 0;         // at distances 1, 2, 4 ...
};
BinomialNode binomial_node(std::int32_t relative, std::int32_t ranks) {
  if (relative == 0) return {0, ceil_log2(ranks)};
  BinomialNode node{relative & -relative, 0};
  while (1 << node.children < node.parent_distance && relative + (1 << node.children) < ranks)
    ++node.children;
  return node;
}

Schedule binomial_schedule(const ScheduleRequest& request) {
  const std::int32_t n = request.ranks;
  const auto node_of = [&](std::int32_t member) {
    return binomial_node(wrap(std::int64_t{member} - request.root, n), n);
  };
  const auto key_of = [&](std::int32_t member) {
    const BinomialNode node = node_of(member);
    return std::int64_t{node.parent_distance} * 64 + node.children;
  };
  // The farthest child is served first: it has the largest subtree below it.
  const auto broadcast = [&](RoleBuilder& role, std::int32_t member) {
    const BinomialNode node = node_of(member);
    if (node.parent_distance > 0) role.begin_step(1);
    for (std::int32_t child = node.children - 1; child >= 0; --child) {
      role.begin_step(0, Bytes(0), 1);
      role.send(1 << child, 0, request.bytes, [] { return Payload{{0}, false}; });
    }
  };
  const auto reduce = [&](RoleBuilder& role, std::int32_t member) {
    const BinomialNode node = node_of(member);
    for (std::int32_t child = 0; child < node.children; ++child) role.begin_step(1, request.bytes);
    if (node.parent_distance == 0) return;
    role.begin_step(0, Bytes(0), 1);
    const std::int32_t round = std::countr_zero(static_cast<std::uint32_t>(node.parent_distance));
    role.send(n - node.parent_distance, round, request.bytes, [] { return Payload{{0}, true}; });
  };
  if (request.kind == CollectiveKind::broadcast)
    return schedule_by_role(request, Addressing::shift, 1, key_of, broadcast);
  return schedule_by_role(request, Addressing::shift, 1, key_of, reduce);
}

Schedule make_halving_doubling(const ScheduleRequest& request, const ParameterValues&) {
  switch (request.kind) {
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      return binomial_schedule(request);
    case CollectiveKind::all_to_all:
    case CollectiveKind::barrier:
      return rounds_schedule(request);
    default:
      return core_schedule(request);
  }
}

}  // namespace

AlgorithmInfo halving_doubling_algorithm() {
  return {"halving-doubling",
          "partners at distances 1, 2, 4 ...: few steps and few bytes; for switches",
          {},
          kCollectiveKinds,
          make_halving_doubling};
}

}  // namespace armilla
