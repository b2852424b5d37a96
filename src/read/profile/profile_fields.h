// Fields of events in tables and documents alike.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "ir/graph.h"
#include "ir/profile.h"

namespace armilla {

// Throw Error with `where`.
Phase phase_named(const std::string& text, const std::string& where);
bool is_measured(const std::string& source, const std::string& where);
Time duration_from(double seconds, const std::string& text, const std::string& where);

// Collects events, each once per device.
class ProfileBuilder {
 public:
  explicit ProfileBuilder(std::string file) { profile_.file = std::move(file); }

  // Throws Error for shapes and types that are none, and for a computation that has another time further up.
  void add(ComputationKey key, const Measured& measured, const std::string& where);
  void add(CommunicationKey key, const Measured& measured, const std::string& where);
  Profile take() { return std::move(profile_); }

 private:
  Profile profile_;
  std::map<std::pair<ComputationKey, std::string>, Time> computations_;
  std::map<std::pair<CommunicationKey, std::string>, Time> communications_;
};

}  // namespace armilla
