// ModelDescription: an architecture by its numbers, from which read/described/described_model.h builds every
// operator.
//
// Descriptions come from YAML (docs/formats/model_description.md; the zoo's are models/*.yaml) or
// from a Hugging Face config.json (read/described/huggingface/huggingface.h). Families set what the
// numbers leave open:
//   gpt       Radford et al. 2019, Brown et al. 2020: pre-norm decoder, learned positions, GELU, biases
//   llama     Touvron et al. 2023: pre-norm decoder, rotary positions, RMSNorm, SwiGLU, grouped queries
//   mixtral   Jiang et al. 2024: llama with experts (Shazeer et al. 2017)
//   deepseek  DeepSeek-AI 2024: multi-head latent attention, shared experts, multi-token prediction
//   bert      Devlin et al. 2019: post-norm encoder
//   vit       Dosovitskiy et al. 2021: pre-norm encoder of patches
//   t5        Raffel et al. 2020: encoder and decoder, relative positions
//   hybrid    layers of one part each, by a pattern: state-space (Gu and Dao 2023; Dao and Gu 2024),
//             attention, MLP, experts; Mamba, Jamba (Lieber et al. 2024), Nemotron-H (NVIDIA 2025)
//   dlrm      Naumov et al. 2019: embedding bags, two MLPs, dot-product interaction
// Not described: weights' values, tokenizers, dropout rates, generation.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "ir/tensor.h"

namespace armilla {

enum class Family : std::uint8_t { gpt, llama, mixtral, deepseek, bert, t5, vit, hybrid, dlrm };
enum class Positions : std::uint8_t { none, learned, rotary, relative };
enum class Norm : std::uint8_t { layernorm, rmsnorm };
enum class Activation : std::uint8_t {
  gelu,
  relu,
  swiglu,
  geglu,
  clamped_swiglu  // of a gate and its factor that are cut off at a limit first (gpt-oss)
};
enum class AttentionKernel : std::uint8_t {
  flash,         // one operator; the scores never reach memory (Dao et al. 2022)
  flash_2,       // likewise; FlashAttention-2 (Dao 2023), written for the A100, on later devices, too
  flash_triton,  // likewise; FlashAttention's first version in Triton
  unfused        // scores, softmax, dropout and context as operators of their own
};

// Multi-head latent attention (DeepSeek-AI 2024, section 2.1.1).
struct LatentAttention {
  std::int64_t query_rank = 0;  // 0: queries are projected from the hidden state at once
  std::int64_t key_value_rank = 0;
  std::int64_t rope_head_dim = 0, nope_head_dim = 0, value_head_dim = 0;
};

struct Experts {
  std::int64_t count = 0, active = 0;
  std::int64_t feed_forward = 0;         // of one expert
  std::int64_t shared_feed_forward = 0;  // of all shared experts together; 0: none
  bool shared_gate = false;              // a sigmoid weighs the shared experts (Qwen2-MoE)
  bool router_bias = false;              // DeepSeek-V3's load balancing without auxiliary loss
  bool bias = false;                     // of both products of an expert (gpt-oss)
  // What experts see of a token is projected to so many numbers first and back afterwards (Nemotron 3's
  // LatentMoE); 0: the hidden state.
  std::int64_t latent = 0;
  std::int64_t dense_first = 0;  // so many first layers have an ordinary MLP
  std::int64_t every = 1;        // experts in each such layer only, the last of each group
  // The experts of a token are in `active_groups` of `groups` equal groups (ir/expert_routing.h).
  std::int64_t groups = 1, active_groups = 1;
  DType dispatch = DType::unknown;  // of tokens on their way to experts where a plan computes in fp8
};

struct StateSpace {
  std::int64_t inner = 0;  // channels between the projections
  std::int64_t state = 0;  // of a channel (Mamba) or of a channel of a head (Mamba-2)
  std::int64_t convolution = 4;
  std::int64_t rank = 0;    // Mamba: of the step size; 0 in Mamba-2
  std::int64_t heads = 0;   // Mamba-2; 0 in Mamba
  std::int64_t groups = 1;  // Mamba-2: of heads with the same B and C
  bool norms = false;       // Mamba: step, B and C are normalised (Jamba)
};

// Low-rank adapters beside projections of the layers (Hu et al. 2021); all else is frozen.
struct Adapters {
  std::int64_t rank = 0;  // 0: none
  // Which have one, by the last part of their names ("qkv" for "attention.qkv"); empty: every one.
  std::vector<std::string> targets;
  DType base_dtype = DType::unknown;  // of the frozen weights where it is narrower than the plan's (QLoRA)
};

struct Recommendation {
  std::int64_t dense_features = 0;
  std::int64_t embedding = 0;             // length of a row
  std::vector<std::int64_t> tables;       // rows of each
  std::int64_t lookups = 1;               // rows that a sample adds up per table
  std::vector<std::int64_t> bottom, top;  // output sizes of the MLPs' layers
};

struct ModelDescription {
  std::string name, description, source;
  Family family = Family::gpt;
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0;
  std::int64_t vocabulary = 0;        // rows of the token table, padding included
  std::int64_t sequence = 0;          // tokens per sample unless ModelOptions says otherwise
  std::int64_t max_positions = 0;     // rows of the learned position table
  std::int64_t decoder_layers = 0;    // t5; `layers` are the encoder's
  std::int64_t decoder_sequence = 0;  // t5
  std::int64_t relative_buckets = 0;  // t5
  std::int64_t segments = 0;          // bert: rows of the segment table
  std::int64_t image = 0, patch = 0, channels = 0, classes = 0;  // vit
  std::int64_t window = 0;                  // tokens a token looks back at, itself included; 0: all
  std::int64_t window_every = 1;            // in each so manieth layer only, the first of each group
  std::int64_t multi_token_prediction = 0;  // extra layers that each predict one token more
  bool repeated_prediction = false;         // and are one set of weights (Nemotron 3)
  Positions positions = Positions::none;
  Norm norm = Norm::layernorm;
  Activation activation = Activation::gelu;
  AttentionKernel attention = AttentionKernel::flash;
  bool qkv_bias = false, projection_bias = false, mlp_bias = false;
  bool qk_norm = false;  // queries and keys are normalised per head (Qwen3)
  bool dropout = false;
  bool tied_embeddings = false;
  bool parallel_residual = false;  // attention and MLP read the same input (GPT-NeoX)
  bool pooler = false, mlm_head = false, nsp_head = false;  // bert
  std::optional<LatentAttention> latent;
  Experts experts;
  // hybrid: of every layer M state space, * attention, - MLP, E experts, over and over.
  std::string pattern;
  StateSpace state_space;
  Adapters adapters;
  Recommendation recommendation;
  std::int64_t longest_sequence = 0;  // allowed, where `sequence` is what the reader chose; 0: it is given
  std::vector<std::string> notes;     // what the reader assumed

  std::string where;                                       // of the document
  std::map<std::string, std::string, std::less<>> places;  // field -> where it was read
  const std::string& place(std::string_view field) const;  // `where` for a field that was not given
};

std::string_view name_of(Family family);
std::span<const std::string_view> family_names();
bool is_gated(Activation activation);  // two products before the activation instead of one

// What the family leaves no choice about or sets unless told otherwise; no sizes.
ModelDescription family_defaults(Family family);

// Fills in head_dim and the like, and refuses numbers that contradict each other. Throws Error.
void complete_description(ModelDescription& description);

// The YAML format. Throws Error.
ModelDescription read_model_description(const Config& config);

}  // namespace armilla
