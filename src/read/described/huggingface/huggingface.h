// Hugging Face config.json -> ModelDescription, by its model_type.
//
// Key names and the meaning of absent ones follow transformers' configuration classes (LlamaConfig,
// Qwen3MoeConfig, DeepseekV3Config ...; transformers 4.57, src/transformers/models/*/configuration_*.py).
// Keys that say nothing about shapes (initializer_range, rope_theta, torch_dtype ...) are ignored. Where the
// configuration allows more than 8192 tokens, samples have 8192 unless told otherwise, with a note.
// Multi-token-prediction layers are left out, as transformers does, with a note.
// Not modelled: partial rotary dimensions, windows in some layers only, quantised weights.
#pragma once

#include <string_view>
#include <vector>

#include "base/config.h"
#include "read/described/model_description.h"

namespace armilla {

// Throws Error; for an unknown model_type with the known ones.
ModelDescription read_huggingface(const Config& config);

std::vector<std::string_view> huggingface_model_types();

}  // namespace armilla
