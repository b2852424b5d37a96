#include "sim/run_memory.h"

#include "sim/memo/kept_parts.h"

namespace armilla {
namespace {

// Plans of chunks, each with its phases; schedules, which are larger, are fewer.
constexpr std::size_t kMostPlans = std::size_t{1} << 14;

}  // namespace

RunMemory::RunMemory(const Study& study) : study_(study), parts_(std::make_unique<Parts>(study)) {}

RunMemory::~RunMemory() = default;

RunMemory::Parts& RunMemory::begin_run() {
  if (parts_->planner.plans_made() > kMostPlans) parts_ = std::make_unique<Parts>(study_);
  parts_->planner.forget_groups();
  return *parts_;
}

}  // namespace armilla
