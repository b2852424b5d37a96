#include "write/report/example_run_testing.h"

namespace armilla {
namespace {

Operator linear(const std::string& name, std::uint32_t input, std::uint32_t output,
                std::vector<std::uint32_t> parameters, Gemm gemm, Bytes bytes) {
  Operator op;
  op.name = name;
  op.type = "Gemm";
  op.inputs = {input};
  op.outputs = {output};
  op.parameters = std::move(parameters);
  op.forward = {WorkKind::matrix, DType::fp32, Flops(2 * gemm.macs()), bytes, {gemm}};
  op.weight_is_operand = true;
  return op;
}

Machine example_machine() {
  Machine machine;
  machine.name = "lab";
  machine.device.name = "TestChip";
  machine.device.matrix_rate = {{DType::fp32, FlopRate(1e9)}};
  machine.device.vector_rate = FlopRate(1e8);
  machine.device.memory = Bytes(1 << 20);
  machine.device.memory_bandwidth = Bandwidth(1e9);
  machine.device.unverified = {"memory_efficiency"};
  machine.dimensions = {{"nvlink", DimensionKind::switched, 2, gigabytes_per_second(300), microseconds(1)},
                        {"rail", DimensionKind::ring, 2, gigabytes_per_second(25), microseconds(5)}};
  return machine;
}

struct NodeList {
  Graph& graph;
  Program& program;

  std::uint32_t add(NodeKind kind, Phase phase, const std::string& name, std::int32_t layer,
                    std::uint64_t payload, std::vector<std::uint32_t> dependences) {
    return program.add(kind, phase, graph.names.add(name), layer, payload, dependences);
  }
};

Graph example_graph(const Model& model) {
  Graph graph;
  graph.ranks = 4;
  graph.program_of = {0, 0, 0, 0};
  graph.families = {world_family(4)};
  graph.layers = {"fc1", "fc2"};
  graph.works = {model.operators[0].forward, model.operators[2].forward,
                 Work{WorkKind::vector, DType::fp32, Flops(416), Bytes(2496), {}}};
  graph.collectives = {{CollectiveKind::all_reduce, Bytes(256)}, {CollectiveKind::all_reduce, Bytes(576)}};
  Program& program = graph.programs.emplace_back();
  program.role = "data-parallel rank";
  NodeList nodes{graph, program};
  nodes.add(NodeKind::compute, Phase::forward, "fc1", 0, 0, {});
  nodes.add(NodeKind::compute, Phase::forward, "fc2", 1, 1, {0});
  nodes.add(NodeKind::compute, Phase::weight_gradient, "fc2 weight gradient", 1, 1, {1});
  nodes.add(NodeKind::collective, Phase::gradient_exchange, "bucket 0", 1, 0, {2});
  nodes.add(NodeKind::compute, Phase::input_gradient, "fc2 input gradient", 1, 1, {1});
  nodes.add(NodeKind::compute, Phase::weight_gradient, "fc1 weight gradient", 0, 0, {4});
  nodes.add(NodeKind::collective, Phase::gradient_exchange, "bucket 1", 0, 1, {5});
  nodes.add(NodeKind::compute, Phase::optimizer, "optimizer", -1, 2, {3, 6});
  return graph;
}

RankClass example_class() {
  RankClass ranks;
  ranks.ranks = 4;
  ranks.finish = nanoseconds(10'700);
  ranks.compute = nanoseconds(7'000);
  ranks.communication = picoseconds(5'999'600);
  ranks.exposed_communication = nanoseconds(3'500);
  ranks.computes = {
      {nanoseconds(0), nanoseconds(2'000), 0},         {nanoseconds(2'000), nanoseconds(3'000), 1},
      {nanoseconds(3'000), picoseconds(4'000'400), 2}, {picoseconds(4'000'400), nanoseconds(5'000), 4},
      {nanoseconds(5'000), nanoseconds(6'500), 5},     {nanoseconds(10'200), nanoseconds(10'700), 7}};
  ranks.collectives = {{picoseconds(4'000'400), nanoseconds(9'000), 3},
                       {nanoseconds(6'500), nanoseconds(10'000), 6}};
  ranks.chunks = {{nanoseconds(4'100), nanoseconds(6'000), 3, 0, 0},
                  {nanoseconds(5'000), nanoseconds(7'000), 3, 1, 0},
                  {nanoseconds(6'000), nanoseconds(9'000), 3, 0, 1},
                  {nanoseconds(7'000), nanoseconds(8'000), 6, 0, 0},
                  {nanoseconds(9'000), nanoseconds(10'000), 6, 0, 1}};
  return ranks;
}

}  // namespace

Model example_model() {
  Model model;
  model.name = "mlp";
  model.source = "mlp.onnx";
  model.batch = 2;
  model.tensors = {{"x", DType::fp32, {2, 8}},
                   {"h", DType::fp32, {2, 16}},
                   {"r", DType::fp32, {2, 16}},
                   {"y", DType::fp32, {2, 4}}};
  model.inputs = {0};
  model.outputs = {3};
  model.parameters = {{"fc1.weight", DType::fp32, {16, 8}, 128},
                      {"fc1.bias", DType::fp32, {16}, 16},
                      {"fc2.weight", DType::fp32, {4, 16}, 64}};
  Operator relu;
  relu.name = "relu";
  relu.type = "Relu";
  relu.inputs = {1};
  relu.outputs = {2};
  relu.forward = {WorkKind::vector, DType::fp32, Flops(32), Bytes(256), {}};
  model.operators = {linear("fc1", 0, 1, {0, 1}, {2, 16, 8}, Bytes(768)), relu,
                     linear("fc2", 2, 3, {2}, {2, 4, 16}, Bytes(416))};
  model.operators[0].needs_input_gradient = false;
  derive_layers(model);
  return model;
}

Run example_run() {
  Run run;
  run.model = example_model();
  run.study.machine = example_machine();
  run.study.plan.ranks = 4;
  run.study.plan.batch = 2;
  run.study.compute = {"roofline", {{"launch", {"2us", ""}}}, "--compute"};
  run.graph = example_graph(run.model);
  run.memory = {Bytes(832), Bytes(832), Bytes(832), Bytes(448), Bytes(768), Bytes(0), Bytes(1 << 20)};
  run.roles = {{"data-parallel rank", 0, 1, run.memory, Bytes(0), {}}};
  run.peak_rate = FlopRate(1e9);
  run.notes = {"the batch dimension of 'x' is 2"};
  Result& result = run.result;
  result.iteration = nanoseconds(10'700);
  result.ranks = 4;
  result.classes = {example_class()};
  result.class_of = {0, 0, 0, 0};
  const std::string algorithm = "reduce-scatter direct, all-reduce ring, all-gather direct";
  result.collectives = {{0, 3, 0, 4, algorithm, picoseconds(4'000'400), nanoseconds(4'100),
                         nanoseconds(9'000), nanoseconds(1'225), nanoseconds(1'225)},
                        {0, 6, 1, 4, algorithm, nanoseconds(6'500), nanoseconds(7'000), nanoseconds(10'000),
                         nanoseconds(1'500), nanoseconds(1'500)}};
  result.links = {
      {"rank 0 -> rank 2 (rail)", 1, 4, Bytes(832), nanoseconds(4'280), gigabytes_per_second(25)},
      {"rank 0 -> switch (nvlink)", 0, 8, Bytes(1664), nanoseconds(1'070), gigabytes_per_second(300)}};
  result.dimensions = {"nvlink", "rail"};
  result.messages = 24;
  result.events = 40;
  result.warnings = {"the link rail is used in one direction only"};
  return run;
}

}  // namespace armilla
