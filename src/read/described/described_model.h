// ModelDescription -> Model: every operator of a training step's forward pass, with parameters, parallel
// annotations (ir/model.h) and blocks (embedding, layers, head with final norm and loss).
//
// Assumed: dense attention over samples of equal length, no packing; the cross entropy keeps its
// probabilities in fp32 (Korthikanti et al. 2022, section 4.3). Cost: O(operators), a few microseconds each.
#pragma once

#include <span>
#include <string>

#include "ir/model.h"
#include "read/described/described_builder.h"
#include "read/described/model_description.h"
#include "read/read.h"

namespace armilla {

// `options` choose batch and sequence. Throws Error when they do not suit the description, and when the model
// would be absurdly large.
Model build_described_model(const ModelDescription& description, const ModelOptions& options);

// The families, each in its own source.
void build_decoder(DescribedBuilder& builder,
                   const ModelDescription& description);  // gpt, llama, mixtral, deepseek
void build_bert(DescribedBuilder& builder, const ModelDescription& description);
void build_t5(DescribedBuilder& builder, const ModelDescription& description, std::int64_t decoder_sequence);
void build_vit(DescribedBuilder& builder, const ModelDescription& description);
void build_dlrm(DescribedBuilder& builder, const ModelDescription& description);

}  // namespace armilla
