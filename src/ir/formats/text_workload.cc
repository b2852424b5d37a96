#include "ir/formats/text_workload.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/suggest.h"

namespace armilla {
namespace {

// At ASTRA-sim's 1 GHz a cycle is 1000 ps, and Time counts picoseconds.
constexpr std::int64_t kMostCycles = kEndOfTime.value / 1000;

void check_cycles(std::int64_t cycles, std::string_view of, const std::string& where) {
  if (cycles < 0) throw Error(where, fmt::format("{}{} cycles", of, cycles));
  if (cycles >= kMostCycles)
    throw Error(where, fmt::format("{}{} cycles", of, cycles), fmt::format("below {}", kMostCycles));
}

void check_pass(const TextPass& pass, const std::string& where) {
  check_cycles(pass.cycles, "", where);
  if (text_word(pass.collective).empty()) {
    throw Error(where, fmt::format("the text format has no word for {}", name_of(*pass.collective)),
                "it knows all-reduce, all-gather, reduce-scatter, all-to-all and broadcast");
  }
  if (pass.collective ? pass.bytes.value <= 0 : pass.bytes.value != 0) {
    throw Error(where, fmt::format("{} of {} bytes", text_word(pass.collective), pass.bytes.value),
                "a collective needs at least 1 byte, and bytes need a collective");
  }
}

void check_layer_policy(const TextWorkload& workload, const TextLayer& layer, const std::string& where) {
  const bool wanted = workload.policy == TextPolicy::hybrid_customized;
  if (wanted != layer.policy.has_value()) {
    throw Error(
        where, wanted ? "has no policy of its own" : "has a policy of its own",
        fmt::format("under {}, and only there, every layer has one", name_of(TextPolicy::hybrid_customized)));
  }
  if (layer.policy && !is_layer_policy(*layer.policy))
    throw Error(where, fmt::format("{} is not a policy of a single layer", name_of(*layer.policy)));
}

void check_layer_index(const TextWorkload& workload, std::int64_t layer, std::string_view key) {
  const auto layers = static_cast<std::int64_t>(workload.layers.size());
  if (layer < 0 || layer >= layers) {
    throw Error(std::string(key), fmt::format("layer {} does not exist", layer),
                fmt::format("the layers are 0 to {}", layers - 1));
  }
}

void check_first_line(const TextWorkload& workload) {
  if (is_dlrm(workload.policy)) check_layer_index(workload, workload.last_bottom_layer, "last bottom layer");
  if (workload.model_parallel_group < 0) {
    throw Error("model_parallel_NPU_group", fmt::format("a group of {}", workload.model_parallel_group),
                "at least 1, or 0 for none");
  }
  for (const std::int64_t layer : workload.checkpoints) check_layer_index(workload, layer, "checkpoints");
  std::vector<std::int64_t> checkpoints = workload.checkpoints;
  std::sort(checkpoints.begin(), checkpoints.end());
  for (const std::int64_t layer : workload.checkpoint_initiates) {
    check_layer_index(workload, layer, "checkpoint_initiates");
    // A checkpoint's activations are kept: nothing has to run again to have them.
    const std::int64_t start = recompute_start(checkpoints, layer);
    if (start < 0 || start == layer) {
      throw Error("checkpoint_initiates",
                  start < 0 ? fmt::format("no checkpoint lies before layer {}", layer)
                            : fmt::format("layer {} is a checkpoint itself", layer),
                  "the layers from the nearest checkpoint up to this one run forward again");
    }
  }
}

}  // namespace

std::string_view name_of(TextPolicy policy) {
  switch (policy) {
    case TextPolicy::micro:
      return "MICRO";
    case TextPolicy::data:
      return "DATA";
    case TextPolicy::model:
      return "MODEL";
    case TextPolicy::hybrid_data_model:
      return "HYBRID_DATA_MODEL";
    case TextPolicy::hybrid_model_data:
      return "HYBRID_MODEL_DATA";
    case TextPolicy::hybrid_customized:
      return "HYBRID_CUSTOMIZED";
    case TextPolicy::hybrid_dlrm:
      return "HYBRID_DLRM";
    case TextPolicy::hybrid_dlrm_enhanced:
      return "HYBRID_DLRM_ENHANCED";
    case TextPolicy::hybrid_transformer:
      return "HYBRID_TRANSFORMER";
    case TextPolicy::hybrid_transformer_fwd_in_bckwd:
      return "HYBRID_TRANSFORMER_FWD_IN_BCKWD";
    case TextPolicy::distributed_inference:
      return "DISTRIBUTED_INFERENCE";
  }
  return "?";
}

TextPolicy text_policy(std::string_view name, const std::string& where) {
  std::vector<std::string_view> known;
  for (const TextPolicy policy : kTextPolicies) {
    if (name_of(policy) == name) return policy;
    known.push_back(name_of(policy));
  }
  throw Error(where, fmt::format("'{:.60}' is not a policy of text workloads", name),
              suggest(name, std::span<const std::string_view>(known)));
}

bool is_dlrm(TextPolicy policy) {
  return policy == TextPolicy::hybrid_dlrm || policy == TextPolicy::hybrid_dlrm_enhanced;
}

bool is_transformer(TextPolicy policy) {
  return policy == TextPolicy::hybrid_transformer || policy == TextPolicy::hybrid_transformer_fwd_in_bckwd;
}

bool is_layer_policy(TextPolicy policy) {
  return policy != TextPolicy::hybrid_customized && !is_transformer(policy);
}

std::string_view text_word(std::optional<CollectiveKind> kind) {
  if (!kind) return "NONE";
  switch (*kind) {
    case CollectiveKind::all_reduce:
      return "ALLREDUCE";
    case CollectiveKind::reduce_scatter:
      return "REDUCESCATTER";
    case CollectiveKind::all_gather:
      return "ALLGATHER";
    case CollectiveKind::all_to_all:
      return "ALLTOALL";
    case CollectiveKind::broadcast:
      return "BROADCAST";
    case CollectiveKind::reduce:
    case CollectiveKind::barrier:
      break;
  }
  return "";
}

// SimAI's suffixes for the groups of experts.
std::string_view text_suffix(TextGroup group) {
  switch (group) {
    case TextGroup::by_policy:
      return "";
    case TextGroup::expert:
      return "_EP";
    case TextGroup::data_expert:
      return "_DP_EP";
  }
  return "?";
}

std::int64_t recompute_start(const std::vector<std::int64_t>& checkpoints, std::int64_t initiator) {
  const auto after = std::upper_bound(checkpoints.begin(), checkpoints.end(), initiator);
  return after == checkpoints.begin() ? -1 : *(after - 1);
}

// White space, and the other control characters.
bool is_text_separator(char c) {
  const auto code = static_cast<unsigned char>(c);
  return code <= 0x20 || code == 0x7f;
}

void validate_text_workload(const TextWorkload& workload) {
  if (workload.layers.empty()) throw Error("text workload", "has no layers");
  for (std::size_t i = 0; i < workload.layers.size(); ++i) {
    const TextLayer& layer = workload.layers[i];
    const std::string where = fmt::format("layer {} '{}'", i, layer.name);
    if (layer.name.empty() || std::any_of(layer.name.begin(), layer.name.end(), is_text_separator))
      throw Error(where, "its name is empty or contains white space", "the format separates columns by it");
    check_pass(layer.forward, where + ", forward");
    check_pass(layer.input_gradient, where + ", input gradient");
    check_pass(layer.weight_gradient, where + ", weight gradient");
    check_cycles(layer.update_cycles, "an update of ", where);
    check_layer_policy(workload, layer, where);
  }
  check_first_line(workload);
}

}  // namespace armilla
