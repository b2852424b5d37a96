#include "sim/run_memory.h"

#include <algorithm>

#include "sim/run/kept_parts.h"

namespace armilla {

RunMemory::RunMemory(const Study& study, const KeptAtMost& most)
    : study_(study), most_(most), parts_(std::make_unique<Parts>(study, most)) {}

RunMemory::~RunMemory() = default;

RunMemory::Parts& RunMemory::begin_run() {
  if (parts_->planner.plans_made() > most_.plans) parts_ = std::make_unique<Parts>(study_, most_);
  KnownPlays& plays = parts_->plays;
  if (std::max(plays.remembered, plays.links_remembered) > most_.remembered) plays = {};
  parts_->planner.forget_groups();
  return *parts_;
}

}  // namespace armilla
