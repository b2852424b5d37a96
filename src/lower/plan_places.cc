#include "lower/plan_places.h"

#include <algorithm>
#include <array>
#include <utility>

namespace armilla {
namespace {

// Keys that messages call by another name.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kOtherNames = {{
    {"tensor_parallel", "tensor"},
    {"pipeline_parallel", "pipeline"},
    {"context_parallel", "context"},
    {"expert_parallel", "expert"},
    {"data_parallel", "data"},
    {"micro-batches", "micro_batches"},
}};

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz_-";

}  // namespace

std::string place_in_plan(const PlanRequest& request, std::string_view message) {
  while (!message.empty()) {
    message.remove_prefix(std::min(message.find_first_of(kLetters), message.size()));
    const std::size_t end = std::min(message.find_first_not_of(kLetters), message.size());
    std::string_view word = message.substr(0, end);
    message.remove_prefix(end);
    for (const auto& [name, key] : kOtherNames) {
      if (word == name) word = key;
    }
    const auto place = request.places.find(word);
    if (place != request.places.end() && word != "ranks") return place->second;
  }
  return request.where;
}

}  // namespace armilla
