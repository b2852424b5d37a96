#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/nearest_divisor.h"
#include "base/units_text.h"
#include "lower/plan.h"

namespace armilla {
namespace {

// The hint names degrees that divide `ranks`, too: those that this degree shares with the others. Where 1 is
// the only one, it says so beside those that other numbers of ranks allow.
void require_divisor(std::string_view name, std::int64_t degree, std::string_view of, std::int64_t whole,
                     std::int64_t ranks, const std::string& where) {
  if (whole == 0 || whole % degree == 0) return;
  const std::int64_t common = std::gcd(whole, ranks);
  std::string hint = fmt::format("{} could be {}", name, nearest_divisors(common, degree));
  if (common == 1 && whole > 1) {
    std::int64_t least = 2;
    while (whole % least != 0 && least * least <= whole) ++least;
    if (whole % least != 0) least = whole;
    hint +=
        fmt::format(", or on other numbers of ranks {}", nearest_divisors(whole, std::max(degree, least)));
  }
  throw Error(where, fmt::format("{} {} does not divide {} {}", name, degree, of, whole), hint,
              {std::string(name)});
}

void check_tensor(const Plan& plan, const ModelFacts& facts, const std::string& where) {
  const std::int64_t ranks = plan.tensor * plan.data();
  // Megatron-LM's condition: every tensor rank computes whole heads, equally many.
  require_divisor("plan.tensor", plan.tensor, "attention heads", facts.heads, ranks, where);
  // Fewer key and value heads than ranks are copied, each the same number of times.
  if (facts.kv_heads > 0 && facts.kv_heads % plan.tensor != 0 && plan.tensor % facts.kv_heads != 0) {
    throw Error(where,
                fmt::format("plan.tensor {} neither divides key-value heads {} nor is a multiple of them",
                            plan.tensor, facts.kv_heads),
                fmt::format("plan.tensor could be {}", plan.tensor < facts.kv_heads
                                                           ? nearest_divisors(facts.kv_heads, plan.tensor)
                                                           : nearest_multiples(facts.kv_heads, plan.tensor)),
                {"plan.tensor"});
  }
  require_divisor("plan.tensor", plan.tensor, "hidden size", facts.hidden, ranks, where);
  require_divisor("plan.tensor", plan.tensor, "feed-forward size", facts.feed_forward, ranks, where);
  // Shared experts see every token and are divided as a layer without experts is.
  require_divisor("plan.tensor", plan.tensor, "the shared experts' feed-forward size",
                  facts.shared_feed_forward, ranks, where);
  require_divisor(plan.expert_tensor > 0 ? "plan.expert_tensor" : "plan.tensor", plan.experts_tensor(),
                  "the experts' feed-forward size", facts.expert_feed_forward, ranks, where);
}

void check_sequence(const Plan& plan, const ModelFacts& facts, const std::string& where) {
  if (facts.sequence == 0) return;
  const bool ring = plan.context_method == ContextMethod::ring;
  // Causal attention around a ring is balanced by giving every rank one piece from each end.
  const std::int64_t pieces = ring ? 2 * plan.context : plan.context;
  if (plan.context > 1 && facts.sequence % pieces != 0) {
    throw Error(
        where,
        ring ? fmt::format(
                   "ring attention cuts a sequence into 2 x plan.context {0} = {1} pieces, and {2} {3} "
                   "not a multiple of {1}",
                   plan.context, pieces, typed_count(facts.sequence, "token"),
                   facts.sequence == 1 ? "is" : "are")
             : fmt::format("plan.context {} does not divide the sequence of {}", plan.context,
                           typed_count(facts.sequence, "token")),
        fmt::format("model.sequence could be {}", nearest_multiples(pieces, facts.sequence)),
        {"plan.context"});
  }
  if (plan.context > 1 && !ring && facts.heads > 0 && facts.heads % (plan.tensor * plan.context) != 0) {
    throw Error(where,
                fmt::format("plan.tensor {} x plan.context {} (all-to-all) does not divide attention "
                            "heads {}",
                            plan.tensor, plan.context, facts.heads),
                fmt::format("plan.context could be {}, or plan.context_method ring",
                            nearest_divisors(facts.heads / plan.tensor, plan.context)),
                {"plan.context", "plan.context_method", "plan.tensor"});
  }
  const std::int64_t parts = plan.tensor * plan.context;
  if (plan.sequence_parallel && plan.tensor > 1 && facts.sequence % parts != 0) {
    throw Error(where,
                fmt::format("plan.tensor {} x plan.context {} does not divide the sequence of {}, "
                            "as sequence parallelism needs",
                            plan.tensor, plan.context, typed_count(facts.sequence, "token")),
                fmt::format("model.sequence could be {}", nearest_multiples(parts, facts.sequence)),
                {"plan.tensor", "plan.context"});
  }
}

void check_expert_degrees(const Plan& plan, const ModelFacts& facts, const std::string& where) {
  if (plan.expert == 1 && plan.expert_tensor <= (facts.experts == 0 ? 1 : 0)) return;
  if (facts.experts == 0) {
    throw Error(where,
                plan.expert > 1
                    ? fmt::format("plan.expert {} for a model without experts", plan.expert)
                    : fmt::format("plan.expert_tensor {} for a model without experts", plan.expert_tensor),
                "leave it out", {plan.expert > 1 ? "plan.expert" : "plan.expert_tensor"});
  }
  // Tables are dealt out, if need be unevenly.
  if (has_tables_for_experts(facts)) {
    if (plan.expert <= facts.experts) return;
    throw Error(where,
                fmt::format("plan.expert {} for a model of {}", plan.expert, counted(facts.experts, "table")),
                fmt::format("plan.expert can be at most {}", facts.experts), {"plan.expert"});
  }
  require_divisor("plan.expert", plan.expert, "experts", facts.experts,
                  plan.tensor * plan.context * plan.data(), where);
}

// Blocks that make up stages: all but embedding and head, which join the first and the last. Stages that are
// given or balanced may hold an embedding or a head alone.
void check_stages(const Plan& plan, const Model& model, const std::string& where) {
  std::int64_t layers = std::count_if(model.blocks.begin(), model.blocks.end(), [](const Block& block) {
    return block.kind != BlockKind::embedding && block.kind != BlockKind::head;
  });
  // A graph that has not been cut into blocks yet has the layers it was found to have.
  if (model.blocks.empty()) layers = model.facts.layers;
  const auto blocks = static_cast<std::int64_t>(model.blocks.size());
  const bool even = plan.stage_blocks.empty();
  if (!even) layers = blocks;
  const std::int64_t stages = plan.pipeline * plan.virtual_stages;
  if (layers == 0 || stages <= layers) return;
  const std::string otherwise =
      even && stages <= blocks
          ? ", or plan.stage_blocks balanced: embedding and head may be stages of their own then"
          : "";
  if (plan.virtual_stages == 1) {
    throw Error(where,
                fmt::format("plan.pipeline {} for a model of {}", plan.pipeline, counted(layers, "block")),
                fmt::format("plan.pipeline can be at most {}{}", layers, otherwise), {"plan.pipeline"});
  }
  const std::int64_t most = layers / plan.pipeline;
  std::vector<std::string> keys = {"plan.virtual_stages", "plan.pipeline"};
  if (most == 0) std::swap(keys[0], keys[1]);
  throw Error(where,
              fmt::format("plan.pipeline {} x plan.virtual_stages {} = {} for a model of {}", plan.pipeline,
                          plan.virtual_stages, typed_count(stages, "stage"), counted(layers, "block")),
              (most > 0 ? fmt::format("plan.virtual_stages can be at most {}", most)
                        : fmt::format("plan.pipeline can be at most {}", layers)) +
                  otherwise,
              keys);
}

// Megatron-Core refuses more of them than a model has, too (num_layers_at_start_in_bf16). A model without
// layers has a note.
void check_wide_layers(const Plan& plan, const Model& model, const std::string& where) {
  const std::int64_t layers = std::ranges::count_if(model.blocks, [](const Block& block) {
    return block.kind == BlockKind::encoder || block.kind == BlockKind::decoder;
  });
  for (const auto& [key, wide] : {std::pair("plan.wide_first_layers", plan.wide_first_layers),
                                  std::pair("plan.wide_last_layers", plan.wide_last_layers)}) {
    if (layers == 0 || wide <= layers) continue;
    throw Error(where, fmt::format("{} {} for a model of {}", key, wide, counted(layers, "layer")),
                fmt::format("{} can be at most {}", key, layers), {key});
  }
}

// What experts get is known to the device alone, and the host waits for it, which no graph can (Megatron-Core
// refuses it, too).
void check_graphs(const Plan& plan, const ModelFacts& facts, const std::string& where) {
  if (!plan.cuda_graph_scope.has(Part::moe_layer) || facts.experts == 0 || plan.expert_capacity > 0) return;
  throw Error(where, "plan.cuda_graph_scope moe, where the host waits for the number of every expert's rows",
              "plan.expert_capacity gives all the same, or plan.cuda_graph_scope could have moe_router and "
              "moe_preprocess instead",
              {"plan.cuda_graph_scope", "plan.expert_capacity"});
}

}  // namespace

void check_plan_for_model(const Plan& plan, const Model& model, const std::string& where) {
  check_tensor(plan, model.facts, where);
  check_sequence(plan, model.facts, where);
  check_expert_degrees(plan, model.facts, where);
  check_stages(plan, model, where);
  check_wide_layers(plan, model, where);
  check_graphs(plan, model.facts, where);
}

}  // namespace armilla
