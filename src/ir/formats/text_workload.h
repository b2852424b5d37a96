// TextWorkload: a training iteration in the form of ASTRA-sim 1.0's text files: per layer and pass the
// compute cycles and the collective that follows. The policy decides the order of the passes, which
// collectives are issued and over which dimensions (trace/text.h).
//
// Cycles are nanoseconds at ASTRA-sim's fixed 1 GHz. Sizes are bytes per NPU in that format's convention,
// which differs from ir/collective.h for all-gather: there the NPU's own shard is given, not the whole
// output. Sources: ASTRA-sim 1.0 workload/Workload.cc; SimAI (aliyun/SimAI) adds keys to the first line and
// groups to the collectives.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "ir/collective.h"

namespace armilla {

enum class TextPolicy : std::uint8_t {
  micro,
  data,
  model,
  hybrid_data_model,
  hybrid_model_data,
  hybrid_customized,
  hybrid_dlrm,
  hybrid_dlrm_enhanced,
  hybrid_transformer,
  hybrid_transformer_fwd_in_bckwd,
  distributed_inference
};
inline constexpr std::array kTextPolicies = {TextPolicy::micro,
                                             TextPolicy::data,
                                             TextPolicy::model,
                                             TextPolicy::hybrid_data_model,
                                             TextPolicy::hybrid_model_data,
                                             TextPolicy::hybrid_customized,
                                             TextPolicy::hybrid_dlrm,
                                             TextPolicy::hybrid_dlrm_enhanced,
                                             TextPolicy::hybrid_transformer,
                                             TextPolicy::hybrid_transformer_fwd_in_bckwd,
                                             TextPolicy::distributed_inference};
std::string_view name_of(TextPolicy policy);  // "HYBRID_DATA_MODEL", as in the file
// Throws Error with "did you mean" for an unknown name.
TextPolicy text_policy(std::string_view name, const std::string& where);

bool is_dlrm(TextPolicy policy);
bool is_transformer(TextPolicy policy);
// Whether a layer of HYBRID_CUSTOMIZED can have it: not the policies that need a number from the first line.
bool is_layer_policy(TextPolicy policy);

// Whom a SimAI collective is among, written as a suffix: "", "_EP", "_DP_EP".
enum class TextGroup : std::uint8_t { by_policy, expert, data_expert };

// "ALLREDUCE", and "NONE" for no collective; empty for a kind the format cannot express.
std::string_view text_word(std::optional<CollectiveKind> kind);
std::string_view text_suffix(TextGroup group);

struct TextPass {
  std::int64_t cycles = 0;
  std::optional<CollectiveKind> collective;  // of those with a text_word
  Bytes bytes;                               // 0 exactly when there is no collective
  TextGroup group = TextGroup::by_policy;
};

struct TextLayer {
  std::string name;              // without white space
  std::int64_t dependence = -1;  // reserved: ASTRA-sim reads and ignores it
  TextPass forward, input_gradient, weight_gradient;
  std::int64_t update_cycles = 0;    // pass after each finished collective of the layer
  std::optional<TextPolicy> policy;  // exactly under HYBRID_CUSTOMIZED
};

// SimAI's keys of the first line: expert and pipeline parallelism, virtual stages, gradient accumulation,
// devices, bytes between stages. Absent: not written.
struct TextPlan {
  std::optional<std::int64_t> ep, pp, vpp, ga, all_gpus, pp_comm;
  bool operator==(const TextPlan&) const = default;
};

struct TextWorkload {
  TextPolicy policy = TextPolicy::data;
  std::vector<TextLayer> layers;
  std::int64_t last_bottom_layer = 0;     // of the DLRM policies: the embedding's output is needed after it
  std::int64_t model_parallel_group = 0;  // of the transformer policies; 0: not given (files before Oct 2020)
  std::vector<std::int64_t> checkpoints;  // layers, of HYBRID_TRANSFORMER_FWD_IN_BCKWD
  std::vector<std::int64_t> checkpoint_initiates;  // layers whose backward pass first re-runs forward passes
  TextPlan plan;
};

// The layer from which the forward passes before `initiator` run again: the nearest checkpoint at or below
// it, or -1. `checkpoints` are sorted.
std::int64_t recompute_start(const std::vector<std::int64_t>& checkpoints, std::int64_t initiator);

// White space and control characters: what a layer's name must not contain.
bool is_text_separator(char c);

// Throws Error for what a reader of the format would misread or ASTRA-sim 1.0 would hang on: names that are
// empty or contain white space, negative numbers, more cycles than kEndOfTime, a kind without a word, a
// collective of nothing (it never ends), bytes without a collective, layer policies missing or in vain,
// layers that do not exist, a recompute without a checkpoint before it.
void validate_text_workload(const TextWorkload& workload);

}  // namespace armilla
