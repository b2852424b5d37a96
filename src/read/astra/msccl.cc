#include "read/astra.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <pugixml.hpp>
#include <string_view>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/suggest.h"
#include "base/text.h"
#include "base/units_text.h"
#include "read/file_format.h"

namespace armilla {
namespace {

constexpr std::int32_t kMaxChunks = 1 << 20;  // of one buffer or one step
constexpr std::int32_t kMaxGpus = 1 << 16;

constexpr std::array<std::string_view, 9> kAlgoAttributes = {
    "name", "nchunksperloop", "ngpus", "coll", "inplace", "proto", "nchannels", "minBytes", "maxBytes"};
constexpr std::array<std::string_view, 4> kGpuAttributes = {"id", "i_chunks", "o_chunks", "s_chunks"};
constexpr std::array<std::string_view, 4> kBlockAttributes = {"id", "send", "recv", "chan"};
constexpr std::array<std::string_view, 10> kStepAttributes = {"s",      "type", "srcbuf", "srcoff", "dstbuf",
                                                              "dstoff", "cnt",  "depid",  "deps",   "hasdep"};
constexpr std::array<std::string_view, 9> kOperations = {"s",    "r",   "rcs", "rrs", "rrc",
                                                         "rrcs", "cpy", "re",  "nop"};
constexpr std::array<std::string_view, 3> kBuffers = {"i", "o", "s"};

// Files spell "allreduce", "all_reduce" and "AllReduce".
std::optional<CollectiveKind> kind_named(std::string_view word) {
  std::string plain;
  for (const char c : word) {
    if (c != '_' && c != '-') plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  for (const CollectiveKind kind : kCollectiveKinds) {
    std::string name(name_of(kind));
    std::erase(name, '-');
    if (plain == name) return kind;
  }
  return std::nullopt;
}

class Parser {
 public:
  Parser(std::span<const char> text, const std::string& name)
      : text_(text.data(), text.size()), name_(name) {}

  MscclAlgorithm run();

 private:
  // A dependence as the file names it, resolved once all threadblocks of the GPU are known.
  struct Wait {
    std::int32_t block, step;           // who waits
    std::int32_t on_block_id, on_step;  // for whom
    pugi::xml_node node;
  };
  // Per threadblock and step, whether it tells others that it is done (hasdep).
  using Announced = std::vector<std::vector<bool>>;

  std::string where(std::ptrdiff_t offset) const;
  std::string where(const pugi::xml_node& node) const { return where(node.offset_debug()); }
  [[noreturn]] void fail(const pugi::xml_node& node, std::string message, std::string hint = {}) const {
    throw Error(where(node), std::move(message), std::move(hint));
  }
  void check_attributes(const pugi::xml_node& node, std::span<const std::string_view> known) const;
  void check_children(const pugi::xml_node& node, const char* name) const;
  std::string_view text_of(const pugi::xml_node& node, const char* attribute) const;
  std::int32_t number(const pugi::xml_node& node, const char* attribute, std::int32_t lowest,
                      std::int32_t highest) const;
  std::int32_t number_or(const pugi::xml_node& node, const char* attribute, std::int32_t lowest,
                         std::int32_t highest, std::int32_t otherwise) const {
    return node.attribute(attribute) ? number(node, attribute, lowest, highest) : otherwise;
  }
  template <std::size_t size>
  std::size_t word(const pugi::xml_node& node, const char* attribute, std::string_view what,
                   const std::array<std::string_view, size>& words) const;

  MscclGpu gpu(const pugi::xml_node& node) const;
  void check_chunks(const pugi::xml_node& node, CollectiveKind kind, std::int32_t per_loop) const;
  MscclBlock block(const pugi::xml_node& node, std::int32_t index, std::vector<Wait>& waits,
                   std::vector<bool>& announced) const;
  MscclStep step(const pugi::xml_node& node, const MscclBlock& block) const;
  void resolve(MscclGpu& gpu, const std::vector<Wait>& waits, const Announced& announced) const;

  std::string_view text_;
  const std::string& name_;
  std::int32_t gpus_ = 0;
};

// pugixml knows offsets, users lines.
std::string Parser::where(std::ptrdiff_t offset) const {
  const auto end = std::min(static_cast<std::size_t>(std::max<std::ptrdiff_t>(offset, 0)), text_.size());
  const std::string_view before = text_.substr(0, end);
  const std::size_t line = 1 + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
  const std::size_t start = before.rfind('\n');
  return fmt::format("{}:{}:{}", name_, line, start == before.npos ? end + 1 : end - start);
}

// What is unknown is somebody's extension, unless it looks like a known attribute that is missing.
void Parser::check_attributes(const pugi::xml_node& node, std::span<const std::string_view> known) const {
  for (const pugi::xml_attribute& attribute : node.attributes()) {
    const std::string_view name = attribute.name();
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    for (const std::string_view candidate : known) {
      if (candidate.size() > 2 && !node.attribute(std::string(candidate).c_str()) &&
          edit_distance(name, candidate) <= 2)
        fail(node, fmt::format("<{}> has an unknown attribute '{:.60}'", node.name(), name),
             fmt::format("did you mean '{}'?", candidate));
    }
  }
}

// The runtime passes over elements it does not know, such as the <copy> of older tools, whose copies mean
// nothing in place. One that looks like the known one, or belongs elsewhere, is a mistake.
void Parser::check_children(const pugi::xml_node& node, const char* name) const {
  constexpr std::array<std::string_view, 4> kElements = {"algo", "gpu", "tb", "step"};
  for (const pugi::xml_node& child : node.children()) {
    const std::string_view found = child.name();
    if (child.type() != pugi::node_element || found == name) continue;
    const int distance = edit_distance(found, name);
    const bool is_near = distance <= 2 && distance < static_cast<int>(std::string_view(name).size());
    if (is_near || std::find(kElements.begin(), kElements.end(), found) != kElements.end())
      fail(child, fmt::format("<{:.60}> is not known inside <{}>", found, node.name()),
           fmt::format("expected <{}>", name));
  }
}

std::string_view Parser::text_of(const pugi::xml_node& node, const char* attribute) const {
  const pugi::xml_attribute found = node.attribute(attribute);
  if (!found) fail(node, fmt::format("<{}> has no attribute '{}'", node.name(), attribute));
  return found.value();
}

std::int32_t Parser::number(const pugi::xml_node& node, const char* attribute, std::int32_t lowest,
                            std::int32_t highest) const {
  const std::string_view text = text_of(node, attribute);
  const auto value = number_from<std::int32_t>(text);
  if (!value || *value < lowest || *value > highest)
    fail(node, fmt::format("{}=\"{:.60}\" of <{}> is not a whole number from {} to {}", attribute, text,
                           node.name(), lowest, highest));
  return *value;
}

template <std::size_t size>
std::size_t Parser::word(const pugi::xml_node& node, const char* attribute, std::string_view what,
                         const std::array<std::string_view, size>& words) const {
  const std::string_view text = text_of(node, attribute);
  const auto found = std::find(words.begin(), words.end(), text);
  if (found == words.end()) fail(node, fmt::format("unknown {} '{:.60}'", what, text), suggest(text, words));
  return static_cast<std::size_t>(found - words.begin());
}

MscclStep Parser::step(const pugi::xml_node& node, const MscclBlock& block) const {
  check_attributes(node, kStepAttributes);
  MscclStep step;
  step.operation = static_cast<MscclOperation>(word(node, "type", "type of step", kOperations));
  if (step.operation == MscclOperation::nop) return step;
  if (sends(step.operation) && block.send_peer < 0)
    fail(node, "a step that sends, but its threadblock has no peer to send to");
  if (receives(step.operation) && block.receive_peer < 0)
    fail(node, "a step that receives, but its threadblock has no peer to receive from");
  step.count = number(node, "cnt", 1, kMaxChunks);
  // The side that an operation does not use is whatever the file's author left there.
  const auto place = [&](const char* buffer, const char* offset) {
    return MscclPlace{static_cast<MscclBuffer>(word(node, buffer, "buffer", kBuffers)),
                      number(node, offset, 0, kMaxChunks)};
  };
  if (step.operation != MscclOperation::receive && step.operation != MscclOperation::receive_copy_send)
    step.source = place("srcbuf", "srcoff");
  if (step.operation != MscclOperation::send && step.operation != MscclOperation::receive_reduce_send)
    step.destination = place("dstbuf", "dstoff");
  return step;
}

MscclBlock Parser::block(const pugi::xml_node& node, std::int32_t index, std::vector<Wait>& waits,
                         std::vector<bool>& announced) const {
  check_attributes(node, kBlockAttributes);
  check_children(node, "step");
  MscclBlock block;
  block.id = number(node, "id", 0, INT32_MAX);
  block.send_peer = number(node, "send", -1, gpus_ - 1);
  block.receive_peer = number(node, "recv", -1, gpus_ - 1);
  block.channel = number_or(node, "chan", -1, INT32_MAX, 0);
  for (const pugi::xml_node& child : node.children("step")) {
    const auto position = static_cast<std::int32_t>(block.steps.size());
    if (const std::int32_t s = number(child, "s", 0, INT32_MAX); s != position)
      fail(child, fmt::format("step {} follows step {}", s, position - 1),
           "the steps of a threadblock are numbered 0, 1, 2 ...");
    block.steps.push_back(step(child, block));
    const std::int32_t on = number_or(child, "depid", -1, INT32_MAX, -1);
    const std::int32_t on_step = number_or(child, "deps", -1, INT32_MAX, -1);
    announced.push_back(number_or(child, "hasdep", 0, 1, 1) == 1);
    if (on < 0) continue;
    if (on_step < 0) fail(child, fmt::format("waits for threadblock {}, but for none of its steps", on));
    waits.push_back({index, position, on, on_step, child});
  }
  return block;
}

// A threadblock tells how far it is at the steps with hasdep only, so a step without it is passed once a
// later one has told; where none does, the runtime waits for ever.
void Parser::resolve(MscclGpu& gpu, const std::vector<Wait>& waits, const Announced& announced) const {
  std::map<std::int32_t, std::int32_t> index_of;
  for (std::size_t i = 0; i < gpu.blocks.size(); ++i)
    index_of.emplace(gpu.blocks[i].id, static_cast<std::int32_t>(i));
  for (const Wait& wait : waits) {
    const auto found = index_of.find(wait.on_block_id);
    if (found == index_of.end())
      fail(wait.node, fmt::format("waits for threadblock {}, which this GPU has not", wait.on_block_id));
    const std::vector<MscclStep>& steps = gpu.blocks[static_cast<std::size_t>(found->second)].steps;
    if (static_cast<std::size_t>(wait.on_step) >= steps.size())
      fail(wait.node, fmt::format("waits for step {} of threadblock {}, which has {}", wait.on_step,
                                  wait.on_block_id, typed_count(steps.size(), "step")));
    const std::vector<bool>& tells = announced[static_cast<std::size_t>(found->second)];
    if (std::find(tells.begin() + wait.on_step, tells.end(), true) == tells.end())
      fail(wait.node,
           fmt::format("waits for step {} of threadblock {}, which tells nobody that it is done",
                       wait.on_step, wait.on_block_id),
           "give the step hasdep=\"1\"");
    MscclStep& step =
        gpu.blocks[static_cast<std::size_t>(wait.block)].steps[static_cast<std::size_t>(wait.step)];
    step.awaited_block = found->second;
    step.awaited_step = wait.on_step;
  }
}

MscclGpu Parser::gpu(const pugi::xml_node& node) const {
  check_attributes(node, kGpuAttributes);
  check_children(node, "tb");
  MscclGpu gpu;
  number_or(node, "i_chunks", 0, kMaxChunks, 0);
  number_or(node, "o_chunks", 0, kMaxChunks, 0);
  gpu.scratch_chunks = number_or(node, "s_chunks", 0, kMaxChunks, 0);
  std::vector<Wait> waits;
  Announced announced;
  std::map<std::int32_t, pugi::xml_node> seen;
  for (const pugi::xml_node& child : node.children("tb")) {
    gpu.blocks.push_back(
        block(child, static_cast<std::int32_t>(gpu.blocks.size()), waits, announced.emplace_back()));
    const std::int32_t id = gpu.blocks.back().id;
    if (!seen.emplace(id, child).second) fail(child, fmt::format("threadblock {} is there twice", id));
  }
  resolve(gpu, waits, announced);
  return gpu;
}

// As the runtime checks it: both buffers make up the call, the scattered side of it shared out.
void Parser::check_chunks(const pugi::xml_node& node, CollectiveKind kind, std::int32_t per_loop) const {
  const auto check = [&](const char* attribute, bool scattered) {
    const std::int64_t chunks = number_or(node, attribute, 0, kMaxChunks, 0);
    if (chunks > 0 && chunks * (scattered ? gpus_ : 1) != per_loop)
      fail(node, fmt::format("{}=\"{}\" does not fit {} per loop on {}", attribute, chunks,
                             typed_count(per_loop, "chunk"), typed_count(gpus_, "GPU")));
  };
  check("i_chunks", kind == CollectiveKind::all_gather);
  check("o_chunks", kind == CollectiveKind::reduce_scatter);
}

MscclAlgorithm Parser::run() {
  pugi::xml_document document;
  const pugi::xml_parse_result result =
      document.load_buffer(text_.data(), text_.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!result) {
    std::string problem = result.description();
    if (!problem.empty()) problem[0] = static_cast<char>(problem[0] | 0x20);
    throw Error(where(result.offset), fmt::format("is not XML: {}", problem));
  }
  const pugi::xml_node root = document.document_element();
  if (std::string_view(root.name()) != "algo")
    fail(root, fmt::format("holds <{:.60}>, not the <algo> of an MSCCL algorithm", root.name()));
  check_attributes(root, kAlgoAttributes);
  check_children(root, "gpu");
  MscclAlgorithm algorithm;
  algorithm.source = name_;
  algorithm.name = root.attribute("name").value();
  algorithm.collective = text_of(root, "coll");
  algorithm.kind = kind_named(algorithm.collective);
  algorithm.in_place = number_or(root, "inplace", 0, 1, 0) != 0;
  algorithm.chunks_per_loop = number(root, "nchunksperloop", 1, kMaxChunks);
  const auto children = root.children("gpu");
  const auto count = std::distance(children.begin(), children.end());
  if (count < 1 || count > kMaxGpus) fail(root, fmt::format("has {} GPUs", count));
  gpus_ = static_cast<std::int32_t>(count);
  if (const std::int32_t stated = number_or(root, "ngpus", 1, kMaxGpus, gpus_); stated != gpus_)
    fail(root, fmt::format("is for {} GPUs, but describes {}", stated, gpus_));
  algorithm.gpus.resize(static_cast<std::size_t>(gpus_));
  std::vector<bool> seen(algorithm.gpus.size());
  for (const pugi::xml_node& child : children) {
    const auto id = static_cast<std::size_t>(number(child, "id", 0, gpus_ - 1));
    if (seen[id]) fail(child, fmt::format("GPU {} is there twice", id));
    seen[id] = true;
    algorithm.gpus[id] = gpu(child);
    if (algorithm.kind) check_chunks(child, *algorithm.kind, algorithm.chunks_per_loop);
    for (const MscclBlock& tb : algorithm.gpus[id].blocks) {
      const auto own = static_cast<std::int32_t>(id);
      if (tb.send_peer == own || tb.receive_peer == own)
        fail(child, fmt::format("threadblock {} of GPU {} has that GPU as its peer", tb.id, id));
    }
  }
  return algorithm;
}

}  // namespace

MscclAlgorithm parse_msccl(std::span<const char> text, const std::string& name) {
  return Parser(text, name).run();
}

MscclAlgorithm read_msccl(const std::string& path) {
  const MappedFile file(path);
  require_kind(path, file.bytes(), FileKind::msccl, "an MSCCL algorithm");
  return parse_msccl(file.bytes(), path);
}

}  // namespace armilla
