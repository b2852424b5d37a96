#include "lower/data/tensor_owners.h"

#include <gtest/gtest.h>

namespace armilla {
namespace {

WeightBucket bucket_of(std::vector<std::int64_t> tensors, GroupAxis axis = GroupAxis::data) {
  WeightBucket bucket;
  bucket.axis = axis;
  for (const std::int64_t elements : tensors) bucket.tensors.push_back({elements, 1, Bytes(2 * elements)});
  return bucket;
}

std::vector<std::int64_t> elements_of(const std::vector<TensorOwner>& owners) {
  std::vector<std::int64_t> elements;
  for (const TensorOwner& owner : owners) elements.push_back(owner.elements);
  return elements;
}

using Elements = std::vector<std::int64_t>;

TEST(TensorOwners, GetTheLongestFirstAndThenWhoHasLeast) {
  Plan plan;
  plan.overlap_parameters = false;
  const std::vector<WeightBucket> buckets = {bucket_of({3, 9}), bucket_of({5, 4, 1})};
  const std::vector<TensorOwner> owners = tensor_owners(buckets, GroupAxis::data, 2, plan);
  // 9 | 5, then 4 to the second, 3 and 1 to whoever has less.
  EXPECT_EQ(elements_of(owners), (Elements{12, 10}));
  EXPECT_EQ(owners[0].parameters, Bytes(24));
  EXPECT_EQ(owners[0].buckets, (std::vector<std::size_t>{0}));
  EXPECT_EQ(owners[1].buckets, (std::vector<std::size_t>{1}));
  EXPECT_EQ(most_owned(owners), 12);
}

TEST(TensorOwners, AreNoMoreThanTensors) {
  Plan plan;
  plan.overlap_parameters = false;
  const std::vector<WeightBucket> buckets = {bucket_of({3, 9}), bucket_of({7}, GroupAxis::expert_data)};
  EXPECT_EQ(elements_of(tensor_owners(buckets, GroupAxis::data, 8, plan)), (Elements{9, 3}));
  EXPECT_EQ(elements_of(tensor_owners(buckets, GroupAxis::expert_data, 8, plan)), (Elements{7}));
  EXPECT_EQ(most_owned(tensor_owners({}, GroupAxis::data, 8, plan)), 0);
}

TEST(TensorOwners, CountTensorsThatAreAlike) {
  Plan plan;
  plan.overlap_parameters = false;
  std::vector<WeightBucket> buckets = {bucket_of({4})};
  buckets[0].tensors[0].count = 5;
  EXPECT_EQ(elements_of(tensor_owners(buckets, GroupAxis::data, 2, plan)), (Elements{12, 8}));
}

TEST(TensorOwners, GetThemInTheOrderOfTheForwardPassWhereThatGoesOn) {
  Plan plan;
  plan.overlap_parameters = true;
  // The forward pass has the last bucket first, and what stands last in it.
  const std::vector<WeightBucket> buckets = {bucket_of({4, 1}), bucket_of({2, 3})};
  const std::vector<TensorOwner> owners = tensor_owners(buckets, GroupAxis::data, 2, plan);
  EXPECT_EQ(elements_of(owners), (Elements{5, 5}));
  EXPECT_EQ(owners[0].buckets, (std::vector<std::size_t>{1}));
  // The last one has what is left over.
  EXPECT_EQ(elements_of(tensor_owners(buckets, GroupAxis::data, 3, plan)), (Elements{3, 3, 4}));
}

}  // namespace
}  // namespace armilla
