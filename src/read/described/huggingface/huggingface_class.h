// Which keys and architectures transformers' configuration classes have: for telling what a config.json says
// that its class does not know. Source: src/transformers/models/*/configuration_*.py of transformers 4.57
// (their attribute_map among it), and the keys that every PretrainedConfig takes.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"

namespace armilla {

struct HuggingfaceAlias {
  std::string_view alias, key;
};

struct HuggingfaceClass {
  std::string_view model_type;  // "llama"
  std::string_view prefix;      // of its class names: "Llama"
  std::string_view main;        // the architecture that is read: "LlamaForCausalLM"
  // Further architectures that are read as they are.
  std::span<const std::string_view> exact;
  std::span<const HuggingfaceAlias> aliases;
  // Keys that say nothing about shapes.
  std::span<const std::string_view> harmless;
};
const HuggingfaceClass& huggingface_class(std::string_view model_type);

// "architectures LlamaForCausalLMEagle3 is not known ..."; empty for those that are read as they are.
std::string architecture_note(const HuggingfaceClass& known, std::string_view architecture);

// Of the keys that were neither `read` nor are harmless; empty when there are none.
std::string unknown_keys_note(const HuggingfaceClass& known, const std::vector<std::string>& keys,
                              const std::set<std::string, std::less<>>& read);

}  // namespace armilla
