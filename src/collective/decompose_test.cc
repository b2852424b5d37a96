#include "collective/decompose.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"

namespace armilla {
namespace {

using Sizes = std::vector<std::int64_t>;

std::string text_of(const std::vector<CollectivePhase>& phases) {
  std::string text;
  for (const CollectivePhase& phase : phases) {
    text += fmt::format("{}{} {} {}{}", text.empty() ? "" : ", ", name_of(phase.kind), phase.dimension,
                        phase.bytes.value, phase.members == PhaseMembers::root_lines ? " root" : "");
  }
  return text;
}

std::string phases_of(CollectiveKind kind, std::int64_t bytes, const Sizes& sizes,
                      Decomposition decomposition = Decomposition::bandwidth_aware) {
  return text_of(decompose(kind, Bytes(bytes), sizes, decomposition));
}

TEST(DecomposeTest, AllReduceShrinksOnItsWayUp) {
  EXPECT_EQ(
      phases_of(CollectiveKind::all_reduce, 2400, {4, 2, 3}),
      "reduce-scatter 0 2400, reduce-scatter 1 600, all-reduce 2 300, all-gather 1 600, all-gather 0 2400");
  EXPECT_EQ(phases_of(CollectiveKind::all_reduce, 2400, {4, 2, 3}, Decomposition::baseline),
            "all-reduce 0 2400, all-reduce 1 2400, all-reduce 2 2400");
  EXPECT_EQ(phases_of(CollectiveKind::all_reduce, 2400, {1, 4}), "all-reduce 1 2400");
}

TEST(DecomposeTest, OtherKindsHaveOneOrder) {
  for (const Decomposition decomposition : {Decomposition::bandwidth_aware, Decomposition::baseline}) {
    const auto phases = [&](CollectiveKind kind) { return phases_of(kind, 800, {4, 1, 2}, decomposition); };
    EXPECT_EQ(phases(CollectiveKind::reduce_scatter), "reduce-scatter 0 800, reduce-scatter 2 200");
    EXPECT_EQ(phases(CollectiveKind::all_gather), "all-gather 2 200, all-gather 0 800");
    EXPECT_EQ(phases(CollectiveKind::all_to_all), "all-to-all 0 800, all-to-all 2 800");
    EXPECT_EQ(phases(CollectiveKind::reduce), "reduce 0 800, reduce 2 800 root");
    EXPECT_EQ(phases(CollectiveKind::broadcast), "broadcast 2 800 root, broadcast 0 800");
    EXPECT_EQ(phases(CollectiveKind::barrier), "barrier 0 0, barrier 2 0");
  }
}

TEST(DecomposeTest, BytesRoundUp) {
  EXPECT_EQ(phases_of(CollectiveKind::all_gather, 10, {3, 3, 3}),
            "all-gather 2 2, all-gather 1 4, all-gather 0 10");
  EXPECT_EQ(phases_of(CollectiveKind::reduce_scatter, INT64_MAX, {2, 2}),
            "reduce-scatter 0 9223372036854775807, reduce-scatter 1 4611686018427387904");
  EXPECT_EQ(phases_of(CollectiveKind::all_reduce, 0, {2, 2}),
            "reduce-scatter 0 0, all-reduce 1 0, all-gather 0 0");
}

TEST(DecomposeTest, NoRanksToTalkToMeansNoPhases) {
  for (const CollectiveKind kind : kCollectiveKinds) {
    EXPECT_EQ(phases_of(kind, 100, {1, 1}), "");
    EXPECT_EQ(phases_of(kind, 100, {}), "");
  }
}

TEST(DecomposeTest, RefusesWhatHasNoMeaning) {
  const auto error_of = [](const Sizes& sizes, Decomposition decomposition) -> std::string {
    try {
      decompose(CollectiveKind::all_reduce, Bytes(1), sizes, decomposition);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(error_of({2, 0}, Decomposition::baseline),
            "collective: a dimension has no ranks\n  hint: sizes must be at least 1");
  EXPECT_EQ(error_of({2, 2}, Decomposition::flat),
            "collective: a flat collective has no phases\n  hint: use its algorithm on the whole group");
}

// Plays phases over all ranks of a grid, each phase by the meaning of its one-dimensional collective, on
// buffers of as many pieces as there are ranks, kPiece bytes each.
constexpr std::int64_t kPiece = 10;

struct Piece {
  std::int32_t number = 0;
  std::map<std::int32_t, int> contributions;  // rank -> how often
};
using Buffer = std::vector<Piece>;

class Grid {
 public:
  explicit Grid(Sizes sizes) : sizes_(std::move(sizes)) {
    for (const std::int64_t size : sizes_) ranks_ *= static_cast<std::int32_t>(size);
  }
  std::int32_t ranks() const { return ranks_; }
  std::int32_t size(std::size_t d) const { return static_cast<std::int32_t>(sizes_[d]); }
  std::size_t dimensions() const { return sizes_.size(); }
  std::int32_t coordinate(std::int32_t rank, std::size_t d) const { return rank / stride(d) % size(d); }
  // The ranks that differ from `rank` in dimension d only, by coordinate.
  std::vector<std::int32_t> line(std::int32_t rank, std::size_t d) const {
    std::vector<std::int32_t> members;
    for (std::int32_t c = 0; c < size(d); ++c)
      members.push_back(rank + (c - coordinate(rank, d)) * stride(d));
    return members;
  }
  bool agree_below(std::int32_t a, std::int32_t b, std::size_t d) const {
    return a % stride(d) == b % stride(d);
  }
  // Rank r's digits, the first one most significant: the piece a reduce-scatter leaves with it.
  std::int32_t reversed(std::int32_t rank) const {
    std::int32_t number = 0;
    for (std::size_t d = 0; d < dimensions(); ++d) number = number * size(d) + coordinate(rank, d);
    return number;
  }

 private:
  std::int32_t stride(std::size_t d) const {
    std::int32_t product = 1;
    for (std::size_t i = 0; i < d; ++i) product *= size(i);
    return product;
  }
  Sizes sizes_;
  std::int32_t ranks_ = 1;
};

class PhasePlayer {
 public:
  PhasePlayer(const Grid& grid, std::int32_t root) : grid_(grid), root_(root) {}

  std::vector<Buffer> buffers;

  void play(const std::vector<CollectivePhase>& phases) {
    for (const CollectivePhase& phase : phases) {
      for (std::int32_t rank = 0; rank < grid_.ranks(); ++rank) {
        if (grid_.coordinate(rank, phase.dimension) != 0) continue;
        if (phase.members == PhaseMembers::root_lines && !grid_.agree_below(rank, root_, phase.dimension))
          continue;
        play_line(phase, grid_.line(rank, phase.dimension));
      }
    }
  }

 private:
  Buffer& of(std::int32_t rank) { return buffers[static_cast<std::size_t>(rank)]; }
  void expect_bytes(const CollectivePhase& phase, std::size_t pieces) const {
    EXPECT_EQ(phase.bytes.value, static_cast<std::int64_t>(pieces) * kPiece);
  }

  Buffer sum(const std::vector<std::int32_t>& line) {
    Buffer total = of(line.front());
    for (std::size_t m = 1; m < line.size(); ++m) {
      const Buffer& other = of(line[m]);
      EXPECT_EQ(other.size(), total.size());
      for (std::size_t i = 0; i < total.size(); ++i) {
        EXPECT_EQ(other[i].number, total[i].number);
        for (const auto& [rank, count] : other[i].contributions) total[i].contributions[rank] += count;
      }
    }
    return total;
  }

  void play_line(const CollectivePhase& phase, const std::vector<std::int32_t>& line) {
    const std::int32_t root = line[static_cast<std::size_t>(grid_.coordinate(root_, phase.dimension))];
    switch (phase.kind) {
      case CollectiveKind::all_reduce: {
        expect_bytes(phase, of(line.front()).size());
        const Buffer total = sum(line);
        for (const std::int32_t rank : line) of(rank) = total;
        break;
      }
      case CollectiveKind::reduce:
        expect_bytes(phase, of(root).size());
        of(root) = sum(line);
        break;
      case CollectiveKind::broadcast:
        expect_bytes(phase, of(root).size());
        for (const std::int32_t rank : line) of(rank) = of(root);
        break;
      case CollectiveKind::reduce_scatter: {
        const Buffer total = sum(line);
        expect_bytes(phase, total.size());
        ASSERT_EQ(total.size() % line.size(), 0u);
        const auto share = static_cast<std::ptrdiff_t>(total.size() / line.size());
        for (std::size_t m = 0; m < line.size(); ++m) {
          const auto first = total.begin() + static_cast<std::ptrdiff_t>(m) * share;
          of(line[m]) = Buffer(first, first + share);
        }
        break;
      }
      case CollectiveKind::all_gather: {
        Buffer all;
        for (const std::int32_t rank : line) all.insert(all.end(), of(rank).begin(), of(rank).end());
        expect_bytes(phase, all.size());
        for (const std::int32_t rank : line) of(rank) = all;
        break;
      }
      default:
        FAIL() << "no reduction or copy";
    }
  }

  const Grid& grid_;
  std::int32_t root_;
};

std::vector<Sizes> grids() {
  return {{2, 3}, {4, 4}, {2, 2, 3}, {8, 1, 5}, {7}, {1, 6}, {3, 1, 1, 2}, {2, 3, 2, 2}, {1, 1}};
}

std::vector<CollectivePhase> phases_on(const Grid& grid, CollectiveKind kind, Decomposition decomposition) {
  Sizes sizes;
  for (std::size_t d = 0; d < grid.dimensions(); ++d) sizes.push_back(grid.size(d));
  return decompose(kind, Bytes(grid.ranks() * kPiece), sizes, decomposition);
}

Buffer whole_buffer(const Grid& grid, std::int32_t contributor) {
  Buffer buffer;
  for (std::int32_t piece = 0; piece < grid.ranks(); ++piece) buffer.push_back({piece, {{contributor, 1}}});
  return buffer;
}

void expect_everyone_once(const Piece& piece, const Grid& grid) {
  EXPECT_EQ(piece.contributions.size(), static_cast<std::size_t>(grid.ranks()));
  for (const auto& [rank, count] : piece.contributions) EXPECT_EQ(count, 1) << "contribution of " << rank;
}

void expect_whole_sum(const Buffer& buffer, const Grid& grid) {
  ASSERT_EQ(buffer.size(), static_cast<std::size_t>(grid.ranks()));
  for (std::int32_t piece = 0; piece < grid.ranks(); ++piece) {
    EXPECT_EQ(buffer[static_cast<std::size_t>(piece)].number, piece);
    expect_everyone_once(buffer[static_cast<std::size_t>(piece)], grid);
  }
}

class ComposedTest : public testing::TestWithParam<std::tuple<Sizes, Decomposition>> {
 protected:
  const Grid grid{std::get<0>(GetParam())};
  std::vector<CollectivePhase> phases(CollectiveKind kind) const {
    return phases_on(grid, kind, std::get<1>(GetParam()));
  }
  PhasePlayer player(std::int32_t root = 0) const {
    PhasePlayer made(grid, root);
    for (std::int32_t rank = 0; rank < grid.ranks(); ++rank) made.buffers.push_back(whole_buffer(grid, rank));
    return made;
  }
};

TEST_P(ComposedTest, AllReduce) {
  PhasePlayer played = player();
  played.play(phases(CollectiveKind::all_reduce));
  for (const Buffer& buffer : played.buffers) expect_whole_sum(buffer, grid);
}

TEST_P(ComposedTest, ReduceScatterLeavesEachRankItsReversedPiece) {
  PhasePlayer played = player();
  played.play(phases(CollectiveKind::reduce_scatter));
  std::set<std::int32_t> owned;
  for (std::int32_t rank = 0; rank < grid.ranks(); ++rank) {
    const Buffer& buffer = played.buffers[static_cast<std::size_t>(rank)];
    ASSERT_EQ(buffer.size(), 1u);
    EXPECT_EQ(buffer[0].number, grid.reversed(rank));
    expect_everyone_once(buffer[0], grid);
    owned.insert(buffer[0].number);
  }
  EXPECT_EQ(owned.size(), static_cast<std::size_t>(grid.ranks()));
}

TEST_P(ComposedTest, AllGatherStartsWhereReduceScatterEnds) {
  PhasePlayer played(grid, 0);
  for (std::int32_t rank = 0; rank < grid.ranks(); ++rank)
    played.buffers.push_back({{grid.reversed(rank), {{rank, 1}}}});
  played.play(phases(CollectiveKind::all_gather));
  for (const Buffer& buffer : played.buffers) {
    ASSERT_EQ(buffer.size(), static_cast<std::size_t>(grid.ranks()));
    for (std::int32_t piece = 0; piece < grid.ranks(); ++piece) {
      const Piece& held = buffer[static_cast<std::size_t>(piece)];
      EXPECT_EQ(held.number, piece);
      ASSERT_EQ(held.contributions.size(), 1u);
      EXPECT_EQ(grid.reversed(held.contributions.begin()->first), piece);
    }
  }
}

TEST_P(ComposedTest, ReduceToEveryRoot) {
  for (std::int32_t root = 0; root < grid.ranks(); ++root) {
    PhasePlayer played = player(root);
    played.play(phases(CollectiveKind::reduce));
    expect_whole_sum(played.buffers[static_cast<std::size_t>(root)], grid);
  }
}

TEST_P(ComposedTest, BroadcastFromEveryRoot) {
  for (std::int32_t root = 0; root < grid.ranks(); ++root) {
    PhasePlayer played(grid, root);
    played.buffers.resize(static_cast<std::size_t>(grid.ranks()));
    played.buffers[static_cast<std::size_t>(root)] = whole_buffer(grid, root);
    played.play(phases(CollectiveKind::broadcast));
    for (const Buffer& buffer : played.buffers) {
      ASSERT_EQ(buffer.size(), static_cast<std::size_t>(grid.ranks()));
      for (const Piece& piece : buffer)
        EXPECT_EQ(piece.contributions, (std::map<std::int32_t, int>{{root, 1}}));
    }
  }
}

// An all-gather in the same order brings back what a reduce-scatter has left.
TEST_P(ComposedTest, EveryOrderOfDimensionsPerforms) {
  std::vector<std::uint32_t> order(grid.dimensions());
  std::iota(order.begin(), order.end(), 0U);
  Sizes sizes;
  for (std::size_t d = 0; d < grid.dimensions(); ++d) sizes.push_back(grid.size(d));
  do {
    const auto in_order = [&](CollectiveKind kind) {
      return decompose(kind, Bytes(grid.ranks() * kPiece), sizes, std::get<1>(GetParam()), order);
    };
    PhasePlayer reduced = player();
    reduced.play(in_order(CollectiveKind::all_reduce));
    for (const Buffer& buffer : reduced.buffers) expect_whole_sum(buffer, grid);
    PhasePlayer scattered = player();
    scattered.play(in_order(CollectiveKind::reduce_scatter));
    for (const Buffer& buffer : scattered.buffers) EXPECT_EQ(buffer.size(), 1u);
    scattered.play(in_order(CollectiveKind::all_gather));
    for (const Buffer& buffer : scattered.buffers) expect_whole_sum(buffer, grid);
  } while (std::next_permutation(order.begin(), order.end()));
}

// Whatever the root: who holds which pieces of the buffer, one per member of a block.
TEST(OverAllLines, ABroadcastReachesEverybodyAndAReductionGoesTheSameWayBack) {
  const Sizes sizes = {3, 1, 4};
  const std::int32_t inner = 3, outer = 4;
  for (std::int32_t root = 0; root < inner * outer; ++root) {
    std::vector<std::set<std::int32_t>> held(static_cast<std::size_t>(inner * outer));
    const auto of = [&](std::int32_t column, std::int32_t block) -> std::set<std::int32_t>& {
      return held[static_cast<std::size_t>(block * inner + column)];
    };
    const std::set<std::int32_t> whole = {0, 1, 2};
    of(root % inner, root / inner) = whole;
    const std::vector<CollectivePhase> phases =
        decompose_over_all_lines(CollectiveKind::broadcast, Bytes(30), sizes);
    ASSERT_EQ(phases.size(), 3U);
    for (const CollectivePhase& phase : phases) {
      if (phase.dimension == 2) {
        EXPECT_EQ(phase.bytes, Bytes(10));
        EXPECT_EQ(phase.members, PhaseMembers::all);
        for (std::int32_t column = 0; column < inner; ++column) {
          ASSERT_TRUE(of(column, root / inner).contains(column)) << "sends what it has";
          for (std::int32_t block = 0; block < outer; ++block) of(column, block).insert(column);
        }
        continue;
      }
      EXPECT_EQ(phase.bytes, Bytes(30));
      for (std::int32_t block = 0; block < outer; ++block) {
        if ((block == root / inner) != (phase.members == PhaseMembers::root_block)) continue;
        std::set<std::int32_t> sent;
        for (std::int32_t column = 0; column < inner; ++column) {
          const std::set<std::int32_t>& own = of(column, block);
          EXPECT_TRUE(phase.kind != CollectiveKind::all_gather || own.contains(column));
          sent.insert(own.begin(), own.end());
        }
        for (std::int32_t column = 0; column < inner; ++column) of(column, block) = sent;
      }
    }
    for (const std::set<std::int32_t>& own : held) EXPECT_EQ(own, whole) << root;
  }
  const auto back = decompose_over_all_lines(CollectiveKind::reduce, Bytes(30), sizes);
  ASSERT_EQ(back.size(), 3U);
  EXPECT_EQ(back[0].kind, CollectiveKind::reduce_scatter);
  EXPECT_EQ(back[0].members, PhaseMembers::other_blocks);
  EXPECT_EQ(back[1].dimension, 2U);
  EXPECT_EQ(back[2].kind, CollectiveKind::reduce);
  EXPECT_EQ(back[2].members, PhaseMembers::root_block);
  EXPECT_TRUE(decompose_over_all_lines(CollectiveKind::broadcast, Bytes(8), Sizes{2, 2, 2}).empty());
}

// Blocks go along each dimension to the member that has their destination's coordinate; every member of a
// line gets the same share, as the one-dimensional collective has it.
TEST_P(ComposedTest, AllToAll) {
  using Block = std::pair<std::int32_t, std::int32_t>;  // source, destination
  std::vector<std::vector<Block>> held(static_cast<std::size_t>(grid.ranks()));
  for (std::int32_t from = 0; from < grid.ranks(); ++from)
    for (std::int32_t to = 0; to < grid.ranks(); ++to)
      held[static_cast<std::size_t>(from)].push_back({from, to});
  for (const CollectivePhase& phase : phases(CollectiveKind::all_to_all)) {
    EXPECT_EQ(phase.kind, CollectiveKind::all_to_all);
    EXPECT_EQ(phase.bytes, Bytes(grid.ranks() * kPiece));
    EXPECT_EQ(phase.members, PhaseMembers::all);
    std::vector<std::vector<Block>> next(held.size());
    for (std::int32_t rank = 0; rank < grid.ranks(); ++rank) {
      const std::vector<std::int32_t> line = grid.line(rank, phase.dimension);
      std::map<std::int32_t, std::int32_t> share;
      for (const Block& block : held[static_cast<std::size_t>(rank)]) {
        const std::int32_t to =
            line[static_cast<std::size_t>(grid.coordinate(block.second, phase.dimension))];
        next[static_cast<std::size_t>(to)].push_back(block);
        ++share[to];
      }
      for (const std::int32_t member : line)
        EXPECT_EQ(share[member], grid.ranks() / static_cast<std::int32_t>(line.size()));
    }
    held = std::move(next);
  }
  for (std::int32_t rank = 0; rank < grid.ranks(); ++rank) {
    std::set<Block> expected;
    for (std::int32_t from = 0; from < grid.ranks(); ++from) expected.insert({from, rank});
    const std::vector<Block>& blocks = held[static_cast<std::size_t>(rank)];
    EXPECT_EQ(blocks.size(), expected.size());
    EXPECT_EQ(std::set<Block>(blocks.begin(), blocks.end()), expected);
  }
}

TEST_P(ComposedTest, BarrierLetsEveryoneHearOfEveryone) {
  std::vector<std::set<std::int32_t>> heard(static_cast<std::size_t>(grid.ranks()));
  for (std::int32_t rank = 0; rank < grid.ranks(); ++rank) heard[static_cast<std::size_t>(rank)] = {rank};
  for (const CollectivePhase& phase : phases(CollectiveKind::barrier)) {
    EXPECT_EQ(phase.bytes, Bytes(0));
    const std::vector<std::set<std::int32_t>> before = heard;
    for (std::int32_t rank = 0; rank < grid.ranks(); ++rank) {
      for (const std::int32_t other : grid.line(rank, phase.dimension)) {
        const auto& news = before[static_cast<std::size_t>(other)];
        heard[static_cast<std::size_t>(rank)].insert(news.begin(), news.end());
      }
    }
  }
  for (const auto& known : heard) EXPECT_EQ(known.size(), static_cast<std::size_t>(grid.ranks()));
}

INSTANTIATE_TEST_SUITE_P(Grids, ComposedTest,
                         testing::Combine(testing::ValuesIn(grids()),
                                          testing::Values(Decomposition::multi_axis,
                                                          Decomposition::bandwidth_aware,
                                                          Decomposition::baseline)));

}  // namespace
}  // namespace armilla
