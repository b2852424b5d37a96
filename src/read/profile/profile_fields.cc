#include "read/profile/profile_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.h"
#include "base/suggest.h"
#include "base/units_text.h"
#include "ir/collective.h"

namespace armilla {

Phase phase_named(const std::string& text, const std::string& where) {
  std::vector<std::string_view> names;
  for (const Phase phase : {Phase::forward, Phase::input_gradient, Phase::weight_gradient,
                            Phase::gradient_exchange, Phase::optimizer, Phase::other}) {
    if (text == name_of(phase)) return phase;
    names.push_back(name_of(phase));
  }
  throw Error(where, fmt::format("unknown phase '{:.60}'", text),
              suggest(text, std::span<const std::string_view>(names)));
}

bool is_measured(const std::string& source, const std::string& where) {
  constexpr std::array<std::string_view, 5> kSources = {"measured", "modelled", "interpolated", "given",
                                                        "simulated"};
  if (std::find(kSources.begin(), kSources.end(), source) == kSources.end())
    throw Error(where, fmt::format("unknown source '{:.60}'", source), suggest(source, kSources));
  return source == "measured";
}

Time duration_from(double seconds, const std::string& text, const std::string& where) {
  if (!(seconds >= 0) || from_seconds(seconds) >= kEndOfTime)
    throw Error(where, fmt::format("{:.60} is not a duration", text), "expected seconds, such as 0.000125");
  return from_seconds(seconds);
}

namespace {

void check_time(Time time, const std::string& where) {
  if (!(time > Time(0))) throw Error(where, "a time of 0", "nothing takes no time: leave it out");
}

}  // namespace

void ProfileBuilder::add(ComputationKey key, const Measured& measured, const std::string& where) {
  check_time(measured.time, where);
  if (key.flops < 0 || key.bytes < 0)
    throw Error(where, fmt::format("{} flops and {} bytes", key.flops, key.bytes),
                "expected at least 0 of each");
  const std::optional<std::vector<Gemm>> gemms = shapes_from(key.shapes);
  if (!gemms)
    throw Error(where, fmt::format("unknown shapes '{:.60}'", key.shapes),
                "matrix products as m x n x k, such as 4096x1024x1024 or 2 x 64x64x128, 2 x 64x128x64");
  key.shapes = shapes_text(*gemms);  // "1 x 64x64x64" is "64x64x64"
  const auto dtype = dtype_from_name(key.type);
  if (!dtype) throw Error(where, fmt::format("unknown type '{:.60}'", key.type), "for example bf16");
  key.type = name_of(*dtype);
  // Twice the same does no harm; of two times nobody could say which is right.
  const auto [found, fresh] = computations_.try_emplace({key, measured.device}, measured.time);
  if (!fresh && found->second != measured.time)
    throw Error(where, fmt::format("'{}' has another time further up", key.name));
  if (fresh) profile_.computations.push_back({std::move(key), measured});
}

void ProfileBuilder::add(CommunicationKey key, const Measured& measured, const std::string& where) {
  check_time(measured.time, where);
  if (key.name != "send" && !collective_from_name(key.name))
    throw Error(where, fmt::format("unknown communication '{:.60}'", key.name),
                "for example all-reduce or send");
  if (key.ranks < 1) throw Error(where, fmt::format("{} ranks", key.ranks), "expected at least 1");
  const auto [found, fresh] = communications_.try_emplace({key, measured.device}, measured.time);
  if (!fresh && found->second != measured.time)
    throw Error(where, fmt::format("'{}' of {} among {} has another time further up", key.name,
                                   typed_count(key.bytes, "byte"), typed_count(key.ranks, "rank")));
  if (fresh) profile_.communications.push_back({std::move(key), measured});
}

}  // namespace armilla
