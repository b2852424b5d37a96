// What the readers of Hugging Face configurations (read/described/huggingface/huggingface.h) share: values,
// their absence, and the keys that every family has.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "read/described/description_fields.h"
#include "read/described/huggingface/huggingface_class.h"

namespace armilla {

struct HuggingfaceSource {
  const Config& config;
  DescriptionFields fields;
  ModelDescription& d;
  const HuggingfaceClass& known;
  std::vector<std::string> absent;  // "hidden_size 4096": the class's own values that were taken

  std::string architecture() const {
    const auto list = fields.find("architectures");
    if (!list || !list->is_list()) return {};
    const std::vector<Config> names = list->items();
    return names.empty() ? std::string() : names[0].text();
  }
  bool is_architecture(std::string_view ending) const { return architecture().ends_with(ending); }

  // The key as it is spelt here: by itself, or by another name that its class knows.
  std::string_view spelt(std::string_view key) const {
    if (config.has(key)) return key;
    for (const HuggingfaceAlias& alias : known.aliases)
      if (alias.key == key && config.has(alias.alias)) return alias.alias;
    return key;
  }

  // The key's value, or the class's own where the key is absent.
  void number(std::int64_t& field, std::string_view name, std::string_view key, std::int64_t highest,
              std::int64_t otherwise) {
    number(field, name, key, 1, highest, otherwise);
  }
  void number(std::int64_t& field, std::string_view name, std::string_view key, std::int64_t lowest,
              std::int64_t highest, std::int64_t otherwise) {
    const std::string_view used = spelt(key);
    fields.find(key);
    if (!config.has(used)) {
      field = otherwise;
      absent.push_back(fmt::format("{} {}", key, otherwise));
    } else if (!fields.find(used)) {
      throw Error(config.at(used).where(), "is null",
                  fmt::format("give a number, or leave the key out for {}", otherwise));
    } else {
      fields.count(field, name, used, lowest, highest);
    }
  }
  // The same where null has a meaning of its own: the field stays as it is.
  void number_or_null(std::int64_t& field, std::string_view name, std::string_view key, std::int64_t highest,
                      std::int64_t otherwise) {
    const std::string_view used = spelt(key);
    if (config.has(used) && !fields.find(used)) return;
    number(field, name, key, highest, otherwise);
  }
};

// Leave the description as it is where the key is absent.
void read_activation(HuggingfaceSource& s, std::string_view key, bool gated);
void read_dropout(HuggingfaceSource& s, std::string_view key);
void read_positions(HuggingfaceSource& s, std::string_view key, std::int64_t otherwise);

// What LlamaConfig and its likes have where a key is absent. 0: it follows from the others.
struct DecoderSizes {
  std::int64_t vocabulary, hidden, feed_forward, layers, heads, kv_heads, head_dim, positions;
};
void read_common(HuggingfaceSource& s, const DecoderSizes& sizes);

// read/described/huggingface/huggingface_encoders.cc
void read_bert(HuggingfaceSource& s);
void read_t5(HuggingfaceSource& s);
void read_mt5(HuggingfaceSource& s);
void read_vit(HuggingfaceSource& s);

// read/described/huggingface/huggingface_state_space.cc
void read_mamba(HuggingfaceSource& s);
void read_falcon_mamba(HuggingfaceSource& s);
void read_mamba2(HuggingfaceSource& s);
void read_jamba(HuggingfaceSource& s);
void read_nemotron_h(HuggingfaceSource& s);

}  // namespace armilla
