// TextWorkload: a training iteration in the form of ASTRA-sim 1.0's text files: per layer and pass the
// compute cycles and the collective that follows.
//
// Cycles are nanoseconds at ASTRA-sim's fixed 1 GHz. Sizes are bytes per NPU in that format's convention,
// which differs from ir/collective.h for all-gather: there the NPU's own shard is given, not the whole
// output. Of the file's policies these are the four that the workload generator writes
// (scripts/workload_generator of ASTRA-sim 1.0); the policy decides which collectives the simulator issues
// and over which dimensions.
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

enum class TextPolicy : std::uint8_t { data, model, hybrid_data_model, hybrid_model_data };
inline constexpr std::array kTextPolicies = {TextPolicy::data, TextPolicy::model,
                                             TextPolicy::hybrid_data_model, TextPolicy::hybrid_model_data};
std::string_view name_of(TextPolicy policy);  // "HYBRID_DATA_MODEL", as in the file
// Throws Error with "did you mean" for an unknown name.
TextPolicy text_policy(std::string_view name, const std::string& where);

// "ALLREDUCE", and "NONE" for no collective; empty for a kind the format cannot express.
std::string_view text_word(std::optional<CollectiveKind> kind);

struct TextPass {
  std::int64_t cycles = 0;
  std::optional<CollectiveKind> collective;  // all-reduce, all-gather, reduce-scatter or all-to-all
  Bytes bytes;                               // 0 exactly when there is no collective
};

struct TextLayer {
  std::string name;              // without white space
  std::int64_t dependence = -1;  // reserved: ASTRA-sim reads and ignores it
  TextPass forward, input_gradient, weight_gradient;
  std::int64_t update_cycles = 0;  // passes after each finished collective of the layer
};

struct TextWorkload {
  TextPolicy policy = TextPolicy::data;
  std::vector<TextLayer> layers;
};

// White space and control characters: what a layer's name must not contain.
bool is_text_separator(char c);

// Throws Error for what a reader of the format would misread: names that are empty or contain white space,
// negative numbers, a kind without a word, a collective of nothing (it never ends), bytes without a
// collective.
void validate_text_workload(const TextWorkload& workload);

}  // namespace armilla
