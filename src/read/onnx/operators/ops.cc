#include "read/onnx/operators/ops.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>

#include "base/checked.h"
#include "read/onnx/operators/work_rules.h"

namespace armilla {
namespace {

namespace shape = onnx_shape;
namespace work = onnx_work;
constexpr std::string_view kMicrosoft = "com.microsoft";
constexpr std::string_view kMl = "ai.onnx.ml";
constexpr std::string_view kPreview = "ai.onnx.preview";
constexpr std::string_view kTraining = "ai.onnx.preview.training";

constexpr Saves kNothing = Saves::nothing;
constexpr Saves kInputs = Saves::inputs;
constexpr Saves kOutput = Saves::output;

// Families that share everything but the name and the arithmetic.
constexpr OnnxOp unary_op(std::string_view type, std::int64_t flops, Saves saves) {
  return {"", type, shape::same_as_input, work::per_output, flops, "x", saves};
}
constexpr OnnxOp binary_op(std::string_view type, Saves saves) {
  return {"", type, shape::elementwise, work::per_output, 1, "x", saves};
}
constexpr OnnxOp compare(std::string_view type) {
  return {"", type, shape::comparison, work::per_output, 1, "c", kNothing};
}
constexpr OnnxOp reduction(std::string_view type, std::int64_t flops, Saves saves) {
  return {"", type, shape::reduce, work::per_input, flops, "xc", saves};
}
constexpr OnnxOp view(std::string_view type, OnnxShapeRule rule, std::string_view roles) {
  return {"", type, rule, work::view, 0, roles, kNothing};
}
constexpr OnnxOp mover(std::string_view type, OnnxShapeRule rule, OnnxWorkRule how, std::string_view roles,
                       Saves saves = kNothing) {
  return {"", type, rule, how, 0, roles, saves};
}

constexpr auto kOps = std::to_array<OnnxOp>({
    // Matrix products.
    {"", "Conv", shape::conv, work::conv, 0, "xww", kInputs},
    {"", "ConvTranspose", shape::conv_transpose, work::conv_transpose, 0, "xww", kInputs},
    {"", "ConvInteger", shape::conv_integer, work::conv, 0, "xicc", kInputs},
    {"", "QLinearConv", shape::qlinear_conv, work::qlinear_conv, 0, "xcciccccii", kInputs},
    {"", "DeformConv", shape::conv, work::deform_conv, 0, "xwxwx", kInputs},
    {"", "Gemm", shape::gemm, work::gemm, 0, "w", kInputs},
    {"", "MatMul", shape::matmul, work::matmul, 0, "w", kInputs},
    {"", "MatMulInteger", shape::matmul_integer, work::matmul, 0, "iicc", kInputs},
    {"", "QLinearMatMul", shape::qlinear_matmul, work::qlinear_matmul, 0, "iccicccc", kInputs},
    {"", "Einsum", shape::einsum, work::einsum, 0, "w", kInputs},
    {"", "LSTM", shape::recurrent, work::recurrent, 0, "xwwwcccw", kInputs},
    {"", "GRU", shape::recurrent, work::recurrent, 0, "xwwwcc", kInputs},
    {"", "RNN", shape::recurrent, work::recurrent, 0, "xwwwcc", kInputs},
    {"", "Attention", shape::attention, work::attention, 0, "xxxc", kInputs},
    {"", "LinearAttention", shape::linear_attention, work::linear_attention, 0, "x", kInputs},
    {"", "CausalConvWithState", shape::causal_convolution, work::causal_convolution, 0, "xwwx", kInputs},
    {kPreview, "FlexAttention", shape::attention, work::attention, 0, "x", kInputs},
    {"", "DFT", shape::fourier, work::fourier, 0, "xc", kInputs},
    {"", "STFT", shape::short_time_fourier, work::fourier, 0, "xccc", kInputs},

    // Normalisation.
    {"", "BatchNormalization", shape::batch_norm, work::batch_norm, 7, "xnnvv", kInputs},
    {"", "InstanceNormalization", shape::same_as_input, work::per_output, 7, "xnn", kInputs},
    {"", "GroupNormalization", shape::same_as_input, work::per_output, 7, "xnn", kInputs},
    {"", "LayerNormalization", shape::layer_norm, work::per_output, 7, "xnn", kInputs},
    {"", "RMSNormalization", shape::layer_norm, work::per_output, 5, "xn", kInputs},
    {"", "SimplifiedLayerNormalization", shape::layer_norm, work::per_output, 5, "xn", kInputs},
    {"", "MeanVarianceNormalization", shape::same_as_input, work::per_output, 5, "x", kInputs},
    {"", "LpNormalization", shape::same_as_input, work::per_output, 3, "x", kInputs},
    {"", "LRN", shape::same_as_input, work::local_response, 0, "x", kInputs},
    {"", "Softmax", shape::same_as_input, work::per_output, 5, "x", kOutput},
    {"", "LogSoftmax", shape::same_as_input, work::per_output, 5, "x", kOutput},
    {"", "Hardmax", shape::same_as_input, work::per_output, 1, "x", kNothing},

    // Pools.
    {"", "MaxPool", shape::pool, work::pool, 0, "x", kInputs},
    {"", "AveragePool", shape::pool, work::pool, 0, "x", kNothing},
    {"", "LpPool", shape::pool, work::pool, 0, "x", kInputs},
    {"", "GlobalAveragePool", shape::global_pool, work::per_input, 1, "x", kNothing},
    {"", "GlobalMaxPool", shape::global_pool, work::per_input, 1, "x", kInputs},
    {"", "GlobalLpPool", shape::global_pool, work::per_input, 2, "x", kInputs},
    {"", "MaxRoiPool", shape::roi_pool, work::per_input, 1, "xc", kInputs},
    {"", "RoiAlign", shape::roi_align, work::per_output, 8, "xcc", kInputs},
    {"", "MaxUnpool", shape::max_unpool, work::copy, 0, "xcc", kInputs},

    // Activations and other functions of one tensor.
    unary_op("Relu", 1, kOutput),
    unary_op("LeakyRelu", 2, kOutput),
    unary_op("ThresholdedRelu", 1, kOutput),
    unary_op("Elu", 3, kOutput),
    unary_op("Selu", 4, kOutput),
    unary_op("Celu", 4, kInputs),
    unary_op("Sigmoid", 4, kOutput),
    unary_op("HardSigmoid", 4, kOutput),
    unary_op("HardSwish", 5, kInputs),
    unary_op("Gelu", 5, kInputs),
    unary_op("Mish", 4, kInputs),
    unary_op("Swish", 5, kInputs),
    unary_op("Softplus", 3, kInputs),
    unary_op("Softsign", 3, kInputs),
    unary_op("Shrink", 2, kInputs),
    unary_op("Tanh", 1, kOutput),
    unary_op("Erf", 1, kInputs),
    unary_op("Exp", 1, kOutput),
    unary_op("Log", 1, kInputs),
    unary_op("Sqrt", 1, kOutput),
    unary_op("Reciprocal", 1, kOutput),
    unary_op("Abs", 1, kInputs),
    unary_op("Neg", 1, kNothing),
    unary_op("Sign", 1, kNothing),
    unary_op("Floor", 1, kNothing),
    unary_op("Ceil", 1, kNothing),
    unary_op("Round", 1, kNothing),
    unary_op("Sin", 1, kInputs),
    unary_op("Cos", 1, kInputs),
    unary_op("Tan", 1, kInputs),
    unary_op("Asin", 1, kInputs),
    unary_op("Acos", 1, kInputs),
    unary_op("Atan", 1, kInputs),
    unary_op("Sinh", 1, kInputs),
    unary_op("Cosh", 1, kInputs),
    unary_op("Asinh", 1, kInputs),
    unary_op("Acosh", 1, kInputs),
    unary_op("Atanh", 1, kInputs),
    unary_op("BitwiseNot", 1, kNothing),
    {"", "Clip", shape::same_as_input, work::per_output, 2, "xcc", kInputs},
    {"", "PRelu", shape::same_as_input, work::per_output, 2, "xw", kInputs},
    {"", "CumSum", shape::same_as_input, work::per_output, 1, "xc", kNothing},
    {"", "CumProd", shape::same_as_input, work::per_output, 1, "xc", kInputs},
    {"", "Trilu", shape::same_as_input, work::copy, 0, "pc", kNothing},
    {"", "Not", shape::predicate, work::per_output, 1, "c", kNothing},
    {"", "IsNaN", shape::predicate, work::per_output, 1, "c", kNothing},
    {"", "IsInf", shape::predicate, work::per_output, 1, "c", kNothing},
    {"", "Dropout", shape::dropout, work::dropout, 2, "xcc", kOutput},
    {"", "Bernoulli", shape::random, work::per_output, 1, "c", kNothing},
    {"", "RotaryEmbedding", shape::same_as_input, work::per_output, 3, "xccc", kInputs},

    // Functions of several tensors.
    binary_op("Add", kNothing),
    binary_op("Sub", kNothing),
    binary_op("Mul", kInputs),
    binary_op("Div", kInputs),
    binary_op("Mod", kNothing),
    binary_op("BitShift", kNothing),
    binary_op("BitwiseAnd", kNothing),
    binary_op("BitwiseOr", kNothing),
    binary_op("BitwiseXor", kNothing),
    {"", "Pow", shape::elementwise, work::per_output, 1, "xc", kInputs},
    {"", "Sum", shape::elementwise, work::variadic, 1, "x", kNothing},
    {"", "Mean", shape::elementwise, work::variadic, 1, "x", kNothing},
    {"", "Min", shape::elementwise, work::variadic, 1, "x", kInputs},
    {"", "Max", shape::elementwise, work::variadic, 1, "x", kInputs},
    compare("Equal"),
    compare("Less"),
    compare("LessOrEqual"),
    compare("Greater"),
    compare("GreaterOrEqual"),
    compare("And"),
    compare("Or"),
    compare("Xor"),
    {"", "Where", shape::select, work::per_output, 1, "cxx", kInputs},

    // Reductions.
    reduction("ReduceSum", 1, kNothing),
    reduction("ReduceMean", 1, kNothing),
    reduction("ReduceMax", 1, kInputs),
    reduction("ReduceMin", 1, kInputs),
    reduction("ReduceProd", 1, kInputs),
    reduction("ReduceL1", 2, kInputs),
    reduction("ReduceL2", 2, kInputs),
    reduction("ReduceSumSquare", 2, kInputs),
    reduction("ReduceLogSum", 1, kInputs),
    reduction("ReduceLogSumExp", 2, kInputs),
    {"", "ArgMax", shape::arg_reduce, work::per_input, 1, "x", kNothing},
    {"", "ArgMin", shape::arg_reduce, work::per_input, 1, "x", kNothing},
    {"", "TopK", shape::top_k, work::per_input, 1, "xc", kOutput},
    {"", "Det", shape::determinant, work::per_input, 1, "x", kInputs},
    {"", "SoftmaxCrossEntropyLoss", shape::loss, work::per_input, 5, "xcc", kInputs},
    {"", "NegativeLogLikelihoodLoss", shape::loss, work::per_input, 1, "xcc", kInputs},
    {"", "NonMaxSuppression", shape::non_max_suppression, work::per_input, 1, "x", kNothing},

    // Views.
    view("Reshape", shape::reshape, "pc"),
    view("Flatten", shape::flatten, "p"),
    view("Squeeze", shape::squeeze, "pc"),
    view("Unsqueeze", shape::unsqueeze, "pc"),
    view("Identity", shape::same_as_input, "p"),
    view("Shape", shape::shape_of, "c"),
    view("Size", shape::size_of_input, "c"),
    view("Optional", nullptr, "p"),
    view("OptionalGetElement", nullptr, "p"),
    view("OptionalHasElement", nullptr, "c"),

    // Data movement.
    mover("Transpose", shape::transpose, work::copy, "p"),
    mover("Concat", shape::concat, work::copy, "p"),
    mover("Split", shape::split, work::copy, "pc"),
    mover("Slice", shape::slice, work::copy_output, "pc"),
    mover("Gather", shape::gather, work::copy_output, "ec", kInputs),
    mover("GatherElements", shape::gather_elements, work::copy_output, "ec", kInputs),
    mover("GatherND", shape::gather_nd, work::copy_output, "ec", kInputs),
    mover("ScatterElements", shape::same_as_input, work::copy, "pcp", kInputs),
    mover("Scatter", shape::same_as_input, work::copy, "pcp", kInputs),
    mover("ScatterND", shape::same_as_input, work::copy, "pcp", kInputs),
    mover("TensorScatter", shape::same_as_input, work::copy, "pxc", kInputs),
    mover("Expand", shape::expand, work::copy, "pc"),
    mover("Tile", shape::tile, work::copy, "pc"),
    mover("Pad", shape::pad, work::copy, "pc"),
    mover("DepthToSpace", shape::depth_to_space, work::copy, "p"),
    mover("SpaceToDepth", shape::space_to_depth, work::copy, "p"),
    mover("Col2Im", shape::col2im, work::copy, "xc"),
    mover("CenterCropPad", shape::center_crop_pad, work::copy_output, "xc"),
    mover("ReverseSequence", shape::same_as_input, work::copy, "pc"),
    mover("Compress", shape::compress, work::copy_output, "xc"),
    mover("Unique", shape::unique, work::copy, "x"),
    mover("NonZero", shape::non_zero, work::copy, "c"),
    mover("OneHot", shape::one_hot, work::copy_output, "c"),
    mover("EyeLike", shape::random, work::copy_output, "c"),
    mover("Cast", shape::cast, work::cast, "p"),
    mover("CastLike", shape::cast_like, work::cast, "pc"),
    mover("BitCast", shape::bit_cast, work::view, "p"),
    mover("ConstantOfShape", shape::constant_of_shape, work::copy_output, "c"),
    mover("Range", shape::range, work::copy_output, "c"),
    mover("RandomNormal", shape::random, work::copy_output, "c"),
    mover("RandomUniform", shape::random, work::copy_output, "c"),
    mover("RandomNormalLike", shape::random, work::copy_output, "c"),
    mover("RandomUniformLike", shape::random, work::copy_output, "c"),
    mover("HannWindow", shape::window_function, work::copy_output, "c"),
    mover("HammingWindow", shape::window_function, work::copy_output, "c"),
    mover("BlackmanWindow", shape::window_function, work::copy_output, "c"),
    mover("MelWeightMatrix", shape::mel_weights, work::copy_output, "c"),
    mover("Multinomial", shape::multinomial, work::copy, "x"),
    {"", "Resize", shape::resize, work::per_output, 8, "xc", kNothing},
    {"", "Upsample", shape::resize, work::per_output, 8, "xc", kNothing},
    {"", "GridSample", shape::grid_sample, work::per_output, 8, "xx", kInputs},
    {"", "AffineGrid", shape::affine_grid, work::per_output, 4, "xc", kInputs},

    // Sequences of tensors.
    view("SequenceEmpty", nullptr, "c"),
    view("SequenceConstruct", nullptr, "c"),
    view("SequenceInsert", nullptr, "xcc"),
    view("SequenceErase", nullptr, "xc"),
    view("SequenceAt", nullptr, "xc"),
    view("SequenceLength", nullptr, "c"),
    view("SequenceMap", nullptr, "x"),
    mover("SplitToSequence", nullptr, work::copy, "xc"),
    mover("ConcatFromSequence", nullptr, work::copy, "x"),

    // What a loop hands in and out; its body follows as operators of its own.
    {"", "Loop", nullptr, work::copy, 0, "c", kNothing},
    {"", "Scan", nullptr, work::copy, 0, "c", kNothing},

    // Text.
    mover("StringConcat", shape::elementwise, work::copy, "c"),
    mover("StringNormalizer", shape::string_normalizer, work::copy, "c"),
    mover("StringSplit", shape::string_split, work::copy, "c"),
    mover("RegexFullMatch", shape::predicate, work::copy, "c"),
    mover("TfIdfVectorizer", shape::tf_idf, work::copy, "x"),
    {"", "ImageDecoder", shape::image_decoder, nullptr, 0, "c", kNothing},

    // Quantisation.
    {"", "QuantizeLinear", shape::quantize, work::per_output, 2, "pc", kNothing},
    {"", "DequantizeLinear", shape::dequantize, work::per_output, 2, "qc", kNothing},
    {"", "DynamicQuantizeLinear", shape::dynamic_quantize, work::per_output, 3, "x", kNothing},

    // Classical models; how far a sample runs down a tree is not known.
    {kMl, "ArrayFeatureExtractor", shape::feature_extractor, work::copy_output, 0, "xc", kNothing},
    {kMl, "Binarizer", shape::same_as_input, work::per_output, 1, "x", kNothing},
    {kMl, "CastMap", shape::cast_map, work::copy, 0, "x", kNothing},
    {kMl, "CategoryMapper", shape::label_encoder, work::copy, 0, "c", kNothing},
    {kMl, "DictVectorizer", shape::dict_vectorizer, work::copy, 0, "x", kNothing},
    {kMl, "FeatureVectorizer", shape::feature_vectorizer, work::copy, 0, "x", kNothing},
    {kMl, "Imputer", shape::same_as_input, work::per_output, 1, "x", kNothing},
    {kMl, "LabelEncoder", shape::label_encoder, work::copy, 0, "c", kNothing},
    {kMl, "LinearClassifier", shape::classifier, work::linear_model, 0, "x", kInputs},
    {kMl, "LinearRegressor", shape::regressor, work::linear_model, 0, "x", kInputs},
    {kMl, "Normalizer", shape::to_float, work::per_output, 3, "x", kInputs},
    {kMl, "OneHotEncoder", shape::one_hot_encoder, work::copy, 0, "c", kNothing},
    {kMl, "SVMClassifier", shape::classifier, nullptr, 0, "x", kInputs},
    {kMl, "SVMRegressor", shape::regressor, nullptr, 0, "x", kInputs},
    {kMl, "Scaler", shape::to_float, work::per_output, 2, "x", kNothing},
    {kMl, "TreeEnsemble", shape::regressor, nullptr, 0, "x", kNothing},
    {kMl, "TreeEnsembleClassifier", shape::classifier, nullptr, 0, "x", kNothing},
    {kMl, "TreeEnsembleRegressor", shape::regressor, nullptr, 0, "x", kNothing},
    {kMl, "ZipMap", nullptr, work::view, 0, "x", kNothing},

    // Training as operators of the graph itself.
    {kTraining, "Gradient", shape::gradient, nullptr, 0, "x", kNothing},
    {kTraining, "Adagrad", shape::optimizer, work::optimizer, 9, "c", kNothing},
    {kTraining, "Adam", shape::optimizer, work::optimizer, 14, "c", kNothing},
    {kTraining, "Momentum", shape::optimizer, work::optimizer, 7, "c", kNothing},

    // onnxruntime's fused operators.
    {kMicrosoft, "Attention", shape::packed_attention, work::attention, 0, "xwwc", kInputs},
    {kMicrosoft, "MultiHeadAttention", shape::multi_head_attention, work::attention, 0, "xxxwc", kInputs},
    {kMicrosoft, "GroupQueryAttention", shape::group_query_attention, work::attention, 0, "xxxc", kInputs},
    {kMicrosoft, "FusedMatMul", shape::matmul, work::matmul, 0, "w", kInputs},
    {kMicrosoft, "TransposeMatMul", shape::matmul, work::matmul, 0, "w", kInputs},
    {kMicrosoft, "FusedGemm", shape::gemm, work::gemm, 0, "w", kInputs},
    {kMicrosoft, "FusedConv", shape::conv, work::conv, 0, "xwwx", kInputs},
    {kMicrosoft, "MatMulIntegerToFloat", shape::matmul_integer, work::matmul, 0, "iiccccw", kInputs},
    {kMicrosoft, "DynamicQuantizeMatMul", shape::matmul_integer, work::matmul, 0, "xiccw", kInputs},
    {kMicrosoft, "MatMulNBits", shape::matmul_nbits, work::matmul_nbits, 0, "xicccw", kInputs},
    {kMicrosoft, "SkipLayerNormalization", shape::skip_layer_norm, work::per_output, 8, "xxnnw", kInputs},
    {kMicrosoft, "SkipSimplifiedLayerNormalization", shape::skip_layer_norm, work::per_output, 6, "xxnw",
     kInputs},
    {kMicrosoft, "EmbedLayerNormalization", shape::embed_layer_norm, work::per_output, 9, "ccwwwnnc",
     kInputs},
    {kMicrosoft, "Gelu", shape::same_as_input, work::per_output, 5, "x", kInputs},
    {kMicrosoft, "FastGelu", shape::same_as_input, work::per_output, 8, "xw", kInputs},
    {kMicrosoft, "QuickGelu", shape::same_as_input, work::per_output, 5, "x", kInputs},
    {kMicrosoft, "BiasGelu", shape::same_as_input, work::per_output, 6, "xw", kInputs},
    {kMicrosoft, "RotaryEmbedding", shape::same_as_input, work::per_output, 3, "xccc", kInputs},
    {kMicrosoft, "QuantizeLinear", shape::quantize, work::per_output, 2, "pc", kNothing},
    {kMicrosoft, "DequantizeLinear", shape::dequantize, work::per_output, 2, "qc", kNothing},
    {kMicrosoft, "QLinearAdd", shape::elementwise, work::per_output, 1, "xccxc", kNothing},
    {kMicrosoft, "QLinearMul", shape::elementwise, work::per_output, 1, "xccxc", kInputs},
    {kMicrosoft, "QLinearSigmoid", shape::same_as_input, work::per_output, 4, "xc", kOutput},
    {kMicrosoft, "QLinearLeakyRelu", shape::same_as_input, work::per_output, 2, "xc", kOutput},
    {kMicrosoft, "QLinearGlobalAveragePool", shape::global_pool, work::per_input, 1, "xc", kNothing},
    {kMicrosoft, "QLinearAveragePool", shape::pool, work::pool, 0, "xc", kNothing},
});

}  // namespace

// By type first, then by domain: a name may be another operator in another domain. Built once per process, on
// the first look-up.
const OnnxOp* find_onnx_op(std::string_view domain, std::string_view type) {
  static const std::unordered_multimap<std::string_view, const OnnxOp*> kIndex = [] {
    std::unordered_multimap<std::string_view, const OnnxOp*> index;
    for (const OnnxOp& op : kOps) index.emplace(op.type, &op);
    return index;
  }();
  const auto [first, last] = kIndex.equal_range(type);
  const auto found =
      std::find_if(first, last, [&](const auto& entry) { return entry.second->domain == domain; });
  return found == last ? nullptr : found->second;
}

// The last letter stands for all further inputs.
char role_of(const OnnxOp& op, std::size_t input) {
  return op.roles[std::min(input, op.roles.size() - 1)];
}

bool is_matrix(const OnnxOp& op) {
  return op.work == work::conv || op.work == work::qlinear_conv || op.work == work::conv_transpose ||
         op.work == work::deform_conv || op.work == work::gemm || op.work == work::matmul ||
         op.work == work::qlinear_matmul || op.work == work::matmul_nbits || op.work == work::einsum ||
         op.work == work::recurrent || op.work == work::attention || op.work == work::linear_attention ||
         op.work == work::causal_convolution || op.work == work::linear_model;
}

bool knows_work(const OnnxOp* op) {
  return op != nullptr && op->work != nullptr;
}

OnnxWork work_of(const OnnxNodeView& node, const OnnxOp* op) {
  OnnxWork result;
  if (knows_work(op)) {
    op->work(node, *op, result);
  } else {
    work::copy(node, {}, result);
  }
  // Graphs inside of the operator (FlexAttention's modifiers) are part of one execution; what stands in a
  // loop runs `repeat` times. A view costs nothing however often.
  result.work.flops = Flops(checked_add(result.work.flops.value, node.node().inner_flops, node.where()));
  if (node.node().repeat == 1 || result.is_view) return result;
  const std::int64_t repeat = node.node().repeat;
  result.work.flops = Flops(checked_multiply(result.work.flops.value, repeat, node.where()));
  result.work.bytes = Bytes(checked_multiply(result.work.bytes.value, repeat, node.where()));
  // Trips follow each other, so products are repeated, not made taller.
  for (Gemm& gemm : result.work.gemms) gemm.count = checked_multiply(gemm.count, repeat, node.where());
  return result;
}

}  // namespace armilla
