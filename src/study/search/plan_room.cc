#include "study/search/plan_room.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "base/units_text.h"
#include "study/search/axes.h"

namespace armilla {
namespace {

void write_energy(Outcome& json, const std::optional<Energy>& energy) {
  if (energy) json["energy"] = energy->value;
}

Outcome memory_json(const MemoryUse& use) {
  Outcome json = Outcome::array();
  for (const Bytes bytes : {use.weights, use.gradients, use.optimizer, use.activations, use.temporary,
                            use.fragmentation, use.capacity})
    json.push_back(bytes.value);
  for (const Bytes bytes : use.buffers) json.push_back(bytes.value);
  return json;
}

}  // namespace

std::string reason_of(const Error& error) {
  if (error.keys.empty()) return "not legal";
  // Products of degrees that are not the ranks name them all.
  constexpr std::size_t kWholeProduct = 3;
  const std::set<std::string_view> keys(error.keys.begin(), error.keys.end());
  const auto is_degree = [](std::string_view key) {
    return key == "plan.tensor" || key == "plan.context" || key == "plan.data" || key == "plan.pipeline";
  };
  if (keys.size() >= kWholeProduct && std::ranges::all_of(keys, is_degree)) return "degrees";
  const auto is_searched = [](std::string_view key) {
    constexpr std::string_view kPlan = "plan.";
    return key.starts_with(kPlan) &&
           std::ranges::find(plan_axes(), key.substr(kPlan.size()), &PlanAxis::key) != plan_axes().end();
  };
  const auto searched = std::ranges::find_if(error.keys, is_searched);
  return searched == error.keys.end() ? error.keys.front() : *searched;
}

std::optional<Energy> energy_in(const Outcome& json) {
  if (!json.contains("energy")) return {};
  return Energy(json.at("energy").get<double>());
}

MemoryUse memory_in(const Outcome& json) {
  const auto part = [&](std::size_t i) { return Bytes(json.at(i).get<std::int64_t>()); };
  MemoryUse use{part(0), part(1), part(2), part(3), part(4), part(5), part(6)};
  for (std::size_t i = 0; i < use.buffers.size(); ++i) use.buffers[i] = part(i + 7);
  return use;
}

PlanRoom::PlanRoom(const SearchRequest& request) : space_(request), memory_share_(request.memory_share) {
  for (const SearchBase& base : space_.bases())
    evaluators_.push_back(std::make_unique<PlanEvaluator>(base.study));
  if (space_.bases().size() > kMostBases)
    throw Error("machine", "too many combinations of machines and ranks", "list fewer");
}

std::optional<BrokenLimit> PlanRoom::broken(const MemoryUse& memory) const {
  if (fits(memory)) return std::nullopt;
  return BrokenLimit{"memory", fmt::format("needs {} of the {} that it may take", to_text(memory.needed()),
                                           to_text(room(memory)))};
}

std::string PlanRoom::perform(const Piece& piece) {
  const auto base = static_cast<std::size_t>(piece.number >> (kPointBits + 1));
  const bool memory_alone = (piece.number >> kPointBits & 1) != 0;
  const std::int64_t point = piece.number & ((std::int64_t{1} << kPointBits) - 1);
  Outcome outcome = Outcome::object();
  try {
    const PlanPrepared plan = prepare(base, point);
    const MemoryUse memory = evaluators_[base]->memory(plan);
    outcome["memory"] = memory_json(memory);
    if (fits(memory) && !memory_alone) {
      if (const auto times = evaluators_[base]->simulate_within(plan, Time(piece.limit))) {
        outcome["iteration"] = times->iteration.value;
        outcome["compute"] = times->compute.value;
        outcome["exposed"] = times->exposed_communication.value;
        write_energy(outcome, times->energy);
      } else {
        outcome["longer"] = true;
      }
    }
  } catch (const Error& error) {
    outcome["reason"] = reason_of(error);
    outcome["message"] = error.message;
  }
  return outcome.dump(-1, ' ', false, Outcome::error_handler_t::replace);
}

}  // namespace armilla
