// DLRM (Naumov et al. 2019): every table is whole on one expert-parallel rank, which looks its rows up for
// the samples of all; the rest is data parallel.
#include <fmt/format.h>

#include <string>

#include "base/checked.h"
#include "read/described/described_model.h"

namespace armilla {
namespace {

TensorId add_tables(DescribedBuilder& b, const Recommendation& r) {
  const auto tables = static_cast<std::int64_t>(r.tables.size());
  const TensorId ids = b.input("sparse", {b.batch(), tables, r.lookups}, DType::int64);
  b.open_block("embedding", BlockKind::embedding, "embedding");
  std::vector<ParameterId> parameters;
  for (std::int64_t i = 0; i < tables; ++i)
    parameters.push_back(b.parameter(fmt::format("tables.{}.weight", i),
                                     {r.tables[static_cast<std::size_t>(i)], r.embedding}));
  const Shape shape = {b.batch(), tables, r.embedding};
  // `lookups` rows of a table are added up per sample, as torch.nn.EmbeddingBag does in mode "sum": all of
  // them are read, one sum is written, ids take 8 bytes each.
  const TensorId sums = b.tensor("tables", shape);
  const std::int64_t values = b.elements_of(sums);
  const std::int64_t read = checked_multiply(values, r.lookups, "embedding.tables");
  const std::int64_t id_bytes = checked_multiply(b.elements_of(ids), 8, "embedding.tables");
  Operator& op = b.add("tables", "EmbeddingBag", {ids}, {sums}, std::move(parameters));
  op.forward.kind = WorkKind::vector;
  op.forward.flops = Flops(checked_multiply(values, r.lookups - 1, op.name));
  op.forward.bytes = Bytes(checked_add(
      id_bytes, size_of(checked_add(read, values, op.name), DType::bf16, op.name).value, op.name));
  op.needs_input_gradient = false;
  // dlrm_s_pytorch.py makes its tables with sparse=True: the rows that were looked up alone have gradients.
  op.updates = read / tables;
  // Expert parallelism deals out whole tables, at most as many parts as there are tables.
  op.expert = true;
  op.ways = tables;

  // The sums travel from the ranks with the tables to the ranks with the samples: combine without a dispatch,
  // since ids are inputs of the model and known where they are needed.
  const TensorId y = b.tensor("combine", shape);
  Operator& combine = b.add("combine", "Permute", {sums}, {y});
  combine.exchange = Exchange::combine;
  combine.saves = Saves::nothing;
  return y;
}

TensorId add_layers(DescribedBuilder& b, std::string_view scope, TensorId x,
                    const std::vector<std::int64_t>& widths, bool first_needs_gradient) {
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const std::string name = fmt::format("{}.{}", scope, i);
    x = b.product(name, x, widths[i], {Split::tokens, 0, true, nullptr});
    // The bottom MLP begins with the model's input, whose gradient nobody needs.
    if (i == 0) b.last().needs_input_gradient = first_needs_gradient;
    // Only the last layer ends in a sigmoid, the predicted click rate; all others have ReLU.
    const bool is_last = scope == "top" && i + 1 == widths.size();
    x = b.elementwise({name + (is_last ? ".sigmoid" : ".relu"), is_last ? "Sigmoid" : "Relu", is_last ? 4 : 1,
                       Split::tokens, 0, Saves::output},
                      {x}, b.shape_of(x));
  }
  return x;
}

// Dot products of all pairs of the dense vector and the tables' sums, beside the dense vector itself.
TensorId add_interaction(DescribedBuilder& b, const Recommendation& r, TensorId dense, TensorId sparse) {
  const auto vectors = static_cast<std::int64_t>(r.tables.size()) + 1;
  // Pairs without a vector's product with itself: v (v - 1) / 2 numbers, though the kernel computes the full
  // v x v products.
  const TensorId y = b.tensor("interaction", {b.batch(), vectors * (vectors - 1) / 2 + r.embedding});
  Operator& op = b.add("interaction", "DotInteraction", {dense, sparse}, {y});
  b.set_matrix_work(op, {{vectors, vectors, r.embedding, b.batch(), false}});
  return y;
}

}  // namespace

void build_dlrm(DescribedBuilder& b, const ModelDescription& d) {
  const Recommendation& r = d.recommendation;
  const TensorId dense = b.input("dense", {b.batch(), r.dense_features}, DType::bf16);
  const TensorId sparse = add_tables(b, r);
  b.open_block("bottom", BlockKind::other, "bottom");
  const TensorId bottom = add_layers(b, "layers", dense, r.bottom, false);
  b.open_block("head", BlockKind::head, "head");
  const TensorId x = add_interaction(b, r, bottom, sparse);
  const TensorId labels = b.input("labels", {b.batch()}, DType::bf16);
  const TensorId clicks = add_layers(b, "top", x, r.top, true);
  b.output(b.elementwise({"loss", "BinaryCrossEntropy", 5, Split::tokens, 0, Saves::inputs}, {clicks, labels},
                         b.shape_of(clicks)));
}

}  // namespace armilla
