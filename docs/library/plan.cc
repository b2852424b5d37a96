// A Plan and a Study: which model runs on which machine, spread how. Whatever a study file may say can be given as
// text; what is left open is decided by prepare_study.
#include <cstdio>

#include "armilla.h"

int main() {
  const armilla::Config config = armilla::Config::parse(
      "{model: llama3-8b, machine: dgx-h100, plan: {ranks: 64, tensor: 4, pipeline: 2, global_batch: 128}}", "example");
  const armilla::Study study = armilla::prepare_study(armilla::read_study(config));
  std::printf("%lld replicas, %lld micro-batches\n", static_cast<long long>(study.plan.data()),
              static_cast<long long>(study.plan.micro_batches));
  return study.plan.data() == 8 ? 0 : 1;
}
