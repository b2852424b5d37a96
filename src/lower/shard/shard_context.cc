#include "lower/shard/shard_context.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "lower/shard/shard_pass.h"

namespace armilla {
namespace {

// Keys and values in a tensor that also holds the queries.
// Heads of queries, keys and values lie side by side in it; keys and values are 2 kv of heads + 2 kv parts.
Bytes packed_keys_values(const Model& model, Bytes packed) {
  const std::int64_t heads = std::max<std::int64_t>(model.facts.heads, 1);
  const std::int64_t kv = model.facts.kv_heads > 0 ? model.facts.kv_heads : heads;
  return Bytes(scaled(packed.value, Share{2 * kv, heads + 2 * kv}));
}

PassStep message(ShardTables& tables, NodeKind kind, Phase phase, std::string_view name, Bytes bytes,
                 std::uint32_t tag) {
  PassStep step;
  step.kind = kind;
  step.phase = phase;
  step.name = tables.name(name);
  step.axis = GroupAxis::context;
  step.bytes = bytes;
  step.shift = kind == NodeKind::send ? 1 : -1;
  step.tag = tag;
  return step;
}

// Sends to the next rank and receives from the one before; returns the receive.
// Send and receive hang on the same steps, so all ranks of the ring move at once.
std::uint32_t hop(PassWriter& writer, ShardTables& tables, Phase phase, const std::string& what, Bytes bytes,
                  std::initializer_list<std::uint32_t> after) {
  const std::uint32_t tag = writer.new_tag();
  writer.free(message(tables, NodeKind::send, phase, "send " + what, bytes, tag), after);
  return writer.free(message(tables, NodeKind::receive, phase, "receive " + what, bytes, tag), after);
}

std::vector<std::uint32_t> order_of(const CoreRun& run, bool backward) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = run.first; i < run.end; ++i) order.push_back(i);
  if (backward) std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace

// The first input is the queries, which stay; what moves around the ring are keys and values.
CoreRun core_run(const Model& model, const Layout& layout, std::uint32_t first, std::uint32_t end,
                 std::string_view name, DType floats) {
  CoreRun run{first, end, std::string(name), {}, {}, {}};
  for (const std::uint32_t input : core_inputs(model, layout, first, end)) {
    const Bytes bytes = local_bytes(model, layout, input, true, floats);
    // Ranks among which fewer heads are divided than there are ranks get copies.
    const std::int64_t heads = layout.tensors[input].heads;
    const std::int64_t copies =
        run.inputs.empty() || heads == 0 ? 1 : ceil_divide(layout.degrees.context, heads);
    run.inputs.push_back(Bytes(checked_multiply(bytes.value, copies, "plan")));
    if (run.inputs.size() > 1) run.keys_values += bytes;
  }
  if (run.inputs.size() == 1) run.keys_values = packed_keys_values(model, run.inputs[0]);
  for (const std::uint32_t output : model.operators[end - 1].outputs) {
    if (is_floating(model.tensors[output].dtype))
      run.output += local_bytes(model, layout, output, true, floats);
  }
  return run;
}

void write_ring(PassWriter& writer, ShardTables& tables, const CoreRun& run, std::int64_t steps,
                bool backward, const CoreStep& compute) {
  const Phase phase = backward ? Phase::input_gradient : Phase::forward;
  const std::string kv = run.name + ": keys and values", gradients = run.name + ": their gradients";
  const std::uint32_t entry = writer.chain();
  // `arrived` is the step after which this round's keys and values are here. They are passed on before they
  // are worked on, so the next round's travel beside this round's computation.
  std::uint32_t arrived = entry, computed = entry, returned = kNoStep;
  for (std::int64_t i = 0; i < steps; ++i) {
    const std::uint32_t here = arrived;
    // After the last round no one needs them any more.
    if (i + 1 < steps) arrived = hop(writer, tables, phase, kv, run.keys_values, {here});
    for (const std::uint32_t op : order_of(run, backward)) {
      PassStep step = compute(op);
      if (step.work != kNoStep) computed = writer.free(std::move(step), {computed, here});
    }
    // Gradients of keys and values travel with them, one hop behind the computation that adds to them; the
    // hop of the last round brings them home, so there are as many hops as rounds.
    if (backward) returned = hop(writer, tables, phase, gradients, run.keys_values, {computed, returned});
  }
  writer.set_chain(backward ? returned : computed);
}

void write_all_to_all(PassWriter& writer, ShardTables& tables, const CoreRun& run, bool backward,
                      const CoreStep& compute) {
  const auto exchange = [&](Bytes bytes, std::string_view what) {
    PassStep step;
    step.kind = NodeKind::collective;
    step.phase = backward ? Phase::input_gradient : Phase::forward;
    step.name = tables.name(fmt::format("{}: all-to-all of {}", run.name, what));
    step.collective = CollectiveKind::all_to_all;
    step.axis = GroupAxis::context;
    step.bytes = bytes;
    writer.link(std::move(step));
  };
  const auto inputs = [&] {
    constexpr std::string_view kNames[] = {"queries", "keys", "values"};
    for (std::size_t i = 0; i < run.inputs.size(); ++i)
      exchange(run.inputs[i], run.inputs.size() == 1 ? "queries, keys and values"
                              : i < 3                ? kNames[i]
                                                     : "inputs");
  };
  // The mirror image of the forward pass: gradients of results come in by heads, those of queries, keys and
  // values go out by tokens.
  if (backward) {
    exchange(run.output, "results");
  } else {
    inputs();
  }
  for (const std::uint32_t op : order_of(run, backward)) {
    PassStep step = compute(op);
    if (step.work != kNoStep) writer.link(std::move(step));
  }
  if (backward) {
    inputs();
  } else {
    exchange(run.output, "results");
  }
}

}  // namespace armilla
