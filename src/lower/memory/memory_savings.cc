#include "lower/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/units_text.h"

namespace armilla {
namespace {

struct Option {
  std::string_view key;  // of the plan
  std::string name;      // where the user gave no such key
  Plan without;
  std::string_view cost;
  std::string_view reason;  // where there is one to give
};

bool has_flash_attention(const Model& model) {
  return std::any_of(model.operators.begin(), model.operators.end(),
                     [](const Operator& op) { return op.core_attention && op.repeated_forward > 0; });
}

std::vector<Option> options_of(const Model& model, const Plan& plan) {
  std::vector<Option> options;
  const auto add = [&](std::string_view key, std::string name, std::string_view cost, auto&& change,
                       std::string_view reason = {}) {
    Option option{key, std::move(name), plan, cost, reason};
    // Uneven loads would make the comparison one of the heaviest position only, at many times the cost.
    option.without.expert_load = ExpertLoad::uniform;
    change(option.without);
    options.push_back(std::move(option));
  };
  if (plan.recompute != Recompute::none) {
    const bool no_blocks = plan.recompute == Recompute::block && plan.recompute_blocks == 0;
    const bool flash = plan.recompute == Recompute::selective &&
                       plan.recompute_modules == Parts{Part::core_attn} && has_flash_attention(model);
    add(
        plan.recompute == Recompute::block ? "recompute_blocks" : "recompute",
        fmt::format("recompute {}", name_of(plan.recompute)),
        no_blocks ? "no block is computed again" : "what is computed again takes time",
        [](Plan& without) { without.recompute = Recompute::none; },
        flash ? "flash attention keeps nothing that could be freed" : "");
  }
  if (plan.sequence_parallel && plan.tensor > 1)
    add("sequence_parallel", "sequence_parallel", "",
        [](Plan& without) { without.sequence_parallel = false; });
  // Of an optimizer on the host, stage 1 shards what is not on the device, and what crosses the link to it.
  const bool on_host = plan.offload_optimizer && plan.zero_stage == 1;
  if (plan.zero_stage > 0 && plan.context * plan.data() > 1 && !on_host) {
    add("zero", fmt::format("ZeRO stage {}", plan.zero_stage), "its collectives take time",
        [](Plan& without) {
          // One stage less, so that the message tells what this stage adds.
          --without.zero_stage;
          without.hybrid_shard = 0;
        });
  }
  if (plan.offload_optimizer)
    add("offload", "offload of the optimizer", "the transfers take time",
        [](Plan& without) { without.offload_optimizer = false; });
  if (plan.offload_activations) {
    add(
        "offload", "offload of activations", "the transfers take time",
        [](Plan& without) { without.offload_activations = false; },
        "the block at work and the one on its way stay on the device");
  }
  return options;
}

}  // namespace

std::vector<std::string> options_without_savings(const PlanRequest& request, const Model& model,
                                                 const Plan& plan, const Device& device) {
  std::vector<std::string> sentences;
  Plan even = plan;
  even.expert_load = ExpertLoad::uniform;
  const std::vector<Option> options = options_of(model, plan);
  if (options.empty()) return sentences;
  const std::optional<MemoryUse> with = largest_use(model, even, device);
  if (!with) return sentences;
  for (const Option& option : options) {
    const std::optional<MemoryUse> without = largest_use(model, option.without, device);
    // Below the peak without it: it saves something, which is all a user has to know.
    if (!without || with->peak() < without->peak()) continue;
    const auto place = request.places.find(option.key);
    std::string text = place != request.places.end() ? place->second : option.name;
    // One flag can name both kinds of offload.
    if (option.key == "offload" && plan.offload_optimizer && plan.offload_activations) text = option.name;
    text += with->peak() == without->peak()
                ? fmt::format(" saves no memory: the peak is {} with and without it", to_text(with->peak()))
                : fmt::format(" saves no memory: the peak is {}, without it {}", to_text(with->peak()),
                              to_text(without->peak()));
    if (option.key == "zero") text += fmt::format(" (under ZeRO-{})", plan.zero_stage - 1);
    if (!option.reason.empty()) text += fmt::format(" ({})", option.reason);
    if (!option.cost.empty()) text += fmt::format("; {}", option.cost);
    sentences.push_back(std::move(text));
  }
  return sentences;
}

}  // namespace armilla
