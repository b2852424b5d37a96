#include "trace/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"

namespace armilla {
namespace {

constexpr std::uint64_t kMostTraceNodes = std::uint64_t{1} << 25;
constexpr std::string_view kPolicies[] = {"MICRO",
                                          "DATA",
                                          "MODEL",
                                          "HYBRID_DATA_MODEL",
                                          "HYBRID_MODEL_DATA",
                                          "HYBRID_DLRM",
                                          "HYBRID_DLRM_ENHANCED"};

// As Python opens a text file, with universal newlines: \r\n and a lone \r are \n.
std::string with_line_feeds(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      result += text[i];
    } else if (i + 1 == text.size() || text[i + 1] != '\n') {
      result += '\n';
    }
  }
  return result;
}

std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view kGap = " \t\v\f";
  std::vector<std::string_view> words;
  for (std::size_t begin = line.find_first_not_of(kGap); begin != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(kGap, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(kGap, end);
  }
  return words;
}

std::int64_t integer(std::string_view word, std::int64_t least, const std::string& where) {
  const auto value = number_from<std::int64_t>(word);
  if (!value || *value < least)
    throw Error(where, fmt::format("'{:.60}' is not a number that Chakra's converter takes", word));
  return *value;
}

struct Column {
  std::int64_t cycles = 0;
  std::string_view collective;
  std::int64_t bytes = 0;
};

// A node may not exist (yet), as an attribute that Python has not set: then there is no dependence.
using Node = std::optional<std::uint64_t>;

struct FileLayer {
  std::string_view name;
  Column forward, input_gradient, weight_gradient;
  // The latest nodes of each kind.
  Node forward_compute, forward_collective, input_compute, input_collective, weight_compute,
      weight_collective;
};

// Whatever else stands there becomes an all-reduce, NONE included.
std::int64_t collective_type(std::string_view word) {
  if (word == "ALLTOALL") return static_cast<std::int64_t>(ChakraCollective::all_to_all);
  if (word == "ALLGATHER") return static_cast<std::int64_t>(ChakraCollective::all_gather);
  if (word == "REDUCESCATTER") return static_cast<std::int64_t>(ChakraCollective::reduce_scatter);
  return static_cast<std::int64_t>(ChakraCollective::all_reduce);
}

struct Text {
  std::string content;
  std::string_view policy;
  std::int64_t last_bottom_layer = -1;
  std::int64_t declared_layers = 0;
  std::vector<FileLayer> layers;
};

// Later columns (the update) are read by nobody.
FileLayer read_layer(std::string_view line, const std::string& where) {
  const std::vector<std::string_view> words = words_of(line);
  if (words.size() < 12) {
    throw Error(where, fmt::format("{} of 12 columns", words.size()),
                words.empty() ? "Chakra's converter takes no empty lines" : "");
  }
  const auto column = [&](std::size_t first) {
    return Column{integer(words[first], 0, where), words[first + 1],
                  integer(words[first + 2], INT64_MIN, where)};
  };
  FileLayer layer;
  layer.name = words[0];
  layer.forward = column(2);
  layer.input_gradient = column(5);
  layer.weight_gradient = column(8);
  return layer;
}

// Views into text.content.
void read_lines(Text& text, const std::string& name) {
  const std::string_view content = text.content;
  std::size_t number = 0;
  for (std::size_t position = 0; position < content.size();) {
    const std::size_t end = std::min(content.find('\n', position), content.size());
    const std::string_view line = content.substr(position, end - position);
    const std::string where = fmt::format("{}:{}:1", name, ++number);
    position = end + 1;
    if (number == 1) {
      const std::vector<std::string_view> words = words_of(line);
      text.policy = words.empty() ? std::string_view() : words[0];
      const std::span<const std::string_view> known(kPolicies);
      if (std::find(known.begin(), known.end(), text.policy) == known.end()) {
        throw Error(where, fmt::format("Chakra's converter does not know the policy '{:.60}'", text.policy),
                    suggest(text.policy.substr(0, 60), known));
      }
      if (text.policy.starts_with("HYBRID_DLRM")) {
        if (words.size() < 2) throw Error(where, "the index of the last bottom layer is missing");
        text.last_bottom_layer = integer(words[1], 0, where);
      }
    } else if (number == 2) {
      const std::vector<std::string_view> words = words_of(line);
      if (words.size() != 1) throw Error(where, "the number of layers is expected here, alone");
      text.declared_layers = integer(words[0], INT64_MIN, where);
    } else {
      text.layers.push_back(read_layer(line, where));
    }
  }
  if (number < 2) throw Error(fmt::format("{}:{}:1", name, number + 1), "the file ends too early");
  if (text.layers.empty()) throw Error(name, "has no layers");
}

class Converter {
 public:
  Converter(Text& text, const std::string& name) : text_(text), layers_(text.layers), name_(name) {}

  ChakraTrace next_rank(std::int64_t passes) {
    trace_ = {};
    trace_.schema = "v0.0.4";
    // The converter writes its version and the whole input into every trace.
    add_metadata("schema", "1.0.2-chakra.1.0.0");
    add_metadata("input_file", text_.content);
    // Ids go on from rank to rank, but a rank's first pass must not wait for nodes of the rank before.
    for (FileLayer& layer : layers_)
      layer.weight_compute = layer.weight_collective = layer.input_collective = {};
    for (std::int64_t pass = 0; pass < passes; ++pass) {
      if (text_.policy == "MICRO") {
        for (FileLayer& layer : layers_)
          layer.weight_collective = collective(layer.name, layer.weight_gradient, {});
      } else if (text_.policy == "DATA") {
        data_pass();
      } else if (text_.policy.starts_with("HYBRID_DLRM")) {
        dlrm_pass();
      } else {
        model_pass();
      }
      if (id_ > kMostTraceNodes)
        throw Error(name_, fmt::format("becomes more than {} nodes", kMostTraceNodes),
                    "translate fewer passes");
    }
    return std::move(trace_);
  }

 private:
  void add_metadata(std::string_view name, std::string_view value) {
    ChakraAttribute attribute;
    attribute.name = trace_.strings.add(name);
    attribute.field = static_cast<std::uint8_t>(ChakraValueKind::string);
    attribute.value = trace_.strings.add(value);
    trace_.metadata.push_back(attribute);
  }

  std::uint64_t compute(const FileLayer& layer, std::string_view part, std::int64_t cycles,
                        std::initializer_list<Node> after) {
    trace_.add_node(id_, ChakraNodeType::compute, fmt::format("COMP_NODE_{}_{}", layer.name, part),
                    static_cast<std::uint64_t>(cycles));
    add_dependences(after);
    return id_++;
  }

  std::uint64_t collective(std::string_view layer, const Column& column, std::initializer_list<Node> after) {
    trace_.add_node(id_, ChakraNodeType::collective,
                    fmt::format("COMM_COLL_NODE_{}_{}", layer, column.collective));
    add_dependences(after);
    trace_.add_integer("comm_type", ChakraValueKind::int64, collective_type(column.collective));
    trace_.add_integer("comm_size", ChakraValueKind::int64, column.bytes);
    return id_++;
  }

  void add_dependences(std::initializer_list<Node> after) {
    for (const Node& node : after) {
      if (node) trace_.add_data_dependence(*node);
    }
  }

  void data_pass();
  void model_pass();
  void dlrm_pass();

  Text& text_;
  std::vector<FileLayer>& layers_;
  const std::string& name_;
  ChakraTrace trace_;
  std::uint64_t id_ = 0;
};

// Node by node as the converter does it: the order in which nodes are made decides their ids.
void Converter::data_pass() {
  Node last;
  for (FileLayer& layer : layers_) {
    layer.forward_compute = compute(layer, "FWD", layer.forward.cycles, {last, layer.weight_collective});
    last = layer.forward_compute;
  }
  for (std::size_t i = layers_.size(); i-- > 0;) {
    FileLayer& layer = layers_[i];
    // The deepest layer's backward pass begins after the last forward pass, any other after the layer above
    // it.
    const Node before = i + 1 == layers_.size() ? last : layers_[i + 1].input_compute;
    const std::uint64_t weight = compute(layer, "BWD_WG", layer.weight_gradient.cycles, {before});
    layer.weight_collective = collective(layer.name, layer.weight_gradient, {weight});
    // The first layer's input is data: nobody needs its gradient.
    if (i > 0) layer.input_compute = compute(layer, "BWD_IG", layer.input_gradient.cycles, {weight});
  }
}

// MODEL, HYBRID_DATA_MODEL and HYBRID_MODEL_DATA.
void Converter::model_pass() {
  const bool hybrid = text_.policy != "MODEL";
  Node last;
  for (FileLayer& layer : layers_) {
    const std::uint64_t forward =
        hybrid ? compute(layer, "FWD", layer.forward.cycles, {layer.weight_collective, last})
               : compute(layer, "FWD", layer.forward.cycles, {last, layer.weight_compute});
    last = layer.forward_collective = collective(layer.name, layer.forward, {forward});
  }
  // The layer whose input gradient is not exchanged is the first by the number that the file declares.
  const std::int64_t silent = static_cast<std::int64_t>(layers_.size()) - text_.declared_layers;
  if (silent > 0 && text_.declared_layers > 0)
    throw Error(name_ + ":2:1", "Chakra's converter stops where more layers follow than are declared");
  for (std::size_t i = layers_.size(); i-- > 0;) {
    FileLayer& layer = layers_[i];
    const bool deepest = i + 1 == layers_.size();
    const std::uint64_t input =
        deepest ? compute(layer, "BWD_IG", layer.input_gradient.cycles, {last})
                : compute(layer, "BWD_IG", layer.input_gradient.cycles,
                          {layers_[i + 1].weight_compute, layers_[i + 1].input_collective});
    if (static_cast<std::int64_t>(i) != silent) {
      const std::string name =
          fmt::format("{}{}", layer.name, text_.policy == "HYBRID_DATA_MODEL" ? "_IG_COMM_" : "");
      layer.input_collective = collective(name, layer.input_gradient, {input});
    }
    const std::uint64_t weight = compute(layer, "BWD_WG", layer.weight_gradient.cycles, {input});
    layer.weight_compute = weight;
    if (hybrid) layer.weight_collective = collective(layer.name, layer.weight_gradient, {weight});
  }
}

void Converter::dlrm_pass() {
  Node last;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    FileLayer& layer = layers_[i];
    // The converter reads the attribute of layer 0, which is missing where that layer has no ALLTOALL.
    Node embedding;
    if (static_cast<std::int64_t>(i) == text_.last_bottom_layer) {
      embedding = layers_[0].forward_collective;
      if (!embedding) {
        throw Error(name_ + ":1:1",
                    "the bottom MLP waits for an ALLTOALL of the first layer that there is not",
                    "Chakra's converter stops here, too");
      }
    }
    const Node gradient = layer.weight_collective ? layer.weight_collective : layer.weight_compute;
    layer.forward_compute = compute(layer, "FWD", layer.forward.cycles, {gradient, last, embedding});
    last = layer.forward_compute;
    if (layer.forward.collective == "ALLTOALL")
      layer.forward_collective = collective(layer.name, layer.forward, {last});
  }
  for (std::size_t i = layers_.size(); i-- > 0;) {
    FileLayer& layer = layers_[i];
    const Node before = i + 1 == layers_.size() ? last : layers_[i + 1].input_compute;
    layer.weight_compute = compute(layer, "BWD_WG", layer.weight_gradient.cycles,
                                   {before, i + 1 == layers_.size() ? Node() : layer.input_collective});
    if (layer.weight_gradient.collective != "NONE")
      layer.weight_collective = collective(layer.name, layer.weight_gradient, {layer.weight_compute});
    if (i > 0)
      layer.input_compute = compute(layer, "BWD_IG", layer.input_gradient.cycles, {layer.weight_compute});
    if (static_cast<std::int64_t>(i) == text_.last_bottom_layer + 1)
      layers_[0].input_collective =
          collective(layers_[0].name, layers_[0].input_gradient, {layer.input_compute});
  }
}

}  // namespace

std::vector<ChakraTrace> text_chakra_as_converter(std::string_view text, const std::string& name,
                                                  std::int64_t ranks, std::int64_t passes) {
  constexpr std::int64_t kMostRanks = 65536;  // each trace holds the whole text
  if (ranks < 1 || ranks > kMostRanks)
    throw Error("ranks", fmt::format("{} ranks", ranks), fmt::format("1 to {}", kMostRanks));
  if (passes < 1) throw Error("passes", fmt::format("{} passes", passes), "at least 1");
  Text read;
  read.content = with_line_feeds(text);
  read_lines(read, name);
  Converter converter(read, name);
  std::vector<ChakraTrace> traces;
  for (std::int64_t rank = 0; rank < ranks; ++rank) traces.push_back(converter.next_rank(passes));
  return traces;
}

}  // namespace armilla
