#include "lower/plan_places.h"

#include <algorithm>

namespace armilla {
namespace {

// The first key in a text that the user gave, or nullptr; `ranks` are in most messages.
const std::string* first_given(const PlanRequest& request, std::string_view text) {
  constexpr std::string_view kPrefix = "plan.";
  for (std::size_t at; (at = text.find(kPrefix)) != std::string_view::npos;) {
    text.remove_prefix(at + kPrefix.size());
    const std::string_view key = text.substr(0, text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"));
    auto place = request.places.find(key);
    // Micro-batches come from the batch where they were not given.
    for (const std::string_view origin : {"micro_batch", "batch", "global_batch"}) {
      if (key == "micro_batches" && place == request.places.end()) place = request.places.find(origin);
    }
    if (place != request.places.end() && key != "ranks") return &place->second;
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
