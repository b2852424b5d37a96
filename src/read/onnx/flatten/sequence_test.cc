// Sequences and optionals, and loops whose shapes change from trip to trip.
#include <gmock/gmock.h>

#include "base/error_testing.h"
#include "read/onnx/builder_testing.h"
#include "read/read.h"

namespace armilla {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Tensor& output_of(const Model& model, std::size_t i = 0) {
  return model.tensors[model.outputs[i]];
}

TEST(OnnxSequence, ElementsKeepTheirShapes) {
  const Model model = OnnxBuilder()
                          .input("a", {2, 3})
                          .input("b", {4, 5})
                          .integer("second", -1)
                          .node("SequenceConstruct", {"a", "b"}, {"both"})
                          .node("SequenceAt", {"both", "second"}, {"y"})
                          .node("SequenceLength", {"both"}, {"n"})
                          .output("y")
                          .output("both")
                          .output("n")
                          .read();
  EXPECT_EQ(output_of(model).shape, (Shape{4, 5}));
  EXPECT_EQ(output_of(model, 1).kind, ValueKind::sequence);
  EXPECT_EQ(output_of(model, 1).dtype, DType::fp32);
  EXPECT_EQ(output_of(model, 2).shape, Shape{});
}

TEST(OnnxSequence, InsertAndEraseMoveElements) {
  const OnnxBuilder builder = OnnxBuilder()
                                  .input("a", {1})
                                  .input("b", {2})
                                  .integer("zero", 0)
                                  .integer("three", 3)
                                  .node("SequenceEmpty", {}, {"s0"})
                                  .node("SequenceInsert", {"s0", "a"}, {"s1"})
                                  .node("SequenceInsert", {"s1", "b", "zero"}, {"s2"})
                                  .node("SequenceErase", {"s2"}, {"s3"});
  EXPECT_EQ(
      output_of(OnnxBuilder(builder).node("SequenceAt", {"s3", "zero"}, {"y"}).output("y").read()).shape,
      Shape{2});
  EXPECT_EQ(error_of([&] {
              OnnxBuilder(builder).node("SequenceAt", {"s3", "three"}, {"y"}).output("y").read();
            }),
            "test.onnx: node 4 (SequenceAt): has position 3 in a sequence of 1");
}

TEST(OnnxSequence, SplitAndConcatAreInverse) {
  const Model model = OnnxBuilder()
                          .input("x", {7, 4})
                          .integer("three", 3)
                          .node("SplitToSequence", {"x", "three"}, {"parts"})
                          .node("ConcatFromSequence", {"parts"}, {"y"}, {{"axis", std::int64_t{0}}})
                          .output("y")
                          .read();
  EXPECT_EQ(output_of(model).shape, (Shape{7, 4}));
  ASSERT_EQ(model.operators.size(), 2U);
  EXPECT_EQ(model.operators[0].outputs.size(), 3U);
  EXPECT_EQ(model.operators[1].forward.bytes.value, 2 * 7 * 4 * 4);
}

TEST(OnnxSequence, StackedOnANewAxis) {
  const Model model = OnnxBuilder()
                          .input("x", {3, 4})
                          .node("SplitToSequence", {"x"}, {"rows"}, {{"keepdims", std::int64_t{0}}})
                          .node("ConcatFromSequence", {"rows"}, {"y"},
                                {{"axis", std::int64_t{1}}, {"new_axis", std::int64_t{1}}})
                          .output("y")
                          .read();
  EXPECT_EQ(output_of(model).shape, (Shape{4, 3}));
}

TEST(OnnxSequence, AMapRunsForEveryElement) {
  const BuilderGraph twice = OnnxBuilder().input("e", {}).node("Add", {"e", "e"}, {"f"}).output("f").graph();
  const Model alike = OnnxBuilder()
                          .input("x", {3, 4})
                          .node("SplitToSequence", {"x"}, {"rows"})
                          .node("SequenceMap", {"rows"}, {"doubled"}, {{"body", twice}})
                          .node("ConcatFromSequence", {"doubled"}, {"y"}, {{"axis", std::int64_t{0}}})
                          .output("y")
                          .read();
  EXPECT_EQ(output_of(alike).shape, (Shape{3, 4}));
  EXPECT_EQ(totals(alike).forward_flops.value, 3 * 4);
  const Model ragged = OnnxBuilder()
                           .input("a", {3})
                           .input("b", {5})
                           .node("SequenceConstruct", {"a", "b"}, {"both"})
                           .node("SequenceMap", {"both"}, {"doubled"}, {{"body", twice}})
                           .output("doubled")
                           .read();
  EXPECT_EQ(totals(ragged).forward_flops.value, 3 + 5);
  EXPECT_EQ(output_of(ragged).kind, ValueKind::sequence);
}

TEST(OnnxSequence, TheLengthOfAnInputCanBeGiven) {
  const OnnxBuilder builder = OnnxBuilder().sequence("s").node("SequenceLength", {"s"}, {"n"}).output("n");
  EXPECT_EQ(builder.read().operators.size(), 1U);
  const Model model = builder.read({{{"s.length", 3}}, {}});
  EXPECT_TRUE(model.operators.empty());
}

TEST(OnnxSequence, AConstantThatIsPutInIsNoParameter) {
  const OnnxBuilder graph = OnnxBuilder()
                                .input("x", {3})
                                .weight("c", {3})
                                .node("SequenceConstruct", {"x", "c"}, {"s"})
                                .node("SequenceInsert", {"s", "c"}, {"y"})
                                .output("y");
  EXPECT_EQ(totals(graph.read()).parameters, 0);
}

TEST(OnnxOptional, ItsElementIsWhatWasPutIn) {
  const Model model = OnnxBuilder()
                          .input("x", {2, 3})
                          .node("Optional", {"x"}, {"o"})
                          .node("OptionalGetElement", {"o"}, {"y"})
                          .node("OptionalHasElement", {"o"}, {"has"})
                          .output("y")
                          .output("o")
                          .output("has")
                          .read();
  EXPECT_EQ(output_of(model).shape, (Shape{2, 3}));
  EXPECT_EQ(output_of(model, 1).kind, ValueKind::optional);
  EXPECT_EQ(output_of(model, 2).dtype, DType::boolean);
}

// A loop that appends a row to what it carries, and counts its trips.
OnnxBuilder growing(const std::string& trips) {
  const BuilderGraph body = OnnxBuilder()
                                .input("i", {}, 7)
                                .input("go", {}, 9)
                                .input("carried", {})
                                .node("Concat", {"carried", "row"}, {"longer"}, {{"axis", std::int64_t{0}}})
                                .node("Identity", {"go"}, {"goes_on"})
                                .output("goes_on")
                                .output("longer")
                                .graph();
  return OnnxBuilder()
      .input("row", {1, 4})
      .integer("five", 5)
      .node("Loop", {trips, "", "row"}, {"y"}, {{"body", body}})
      .output("y");
}

TEST(OnnxSubgraphs, OfBranchesWithEqualArithmeticTheFirstIsTaken) {
  const auto branch = [](float value) {
    return OnnxBuilder().reals("c", {value}).node("Neg", {"x"}, {"inside"}).output("inside").graph();
  };
  const Model model =
      OnnxBuilder()
          .input("x", {3})
          .input("condition", {}, 9)
          .node("If", {"condition"}, {"y"}, {{"then_branch", branch(1)}, {"else_branch", branch(2)}})
          .output("y")
          .read();
  EXPECT_EQ(output_of(model).name, "y");
  ASSERT_EQ(model.notes.size(), 1U);
  EXPECT_EQ(model.notes[0], "'If_0' depends on data: its then branch, the one that comes first, is taken");
}

TEST(OnnxLoop, WhatItGivesTheGraphHasTheGraphsName) {
  EXPECT_EQ(output_of(growing("five").read()).name, "y");
  const OnnxBuilder none = growing("trips").input("trips", {}, 7);
  EXPECT_EQ(output_of(none.read({{{"trips", 0}}, {}})).name, "row");  // the input itself
}

TEST(OnnxLoop, OneThatGrowsIsWrittenOut) {
  const Model model = growing("five").read();
  EXPECT_EQ(output_of(model).shape, (Shape{6, 4}));
  EXPECT_EQ(model.operators.size(), 5U);
}

TEST(OnnxLoop, TheTripCountOfAnInputCanBeGiven) {
  const OnnxBuilder builder = growing("trips").input("trips", {}, 7);
  EXPECT_EQ(error_of([&] { builder.read(); }),
            "test.onnx: node 0 (Loop): its trip count depends on data\n  hint: give it, for example --dim "
            "trips=16");
  EXPECT_EQ(output_of(builder.read({{{"trips", 2}}, {}})).shape, (Shape{3, 4}));
  EXPECT_EQ(output_of(builder.read({{{"trips", 0}}, {}})).shape, (Shape{1, 4}));
}

TEST(OnnxDimensions, TheHintNamesAnIntegerBehindArithmetic) {
  const OnnxBuilder graph = OnnxBuilder()
                                .input("n", {}, 7)
                                .integer("zero", 0)
                                .integer("one", 1)
                                .node("Add", {"n", "one"}, {"end"})
                                .node("Range", {"zero", "end", "one"}, {"y"})
                                .output("y");
  EXPECT_THAT(error_of([&] { graph.read(); }), ::testing::HasSubstr("for example --dim n=1"));
  EXPECT_EQ(output_of(graph.read({{{"n", 4}}, {}})).shape, (Shape{5}));
}

TEST(OnnxScan, UntilOperatorSetEightABatchLiesInFront) {
  const BuilderGraph body = OnnxBuilder()
                                .input("sum", {2})
                                .input("next", {2})
                                .node("Add", {"sum", "next"}, {"more"})
                                .node("Identity", {"more"}, {"now"})
                                .output("more")
                                .output("now")
                                .graph();
  const Model model = OnnxBuilder()
                          .input("start", {3, 2})
                          .input("x", {3, 5, 2})
                          .node("Scan", {"", "start", "x"}, {"end", "all"},
                                {{"num_scan_inputs", std::int64_t{1}}, {"body", body}})
                          .output("end")
                          .output("all")
                          .read({}, 8);
  EXPECT_EQ(output_of(model).shape, (Shape{3, 2}));
  EXPECT_EQ(output_of(model, 1).shape, (Shape{3, 5, 2}));
  EXPECT_EQ(totals(model).forward_flops.value, 3 * 5 * 2);
}

TEST(OnnxDimensions, ANegativeOneIsUnknown) {
  const OnnxBuilder builder =
      OnnxBuilder().input("x", {7, OnnxBuilder::kMinusOne}).node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_EQ(output_of(builder.read({{{"x.1", 4}}, {}})).shape, (Shape{7, 4}));
  EXPECT_EQ(
      error_of([&] { builder.read(); }),
      "test.onnx: these dimensions have no value: 'x.1' (dimension 1 of input 'x')\n  hint: give each one, "
      "for example --dim x.1=128");
}

}  // namespace
}  // namespace armilla
