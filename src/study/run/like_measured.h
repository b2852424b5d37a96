// The measured steps that a run is most like, and how far off predictions of them are (docs/accuracy.md).
#pragma once

#include <optional>

#include "ir/study.h"

namespace armilla {

// Among the steps on the same device: first those that are or are not of mixtures of experts as the run
// is, then those of its precision, then those of one device or of several. Nothing where none was measured
// on the device.
std::optional<LikeMeasured> like_measured(const Plan& plan, const ModelFacts& facts, const Device& device);

}  // namespace armilla
