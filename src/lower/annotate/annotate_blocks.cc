#include "lower/annotate/annotate_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace armilla {
namespace {

constexpr std::size_t kLongestPattern = 8;
constexpr std::size_t kFewestRepetitions = 3;

struct Piece {
  std::uint32_t first = 0, end = 0;
  std::uint32_t shape = 0;
  bool weighted = false;  // has a matrix product with weights or an embedding
  bool embeds = false;    // embeddings and no such product
  bool prepares =
      false;  // normalises, selects or rearranges: what follows may need it as much as what precedes
};

void describe(const Model& model, const std::vector<std::uint32_t>& tensors, std::string& text) {
  for (const std::uint32_t t : tensors)
    text += fmt::format(" {}{}", to_text(model.tensors[t].shape), name_of(model.tensors[t].dtype));
}

// Equal for operators that do equal work on equal tensors.
std::string signature(const Model& model, const Operator& op) {
  // Names and identities of tensors are left out on purpose: layers differ in these alone.
  std::string text = fmt::format("{} {} {} {} {} {} {} {}", op.type, op.forward.flops.value,
                                 op.forward.bytes.value, op.weight_is_operand, op.needs_input_gradient,
                                 static_cast<int>(op.saves), static_cast<int>(op.split), op.core_attention);
  describe(model, op.inputs, text);
  text += " ->";
  describe(model, op.outputs, text);
  for (const std::uint32_t p : op.parameters)
    text += fmt::format(" {}{}", to_text(model.parameters[p].shape), model.parameters[p].trainable);
  for (const Gemm& g : op.forward.gemms) text += fmt::format(" {}x{}x{}x{}", g.m, g.n, g.k, g.count);
  return text + "\n";
}

// A look-up in a trainable table is a copy with a two-dimensional parameter.
bool is_embedding(const Model& model, const Operator& op) {
  return op.forward.kind == WorkKind::copy &&
         std::any_of(op.parameters.begin(), op.parameters.end(), [&](std::uint32_t p) {
           return model.parameters[p].trainable && model.parameters[p].shape.size() == 2;
         });
}

class BlockCutter {
 public:
  BlockCutter(const Model& model, const std::vector<SplitRegion>& regions) : model_(model) {
    for (const Operator& op : model.operators) kinds_.push_back(number_of(numbers_, signature(model, op)));
    find_cuts(regions);
  }

  std::vector<Block> cut() {
    join_weightless();
    join_patterns();
    std::vector<Block> blocks;
    for (const Piece& piece : pieces_)
      blocks.push_back(
          {name_of_piece(piece, blocks.size()), kind_of(piece), piece.first, piece.end, piece.shape});
    name_apart(blocks);
    mark_head(blocks);
    return blocks;
  }

 private:
  template <class Key>
  static std::uint32_t number_of(std::map<Key, std::uint32_t>& numbers, const Key& key) {
    return numbers.try_emplace(key, static_cast<std::uint32_t>(numbers.size())).first->second;
  }

  Piece piece_of(std::uint32_t first, std::uint32_t end) {
    Piece piece;
    piece.first = first;
    piece.end = end;
    const std::vector<std::uint32_t> kinds(kinds_.begin() + first, kinds_.begin() + end);
    piece.shape = number_of(shapes_, kinds);
    bool product = false, embedding = false;
    piece.prepares = true;
    for (std::uint32_t i = first; i < end; ++i) {
      const Operator& op = model_.operators[i];
      product = product || is_weight_product(model_, op);
      embedding = embedding || is_embedding(model_, op);
      const bool trainable = std::any_of(op.parameters.begin(), op.parameters.end(),
                                         [&](std::uint32_t p) { return model_.parameters[p].trainable; });
      const bool moves = op.forward.kind == WorkKind::copy || op.forward.kind == WorkKind::none;
      // A piece prepares if every operator in it has parameters to train (a norm) or only moves data.
      piece.prepares = piece.prepares && (trainable || moves);
    }
    piece.weighted = product || embedding;
    piece.embeds = embedding && !product;
    return piece;
  }

  // A cut lies behind an operator where one derived tensor is alive, views counting as what they view.
  void find_cuts(const std::vector<SplitRegion>& regions) {
    const auto count = static_cast<std::uint32_t>(model_.operators.size());
    const std::vector<bool> derived = derived_tensors(model_);
    std::vector<std::uint32_t> owner(model_.tensors.size()), last(model_.tensors.size());
    for (std::uint32_t t = 0; t < owner.size(); ++t) owner[t] = t;
    for (std::uint32_t i = 0; i < count; ++i) {
      const Operator& op = model_.operators[i];
      // A view keeps its owner alive.
      if (op.is_view && !op.inputs.empty()) {
        for (const std::uint32_t t : op.outputs) owner[t] = owner[op.inputs[0]];
      }
      for (const std::uint32_t t : op.inputs) last[owner[t]] = i;
    }
    std::vector<bool> inside(count);
    // No cut between the column products of a region and its row product: what crosses there is divided.
    for (const SplitRegion& region : regions)
      std::fill(inside.begin() + region.columns[0], inside.begin() + region.row, true);

    // +1 where a tensor is made, -1 at its last reader: the running sum is the number alive after each
    // operator.
    std::vector<std::int64_t> change(count + std::size_t{1});
    for (std::uint32_t i = 0; i < count; ++i) {
      for (const std::uint32_t t : model_.operators[i].outputs) {
        if (owner[t] != t || !derived[t] || last[t] <= i) continue;
        ++change[i];
        --change[last[t]];
      }
    }
    std::int64_t alive = 0;
    std::uint32_t first = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      alive += change[i];
      // One tensor alive is all that a stage would send on. A view stays with what it views.
      if (i + 1 < count && (alive != 1 || inside[i] || model_.operators[i + 1].is_view)) continue;
      pieces_.push_back(piece_of(first, i + 1));
      first = i + 1;
    }
  }

  // Every block should have weights of its own. Weightless pieces join the block before them, or, where they
  // prepare what follows, the one after.
  void join_weightless() {
    std::vector<Piece> joined;
    bool pulled = false;  // the piece at hand brings weightless ones before it
    for (std::size_t p = 0; p < pieces_.size(); ++p) {
      const Piece& piece = pieces_[p];
      const bool last = p + 1 == pieces_.size();
      const bool follows = !joined.empty() && joined.back().embeds && piece.embeds;
      if ((piece.weighted && !follows) || (joined.empty() && last)) {
        joined.push_back(piece);
        pulled = false;
      } else if (!follows && !last && (joined.empty() || pulled || (piece.prepares && !always_follows(p)))) {
        pieces_[p + 1] = piece_of(piece.first, pieces_[p + 1].end);
        pulled = true;
      } else {
        joined.back() = piece_of(joined.back().first, piece.end);
        pulled = false;
      }
    }
    pieces_ = std::move(joined);
  }

  // Whether pieces like the one before p are always followed by one like p.
  bool always_follows(std::size_t p) const {
    if (p == 0) return false;
    for (std::size_t i = 0; i + 1 < pieces_.size(); ++i) {
      if (pieces_[i].shape == pieces_[p - 1].shape && pieces_[i + 1].shape != pieces_[p].shape) return false;
    }
    return true;
  }

  void join_patterns() {
    std::vector<Piece> joined;
    for (std::size_t p = 0; p < pieces_.size();) {
      const auto [length, repetitions] = pattern_at(p);
      for (std::size_t r = 0; r < repetitions; ++r)
        joined.push_back(piece_of(pieces_[p + r * length].first, pieces_[p + (r + 1) * length - 1].end));
      p += length * repetitions;
    }
    pieces_ = std::move(joined);
  }

  struct Pattern {
    std::size_t length = 1, repetitions = 1;
  };
  Pattern pattern_at(std::size_t p) const {
    // The shortest pattern wins, so a block is one layer and no multiple of it.
    for (std::size_t length = 1; length <= kLongestPattern; ++length) {
      std::size_t equal = 0;
      while (p + length + equal < pieces_.size() &&
             pieces_[p + equal].shape == pieces_[p + length + equal].shape)
        ++equal;
      const std::size_t repetitions = equal / length + 1;
      if (repetitions >= kFewestRepetitions) return {length, repetitions};
    }
    return {};
  }

  // Without a mask to look at, an attention counts as an encoder's: blocks are treated alike either way.
  BlockKind kind_of(const Piece& piece) const {
    const auto first = model_.operators.begin() + piece.first, end = model_.operators.begin() + piece.end;
    if (std::any_of(first, end, [](const Operator& op) { return op.core_attention; }))
      return BlockKind::encoder;
    return piece.embeds ? BlockKind::embedding : BlockKind::other;
  }

  // What the names of the operators with weights have in common, up to a full part of them.
  std::string name_of_piece(const Piece& piece, std::size_t number) const {
    const std::string* one = nullptr;
    std::size_t length = 0;
    for (std::uint32_t i = piece.first; i < piece.end; ++i) {
      const Operator& op = model_.operators[i];
      if (!is_weight_product(model_, op) && !is_embedding(model_, op)) continue;
      if (one == nullptr) {
        one = &op.name;
        length = op.name.size();
        continue;
      }
      const auto differ = std::mismatch(one->begin(), one->begin() + static_cast<std::ptrdiff_t>(length),
                                        op.name.begin(), op.name.end());
      length = static_cast<std::size_t>(differ.first - one->begin());
    }
    if (one == nullptr) return fmt::format("block {}", number);
    // "block.conv1" and "block.conv2" share "block.conv", of which whole parts are kept: "block".
    if (length < one->size() && (*one)[length] != '.' && (*one)[length] != '/') {
      const std::size_t part = length == 0 ? std::string::npos : one->find_last_of("./", length - 1);
      length = part == std::string::npos ? 0 : part;
    }
    // A single operator names its block by the scope it is in.
    if (length == one->size()) {
      const std::size_t part = one->find_last_of('/');
      if (part != std::string::npos) length = part;
    }
    return length == 0 ? fmt::format("block {}", number) : one->substr(0, length);
  }

  static void name_apart(std::vector<Block>& blocks) {
    std::map<std::string, int> uses;
    for (const Block& block : blocks) ++uses[block.name];
    // Names that repeat get the block's number; what then still collides, an apostrophe.
    std::set<std::string> given;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      std::string& name = blocks[b].name;
      if (uses[name] > 1) name = fmt::format("{} {}", name, b);
      while (!given.insert(name).second) name += "'";
    }
  }

  // What follows the layers of a transformer.
  static void mark_head(std::vector<Block>& blocks) {
    const bool layers = std::any_of(blocks.begin(), blocks.end(),
                                    [](const Block& block) { return block.kind == BlockKind::encoder; });
    if (layers && blocks.back().kind == BlockKind::other) blocks.back().kind = BlockKind::head;
  }

  const Model& model_;
  std::map<std::string, std::uint32_t> numbers_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> shapes_;
  std::vector<std::uint32_t> kinds_;  // per operator: equal for equal ones
  std::vector<Piece> pieces_;
};

}  // namespace

std::vector<Block> cut_into_blocks(const Model& model, const std::vector<SplitRegion>& regions) {
  if (model.operators.empty()) return {};
  return BlockCutter(model, regions).cut();
}

}  // namespace armilla
