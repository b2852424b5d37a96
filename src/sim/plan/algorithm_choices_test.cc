#include "sim/plan/algorithm_choices.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error_testing.h"
#include "sim/plan/library.h"
#include "sim/plan/member_order.h"

namespace armilla {
namespace {

// A node of eight behind switches that reduce, six nodes on a rail, a ring of four.
Machine three_kinds() {
  Machine machine;
  machine.name = "test";
  machine.dimensions = {{"node", DimensionKind::switched, 8, gigabytes_per_second(400), microseconds(1)},
                        {"rail", DimensionKind::switched, 6, gigabytes_per_second(50), microseconds(2)},
                        {"ring", DimensionKind::ring, 4, gigabytes_per_second(25), microseconds(1)}};
  machine.dimensions[0].in_switch = CollectiveProtocol{"nvls", microseconds(5), microseconds(1)};
  machine.dimensions[1].protocols = {{"Simple", microseconds(8), microseconds(4)}};
  return machine;
}

// More picks than any dimension has choices: those beyond stand for the usual algorithm.
constexpr AlgorithmPicks kAllPicks[] = {0, 0b001'001'001, 0b010'010'010, 0b011'011'011, 0b111'111'111};

TEST(AlgorithmChoices, PerformTheirKindInEveryDimension) {
  const Machine machine = three_kinds();
  CollectiveOptions wish;
  wish.algorithms = {"double-binary-tree"};
  for (const CollectiveOptions& options : {CollectiveOptions(), wish}) {
    const AlgorithmChoices choices({machine, options, {.over_dimensions = true}});
    for (const CollectiveKind kind : kCollectiveKinds) {
      for (const AlgorithmPicks picks : kAllPicks) {
        for (std::uint32_t d = 0; d < machine.dimensions.size(); ++d)
          EXPECT_TRUE(choices.taken(kind, d, picks).performs(kind)) << name_of(kind) << d;
        EXPECT_TRUE(choices.taken(kind, kAllDimensions, picks).performs(kind)) << name_of(kind);
      }
    }
  }
}

// Few members may do as each does best; many do all the same, so that they are folded, where all that counts
// are dimensions.
TEST(AlgorithmChoices, ManyMembersDoAllTheSame) {
  const auto names = [](std::int64_t members, CollectiveKind kind, bool over_dimensions) {
    Machine machine;
    machine.name = "nodes";
    machine.dimensions = {
        {"nodes", DimensionKind::switched, members, gigabytes_per_second(1), microseconds(1)}};
    const CollectiveOptions options;
    const AlgorithmChoices choices({machine, options, {.over_dimensions = over_dimensions}});
    const CollectivePhase phase{0, kind, Bytes(1 << 20)};
    std::vector<std::string_view> found;
    for (const AlgorithmPicks picks : choices.possible({&phase, 1}, GroupShape{{members}, members}))
      found.push_back(choices.taken(kind, 0, picks).name());
    return found;
  };
  using Names = std::vector<std::string_view>;
  const CollectiveKind sum = CollectiveKind::all_reduce, gather = CollectiveKind::all_gather;
  EXPECT_EQ(names(12, sum, true), (Names{"ring", "double-binary-tree"}));
  EXPECT_EQ(names(100, sum, true), (Names{"ring", "circulant"}));
  EXPECT_EQ(names(100, sum, false), (Names{"ring", "double-binary-tree"}));
  EXPECT_EQ(names(12, gather, true), (Names{"ring", "halving-doubling"}));
  EXPECT_EQ(names(100, gather, true), (Names{"ring", "circulant"}));
  EXPECT_EQ(names(100, gather, false), (Names{"ring"}));
  EXPECT_EQ(names(128, sum, true), (Names{"halving-doubling"}));
}

TEST(AlgorithmChoices, AreTheWishAloneWhereThereIsOne) {
  const Machine machine = three_kinds();
  CollectiveOptions options;
  options.algorithms = {"double-binary-tree"};
  const AlgorithmChoices choices({machine, options, {.over_dimensions = true}});
  EXPECT_FALSE(choices.are_several());
  EXPECT_EQ(choices.taken(CollectiveKind::all_reduce, 1, 0b111111).name(), "double-binary-tree");
  EXPECT_FALSE(choices.replaced(CollectiveKind::all_reduce, 1));
  // Which it cannot perform.
  EXPECT_EQ(choices.replaced(CollectiveKind::all_to_all, 1), "double-binary-tree");
}

TEST(AlgorithmChoices, CombineEachDimensionsWithEachOthers) {
  const Machine machine = three_kinds();
  const CollectiveOptions options;
  const AlgorithmChoices choices({machine, options, {.over_dimensions = true}});
  const GroupShape shape{{8, 6, 1}, 48};
  const CollectivePhase phases[] = {{0, CollectiveKind::reduce_scatter, Bytes(1 << 20)},
                                    {1, CollectiveKind::all_reduce, Bytes(1 << 17)},
                                    {0, CollectiveKind::all_gather, Bytes(1 << 20)}};
  const std::vector<AlgorithmPicks> both = choices.possible(phases, shape);
  const std::size_t node = choices.possible(std::span(phases).first(1), shape).size();
  const std::size_t rail = choices.possible(std::span(phases).subspan(1, 1), shape).size();
  EXPECT_GT(node, 1U);  // in the switch
  EXPECT_GT(rail, 1U);  // few steps among six
  EXPECT_EQ(both.size(), node * rail);
  EXPECT_EQ(both.front(), 0U);
  EXPECT_EQ(std::ranges::count_if(both,
                                  [&](AlgorithmPicks picks) {
                                    return choices.taken(CollectiveKind::all_reduce, 0, picks).in_switch();
                                  }),
            static_cast<std::ptrdiff_t>(rail));
}

TEST(AlgorithmChoices, KnowWhoseSwitchesReduce) {
  const Machine machine = three_kinds();
  const CollectiveOptions usual;
  const AlgorithmChoices choices({machine, usual, {.over_dimensions = true}});
  EXPECT_EQ(choices.reducing_dimensions(CollectiveKind::all_reduce), 0b001U);
  EXPECT_FALSE(choices.climb());
  // Where it says nothing of switches that an algorithm asks to reduce, nobody knows.
  CollectiveOptions options;
  options.algorithms = {"nvls", "nvls", "ring"};
  const AlgorithmChoices wished({machine, options, {.over_dimensions = true}});
  EXPECT_EQ(wished.reducing_dimensions(CollectiveKind::all_reduce), std::nullopt);
  options.algorithms = {"nvls", "ring", "ring"};
  EXPECT_EQ(AlgorithmChoices({machine, options, {.over_dimensions = true}})
                .reducing_dimensions(CollectiveKind::all_reduce),
            0b001U);
}

// An all-reduce scatters and gathers in phases, too; an all-to-all does not.
TEST(AlgorithmChoices, KnowWhoseSwitchesReduceInPhases) {
  const Machine machine = three_kinds();
  CollectiveOptions options;
  options.algorithms_by_kind[CollectiveKind::reduce_scatter] = {"ring", "nvls", "ring"};
  const AlgorithmChoices choices({machine, options, {.over_dimensions = true}});
  for (const CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::reduce})
    EXPECT_EQ(choices.reducing_dimensions(kind), std::nullopt) << name_of(kind);
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::all_to_all})
    EXPECT_EQ(choices.reducing_dimensions(kind), 0b001U) << name_of(kind);
}

// One that is named for the first dimension is no wish for groups that span no whole dimensions.
TEST(AlgorithmChoices, NamedByKindMayBeginInASwitch) {
  const Machine machine = three_kinds();
  CollectiveOptions options;
  options.algorithms_by_kind[CollectiveKind::all_reduce] = {"nvls", "ring", "ring"};
  const AlgorithmChoices choices({machine, options, {.over_dimensions = true}});
  EXPECT_EQ(choices.taken(CollectiveKind::all_reduce, 0, 0).name(), "nvls");
  EXPECT_EQ(choices.taken(CollectiveKind::all_reduce, kAllDimensions, 0).name(), "ring");
  EXPECT_EQ(choices.replaced(CollectiveKind::all_reduce, kAllDimensions), "nvls");
  // Where all dimensions are taken as one, it is what was asked for.
  options.algorithms_by_kind[CollectiveKind::all_reduce] = {"nvls"};
  options.decomposition = Decomposition::flat;
  EXPECT_NE(error_of([&] { AlgorithmChoices({machine, options, {.over_dimensions = true}}); }), "no error");
}

// What is no wish of the user's is the library's to decide, and only where its figures were measured.
TEST(CollectiveLibrary, MakesAnAllReduceOfABarrierWhereItsFiguresCount) {
  const Machine machine = three_kinds();
  const NetworkPromises network{.over_dimensions = true};
  const CollectiveCall barrier{.kind = CollectiveKind::barrier, .bytes = Bytes(0)};
  CollectiveOptions options;
  for (const auto& [measured, wish, kind] : {std::tuple(true, false, CollectiveKind::all_reduce),
                                             {false, false, CollectiveKind::barrier},
                                             {true, true, CollectiveKind::barrier}}) {
    options.measured = measured;
    if (wish) options.algorithms = {"ring"};
    const AlgorithmChoices choices({machine, options, network});
    const CollectiveLibrary library({machine, options, network}, choices);
    EXPECT_EQ(library.as_made(barrier, 4).kind, kind);
    EXPECT_EQ(library.as_made({.kind = CollectiveKind::broadcast, .bytes = Bytes(8)}, 4).bytes, Bytes(8));
  }
}

// As much on every link: of four members that gather each sends three quarters of the whole.
TEST(CollectiveLibrary, LetsAllMembersSendWhatBroadcastsInTurnDo) {
  const Machine machine = three_kinds();
  const NetworkPromises network{.over_dimensions = true};
  const CollectiveOptions options;
  const AlgorithmChoices choices({machine, options, network});
  const CollectiveLibrary library({machine, options, network}, choices);
  const CollectiveCall made =
      library.as_made({.kind = CollectiveKind::broadcast, .bytes = Bytes(3000), .takes_turns = true}, 4);
  EXPECT_EQ(made.kind, CollectiveKind::all_gather);
  EXPECT_EQ(made.bytes, Bytes(4000));
}

TEST(CollectiveLibrary, SharesAFlatCallAmongAsManyRingsAsTheSmallestNodeHasMembers) {
  const Machine machine = three_kinds();
  const NetworkPromises network{.over_dimensions = true};
  CollectiveOptions options;
  const GroupShape shape{.sizes = {}, .ranks = 9, .in_nodes = {4, 0, 1, 2, 3, 5, 0, 1, 2, 3, 4}};
  {
    const AlgorithmChoices choices({machine, options, network});
    const CollectiveLibrary library({machine, options, network}, choices);
    EXPECT_EQ(library.flat_rings(CollectiveKind::all_reduce, shape), most_rings(shape));
    EXPECT_GT(most_rings(shape), 1U);
    EXPECT_EQ(library.flat_rings(CollectiveKind::all_to_all, shape), 1U);
  }
  options.algorithms = {"ring"};
  const AlgorithmChoices choices({machine, options, network});
  const CollectiveLibrary library({machine, options, network}, choices);
  EXPECT_EQ(library.flat_rings(CollectiveKind::all_reduce, shape), 1U);
}

}  // namespace
}  // namespace armilla
