#include "lower/plan_places.h"

#include <algorithm>
#include <array>
#include <utility>

namespace armilla {
namespace {

// Keys that messages call by another name.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kOtherNames = {{
    {"tensor_parallel", "tensor"},
    {"pipeline_parallel", "pipeline"},
    {"context_parallel", "context"},
    {"expert_parallel", "expert"},
    {"expert_tensor_parallel", "expert_tensor"},
    {"data_parallel", "data"},
    {"micro-batches", "micro_batches"},
    {"chunks", "virtual_stages"},
}};

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz_-";

// The first key in a text that the user gave, or nullptr; `ranks` are in most messages.
const std::string* first_given(const PlanRequest& request, std::string_view text) {
  while (!text.empty()) {
    text.remove_prefix(std::min(text.find_first_of(kLetters), text.size()));
    const std::size_t end = std::min(text.find_first_not_of(kLetters), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(end);
    for (const auto& [name, key] : kOtherNames) {
      if (word == name) word = key;
    }
    auto place = request.places.find(word);
    // Micro-batches come from the batch where they were not given.
    for (const std::string_view key : {"micro_batch", "batch", "global_batch"}) {
      if (word == "micro_batches" && place == request.places.end()) place = request.places.find(key);
    }
    if (place != request.places.end() && word != "ranks") return &place->second;
  }
  return nullptr;
}

}  // namespace

std::string place_in_plan(const PlanRequest& request, std::string_view message, std::string_view hint) {
  for (const std::string_view text : {hint, message}) {
    if (const std::string* const place = first_given(request, text)) return *place;
  }
  // Of a plan that is made of flags alone, the first flag says nothing.
  const bool is_flag = request.where.empty() || request.where.starts_with("--");
  return is_flag ? std::string(kWholePlan) : request.where;
}

}  // namespace armilla
