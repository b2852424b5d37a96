// State-space layers: Mamba (Gu and Dao 2023) and Mamba-2 (Dao and Gu 2024).
#include "base/checked.h"
#include "read/described/described_blocks.h"

namespace armilla {
namespace {

// The causal convolution over each channel, with its bias and SiLU in one kernel (causal-conv1d).
TensorId add_convolution(DescribedBuilder& b, const StateSpace& s, TensorId x, std::int64_t ways) {
  constexpr std::int64_t kActivation = 4;
  const std::int64_t channels = b.shape_of(x).back();
  return b.elementwise(
      {"ssm.convolution", "CausalConv1d", checked_add(2 * s.convolution, kActivation, "conv"),
       Split::features, ways, Saves::inputs},
      {x}, b.shape_of(x),
      {b.parameter("ssm.convolution.weight", {channels, s.convolution}),
       b.parameter("ssm.convolution.bias", {channels})});
}

// Section 3.2 of Mamba, algorithm 2. The kernel keeps its inputs and makes the states again in the backward
// pass; 9 operations per element of the state, as mamba_ssm counts them.
TensorId add_selective_scan(DescribedBuilder& b, const ModelDescription& d, TensorId x) {
  const StateSpace& s = d.state_space;
  constexpr std::int64_t kPerState = 9;
  const auto both =
      b.products("ssm.in", x, {"ssm.x", "ssm.gate"}, {s.inner, s.inner}, {Split::column, 0, false, nullptr});
  const TensorId signal = add_convolution(b, s, both[0], 0);
  auto selected = b.products("ssm.select", signal, {"ssm.rank", "ssm.b", "ssm.c"}, {s.rank, s.state, s.state},
                             {Split::row, 0, false, nullptr});
  if (s.norms) {
    constexpr std::string_view kNames[] = {"ssm.rank_norm", "ssm.b_norm", "ssm.c_norm"};
    for (std::size_t i = 0; i < selected.size(); ++i) selected[i] = b.norm(kNames[i], selected[i]);
  }
  const TensorId step = b.product("ssm.step", selected[0], s.inner, {Split::column, 0, true, nullptr});
  const TensorId y =
      b.elementwise({"ssm.scan", "SelectiveScan", checked_multiply(kPerState, s.state, "scan"),
                     Split::features, 0, Saves::inputs},
                    {signal, step, selected[1], selected[2], both[1]}, b.shape_of(signal),
                    {b.parameter("ssm.a", {s.inner, s.state}), b.parameter("ssm.d", {s.inner})});
  return b.product("ssm.out", y, d.hidden, {Split::row, 0, false, nullptr});
}

// Section 6 of Mamba-2: within chunks of kChunk tokens matrix products over all pairs, between them states.
TensorId add_chunked_scan(DescribedBuilder& b, const ModelDescription& d, TensorId x) {
  const StateSpace& s = d.state_space;
  constexpr std::int64_t kChunk = 256;  // mamba_ssm's chunk_size
  const std::int64_t width = s.inner / s.heads, sides = checked_multiply(2 * s.groups, s.state, "groups");
  const auto parts = b.products("ssm.in", x, {"ssm.gate", "ssm.xbc", "ssm.step"},
                                {s.inner, checked_add(s.inner, sides, "ssm"), s.heads},
                                {Split::column, s.heads, false, nullptr});
  const TensorId signal = add_convolution(b, s, parts[1], s.heads);
  const TensorId y = b.tensor("ssm.scan", b.shape_of(parts[0]));
  Operator& scan = b.add("ssm.scan", "StateSpaceDuality", {signal, parts[2]}, {y},
                         {b.parameter("ssm.a", {s.heads}), b.parameter("ssm.d", {s.heads}),
                          b.parameter("ssm.step.bias", {s.heads})});
  const std::int64_t tokens = std::min(kChunk, b.sequence());
  const std::int64_t chunks = checked_multiply(b.batch(), ceil_divide(b.sequence(), tokens), scan.name);
  const std::int64_t of_heads = checked_multiply(chunks, s.heads, scan.name);
  const Bytes read = scan.forward.bytes;
  b.set_matrix_work(scan, {{tokens, tokens, s.state, checked_multiply(chunks, s.groups, scan.name), false},
                           {tokens, width, tokens, of_heads, false},
                           {s.state, width, tokens, of_heads, false},
                           {tokens, width, s.state, of_heads, false}});
  // The state of every chunk is written and read again, before and after they are added up.
  constexpr std::int64_t kPasses = 4;
  const Bytes states =
      size_of(checked_multiply(of_heads, s.state * width, scan.name), DType::fp32, scan.name);
  scan.forward.bytes = read + states * kPasses;
  scan.forward.kernel = Kernel::scan;
  scan.split = Split::heads;
  scan.ways = s.heads;
  constexpr std::int64_t kGateAndNorm = 10;
  const TensorId gated =
      b.elementwise({"ssm.norm", "GatedRMSNorm", kGateAndNorm, Split::features, s.heads, Saves::inputs},
                    {y, parts[0]}, b.shape_of(y), {b.parameter("ssm.norm.weight", {s.inner})});
  b.last().forward.kernel = Kernel::norm;
  return b.product("ssm.out", gated, d.hidden, {Split::row, s.heads, false, nullptr});
}

}  // namespace

TensorId add_state_space(DescribedBuilder& builder, const ModelDescription& description, TensorId x) {
  return description.state_space.heads > 0 ? add_chunked_scan(builder, description, x)
                                           : add_selective_scan(builder, description, x);
}

}  // namespace armilla
