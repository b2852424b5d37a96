// Reading ONNX from memory: wire format, shapes, work of every operator, layers.
#include <benchmark/benchmark.h>

#include <string>

#include "goal_reporter.h"
#include "read/read.h"

namespace armilla {
namespace {

constexpr double kGoal = 100e3;  // operators per second: ResNet-50 in 1.7 ms

void read_zoo_model(benchmark::State& state, const std::string& name) {
  std::size_t operators = 0;
  for (auto _ : state) operators += read_model(name, {}).operators.size();
  set_goal(state, "operators", static_cast<double>(operators), kGoal);
}
BENCHMARK_CAPTURE(read_zoo_model, resnet50, "resnet50")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(read_zoo_model, densenet121, "densenet121")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(read_zoo_model, bert_large, "bert-large")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace armilla
