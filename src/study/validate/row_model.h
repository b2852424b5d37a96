// The model of a measured row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ir/measurement.h"
#include "ir/study.h"

namespace armilla {

// Throws Error for rows that neither describe a model nor name one.
ModelSource model_of(const MeasuredPlan& row, const std::string& where);

// What a row's words for a precision mean, whatever stands beside ("amp_fp16", "fp16 (amp)"); none: nothing
// known.
std::optional<DType> precision_named(std::string_view text);

// Megatron and Megatron-DeepSpeed before 2023, told by fp16 or by name: attention is not fused, and gradients
// are exchanged after the backward pass.
bool is_early_megatron(const MeasuredPlan& row);
// Megatron-LM and what is built on it (Megatron-DeepSpeed, Megatron-Core, NeMo), told by name.
bool is_megatron(const MeasuredPlan& row);
// PyTorch's own parallelism, told by name: attention is FlashAttention-2.
bool is_plain_pytorch(const MeasuredPlan& row);

// What a row says of a setting that its schedule, source or notes name in these words, in lower case, with
// blanks, dashes or underscores between them: nothing, that it was on, or that it was not ("no a2a overlap",
// "without DeepEP or HybridEP", "torch.compile off"). A denial reaches a few words far, not beyond a clause.
std::optional<bool> says(const MeasuredPlan& row, std::string_view setting);

// Whether the row speaks of a framework, named in lower case, and not to say that it is not used.
bool names(const MeasuredPlan& row, std::string_view framework);

// Whether the source of the row has one of the words, in lower case: an author, or the number of a paper.
bool cites(const MeasuredPlan& row, std::initializer_list<std::string_view> words);

// The value of one of Megatron-LM's arguments, which its own tests are published with: "num-experts=8; ...".
std::string argument(const MeasuredPlan& row, std::string_view name);

// The number right behind the first `word`, or 0.
std::int64_t number_after(std::string_view text, std::string_view word);

// Whether `name` begins with the words of `known`, written in whatever way.
bool begins_with_name(std::string_view name, std::string_view known);

}  // namespace armilla
