// For tests: all that was told of how far something is.
#pragma once

#include <string>
#include <vector>

#include "base/progress.h"

namespace armilla {

struct ToldProgress final : Progress {
  void begin(std::string_view step) override { steps += step; }
  void update(double share) override { shares.push_back(share); }
  void remark(std::string_view text) override { last = text; }

  std::string steps, last;
  std::vector<double> shares;
};

}  // namespace armilla
