#include "read/onnx/dims.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <unordered_set>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "read/onnx/node_view.h"

namespace armilla {
namespace {

// Where a symbolic dimension occurs in the graph's inputs.
struct Symbol {
  std::string name;
  std::string input;  // the first one that has it
  std::size_t axis = 0;
  bool leads = false;  // it is some input's first dimension
};

// Some exporters write -1 for an open dimension.
bool is_known(const WireDimension& dimension) {
  return dimension.has_value && dimension.value >= 0;
}

// Unnamed dimensions are called after their place, so that --dim can give them.
std::string symbol_of(const WireValueInfo& info, std::size_t axis) {
  const WireDimension& dimension = info.dims[axis];
  return dimension.symbol.empty() ? fmt::format("{}.{}", readable(info.name), axis)
                                  : readable(dimension.symbol);
}

std::vector<Symbol> input_symbols(const std::vector<const WireValueInfo*>& inputs) {
  std::vector<Symbol> symbols;
  std::map<std::string, std::size_t> index;
  for (const WireValueInfo* input : inputs) {
    for (std::size_t axis = 0; axis < input->dims.size(); ++axis) {
      if (is_known(input->dims[axis])) continue;
      const std::string name = symbol_of(*input, axis);
      const auto [entry, is_new] = index.try_emplace(name, symbols.size());
      if (is_new) symbols.push_back({name, readable(input->name), axis, false});
      if (axis == 0) symbols[entry->second].leads = true;
    }
  }
  return symbols;
}

// Names that exporters and model zoos use for it.
bool is_batch_name(const std::string& name) {
  const std::string plain = lower_case(name);
  return plain.find("batch") != std::string::npos || plain == "n" || plain == "b" || plain == "bs";
}

bool is_sequence_name(const std::string& name) {
  const std::string plain = lower_case(name);
  return plain.find("seq") != std::string::npos || plain.find("time") != std::string::npos ||
         plain.find("len") != std::string::npos;
}

// The symbols that are the batch: one, or several unnamed leading dimensions together.
// Certain first: one name that says batch. Then the only named leading dimension that is no sequence; unnamed
// ones are taken for the batch all together, since a model without names has no other sign.
std::vector<const Symbol*> batch_symbols(const std::vector<Symbol>& symbols) {
  std::vector<const Symbol*> named;
  std::vector<const Symbol*> leading;
  std::vector<const Symbol*> unnamed;
  for (const Symbol& symbol : symbols) {
    if (is_batch_name(symbol.name)) named.push_back(&symbol);
    if (!symbol.leads || is_sequence_name(symbol.name)) continue;
    const bool is_unnamed = symbol.name == symbol.input + ".0";
    (is_unnamed ? unnamed : leading).push_back(&symbol);
  }
  if (named.size() == 1) return named;
  if (leading.size() == 1 && unnamed.empty()) return leading;
  return leading.empty() ? unnamed : std::vector<const Symbol*>{};
}

// Everything that --dim may name: also numbers and lengths, and dimensions that occur in intermediate shapes
// only.
std::set<std::string> all_symbols(const WireGraph& graph, const std::vector<Symbol>& inputs) {
  std::set<std::string> names;
  for (const Symbol& symbol : inputs) names.insert(symbol.name);
  for (const WireValueInfo* input : true_inputs(graph)) {
    if (is_single_integer(*input)) names.insert(readable(input->name));
    if (input->kind == ValueKind::sequence) names.insert(readable(input->name) + ".length");
    for (const WireValueInfo* held = input->element.get(); held != nullptr; held = held->element.get()) {
      for (const WireDimension& dimension : held->dims) {
        if (!dimension.symbol.empty()) names.insert(readable(dimension.symbol));
      }
    }
  }
  for (const auto* list : {&graph.outputs, &graph.value_infos}) {
    for (const WireValueInfo& info : *list) {
      for (const WireDimension& dimension : info.dims) {
        if (!dimension.symbol.empty()) names.insert(readable(dimension.symbol));
      }
    }
  }
  return names;
}

void take_given(const std::set<std::string>& known, const ModelOptions& options, OnnxDimensions& dims) {
  for (const auto& [name, value] : options.dimensions) {
    const std::string where = fmt::format("--dim {}={}", name, value);
    if (known.empty())
      throw Error(where, "the model has no symbolic dimensions",
                  "leave --dim out; --batch scales a fixed batch");
    if (!known.contains(name))
      throw Error(where, fmt::format("the model has no dimension '{}'", name),
                  suggest(name, std::vector<std::string>(known.begin(), known.end())));
    if (value < 0) throw Error(where, "a dimension must not be negative");
    dims.values[name] = value;
  }
}

// A sequence length given as such goes to the dimension that is called so.
void take_sequence(const std::set<std::string>& known, const std::string& file, const ModelOptions& options,
                   OnnxDimensions& dims) {
  if (options.sequence == 0) return;
  const std::string where = fmt::format("a sequence of {}", options.sequence);
  if (options.sequence < 1) throw Error(where, "a sequence has at least 1 token");
  bool found = false;
  for (const std::string& name : known) {
    const std::string plain = lower_case(name);
    if (plain != "seq" && plain != "sequence" && plain != "sequence_length" && plain != "seq_len" &&
        plain != "seq_length")
      continue;
    found = true;
    const auto [given, is_new] = dims.values.try_emplace(name, options.sequence);
    if (!is_new && given->second != options.sequence)
      throw Error(where, fmt::format("contradicts dimension {}={}", name, given->second),
                  "give one of the two");
  }
  if (!found)
    throw Error(
        where, fmt::format("{} has no symbolic dimension called sequence", file),
        "leave model.sequence out: a sequence, if it has one, is fixed in the file or has another name, "
        "which --dim NAME=SIZE sets");
}

void take_batch(const std::vector<const Symbol*>& batch, const ModelOptions& options, OnnxDimensions& dims) {
  for (const Symbol* symbol : batch) {
    // A leading dimension of 0 (an empty cache) cannot be the batch.
    const auto given = dims.values.find(symbol->name);
    if (given != dims.values.end() && given->second < 1) {
      if (lower_case(symbol->name).find("batch") == std::string::npos) continue;  // then it is something else
      throw Error(fmt::format("--dim {}={}", symbol->name, given->second),
                  "this dimension is the batch, which must be at least 1");
    }
    if (given == dims.values.end()) {
      dims.values[symbol->name] = options.batch.value_or(1);
      dims.notes.push_back(fmt::format("dimension '{}' of input '{}' taken as the batch: {}", symbol->name,
                                       symbol->input, options.batch.value_or(1)));
    } else if (options.batch && *options.batch != given->second) {
      throw Error(fmt::format("a batch of {}", *options.batch),
                  fmt::format("contradicts dimension {}={}, which is the batch", symbol->name, given->second),
                  "give one of the two");
    }
    dims.batch = dims.values[symbol->name];
    dims.batch_is_fixed = false;
  }
}

}  // namespace

// Names go into messages and files: control characters and invalid UTF-8 become question marks.
std::string readable(std::string_view name) {
  constexpr std::size_t kLongest = 256;
  std::string text;
  for (std::size_t i = 0; i < name.size() && text.size() < kLongest;) {
    const auto byte = static_cast<unsigned char>(name[i]);
    const std::size_t size = byte < 0x80                   ? 1
                             : byte >= 0xC2 && byte < 0xE0 ? 2
                             : byte >= 0xE0 && byte < 0xF0 ? 3
                             : byte >= 0xF0 && byte < 0xF5 ? 4
                                                           : 0;
    bool valid = size > 0 && i + size <= name.size() && (size > 1 || (byte >= 0x20 && byte != 0x7F));
    for (std::size_t k = 1; valid && k < size; ++k)
      valid = (static_cast<unsigned char>(name[i + k]) & 0xC0U) == 0x80U;
    if (valid && size > 2) {
      const auto second = static_cast<unsigned char>(name[i + 1]);
      // RFC 3629: well-formed sequences only. Overlong forms, surrogates and code points beyond U+10FFFF.
      valid = !(byte == 0xE0 && second < 0xA0) && !(byte == 0xED && second > 0x9F) &&
              !(byte == 0xF0 && second < 0x90) && !(byte == 0xF4 && second > 0x8F);
    }
    if (valid) {
      text += name.substr(i, size);
      i += size;
    } else {
      text += '?';
      ++i;
    }
  }
  return text;
}

bool is_single_integer(const WireValueInfo& input) {
  return input.is_tensor() &&
         (input.data_type == onnx_type::kInt32 || input.data_type == onnx_type::kInt64) && input.has_shape &&
         std::all_of(input.dims.begin(), input.dims.end(),
                     [](const WireDimension& dimension) { return dimension.value == 1; });
}

std::optional<Shape> OnnxDimensions::resolve(const WireValueInfo& info) const {
  if (!info.is_tensor() || !info.has_shape) return std::nullopt;
  Shape shape;
  for (std::size_t axis = 0; axis < info.dims.size(); ++axis) {
    const WireDimension& dimension = info.dims[axis];
    if (is_known(dimension)) {
      shape.push_back(dimension.value);
      continue;
    }
    const auto bound = values.find(symbol_of(info, axis));
    if (bound == values.end()) return std::nullopt;
    shape.push_back(bound->second);
  }
  return shape;
}

std::vector<const WireValueInfo*> true_inputs(const WireGraph& graph) {
  // Up to IR version 3 initializers are listed among the inputs; these have a value of their own.
  std::unordered_set<std::string_view> initializers;
  for (const WireTensor& tensor : graph.initializers) initializers.insert(tensor.name);
  std::vector<const WireValueInfo*> inputs;
  for (const WireValueInfo& input : graph.inputs) {
    if (!initializers.contains(input.name)) inputs.push_back(&input);
  }
  return inputs;
}

OnnxDimensions bind_dimensions(const WireModel& model, const std::string& file, const ModelOptions& options) {
  OnnxDimensions dims;
  if (options.batch && *options.batch < 1)
    throw Error(fmt::format("--batch {}", *options.batch), "a batch must be at least 1");
  const std::vector<const WireValueInfo*> inputs = true_inputs(model.graph);
  for (const WireValueInfo* input : inputs) {
    if (input->is_tensor() && !input->has_shape)
      throw Error(file, fmt::format("its input '{}' has no shape, not even a rank", readable(input->name)),
                  "set the input's shape in the model (onnx.tools.update_model_dims) or export it again");
  }
  const std::vector<Symbol> symbols = input_symbols(inputs);
  dims.any_symbolic = !symbols.empty();
  const std::set<std::string> known = all_symbols(model.graph, symbols);
  take_given(known, options, dims);
  take_sequence(known, file, options, dims);
  take_batch(batch_symbols(symbols), options, dims);

  std::vector<std::string> open;
  for (const Symbol& symbol : symbols) {
    if (!dims.values.contains(symbol.name))
      open.push_back(
          fmt::format("'{}' (dimension {} of input '{}')", symbol.name, symbol.axis, symbol.input));
  }
  if (!open.empty()) {
    const auto first = std::find_if(symbols.begin(), symbols.end(),
                                    [&](const Symbol& symbol) { return !dims.values.contains(symbol.name); });
    throw Error(file, fmt::format("these dimensions have no value: {}", fmt::join(open, ", ")),
                fmt::format("give each one, for example --dim {}=128", first->name));
  }
  // A batch that the file fixes: the first dimension of the first input that has one.
  if (dims.batch_is_fixed) {
    for (const WireValueInfo* input : inputs) {
      const std::optional<Shape> shape = dims.resolve(*input);
      if (!shape || shape->empty() || shape->front() == 0) continue;
      dims.batch = shape->front();
      break;
    }
  }
  return dims;
}

}  // namespace armilla
