#include "lower/annotate/annotate_regions.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace armilla {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;
constexpr std::size_t kMostInterior = 256;

template <std::size_t N>
bool is_one_of(std::string_view type, const std::array<std::string_view, N>& types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

bool is_elementwise(const Operator& op) {
  constexpr std::array<std::string_view, 28> kTypes = {
      "Add",         "Sub",      "Mul",      "Div",      "Pow",       "Sqrt",    "Exp",
      "Neg",         "Erf",      "Relu",     "Gelu",     "Tanh",      "Sigmoid", "LeakyRelu",
      "Elu",         "Selu",     "Celu",     "Clip",     "HardSwish", "Swish",   "Silu",
      "HardSigmoid", "Softplus", "Softsign", "Identity", "Dropout",   "Cast",    "Where"};
  // Names count without their domain: com.microsoft's Gelu is the same function.
  const std::size_t domain = op.type.rfind('.');
  return is_one_of(domain == std::string::npos ? op.type : std::string_view(op.type).substr(domain + 1),
                   kTypes);
}

bool rearranges(const Operator& op) {
  constexpr std::array<std::string_view, 9> kTypes = {"Transpose", "Reshape", "Squeeze", "Unsqueeze", "Split",
                                                      "Slice",     "Gather",  "Concat",  "Expand"};
  return is_one_of(op.type, kTypes);
}

bool is_activation_product(const Operator& op) {
  return op.forward.kind == WorkKind::matrix && !op.weight_is_operand && op.inputs.size() == 2;
}

bool is_softmax(const Operator& op) {
  return op.type == "Softmax";
}

class RegionFinder {
 public:
  explicit RegionFinder(const Model& model)
      : model_(model),
        derived_(derived_tensors(model)),
        producer_(model.tensors.size(), kNone),
        readers_(model.tensors.size()),
        taken_(model.operators.size()) {
    for (std::uint32_t i = 0; i < model.operators.size(); ++i) {
      for (const std::uint32_t t : model.operators[i].outputs) producer_[t] = i;
      for (const std::uint32_t t : model.operators[i].inputs) readers_[t].push_back(i);
    }
    // The model's user reads its outputs, from outside of any region.
    for (const std::uint32_t t : model.outputs) readers_[t].push_back(kNone);
  }

  std::vector<SplitRegion> find() {
    std::vector<SplitRegion> regions;
    for (std::uint32_t i = 0; i < model_.operators.size(); ++i) {
      // A row product has one activation; the other operand is its weight.
      if (!is_linear(i) || model_.operators[i].inputs.size() != 1) continue;
      std::optional<SplitRegion> region = grow(i);
      if (!region || !is_closed(*region) ||
          !(has_attention(*region) ? heads_fit(*region) : features_fit(*region)))
        continue;
      taken_[i] = true;
      // Taken operators are not looked at again, so each is in one region at most.
      for (const std::uint32_t op : region->columns) taken_[op] = true;
      for (const std::uint32_t op : region->interior) taken_[op] = true;
      regions.push_back(std::move(*region));
    }
    return regions;
  }

 private:
  const Operator& op(std::uint32_t i) const { return model_.operators[i]; }

  // Convolutions are products with weights, too, but of windows.
  bool is_linear(std::uint32_t i) const {
    return is_weight_product(model_, op(i)) && op(i).type.find("Conv") == std::string::npos &&
           op(i).forward.gemms.size() == 1 && op(i).forward.gemms[0].count == 1 && !taken_[i];
  }

  // Backwards from the row product's input to the column products that everything begins with.
  std::optional<SplitRegion> grow(std::uint32_t row) const {
    SplitRegion region;
    region.row = row;
    std::vector<std::uint32_t> open = op(row).inputs;
    std::vector<std::uint32_t> seen;
    while (!open.empty()) {
      const std::uint32_t tensor = open.back();
      open.pop_back();
      // Masks and positions are made on every rank; nothing has to be divided for them.
      if (!derived_[tensor]) continue;
      const std::uint32_t i = producer_[tensor];
      // The model's input or another region before any column product: there is nothing that divides this
      // one.
      if (i == kNone || taken_[i]) return std::nullopt;
      if (std::find(seen.begin(), seen.end(), i) != seen.end()) continue;
      seen.push_back(i);
      if (is_linear(i)) {
        region.columns.push_back(i);
        continue;
      }
      if (!is_elementwise(op(i)) && !rearranges(op(i)) && !is_activation_product(op(i)) &&
          !is_softmax(op(i)) && !op(i).is_view)
        return std::nullopt;
      // Bounds the search where a graph has element-wise work only.
      if (region.interior.size() == kMostInterior) return std::nullopt;
      region.interior.push_back(i);
      open.insert(open.end(), op(i).inputs.begin(), op(i).inputs.end());
    }
    if (region.columns.empty()) return std::nullopt;
    std::sort(region.columns.begin(), region.columns.end());
    std::sort(region.interior.begin(), region.interior.end());
    return region;
  }

  // What is read outside would be there in parts only.
  bool is_closed(const SplitRegion& region) const {
    const auto inside = [&](std::uint32_t reader) {
      return reader == region.row ||
             std::binary_search(region.interior.begin(), region.interior.end(), reader);
    };
    const auto read_inside = [&](std::uint32_t i) {
      return std::all_of(op(i).outputs.begin(), op(i).outputs.end(), [&](std::uint32_t t) {
        return std::all_of(readers_[t].begin(), readers_[t].end(), inside);
      });
    };
    return std::all_of(region.columns.begin(), region.columns.end(), read_inside) &&
           std::all_of(region.interior.begin(), region.interior.end(), read_inside);
  }

  bool has_attention(const SplitRegion& region) const {
    return std::any_of(region.interior.begin(), region.interior.end(),
                       [&](std::uint32_t i) { return is_activation_product(op(i)) || is_softmax(op(i)); });
  }

  // Element by element from the outputs of one product to the inputs of the other.
  bool features_fit(const SplitRegion& region) const {
    const std::int64_t inner = op(region.row).forward.gemms[0].k;
    const auto keeps_features = [&](std::uint32_t i) {
      if (!is_elementwise(op(i)) && !op(i).is_view) return false;
      return std::all_of(op(i).outputs.begin(), op(i).outputs.end(), [&](std::uint32_t t) {
        const Shape& shape = model_.tensors[t].shape;
        // The last dimension is the features': reshapes that keep it do not change how they are divided.
        return !shape.empty() && shape.back() == inner;
      });
    };
    return std::all_of(region.columns.begin(), region.columns.end(),
                       [&](std::uint32_t i) { return op(i).forward.gemms[0].n == inner; }) &&
           std::all_of(region.interior.begin(), region.interior.end(), keeps_features);
  }

  // Every product of activations is a batch over the same heads.
  bool heads_fit(SplitRegion& region) const {
    bool softmax = false;
    std::uint32_t first = kNone, last = 0;
    for (const std::uint32_t i : region.interior) {
      softmax = softmax || is_softmax(op(i));
      if (!is_activation_product(op(i))) continue;
      if (op(i).forward.gemms.size() != 1) return false;
      const Gemm& gemm = op(i).forward.gemms[0];
      // One product per sample and head: the batch dimension of the GEMMs tells the heads.
      const std::int64_t heads = gemm.count / model_.batch;
      if (gemm.count % model_.batch != 0 || heads < 2 || (region.heads != 0 && heads != region.heads))
        return false;
      if (first == kNone) {
        first = i;
        region.sequence = gemm.m;
      }
      region.heads = heads;
      last = i;
    }
    // Scores and context are two products, with the softmax between.
    if (!softmax || first == kNone || first == last) return false;
    const auto divides = [&](std::int64_t width) { return width > 0 && width % region.heads == 0; };
    if (!divides(op(region.row).forward.gemms[0].k)) return false;
    for (const std::uint32_t i : region.columns) {
      if (!divides(op(i).forward.gemms[0].n)) return false;
    }
    for (const std::uint32_t i : region.interior) {
      if (i >= first && i <= last) region.core.push_back(i);
    }
    return true;
  }

  const Model& model_;
  std::vector<bool> derived_;
  std::vector<std::uint32_t> producer_;
  std::vector<std::vector<std::uint32_t>> readers_;  // kNone: the model's user
  std::vector<bool> taken_;                          // operators that are in a region
};

}  // namespace

bool is_weight_product(const Model& model, const Operator& op) {
  if (op.forward.kind != WorkKind::matrix || !op.weight_is_operand || op.forward.gemms.empty()) return false;
  return std::any_of(op.parameters.begin(), op.parameters.end(),
                     [&](std::uint32_t p) { return model.parameters[p].trainable; });
}

// Operators are in topological order, so inputs are known before what reads them.
std::vector<bool> derived_tensors(const Model& model) {
  std::vector<bool> derived(model.tensors.size());
  for (const Operator& op : model.operators) {
    const bool yes =
        std::any_of(op.parameters.begin(), op.parameters.end(),
                    [&](std::uint32_t p) { return model.parameters[p].trainable; }) ||
        std::any_of(op.inputs.begin(), op.inputs.end(), [&](std::uint32_t t) { return derived[t]; });
    for (const std::uint32_t t : op.outputs) derived[t] = yes;
  }
  return derived;
}

std::vector<SplitRegion> find_split_regions(const Model& model) {
  return RegionFinder(model).find();
}

}  // namespace armilla
