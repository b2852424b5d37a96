// Circulant: what halving-doubling is for powers of two, for any number of members, all of whom do the same
// from where they stand (Traeff 2024, "Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms",
// arXiv:2410.14234). Distances are halved, rounded up, from n to 1; with k = ceil(log2 n) of them:
//
//   reduce-scatter  in a step from distance d to d' = ceil(d / 2), a member keeps the sums of its own block
//                   and of the d' - 1 behind it, and gives those of the d - d' beyond to whom they are
//                   nearest, the member d' further on: k alpha + (n-1)/n beta C
//   all-gather      the same steps backwards
//   all-reduce      both: 2k alpha + 2 (n-1)/n beta C
//   barrier         the steps of a reduce-scatter with 0 bytes: k alpha
//
// Size of a schedule: O(log n).
#include <array>

#include "collective/algorithms/algorithms.h"
#include "collective/algorithms/schedule_builder.h"

namespace armilla {
namespace {

struct CirculantStep {
  std::int32_t distance = 0, blocks = 0;
};

std::vector<CirculantStep> circulant_steps(std::int32_t ranks) {
  std::vector<CirculantStep> steps;
  for (std::int32_t kept = ranks; kept > 1;) {
    const std::int32_t distance = (kept + 1) / 2;
    steps.push_back({distance, kept - distance});
    kept = distance;
  }
  return steps;
}

Schedule make_circulant(const ScheduleRequest& request, const ParameterValues&) {
  const std::int32_t n = request.ranks;
  const Bytes block = block_size(request.bytes, n);
  const std::vector<CirculantStep> steps = circulant_steps(n);
  const auto describe = [&](RoleBuilder& role, std::int32_t member) {
    const auto blocks_from = [&](std::int32_t first, std::int32_t count, bool reduce) {
      Payload payload{{}, reduce};
      for (std::int32_t i = 0; i < count; ++i)
        payload.blocks.push_back(wrap(std::int64_t{member} + first + i, n));
      return payload;
    };
    if (request.kind != CollectiveKind::all_gather) {
      const bool moves_data = request.kind != CollectiveKind::barrier;
      for (const CirculantStep& step : steps) {
        const Bytes bytes = moves_data ? block * step.blocks : Bytes(0);
        role.begin_step(1, bytes);
        role.send(step.distance, role.step(), bytes,
                  [&] { return moves_data ? blocks_from(step.distance, step.blocks, true) : Payload{}; });
      }
    }
    if (request.kind == CollectiveKind::reduce_scatter || request.kind == CollectiveKind::barrier) return;
    for (std::size_t i = steps.size(); i-- > 0;) {
      role.begin_step(1);
      role.send(n - steps[i].distance, role.step(), block * steps[i].blocks,
                [&] { return blocks_from(0, steps[i].blocks, false); });
    }
  };
  return symmetric_schedule(request, Addressing::shift, n, describe);
}

constexpr std::array kCirculantKinds = {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                                        CollectiveKind::all_gather, CollectiveKind::barrier};

}  // namespace

AlgorithmInfo circulant_algorithm() {
  return {"circulant",
          "distances halved, rounded up: few steps and few bytes for any number of ranks; for switches",
          {},
          kCirculantKinds,
          make_circulant};
}

}  // namespace armilla
