#include "read/described/model_description.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/nearest_divisor.h"
#include "base/units_text.h"

namespace armilla {
namespace {

constexpr std::array<std::string_view, 9> kFamilies = {"gpt", "llama", "mixtral", "deepseek", "bert",
                                                       "t5",  "vit",   "hybrid",  "dlrm"};

[[noreturn]] void does_not_divide(const ModelDescription& d, std::string_view part, std::int64_t number,
                                  std::string_view whole, std::int64_t of, std::string_view also = "") {
  throw Error(d.place(part), fmt::format("{} {} does not divide {} {}", part, number, whole, of),
              fmt::format("nearest legal: {}{}", nearest_divisors(of, number), also));
}

void complete_attention(ModelDescription& d) {
  // Every latent head has keys of its own once they are projected up, made of a part without and one with
  // rotation.
  if (d.latent) {
    d.kv_heads = d.heads;
    d.head_dim = d.latent->nope_head_dim + d.latent->rope_head_dim;
  }
  if (d.kv_heads == 0) d.kv_heads = d.heads;
  if (d.kv_heads > d.heads || d.heads % d.kv_heads != 0)
    does_not_divide(d, "kv_heads", d.kv_heads, "heads", d.heads);
  if (d.head_dim == 0) {
    if (d.hidden % d.heads != 0)
      does_not_divide(d, "heads", d.heads, "hidden", d.hidden, "; or give head_dim");
    d.head_dim = d.hidden / d.heads;
  }
  const std::int64_t rotated = d.latent ? d.latent->rope_head_dim : d.head_dim;
  if (d.positions == Positions::rotary && rotated % 2 != 0)
    throw Error(d.place("head_dim"),
                fmt::format("rotary positions turn pairs, but head_dim {} is odd", rotated),
                fmt::format("nearest legal: {} or {}", rotated - 1, rotated + 1));
}

// A latent is there to be narrower than what it stands for; a wider one is legal, and most likely a slip.
void note_wide_latents(ModelDescription& d) {
  const auto note = [&](std::string_view key, std::int64_t width) {
    if (width > d.hidden)
      d.notes.push_back(fmt::format("{} {} is wider than hidden {}", key, width, d.hidden));
  };
  if (d.latent) {
    note("latent_attention.query_rank", d.latent->query_rank);
    note("latent_attention.key_value_rank", d.latent->key_value_rank);
  }
  if (d.experts.count > 0) note("experts.latent", d.experts.latent);
}

void complete_groups(const ModelDescription& d) {
  const Experts& experts = d.experts;
  if (experts.count % experts.groups != 0)
    does_not_divide(d, "experts.groups", experts.groups, "experts.count", experts.count);
  if (experts.active_groups > experts.groups)
    throw Error(d.place("experts.active_groups"),
                fmt::format("{} active groups, but there {} only {}", experts.active_groups,
                            experts.groups == 1 ? "is" : "are", experts.groups),
                fmt::format("nearest legal: {}", experts.groups));
  // Group-limited routing selects a token's experts within its active groups only.
  const std::int64_t reachable = experts.count / experts.groups * experts.active_groups;
  if (experts.active > reachable)
    throw Error(d.place("experts.active_groups"),
                fmt::format("{} {} {}, fewer than the {} of a token",
                            typed_count(experts.active_groups, "active group"),
                            experts.active_groups == 1 ? "holds" : "hold", typed_count(reachable, "expert"),
                            experts.active),
                "raise experts.active_groups");
}

void complete_experts(ModelDescription& d) {
  Experts& experts = d.experts;
  if (experts.count == 0) return;
  if (experts.active > experts.count)
    throw Error(d.place("experts.active"),
                fmt::format("{} active experts, but there {} only {}", experts.active,
                            experts.count == 1 ? "is" : "are", experts.count),
                fmt::format("nearest legal: {}", experts.count));
  complete_groups(d);
  if (experts.dense_first > d.layers)
    throw Error(d.place("experts.dense_first"),
                fmt::format("{} dense layers, but there {} only {}", experts.dense_first,
                            d.layers == 1 ? "is" : "are", typed_count(d.layers, "layer")),
                fmt::format("nearest legal: {}", d.layers));
}

// What the letters of the pattern ask for is there, and divides.
void complete_pattern(const ModelDescription& d) {
  const StateSpace& s = d.state_space;
  const auto needs = [&](char letter, bool given, std::string_view key) {
    if (d.pattern.find(letter) == std::string::npos || given) return;
    throw Error(d.place("pattern"), fmt::format("'{}' stands for layers that need {}", letter, key),
                fmt::format("give {}", key));
  };
  needs('M', s.inner > 0, "state_space");
  needs('*', d.heads > 0, "heads");
  needs('-', d.feed_forward > 0, "feed_forward");
  needs('E', d.experts.count > 0, "experts");
  if (d.multi_token_prediction > 0) {
    const auto lacks = [&](std::string_view what, std::string_view key) {
      throw Error(d.place("multi_token_prediction"), fmt::format("layers of prediction need {}", what),
                  fmt::format("give {}", key));
    };
    if (d.heads == 0) lacks("attention", "heads");
    if (d.feed_forward == 0 && d.pattern.find('E') == std::string::npos) lacks("an MLP", "feed_forward");
  }
  if (s.heads == 0) return;
  if (s.inner % s.heads != 0) does_not_divide(d, "state_space.heads", s.heads, "state_space.inner", s.inner);
  if (s.heads % s.groups != 0)
    does_not_divide(d, "state_space.groups", s.groups, "state_space.heads", s.heads);
}

void complete_vision(ModelDescription& d) {
  if (d.image % d.patch != 0) does_not_divide(d, "patch", d.patch, "image", d.image);
  // A patch grid and the class token.
  d.sequence = (d.image / d.patch) * (d.image / d.patch) + 1;
  d.max_positions = d.sequence;
}

void complete_recommendation(const ModelDescription& d) {
  const Recommendation& r = d.recommendation;
  // The interaction takes dot products of the bottom MLP's result with the embeddings: they must be of one
  // length.
  if (r.bottom.back() != r.embedding)
    throw Error(d.place("bottom"),
                fmt::format("the bottom MLP ends in {}, but it is combined with embeddings of {}",
                            typed_count(r.bottom.back(), "number"), r.embedding),
                fmt::format("end it in {}", r.embedding));
}

}  // namespace

const std::string& ModelDescription::place(std::string_view field) const {
  const auto found = places.find(field);
  return found == places.end() ? where : found->second;
}

std::string_view name_of(Family family) {
  return kFamilies[static_cast<std::size_t>(family)];
}

std::span<const std::string_view> family_names() {
  return kFamilies;
}

bool is_gated(Activation activation) {
  return activation == Activation::swiglu || activation == Activation::geglu ||
         activation == Activation::clamped_swiglu;
}

ModelDescription family_defaults(Family family) {
  ModelDescription d;
  d.family = family;
  switch (family) {
    // What the families' papers have: learned positions, layer norms, GELU and biases everywhere.
    case Family::gpt:
    case Family::bert:
    case Family::vit:
      d.positions = Positions::learned;
      d.qkv_bias = d.projection_bias = d.mlp_bias = true;
      d.tied_embeddings = family != Family::vit;
      d.dropout = family != Family::vit;
      break;
    case Family::llama:
    case Family::mixtral:
    case Family::deepseek:
      d.positions = Positions::rotary;
      d.norm = Norm::rmsnorm;
      d.activation = Activation::swiglu;
      break;
    case Family::t5:
      d.positions = Positions::relative;
      d.norm = Norm::rmsnorm;
      d.activation = Activation::relu;
      d.tied_embeddings = d.dropout = true;
      d.relative_buckets = 32;
      break;
    case Family::hybrid:
      d.norm = Norm::rmsnorm;
      d.activation = Activation::swiglu;
      break;
    case Family::dlrm:
      break;
  }
  if (family == Family::bert) {
    d.segments = 2;
    d.pooler = d.mlm_head = d.nsp_head = true;
  }
  if (family == Family::vit) d.channels = 3;
  return d;
}

void complete_description(ModelDescription& d) {
  // A recommendation model has neither heads nor sequence: the checks below would divide by zero.
  if (d.family == Family::dlrm) return complete_recommendation(d);
  if (d.family == Family::hybrid) complete_pattern(d);
  if (d.family != Family::hybrid || d.heads > 0) complete_attention(d);
  complete_experts(d);
  note_wide_latents(d);
  if (d.family == Family::vit) return complete_vision(d);
  if (d.max_positions == 0) d.max_positions = d.sequence;
  if (d.window_every > 1 && (d.window == 0 || d.family == Family::hybrid))
    throw Error(d.place("window_every"),
                d.window == 0 ? "there is no window that some layers have"
                              : "every attention layer of a hybrid has the window",
                d.window == 0 ? "give window" : "leave window_every out");
  if (d.positions == Positions::learned && d.sequence > d.max_positions)
    throw Error(
        d.place("sequence"),
        fmt::format("sequence {} is longer than the {} learned positions", d.sequence, d.max_positions),
        "shorten it, or raise max_positions");
  if (d.family == Family::t5) {
    if (d.decoder_layers == 0) d.decoder_layers = d.layers;
    if (d.decoder_sequence == 0) d.decoder_sequence = d.sequence;
  }
  if (d.nsp_head && !d.pooler)
    throw Error(d.place("nsp_head"), "a next-sentence head needs the pooler", "set pooler: true as well");
}

}  // namespace armilla
