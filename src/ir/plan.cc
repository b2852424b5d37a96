#include "ir/plan.h"

#include <fmt/format.h>

#include "base/error.h"

namespace armilla {

std::string_view name_of(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::sgd:
      return "sgd";
    case Optimizer::momentum:
      return "momentum";
    case Optimizer::adam:
      return "adam";
  }
  return "?";
}

int state_words(Optimizer optimizer) {
  return static_cast<int>(optimizer);
}

void validate_plan(const Plan& plan, const std::string& where) {
  constexpr std::int64_t kMostRanks = std::int64_t{1} << 24;
  if (plan.ranks < 1 || plan.ranks > kMostRanks) {
    throw Error(where, fmt::format("{} ranks", plan.ranks),
                fmt::format("ranks must be between 1 and {}", kMostRanks));
  }
  if (plan.batch < 1)
    throw Error(where, fmt::format("a batch of {} per rank", plan.batch), "the batch must be at least 1");
  if (plan.micro_batches < 1)
    throw Error(where, fmt::format("{} micro-batches", plan.micro_batches), "there must be at least 1");
  if (plan.batch % plan.micro_batches != 0) {
    throw Error(where, fmt::format("{} micro-batches do not divide the batch of {} per rank",
                                   plan.micro_batches, plan.batch));
  }
  if (plan.bucket.value < 1 || plan.first_bucket.value < 1)
    throw Error(where, "a gradient bucket must hold at least 1 byte");
}

}  // namespace armilla
