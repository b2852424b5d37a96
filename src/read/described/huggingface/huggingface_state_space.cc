// Configurations of state-space models and hybrids: Mamba, Falcon-Mamba, Mamba-2, Jamba, Nemotron-H.
#include <fmt/format.h>

#include "base/error.h"
#include "base/units_text.h"
#include "read/described/huggingface/huggingface_source.h"

namespace armilla {
namespace {

using Source = HuggingfaceSource;

constexpr std::int64_t kUsualSequence = 2048;  // these have no table of positions
constexpr std::int64_t kChannelsPerRank = 16;  // "auto": hidden / 16, rounded up

// `key` is a number, or "auto".
void read_rank(Source& s, std::string_view key) {
  StateSpace& space = s.d.state_space;
  space.rank = (s.d.hidden + kChannelsPerRank - 1) / kChannelsPerRank;
  const auto given = s.fields.find(key);
  if (given && given->text() != "auto") s.fields.count(space.rank, "state_space.rank", key, 1, kMostWidth);
}

void read_expansion(Source& s, std::string_view key) {
  std::int64_t times = 2;
  s.number(times, "state_space.inner", key, 1 << 10, times);
  s.d.state_space.inner = times * s.d.hidden;
  s.fields.count(s.d.state_space.inner, "state_space.inner", "intermediate_size", 1, kMostWidth);
}

void read_pure(Source& s, std::int64_t vocabulary, std::int64_t hidden, std::int64_t layers,
               std::int64_t state) {
  s.number(s.d.hidden, "hidden", "hidden_size", kMostWidth, hidden);
  s.number(s.d.layers, "layers", "num_hidden_layers", kMostLayers, layers);
  s.number(s.d.vocabulary, "vocabulary", "vocab_size", kMostRows, vocabulary);
  s.number(s.d.state_space.state, "state_space.state", "state_size", kMostWidth, state);
  s.number(s.d.state_space.convolution, "state_space.convolution", "conv_kernel", 1 << 10, 4);
  s.fields.flag(s.d.tied_embeddings, "tied_embeddings", "tie_word_embeddings");
  s.d.sequence = kUsualSequence;
  s.d.pattern = "M";
}

bool is_at(std::int64_t layer, std::int64_t period, std::int64_t offset) {
  return layer % period == offset;
}

}  // namespace

void read_mamba(Source& s) {
  s.d.tied_embeddings = true;
  read_pure(s, 50280, 768, 32, 16);
  read_expansion(s, "expand");
  read_rank(s, "time_step_rank");
}

void read_falcon_mamba(Source& s) {
  read_mamba(s);
  s.d.notes.push_back("the norms of step, B and C, which have no weights, are not modelled");
}

void read_mamba2(Source& s) {
  read_pure(s, 32768, 4096, 64, 128);
  StateSpace& space = s.d.state_space;
  std::int64_t width = 64;
  s.number(space.heads, "state_space.heads", "num_heads", kMostHeads, 128);
  s.number(width, "state_space.inner", "head_dim", kMostHeads, width);
  s.number(space.groups, "state_space.groups", "n_groups", kMostHeads, 8);
  space.inner = space.heads * width;
}

void read_jamba(Source& s) {
  constexpr std::int64_t kPositions = 262144;
  read_common(s, {65536, 4096, 14336, 32, 32, 0, 0, kPositions});
  s.number_or_null(s.d.kv_heads, "kv_heads", "num_key_value_heads", kMostHeads, 8);
  read_activation(s, "hidden_act", true);
  read_positions(s, "max_position_embeddings", kPositions);
  s.number(s.d.experts.count, "experts.count", "num_experts", kMostExperts, 16);
  s.number(s.d.experts.active, "experts.active", "num_experts_per_tok", kMostExperts, 2);
  s.d.experts.feed_forward = s.d.feed_forward;
  StateSpace& space = s.d.state_space;
  s.number(space.state, "state_space.state", "mamba_d_state", kMostWidth, 16);
  s.number(space.convolution, "state_space.convolution", "mamba_d_conv", 1 << 10, 4);
  std::int64_t times = 2, attention_period = 8, attention_offset = 4, expert_period = 2, expert_offset = 1;
  s.number(times, "state_space.inner", "mamba_expand", 1 << 10, times);
  space.inner = times * s.d.hidden;
  space.norms = true;
  read_rank(s, "mamba_dt_rank");
  s.number(attention_period, "pattern", "attn_layer_period", kMostLayers, attention_period);
  s.number(attention_offset, "pattern", "attn_layer_offset", 0, kMostLayers, attention_offset);
  s.number(expert_period, "pattern", "expert_layer_period", kMostLayers, expert_period);
  s.number(expert_offset, "pattern", "expert_layer_offset", 0, kMostLayers, expert_offset);
  const bool experts = s.d.experts.count > 1;
  if (!experts) s.d.experts = {};
  // Each of its layers is a mixer and an MLP, each with a norm and a residual.
  for (std::int64_t layer = 0; layer < s.d.layers; ++layer) {
    s.d.pattern += is_at(layer, attention_period, attention_offset) ? '*' : 'M';
    s.d.pattern += experts && is_at(layer, expert_period, expert_offset) ? 'E' : '-';
  }
  s.d.layers *= 2;
}

void read_nemotron_h(Source& s) {
  s.d.activation = Activation::relu;
  constexpr std::int64_t kPositions = 4096;
  read_common(s, {131072, 4096, 21504, 52, 32, 0, 0, kPositions});
  s.number_or_null(s.d.kv_heads, "kv_heads", "num_key_value_heads", kMostHeads, 8);
  s.number(s.d.head_dim, "head_dim", "head_dim", kMostHeads, 128);
  // Squared ReLU moves and keeps what ReLU does.
  if (const auto act = s.fields.find("mlp_hidden_act");
      act && act->text() != "relu2" && act->text() != "relu")
    throw Error(act->where(), fmt::format("the activation '{:.60}' is not modelled", act->text()),
                "known: relu2, relu");
  read_positions(s, "max_position_embeddings", kPositions);
  StateSpace& space = s.d.state_space;
  std::int64_t width = 64;
  s.number(space.heads, "state_space.heads", "mamba_num_heads", kMostHeads, 128);
  s.number(width, "state_space.inner", "mamba_head_dim", kMostHeads, width);
  s.number(space.groups, "state_space.groups", "n_groups", kMostHeads, 8);
  s.number(space.state, "state_space.state", "ssm_state_size", kMostWidth, 128);
  s.number(space.convolution, "state_space.convolution", "conv_kernel", 1 << 10, 4);
  space.inner = space.heads * width;
  const auto pattern = s.fields.find("hybrid_override_pattern");
  if (!pattern)
    throw Error(s.config.where(), "the key 'hybrid_override_pattern' is missing",
                "one letter for every layer: M Mamba-2, * attention, - MLP, E experts");
  s.d.pattern = pattern->text();
  if (s.d.pattern.empty() || s.d.pattern.find_first_not_of("M*-E") != std::string::npos)
    throw Error(pattern->where(), fmt::format("'{:.80}' is not a pattern", s.d.pattern),
                "one letter for every layer: M Mamba-2, * attention, - MLP, E experts");
  // A prediction layer is attention and experts, which is what add_prediction builds where experts come last.
  if (const auto prediction = s.fields.find("mtp_hybrid_override_pattern");
      prediction && prediction->text() != "*E")
    throw Error(prediction->where(),
                fmt::format("prediction layers '{:.80}' are not modelled", prediction->text()), "known: *E");
  s.fields.count(s.d.multi_token_prediction, "multi_token_prediction", "num_nextn_predict_layers", 0, 64);
  if (s.d.pattern.find('E') == std::string::npos) return;
  Experts& experts = s.d.experts;
  s.number(experts.count, "experts.count", "n_routed_experts", kMostExperts, 8);
  s.number(experts.active, "experts.active", "num_experts_per_tok", kMostExperts, 2);
  s.number(experts.feed_forward, "experts.feed_forward", "moe_intermediate_size", kMostWidth, 7688);
  std::int64_t shared = 1, shared_width = 7688;
  s.number(shared, "experts.shared_feed_forward", "n_shared_experts", 0, kMostExperts, shared);
  s.number(shared_width, "experts.shared_feed_forward", "moe_shared_expert_intermediate_size", kMostWidth,
           shared_width);
  experts.shared_feed_forward = shared * shared_width;
  experts.router_bias = true;
  s.fields.count(experts.latent, "experts.latent", "moe_latent_size", 0, kMostWidth);
  s.fields.count(experts.groups, "experts.groups", "n_group", 1, kMostExpertGroups);
  experts.active_groups = experts.groups;
  s.fields.count(experts.active_groups, "experts.active_groups", "topk_group", 1, kMostExpertGroups);
}

}  // namespace armilla
