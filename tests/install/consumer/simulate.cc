// Reads a model of the zoo, which is inside the library, and simulates it on a machine that is inside too.
#include <iostream>

#include "all_headers.h"

int main() {
  try {
    const armilla::Study study = armilla::prepare_study(armilla::read_study(armilla::Config::parse(
        "{model: resnet18, machine: dgx-a100, plan: {ranks: 16, batch: 32}}", "consumer.yaml")));
    const armilla::Run run = armilla::run_study(study);
    const std::int64_t parameters = armilla::totals(run.model).parameters;
    std::cout << parameters << " parameters, " << armilla::in_seconds(run.result.iteration) << " s\n";
    // torchvision's count for resnet18; 16 ranks of two servers must talk to each other.
    return parameters == 11'689'512 && run.result.messages > 0 && run.result.iteration > armilla::Time(0) ? 0
                                                                                                          : 1;
  } catch (const armilla::Error& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
