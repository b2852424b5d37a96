// Text workloads (ir/formats/text_workload.h) as files.
//
// ASTRA-sim 1.0's text: the policy with its numbers, the number of layers, then per layer twelve
// tab-separated columns: name, -1, and for forward, input gradient and weight gradient each cycles,
// collective and bytes, last the update cycles; under HYBRID_CUSTOMIZED the layer's policy. Elsewhere a
// thirteenth column, which the old generator wrote, would be misread from the second layer on.
// JSON is schema "armilla.text_workload/1"; docs/formats/text_workload.md describes all three. Each function
// throws the Error of validate_text_workload.
#pragma once

#include <string>

#include "ir/formats/text_workload.h"

namespace armilla {

std::string write_astra_text(const TextWorkload& workload);
std::string write_text_workload_json(const TextWorkload& workload);
std::string write_text_workload_csv(const TextWorkload& workload);

}  // namespace armilla
