#include "read/scalesim.h"

#include <gmock/gmock.h>

#include "base/error_testing.h"

namespace armilla {
namespace {

using testing::ElementsAre;

constexpr std::string_view kHeader =
    "Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,\n";

SystolicTopology topology_of(std::string_view rows) {
  return parse_scalesim_topology(std::string(kHeader) + std::string(rows), "net.csv");
}

Model model(std::string_view text, const ModelOptions& options = {}) {
  return read_scalesim_model(text, "nets/net.csv", options);
}

TEST(ScaleSimTopology, ReadsConvolutions) {
  const SystolicTopology topology =
      topology_of("Conv1, 224, 112, 7, 5, 3, 64, 2,\n  Conv2 ,56,56,1,1,64,64,1,  \n");
  EXPECT_FALSE(topology.products);
  ASSERT_EQ(topology.layers.size(), 2u);
  EXPECT_EQ(topology.layers[0].name, "Conv1");
  EXPECT_EQ(topology.layers[0].shape, (ConvolutionShape{224, 112, 7, 5, 3, 64, 2, 2}));
  EXPECT_EQ(topology.layers[1].name, "Conv2");
  EXPECT_TRUE(topology.notes.empty());
}

TEST(ScaleSimTopology, ReadsProductsAsSingleRowWindows) {
  const SystolicTopology topology =
      parse_scalesim_topology("Layer,M,N,K,\nqk,128,64,256,\nav,1,2,3\n", "net.csv");
  EXPECT_TRUE(topology.products);
  ASSERT_EQ(topology.layers.size(), 2u);
  EXPECT_EQ(topology.layers[0].shape, (ConvolutionShape{128, 256, 1, 256, 1, 64, 1, 1}));
  EXPECT_EQ(topology.layers[1].shape, (ConvolutionShape{1, 3, 1, 3, 1, 2, 1, 1}));
}

TEST(ScaleSimTopology, TakesEveryVariantOfTheTable) {
  const ConvolutionShape shape = {8, 8, 3, 3, 4, 5, 2, 2};
  EXPECT_EQ(topology_of("a, 8, 8, 3, 3, 4, 5, 2\n").layers[0].shape, shape);       // no last comma
  EXPECT_EQ(topology_of("a, 8, 8, 3, 3, 4, 5, 2,,,\r\n").layers[0].shape, shape);  // empty cells, CRLF
  EXPECT_EQ(topology_of("\n# comment\n\na, 8, 8, 3, 3, 4, 5, 2,\n").layers[0].shape, shape);
  EXPECT_EQ(topology_of("a, 8, 8, 3, 3, 4, 5, 2, 1,\n").layers[0].shape.stride_width, 1);
  EXPECT_EQ(parse_scalesim_topology("\xEF\xBB\xBFLayer\tIFMAP Height\tIFMAP Width\tFilter Height\tFilter "
                                    "Width\tChannels\tNum Filter\tStrides\na\t8\t8\t3\t3\t4\t5\t2\t\n",
                                    "net.csv")
                .layers[0]
                .shape,
            shape);
}

TEST(ScaleSimTopology, SaysWhatItLeavesAside) {
  EXPECT_THAT(topology_of("AlexNet,\na, 8, 8, 3, 3, 4, 5, 2, 2:4,\n").notes,
              ElementsAre("line 2: 'AlexNet' has no sizes and is taken for a heading",
                          "1 layer has a ratio of sparsity, which is not modelled: the layers are dense"));
  EXPECT_THAT(topology_of("a, 8, 8, 3, 3, 4, 5, 2, 1:1,\n").notes, ElementsAre());
  const std::string batched =
      "Layer name,Ifmap height,ifmap width,filter height,filter width,channels,num filters,strides,batch "
      "size,\n"
      "a,8,8,3,3,4,5,2,16,\nb,8,8,3,3,4,5,2,1,\n";
  const SystolicTopology topology = parse_scalesim_topology(batched, "net.csv");
  EXPECT_EQ(topology.layers[0].shape.stride_width, 2);
  EXPECT_THAT(topology.notes,
              ElementsAre("1 layer has a batch size, which SCALE-Sim does not read: the layers are "
                          "for one image"));
}

TEST(ScaleSimTopology, ExpandsDepthwiseLayers) {
  const SystolicTopology topology = topology_of("Conv_DP, 8, 8, 3, 3, 32, 1, 1,\n");
  EXPECT_EQ(topology.layers[0].repeats, 32);
  EXPECT_EQ(topology.layers[0].shape.channels, 1);
}

TEST(ScaleSimTopology, NamesLineAndColumnOfAnError) {
  EXPECT_EQ(error_of([] { topology_of("a, 8, 8, 3, 3, 4, 5,\n"); }), "net.csv:2: layer 'a' has no Strides");
  EXPECT_EQ(error_of([] { topology_of("a, 8, B, 3, 3, 4, 5, 1,\n"); }),
            "net.csv:2: IFMAP Width of layer 'a' is not a whole number: 'B'");
  EXPECT_EQ(error_of([] { topology_of("a, 8, 8, 3, 3, 0, 5, 1,\n"); }),
            "net.csv:2: Channels of layer 'a' is 0\n  hint: sizes and strides lie between 1 and 2147483647");
  EXPECT_EQ(error_of([] { topology_of("\na, 2, 2, 3, 3, 1, 5, 1,\n"); }),
            "net.csv:3: layer 'a': a filter of 3x3 does not fit an input of 2x2\n  hint: SCALE-Sim's inputs "
            "include "
            "their padding");
  EXPECT_EQ(error_of([] { topology_of(""); }), "net.csv: holds no layer");
  EXPECT_EQ(error_of([] { parse_scalesim_topology("", "net.csv"); }),
            "net.csv: is empty\n  hint: expected a topology of SCALE-Sim");
  EXPECT_EQ(
      error_of([] { parse_scalesim_topology("a, 8, 8, 3, 3, 4, 5, 1,\n", "net.csv"); }),
      "net.csv:1: the first line of a SCALE-Sim topology names its columns, this one does not\n"
      "  hint: expected 'Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num "
      "Filter, Strides,' or 'Layer, M, N, K,'");
}

TEST(ScaleSimTopology, BecomesAModel) {
  const Model net = model(
      std::string(kHeader) + "a, 8, 8, 3, 3, 4, 5, 1,\nDP, 6, 6, 3, 3, 5, 1, 1,\na, 4, 4, 4, 4, 5, 10, 1,\n",
      {.dimensions = {}, .batch = 2});
  validate_model(net);
  EXPECT_EQ(net.name, "net");
  ASSERT_EQ(net.operators.size(), 3u);
  EXPECT_EQ(net.layers.size(), 3u);
  EXPECT_THAT(net.operators[0].forward.gemms, ElementsAre(Gemm{2 * 36, 5, 36, 1}));
  EXPECT_THAT(net.operators[1].forward.gemms, ElementsAre(Gemm{2 * 16, 1, 9, 5}));
  EXPECT_EQ(net.operators[2].name, "a#2");
  EXPECT_EQ(totals(net).parameters, 5 * 36 + 5 * 9 + 10 * 80);
  EXPECT_EQ(net.operators[0].forward.bytes.value, 4 * (2 * 256 + 180 + 2 * 180));
  EXPECT_FALSE(net.operators[0].needs_input_gradient);
  EXPECT_TRUE(net.operators[1].needs_input_gradient);
  EXPECT_EQ(error_of([] {
              model("Layer,M,N,K,\na,1,1,1,\n", {.dimensions = {{"n", 1}}, .batch = {}});
            }),
            "nets/net.csv: a SCALE-Sim topology has no symbolic dimensions and no sequence\n  hint: "
            "omit --dim and --seq");
}

TEST(ScaleSimTopology, ProductsBecomeAModel) {
  const Model net = model("Layer,M,N,K,\nqk,128,64,256,\n");
  validate_model(net);
  EXPECT_EQ(net.operators[0].type, "Gemm");
  EXPECT_THAT(net.operators[0].forward.gemms, ElementsAre(Gemm{128, 64, 256, 1}));
  EXPECT_EQ(net.parameters[0].shape, (Shape{64, 256}));
}

}  // namespace
}  // namespace armilla
