// A Run and its Result: one training iteration, simulated, and the figures that reports show of it.
#include <cstdio>

#include "armilla.h"

int main() {
  try {
    const armilla::Study study = armilla::prepare_study(armilla::read_study(armilla::Config::parse(
        "{model: resnet18, machine: dgx-a100, plan: {ranks: 16, batch: 32}}", "example")));
    const armilla::Run run = armilla::run_study(study);
    std::printf("%.3f ms an iteration, %.0f samples/s, %.1f %% MFU\n", armilla::in_seconds(run.result.iteration) * 1e3,
                armilla::samples_per_second(run), 100 * armilla::model_flops_utilization(run));
    // 16 ranks of two servers must talk to each other.
    return run.result.messages > 0 && run.result.iteration > armilla::Time(0) ? 0 : 1;
  } catch (const armilla::Error& error) {  // where, what, and a hint
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
