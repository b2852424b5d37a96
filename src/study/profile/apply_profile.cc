#include "study/profile/apply_profile.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <tuple>

#include "base/units_text.h"
#include "study/profile/event_names.h"
#include "study/profile/profile_times.h"

namespace armilla {
namespace {

// The share of the device's peak at which a product that took `time` ran; 0: it is none.
double share_of_peak(const Work& work, Time time, const Device& device) {
  const auto peak = device.matrix_rate.find(work.dtype);
  if (work.kind != WorkKind::matrix || peak == device.matrix_rate.end()) return 0;
  return static_cast<double>(work.flops.value) / in_seconds(time) / peak->second.value;
}

Time casts_before(const Work& work, const CostModel& cost) {
  Work product = work;
  product.scaling = Scaling::done;
  return cost.time(work) - cost.time(product);
}

}  // namespace

ProfileUse apply_profile(const Profile& profile, const Device& device, const CostModel& cost,
                         const Model& model, Graph& graph) {
  const ProfileTimes times(profile, device);
  const EventNames names(model, graph);
  // Equal work may have different names and phases and so different measured times: a node's work is split by
  // them where the profile has a time.
  using Node = std::tuple<std::uint32_t, Phase, std::uint64_t>;  // name in the graph, phase, work
  std::map<Node, std::uint64_t> work_of;
  // Nodes that are one event share one work, whatever their own names ("optimizer, bucket 3").
  std::map<std::pair<ComputationKey, std::uint64_t>, std::uint64_t> timed;
  std::set<ComputationKey> measured, interpolated, modelled;
  std::set<const ComputationKey*> used;
  ProfileUse use;
  // Clocks may go beyond the one that the peak is given for.
  constexpr double kMostShare = 1.1;
  double most = kMostShare;
  for (Program& program : graph.programs) {
    for (std::uint32_t node = 0; node < program.size(); ++node) {
      if (program.kind[node] != NodeKind::compute) continue;
      const std::uint64_t old = program.payload[node];
      // Looked up once per name, phase and work, not per node.
      const auto [found, fresh] = work_of.try_emplace({program.name[node], program.phase[node], old}, old);
      if (fresh) {
        ComputationKey key =
            key_of(std::string(names.of(program, node)), program.phase[node], graph.works[old]);
        const auto time = times.find(key, graph.works[old]);
        if (time) {
          const auto [shared, is_first] = timed.try_emplace({key, old}, graph.works.size());
          found->second = shared->second;
          if (is_first) {
            Work work = graph.works[old];
            work.measured = time->time + (time->of_product ? casts_before(work, cost) : Time(0));
            work.interpolated = time->interpolated;
            graph.works.push_back(std::move(work));
          }
          if (time->key != nullptr) used.insert(time->key);
        }
        const double share =
            time && !time->interpolated ? share_of_peak(graph.works[old], time->time, device) : 0;
        const bool is_new = (!time                ? modelled
                             : time->interpolated ? interpolated
                                                  : measured)
                                .insert(key)
                                .second;
        if (is_new && share > kMostShare) {
          ++use.too_short;
          if (share > most) {
            most = share;
            use.fastest = fmt::format("'{}' in {}, at {:.3g} times the peak of {}", key.name,
                                      to_text(time->time), share, name_of(graph.works[old].dtype));
          }
        }
      }
      program.payload[node] = found->second;
    }
  }
  use.measured = static_cast<std::int64_t>(measured.size());
  use.interpolated = static_cast<std::int64_t>(interpolated.size());
  use.modelled = static_cast<std::int64_t>(modelled.size());
  // Entries for computations that this job does not have may come from another plan; they are reported, not
  // refused.
  use.unused = times.size() - static_cast<std::int64_t>(used.size());
  use.elsewhere = times.elsewhere();
  return use;
}

std::string describe(const ProfileUse& use, const Profile& profile) {
  std::string text =
      fmt::format("{}: measured times of {} of {}", profile.file, use.measured,
                  typed_count(use.measured + use.interpolated + use.modelled, "distinct computation"));
  if (use.interpolated > 0) text += fmt::format(", {} interpolated between measured ones", use.interpolated);
  if (use.modelled > 0)
    text += fmt::format(", the other{} modelled",
                        use.modelled == 1 ? " is" : fmt::format(" {} are", use.modelled));
  if (use.unused > 0)
    text += fmt::format("; {} of the profile do{} not occur here", use.unused, use.unused == 1 ? "es" : "");
  if (use.elsewhere > 0)
    text +=
        fmt::format("; {} {} measured on other devices", use.elsewhere, use.elsewhere == 1 ? "is" : "are");
  return text;
}

std::string warn_of_short_times(const ProfileUse& use, const Profile& profile, const Device& device) {
  if (use.too_short == 0) return {};
  return fmt::format("{}: {} {} shorter than {} can be: {}; is the unit, or the device, another?",
                     profile.file, counted(use.too_short, "measured time"), use.too_short == 1 ? "is" : "are",
                     device.name, use.fastest);
}

}  // namespace armilla
