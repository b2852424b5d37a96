#include "lower/data/tensor_owners.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "base/checked.h"

namespace armilla {
namespace {

struct Tensors {
  BucketTensors alike;
  std::size_t bucket = 0;
};

// In the order of the forward pass; buckets are in that of the backward pass.
std::vector<Tensors> all_tensors(const std::vector<WeightBucket>& buckets, GroupAxis axis) {
  std::vector<Tensors> tensors;
  for (std::size_t b = buckets.size(); b-- > 0;) {
    if (buckets[b].axis != axis) continue;
    for (std::size_t t = buckets[b].tensors.size(); t-- > 0;) tensors.push_back({buckets[b].tensors[t], b});
  }
  return tensors;
}

void give(TensorOwner& owner, const BucketTensors& tensor, std::size_t bucket) {
  owner.elements += tensor.elements;
  owner.parameters += tensor.parameters;
  const auto place = std::ranges::lower_bound(owner.buckets, bucket);
  if (place == owner.buckets.end() || *place != bucket) owner.buckets.insert(place, bucket);
}

}  // namespace

std::vector<TensorOwner> tensor_owners(const std::vector<WeightBucket>& buckets, GroupAxis axis,
                                       std::int64_t replicas, const Plan& plan) {
  std::vector<Tensors> tensors = all_tensors(buckets, axis);
  std::vector<TensorOwner> owners;
  if (plan.overlap_parameters) {
    std::int64_t all = 0;
    for (const Tensors& of : tensors) all += of.alike.elements * of.alike.count;
    const std::int64_t part = ceil_divide(all, replicas);
    for (const Tensors& of : tensors) {
      for (std::int64_t i = 0; i < of.alike.count; ++i) {
        const bool full = !owners.empty() && owners.back().elements + of.alike.elements > part;
        if (owners.empty() || (full && static_cast<std::int64_t>(owners.size()) < replicas))
          owners.emplace_back();
        give(owners.back(), of.alike, of.bucket);
      }
    }
    return owners;
  }
  std::ranges::stable_sort(tensors, std::ranges::greater{},
                           [](const Tensors& of) { return of.alike.elements; });
  // Owners by what they have. Those that have nothing yet are the first in turn.
  using Load = std::pair<std::int64_t, std::size_t>;
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (const Tensors& of : tensors) {
    for (std::int64_t i = 0; i < of.alike.count; ++i) {
      std::size_t taken = owners.size();
      if (static_cast<std::int64_t>(taken) < replicas) {
        owners.emplace_back();
      } else {
        taken = loads.top().second;
        loads.pop();
      }
      give(owners[taken], of.alike, of.bucket);
      loads.emplace(owners[taken].elements, taken);
    }
  }
  return owners;
}

std::int64_t most_owned(const std::vector<TensorOwner>& owners) {
  std::int64_t most = 0;
  for (const TensorOwner& owner : owners) most = std::max(most, owner.elements);
  return most;
}

}  // namespace armilla
