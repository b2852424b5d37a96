#include "ir/text_workload.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/suggest.h"

namespace armilla {
namespace {

void check_pass(const TextPass& pass, const std::string& where) {
  if (pass.cycles < 0) throw Error(where, fmt::format("{} cycles", pass.cycles));
  if (text_word(pass.collective).empty()) {
    throw Error(where, fmt::format("the text format has no word for {}", name_of(*pass.collective)),
                "it knows all-reduce, all-gather, reduce-scatter and all-to-all");
  }
  if (pass.collective ? pass.bytes.value <= 0 : pass.bytes.value != 0) {
    throw Error(where, fmt::format("{} of {} bytes", text_word(pass.collective), pass.bytes.value),
                "a collective needs at least 1 byte, and bytes need a collective");
  }
}

}  // namespace

std::string_view name_of(TextPolicy policy) {
  switch (policy) {
    case TextPolicy::data:
      return "DATA";
    case TextPolicy::model:
      return "MODEL";
    case TextPolicy::hybrid_data_model:
      return "HYBRID_DATA_MODEL";
    case TextPolicy::hybrid_model_data:
      return "HYBRID_MODEL_DATA";
  }
  return "?";
}

TextPolicy text_policy(std::string_view name, const std::string& where) {
  std::vector<std::string_view> known;
  for (const TextPolicy policy : kTextPolicies) {
    if (name_of(policy) == name) return policy;
    known.push_back(name_of(policy));
  }
  throw Error(where, fmt::format("'{:.60}' is not a policy of text workloads", name),
              suggest(name, std::span<const std::string_view>(known)));
}

std::string_view text_word(std::optional<CollectiveKind> kind) {
  if (!kind) return "NONE";
  switch (*kind) {
    case CollectiveKind::all_reduce:
      return "ALLREDUCE";
    case CollectiveKind::reduce_scatter:
      return "REDUCESCATTER";
    case CollectiveKind::all_gather:
      return "ALLGATHER";
    case CollectiveKind::all_to_all:
      return "ALLTOALL";
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::barrier:
      break;
  }
  return "";
}

bool is_text_separator(char c) {
  const auto code = static_cast<unsigned char>(c);
  return code <= 0x20 || code == 0x7f;
}

void validate_text_workload(const TextWorkload& workload) {
  if (workload.layers.empty()) throw Error("text workload", "has no layers");
  for (std::size_t i = 0; i < workload.layers.size(); ++i) {
    const TextLayer& layer = workload.layers[i];
    const std::string where = fmt::format("layer {} '{}'", i, layer.name);
    if (layer.name.empty() || std::any_of(layer.name.begin(), layer.name.end(), is_text_separator))
      throw Error(where, "its name is empty or contains white space", "the format separates columns by it");
    check_pass(layer.forward, where + ", forward");
    check_pass(layer.input_gradient, where + ", input gradient");
    check_pass(layer.weight_gradient, where + ", weight gradient");
    if (layer.update_cycles < 0)
      throw Error(where, fmt::format("an update of {} cycles", layer.update_cycles));
  }
}

}  // namespace armilla
