#include "read/scalesim.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/checked.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "base/text.h"

namespace armilla {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// The fields of a line, without empty ones at its end.
// Tables are separated by commas, or by tabs where a line has no comma.
std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> fields;
  const char separator = line.find(',') == std::string_view::npos ? '\t' : ',';
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(separator, begin), line.size());
    fields.push_back(trimmed(line.substr(begin, end - begin)));
    begin = end + 1;
  }
  while (!fields.empty() && fields.back().empty()) fields.pop_back();
  return fields;
}

// Takes the next line from `text`; nothing at its end.
std::optional<std::string_view> take_line(std::string_view& text) {
  if (text.empty()) return std::nullopt;
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

enum class Form : std::uint8_t { none, convolutions, products };

// Products and convolutions are told by the names of their columns.
Form form_of(const std::vector<std::string_view>& columns) {
  std::vector<std::string> names;
  for (const std::string_view column : columns) names.push_back(lower_case(column));
  if (names.size() >= 4 && names[1] == "m" && names[2] == "n" && names[3] == "k") return Form::products;
  if (names.size() >= 7 && names[1].find("ifmap") != std::string::npos &&
      names[3].find("filter") != std::string::npos)
    return Form::convolutions;
  return Form::none;
}

enum class Extra : std::uint8_t { none, stride, sparsity, batch, unknown };

class TopologyReader {
 public:
  TopologyReader(std::string_view text, const std::string& name) : text_(text), name_(name) {
    if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
    const std::size_t slash = name.find_last_of('/');
    topology_.name = slash == std::string::npos ? name : name.substr(slash + 1);
  }

  SystolicTopology read() {
    read_header();
    while (const std::optional<std::string_view> line = next_line()) {
      const std::vector<std::string_view> fields = split(*line);
      if (fields.size() == 1)
        topology_.notes.push_back(
            fmt::format("line {}: '{:.60}' has no sizes and is taken for a heading", line_, fields[0]));
      else if (!fields.empty())
        topology_.layers.push_back(read_layer(fields));
    }
    if (topology_.layers.empty()) throw Error(name_, "holds no layer");
    if (sparse_ > 0)
      topology_.notes.push_back(fmt::format(
          "{} a ratio of sparsity, which is not modelled: the layers are dense", counted(sparse_)));
    if (batches_ > 0)
      topology_.notes.push_back(fmt::format(
          "{} a batch size, which SCALE-Sim does not read: the layers are for one image", counted(batches_)));
    return std::move(topology_);
  }

 private:
  static std::string counted(std::int64_t layers) {
    return layers == 1 ? "1 layer has" : fmt::format("{} layers have", layers);
  }
  std::string where() const { return fmt::format("{}:{}", name_, line_); }

  std::optional<std::string_view> next_line() {
    while (const std::optional<std::string_view> line = take_line(text_)) {
      ++line_;
      const std::string_view content = trimmed(*line);
      if (!content.empty() && !content.starts_with('#')) return *line;
    }
    return std::nullopt;
  }

  void read_header() {
    const std::optional<std::string_view> line = next_line();
    if (!line) throw Error(name_, "is empty", "expected a topology of SCALE-Sim");
    const std::vector<std::string_view> columns = split(*line);
    const Form form = form_of(columns);
    if (form == Form::none)
      throw Error(where(), "the first line of a SCALE-Sim topology names its columns, this one does not",
                  "expected 'Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, "
                  "Num Filter, Strides,' or 'Layer, M, N, K,'");
    topology_.products = form == Form::products;
    for (const std::string_view column : columns) columns_.push_back(std::string(column));
  }

  std::size_t usual_columns() const { return topology_.products ? 4 : 8; }

  Extra kind_of(std::size_t column, std::string_view value) const {
    const std::string title = column < columns_.size() ? lower_case(columns_[column]) : "";
    if (value.find(':') != std::string_view::npos || title.find("spars") != std::string::npos)
      return Extra::sparsity;
    if (title.find("batch") != std::string::npos) return Extra::batch;
    if (title.find("stride") != std::string::npos) return Extra::stride;
    // SCALE-Sim v2 takes a ninth number for the stride in width whatever the header says.
    return title.empty() && column == 8 && !topology_.products ? Extra::stride : Extra::unknown;
  }

  std::int64_t number(const std::vector<std::string_view>& fields, std::size_t column) const {
    const std::string title = column < columns_.size() && !columns_[column].empty()
                                  ? columns_[column]
                                  : fmt::format("column {}", column + 1);
    if (column >= fields.size() || fields[column].empty())
      throw Error(where(), fmt::format("layer '{:.60}' has no {}", fields[0], title));
    const auto value = number_from<std::int64_t>(fields[column]);
    if (!value)
      throw Error(where(), fmt::format("{} of layer '{:.60}' is not a whole number: '{:.60}'", title,
                                       fields[0], fields[column]));
    if (*value < 1 || *value > INT32_MAX)
      throw Error(where(), fmt::format("{} of layer '{:.60}' is {}", title, fields[0], *value),
                  "sizes and strides lie between 1 and 2147483647");
    return *value;
  }

  SystolicLayer read_layer(const std::vector<std::string_view>& fields) {
    SystolicLayer layer{std::string(fields[0]), {}, 1, where()};
    if (layer.name.empty()) layer.name = fmt::format("layer{}", topology_.layers.size());
    ConvolutionShape& shape = layer.shape;
    // A product M x N x K as a convolution: the input has M rows of K, the filter one row of K, N filters.
    if (topology_.products) {
      const std::int64_t inner = number(fields, 3);
      shape = {number(fields, 1), inner, 1, inner, 1, number(fields, 2), 1, 1};
    } else {
      shape = {number(fields, 1), number(fields, 2), number(fields, 3), number(fields, 4),
               number(fields, 5), number(fields, 6), number(fields, 7), number(fields, 7)};
      if (shape.filter_height > shape.ifmap_height || shape.filter_width > shape.ifmap_width)
        throw Error(
            where(),
            fmt::format("layer '{:.60}': a filter of {}x{} does not fit an input of {}x{}", layer.name,
                        shape.filter_height, shape.filter_width, shape.ifmap_height, shape.ifmap_width),
            "SCALE-Sim's inputs include their padding");
      // SCALE-Sim has no groups: depthwise layers (DP in their name) are as many convolutions of one channel.
      if (layer.name.find("DP") != std::string::npos) {
        layer.repeats = shape.channels;
        shape.channels = 1;
      }
    }
    for (std::size_t i = usual_columns(); i < fields.size(); ++i) read_extra(fields, i, shape);
    return layer;
  }

  void read_extra(const std::vector<std::string_view>& fields, std::size_t column, ConvolutionShape& shape) {
    if (fields[column].empty()) return;
    switch (kind_of(column, fields[column])) {
      case Extra::stride:
        shape.stride_width = number(fields, column);
        return;
      case Extra::sparsity:
        if (fields[column] != "1:1") ++sparse_;
        return;
      case Extra::batch:
        if (number(fields, column) != 1) ++batches_;
        return;
      default:
        if (!noted_columns_)
          topology_.notes.push_back(fmt::format(
              "columns behind the {}th are not part of a topology and are not read", usual_columns()));
        noted_columns_ = true;
    }
  }

  std::string_view text_;
  const std::string& name_;
  std::int64_t line_ = 0;
  std::vector<std::string> columns_;
  std::int64_t sparse_ = 0, batches_ = 0;
  bool noted_columns_ = false;
  SystolicTopology topology_;
};

// As SCALE-Sim rounds up: a last window may reach over the edge.
std::int64_t outputs(std::int64_t input, std::int64_t filter, std::int64_t stride) {
  return (input - filter + stride - 1) / stride + 1;
}

// One operator of the model with its tensors and its weight.
void add_topology_layer(const SystolicLayer& layer, bool products, std::int64_t batch, Model& model) {
  const ConvolutionShape& s = layer.shape;
  const std::int64_t height = outputs(s.ifmap_height, s.filter_height, s.stride_height);
  const std::int64_t width = outputs(s.ifmap_width, s.filter_width, s.stride_width);
  const auto times = [&](std::int64_t a, std::int64_t b) { return checked_multiply(a, b, layer.where); };
  const std::int64_t channels = times(s.channels, layer.repeats), filters = times(s.filters, layer.repeats);
  const auto add_tensor = [&](std::string_view what, Shape shape) {
    model.tensors.push_back({fmt::format("{}.{}", layer.name, what), DType::fp32, std::move(shape)});
    return static_cast<std::uint32_t>(model.tensors.size() - 1);
  };
  const Shape image = {batch, channels, s.ifmap_height, s.ifmap_width};
  const Shape result = {batch, filters, height, width};
  const Shape weight = products ? Shape{s.filters, s.ifmap_width}
                                : Shape{filters, s.channels, s.filter_height, s.filter_width};
  Operator op;
  op.name = layer.name;
  op.type = products ? "Gemm" : "Conv";
  // Whatever lies between two layers (pooling, padding, a branch) is not in the table.
  const Shape in = products ? Shape{times(batch, s.ifmap_height), s.ifmap_width} : image;
  op.inputs = {model.operators.empty() ? add_tensor("input", in) : model.operators.back().outputs[0]};
  if (model.operators.empty()) model.inputs = op.inputs;
  op.outputs = {add_tensor("output", products ? Shape{times(batch, height), s.filters} : result)};
  const std::int64_t elements = element_count(weight, layer.where);
  model.parameters.push_back({layer.name + ".weight", DType::fp32, weight, elements, true});
  op.parameters = {static_cast<std::uint32_t>(model.parameters.size() - 1)};
  op.weight_is_operand = true;
  op.needs_input_gradient = !model.operators.empty();
  Work& work = op.forward;
  work.kind = WorkKind::matrix;
  work.dtype = DType::fp32;
  Gemm gemm;
  gemm.m = times(batch, times(height, width));
  gemm.n = s.filters;
  gemm.k = times(times(s.filter_height, s.filter_width), s.channels);
  gemm.count = layer.repeats;
  work.gemms = {gemm};
  work.flops = Flops(times(2, times(times(gemm.m, gemm.n), times(gemm.k, gemm.count))));
  const std::int64_t words =
      checked_add(checked_add(element_count(in, layer.where), elements, layer.where),
                  element_count(model.tensors[op.outputs[0]].shape, layer.where), layer.where);
  work.bytes = size_of(words, DType::fp32, layer.where);
  model.operators.push_back(std::move(op));
}

}  // namespace

SystolicTopology parse_scalesim_topology(std::string_view text, const std::string& name) {
  return TopologyReader(text, name).read();
}

SystolicTopology read_scalesim_topology(const std::string& path) {
  const MappedFile file(path);
  return parse_scalesim_topology({file.bytes().data(), file.bytes().size()}, path);
}

Model read_scalesim_model(std::span<const char> bytes, const std::string& name, const ModelOptions& options) {
  if (!options.dimensions.empty() || options.sequence != 0)
    throw Error(name, "a SCALE-Sim topology has no symbolic dimensions and no sequence",
                "omit --dim and --seq");
  const SystolicTopology topology = parse_scalesim_topology({bytes.data(), bytes.size()}, name);
  Model model;
  model.name = topology.name.substr(0, topology.name.find_last_of('.'));
  model.source = name;
  model.batch = options.batch.value_or(1);
  if (model.batch < 1) throw Error(name, fmt::format("cannot be read for a batch of {}", model.batch));
  std::map<std::string, std::int64_t> seen;
  for (SystolicLayer layer : topology.layers) {
    if (const std::int64_t times = seen[layer.name]++; times > 0) layer.name += fmt::format("#{}", times + 1);
    add_topology_layer(layer, topology.products, model.batch, model);
  }
  model.outputs = model.operators.back().outputs;
  model.notes = topology.notes;
  model.notes.push_back(
      "a SCALE-Sim topology holds convolutions and products only: pooling, normalisation and activations "
      "cost "
      "nothing");
  derive_layers(model);
  return model;
}

}  // namespace armilla
