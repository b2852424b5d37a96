#include <algorithm>

#include "lower/annotate/annotate_blocks.h"
#include "lower/annotate/annotate_regions.h"
#include "lower/sharded_model.h"

namespace armilla {
namespace {

void mark(Model& model, const SplitRegion& region) {
  for (const std::uint32_t i : region.columns) {
    model.operators[i].split = Split::column;
    model.operators[i].ways = region.heads;
  }
  for (const std::uint32_t i : region.interior) {
    model.operators[i].split = region.heads > 0 ? Split::heads : Split::features;
    model.operators[i].ways = region.heads;
  }
  for (const std::uint32_t i : region.core) model.operators[i].core_attention = true;
  model.operators[region.row].split = Split::row;
  model.operators[region.row].ways = region.heads;
}

// A look-up in a table with more rows than columns: of tokens, not of positions or segments.
bool is_token_table(const Model& model, const Operator& op) {
  if (op.type != "Gather" || op.parameters.size() != 1 || op.inputs.size() != 1) return false;
  const Parameter& table = model.parameters[op.parameters[0]];
  return table.trainable && table.shape.size() == 2 && table.shape[0] > table.shape[1] &&
         !is_floating(model.tensors[op.inputs[0]].dtype);
}

// Facts that all attentions agree on.
void note_facts(Model& model, const std::vector<SplitRegion>& regions) {
  const SplitRegion* one = nullptr;
  std::int64_t count = 0;
  for (const SplitRegion& region : regions) {
    if (region.heads == 0) continue;
    // Attentions that differ (encoder and decoder, say) give no facts: one number would be wrong for some.
    if (one != nullptr && (one->heads != region.heads || one->sequence != region.sequence)) return;
    one = &region;
    ++count;
  }
  if (one == nullptr) return;
  model.facts.layers = count;
  model.facts.heads = model.facts.kv_heads = one->heads;
  model.facts.sequence = one->sequence;
  model.facts.hidden = model.operators[one->row].forward.gemms[0].n;
}

}  // namespace

void annotate_parallelism(Model& model) {
  // Models by description come annotated.
  if (!model.blocks.empty()) return;
  const std::vector<SplitRegion> regions = find_split_regions(model);
  for (const SplitRegion& region : regions) mark(model, region);
  for (Operator& op : model.operators) {
    // Products outside of any pair keep their inputs whole and are divided by outputs, whose parts are
    // gathered.
    if (op.split != Split::tokens) continue;
    if (is_weight_product(model, op)) op.split = Split::column;
    if (is_token_table(model, op)) op.split = Split::vocabulary;
  }
  note_facts(model, regions);
  model.blocks = cut_into_blocks(model, regions);
}

}  // namespace armilla
