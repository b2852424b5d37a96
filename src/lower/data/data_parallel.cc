#include "lower/data_parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "base/error.h"
#include "ir/derived/backward.h"

namespace armilla {
namespace {

constexpr std::uint32_t kNothing = UINT32_MAX;

// Activations are kept and computed in the plan's precision; parameters keep their own type.
Work in_precision(Work work, const Plan& plan) {
  if (!is_floating(work.dtype) || work.dtype == plan.precision) return work;
  work.bytes = Bytes(static_cast<std::int64_t>(static_cast<double>(work.bytes.value) *
                                               bits_of(plan.precision) / bits_of(work.dtype)));
  work.dtype = plan.precision;
  return work;
}

Bytes bytes_of(const Parameter& parameter) {
  return size_of(parameter.elements, parameter.dtype, parameter.name);
}

// Trainable parameters in the order in which the backward pass completes their gradients.
std::vector<std::uint32_t> completion_order(const Model& model) {
  std::vector<bool> seen(model.parameters.size());
  std::vector<std::uint32_t> by_first_use;
  for (const Operator& op : model.operators) {
    for (const std::uint32_t p : op.parameters) {
      if (!seen[p] && model.parameters[p].trainable) by_first_use.push_back(p);
      seen[p] = true;
    }
  }
  std::reverse(by_first_use.begin(), by_first_use.end());
  return by_first_use;
}

// Builds the one program of all ranks.
class Builder {
 public:
  Builder(const Model& model, const Plan& plan) : model_(model), plan_(plan) {
    graph_.ranks = plan.ranks;
    graph_.programs.emplace_back().role = "data-parallel rank";
    graph_.program_of.assign(static_cast<std::size_t>(plan.ranks), 0);
    graph_.families.push_back(world_family(plan.ranks));
    graph_.families.back().name = "data";
    gradient_of_.assign(model.parameters.size(), kNothing);
    layer_of_.assign(model.operators.size(), -1);
    for (std::size_t l = 0; l < model.layers.size(); ++l) {
      graph_.layers.push_back(model.layers[l].name);
      for (std::uint32_t i = model.layers[l].first; i < model.layers[l].end; ++i)
        layer_of_[i] = static_cast<std::int32_t>(l);
    }
    for (const Operator& op : model.operators) {
      forward_.push_back(intern(in_precision(op.forward, plan)));
      input_gradient_.push_back(intern(in_precision(input_gradient(model, op), plan)));
      weight_gradient_.push_back(intern(in_precision(weight_gradient(model, op), plan)));
      names_.push_back(name(op.name));
    }
  }

  Graph build() {
    const std::vector<GradientBucket> buckets = gradient_buckets(model_, plan_);
    for (std::int64_t i = 0; i < plan_.micro_batches; ++i) {
      for (std::uint32_t op = 0; op < model_.operators.size(); ++op)
        compute(Phase::forward, op, forward_[op]);
      backward();
    }
    exchange(buckets);
    return std::move(graph_);
  }

 private:
  Program& program() { return graph_.programs[0]; }

  std::uint32_t name(std::string_view text) { return graph_.names.add(text); }

  // Equal work is stored once, so that it is costed once.
  std::uint32_t intern(const Work& work) {
    std::string key = fmt::format("{} {} {} {}", static_cast<int>(work.kind), static_cast<int>(work.dtype),
                                  work.flops.value, work.bytes.value);
    for (const Gemm& g : work.gemms) key += fmt::format(" {} {} {} {}", g.m, g.n, g.k, g.count);
    const auto [found, fresh] =
        works_.try_emplace(std::move(key), static_cast<std::uint32_t>(graph_.works.size()));
    if (fresh) graph_.works.push_back(work);
    return found->second;
  }

  // A kernel after the previous one of the rank; operators without work leave no node.
  void compute(Phase phase, std::uint32_t op, std::uint32_t work) {
    if (graph_.works[work].kind == WorkKind::none) return;
    add_kernel(phase, names_[op], layer_of_[op], work);
  }

  void add_kernel(Phase phase, std::uint32_t kernel_name, std::int32_t layer, std::uint32_t work) {
    const std::span<const std::uint32_t> after =
        last_ == kNothing ? std::span<const std::uint32_t>() : std::span(&last_, 1);
    last_ = program().add(NodeKind::compute, phase, kernel_name, layer, work, after);
  }

  void backward() {
    for (std::uint32_t i = static_cast<std::uint32_t>(model_.operators.size()); i-- > 0;) {
      const Operator& op = model_.operators[i];
      compute(Phase::weight_gradient, i, weight_gradient_[i]);
      // A norm's or bias's gradients fall out of the input-gradient kernel, those of a matrix product are
      // complete before it.
      if (op.weight_is_operand) note_gradients(op);
      compute(Phase::input_gradient, i, input_gradient_[i]);
      if (!op.weight_is_operand) note_gradients(op);
    }
  }

  // Uses that come earlier in forward order are noted later and overwrite: then the gradient is complete.
  void note_gradients(const Operator& op) {
    for (const std::uint32_t p : op.parameters) gradient_of_[p] = last_;
  }

  void exchange(const std::vector<GradientBucket>& buckets) {
    const std::uint32_t backward_end = last_;
    std::vector<std::uint32_t> exchanged(buckets.size(), kNothing);
    for (std::size_t b = 0; b < buckets.size() && plan_.ranks > 1; ++b) {
      std::uint32_t after = plan_.overlap ? 0 : backward_end;
      for (const std::uint32_t p : buckets[b].parameters) {
        if (gradient_of_[p] != kNothing) after = std::max(after, gradient_of_[p]);
      }
      graph_.collectives.push_back(
          {CollectiveKind::all_reduce, buckets[b].bytes, 0, 0, -static_cast<std::int32_t>(b)});
      const std::int32_t layer = layer_of_parameter(buckets[b].parameters.back());
      const std::span<const std::uint32_t> dependence =
          backward_end == kNothing ? std::span<const std::uint32_t>() : std::span(&after, 1);
      exchanged[b] = program().add(NodeKind::collective, Phase::gradient_exchange,
                                   name(fmt::format("gradient bucket {}", b)), layer,
                                   graph_.collectives.size() - 1, dependence);
    }
    for (std::size_t b = 0; b < buckets.size(); ++b) update(buckets[b], b, exchanged, backward_end);
  }

  // Reads weight, gradient and state, writes weight and state.
  void update(const GradientBucket& bucket, std::size_t index, const std::vector<std::uint32_t>& exchanged,
              std::uint32_t backward_end) {
    std::int64_t elements = 0;
    for (const std::uint32_t p : bucket.parameters) elements += model_.parameters[p].elements;
    const int states = state_words(plan_.optimizer);
    Work work;
    work.kind = WorkKind::vector;
    work.dtype = DType::fp32;
    work.flops = Flops(elements * (2 + 4 * states));
    work.bytes = bucket.bytes * 3 + Bytes(elements * 4 * 2 * states);
    std::vector<std::uint32_t> after;
    if (backward_end != kNothing) after.push_back(backward_end);
    std::copy_if(exchanged.begin(), exchanged.end(), std::back_inserter(after),
                 [](std::uint32_t node) { return node != kNothing; });
    program().add(NodeKind::compute, Phase::optimizer, name(fmt::format("optimizer, bucket {}", index)), -1,
                  intern(work), after);
  }

  std::int32_t layer_of_parameter(std::uint32_t parameter) const {
    for (std::size_t l = 0; l < model_.layers.size(); ++l) {
      const Layer& layer = model_.layers[l];
      const auto holds = [&](const std::vector<std::uint32_t>& all) {
        return std::find(all.begin(), all.end(), parameter) != all.end();
      };
      if (holds(layer.weights) || holds(layer.other_parameters)) return static_cast<std::int32_t>(l);
    }
    return -1;
  }

  const Model& model_;
  const Plan& plan_;
  Graph graph_;
  std::map<std::string, std::uint32_t> works_;
  std::vector<std::uint32_t> forward_, input_gradient_, weight_gradient_;  // works, per operator
  std::vector<std::uint32_t> names_;                                       // per operator
  std::vector<std::int32_t> layer_of_;                                     // per operator
  std::vector<std::uint32_t> gradient_of_;  // per parameter, the node after which its gradient is complete
  std::uint32_t last_ = kNothing;           // the rank's latest kernel
};

}  // namespace

std::vector<GradientBucket> gradient_buckets(const Model& model, const Plan& plan) {
  std::vector<GradientBucket> buckets;
  for (const std::uint32_t p : completion_order(model)) {
    const Bytes limit = buckets.size() <= 1 ? plan.first_bucket : plan.bucket;
    if (buckets.empty() || buckets.back().bytes >= limit) buckets.emplace_back();
    buckets.back().parameters.push_back(p);
    buckets.back().bytes += bytes_of(model.parameters[p]);
  }
  return buckets;
}

Graph lower_data_parallel(const Model& model, const Plan& plan) {
  validate_plan(plan, "plan");
  if (model.batch != plan.batch / plan.micro_batches) {
    throw Error("plan", fmt::format("the model was read for {} samples, a micro-batch has {}", model.batch,
                                    plan.batch / plan.micro_batches));
  }
  constexpr std::int64_t kMostNodes = 100'000'000;
  if (plan.micro_batches > kMostNodes / (3 * static_cast<std::int64_t>(model.operators.size()) + 1)) {
    throw Error("plan",
                fmt::format("{} micro-batches of a model of {} operators", plan.micro_batches,
                            model.operators.size()),
                fmt::format("the execution graph is limited to {} nodes per rank", kMostNodes));
  }
  Graph graph = Builder(model, plan).build();
  validate_graph(graph);
  return graph;
}

}  // namespace armilla
