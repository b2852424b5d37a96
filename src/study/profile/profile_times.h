// Times of computations from a profile: measured ones, and interpolated ones between them (ir/profile.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "ir/machine.h"
#include "ir/profile.h"

namespace armilla {

class ProfileTimes {
 public:
  // Of the computations that were measured on `device`, or on no device that is named.
  ProfileTimes(const Profile& profile, const Device& device);

  struct Found {
    Time time;
    bool interpolated = false;
    const ComputationKey* key = nullptr;  // of the profile, where it was measured
    bool of_product = false;              // alone, whatever the operator does before
  };
  // A time that was measured for the computation; of a single product, for the product; else between the
  // nearest that enclose it. O(log computations), and O(computations of the family) to interpolate.
  std::optional<Found> find(const ComputationKey& key, const Work& work) const;

  std::int64_t size() const { return static_cast<std::int64_t>(times_.size()); }
  std::int64_t elsewhere() const { return elsewhere_; }  // measured on other devices

 private:
  struct Point {
    std::vector<double> sizes;  // logarithms
    double share = 0;           // of the best: the least possible time over the measured one
  };
  using Family = std::tuple<std::string, Phase, std::string, std::size_t>;

  void add(const MeasuredComputation& computation);
  double least_seconds(const ComputationKey& key) const;
  std::optional<Time> between(const ComputationKey& key) const;

  const Device& device_;
  std::map<ComputationKey, Time> times_;
  std::map<Family, std::vector<Point>> families_;
  std::int64_t elsewhere_ = 0;
};

}  // namespace armilla
