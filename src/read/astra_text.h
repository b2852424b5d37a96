// Text workloads (ir/formats/text_workload.h) of ASTRA-sim 1.0 and SimAI, read line by line:
//
//   POLICY [number] [key: value ...]
//   number of layers
//   name dependence  cycles collective bytes (forward)  ... (input gradient)  ... (weight gradient)  update
//
// Columns are separated by any white space; empty lines are skipped. Keys come in any order, with or without
// a space after the colon; SimAI's are known too. Under HYBRID_CUSTOMIZED a 13th column is the layer's
// policy; elsewhere ASTRA-sim 1.0 would misread the file from the next layer on, so it is ignored with a
// warning. Whatever the policy never uses is a warning; what would hang or abort ASTRA-sim is an Error.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/formats/text_workload.h"

namespace armilla {

// `name` is for messages. Warnings ("FILE:LINE:COLUMN: ...") are appended; nullptr drops them. Throws Error
// with file, line and column.
TextWorkload read_astra_text(std::span<const char> bytes, const std::string& name,
                             std::vector<std::string>* warnings);

// Whether the first word is a policy.
bool looks_like_astra_text(std::span<const char> beginning);

}  // namespace armilla
