#include "collective/verify.h"

#include <fmt/format.h>

#include <deque>
#include <map>
#include <tuple>
#include <vector>

#include "base/units_text.h"
#include "collective/verify/chunk_tokens.h"
#include "collective/verify/members.h"
#include "collective/verify/violation.h"

namespace armilla {
namespace {

constexpr std::int64_t kMaxCells = 1 << 26;       // of all buffers
constexpr std::int64_t kMaxTokenBytes = 1 << 30;  // of all values

// A vector clock (Mattern 1989; Fidge 1988): one step is ordered behind another if its clock has seen it. So
// one execution tells whether any other could go otherwise - two steps at one chunk that no clock orders
// could come in either order - and not only whether this one came out right.
// What happened before, per threadblock of all GPUs: how many of its steps.
using Clock = std::vector<std::uint32_t>;

struct Message {
  std::vector<ValueId> values;
  Clock clock;
};

struct Block {
  std::size_t next = 0;  // step
  Clock clock;
  std::map<std::int32_t, Clock> after;  // after the steps that others await
  std::vector<std::int32_t> waiting;    // blocks of this GPU that may await this one
  std::deque<Message>* inbox = nullptr;
  std::deque<Message>* outbox = nullptr;
  std::pair<std::int32_t, std::int32_t> receiver = {-1, -1};  // GPU and block at the other end of the outbox
};

struct Gpu {
  std::vector<Cell> input, output, scratch;  // the memory that exists: in place only one of the first two
  std::vector<Block> blocks;
  std::size_t first_block = 0;  // among all GPUs'
};

class MscclVerifier {
 public:
  MscclVerifier(const MscclAlgorithm& algorithm, CollectiveKind kind, std::int32_t root)
      : algorithm_(algorithm),
        kind_(kind),
        root_(root),
        n_(static_cast<std::int32_t>(algorithm.gpus.size())),
        chunks_(algorithm.chunks_per_loop) {}

  void run() {
    check_form();
    place();
    connect();
    execute();
    check_meaning();
  }

 private:
  struct Where {  // what is executing
    std::int32_t gpu, block;
    std::int32_t step;
  };
  const MscclBlock& described(std::int32_t gpu, std::int32_t block) const {
    return algorithm_.gpus[static_cast<std::size_t>(gpu)].blocks[static_cast<std::size_t>(block)];
  }
  Gpu& state(std::int32_t gpu) { return gpus_[static_cast<std::size_t>(gpu)]; }
  Block& state(std::int32_t gpu, std::int32_t block) {
    return state(gpu).blocks[static_cast<std::size_t>(block)];
  }
  std::string shown(const Where& at) const {
    return fmt::format("GPU {}, tb {} step {}", at.gpu, described(at.gpu, at.block).id, at.step);
  }
  std::int32_t share() const { return chunks_ / n_; }
  std::int32_t input_chunks() const { return kind_ == CollectiveKind::all_gather ? share() : chunks_; }
  std::int32_t output_chunks() const { return kind_ == CollectiveKind::reduce_scatter ? share() : chunks_; }
  // Identifies what a value is a part of: the chunk of the result, and for all-to-all whose it is, too.
  std::int64_t chunk_of(std::int32_t gpu, std::int32_t index) const {
    if (kind_ == CollectiveKind::all_gather) return std::int64_t{gpu} * share() + index;
    if (kind_ == CollectiveKind::all_to_all) return std::int64_t{gpu} * chunks_ + index;
    return index;
  }

  void check_form() const;
  void place();
  void connect();
  bool clocks_are_affordable() const;
  void execute();
  bool is_ready(std::int32_t gpu, std::int32_t block);
  void perform(const Where& at);
  void finish(const Where& at);
  Cell& cell(const Where& at, MscclPlace place, std::int32_t offset);
  Cell& physical(std::int32_t gpu, MscclBuffer buffer, std::int32_t index);
  bool ordered(const Where& at, const Access& before) const;
  void check_order(const Where& at, const Access& before) const;
  ValueId read(const Where& at, MscclPlace place, std::int32_t offset);
  void write(const Where& at, MscclPlace place, std::int32_t offset, ValueId value);
  ValueId sum(const Where& at, ValueId a, ValueId b) {
    return values_.sum(a, b, [&] { return shown(at); });
  }
  [[noreturn]] void report_stuck();
  void check_meaning();
  void demand(std::int32_t gpu, std::int32_t index, std::int64_t chunk, const Members& contributions);

  const MscclAlgorithm& algorithm_;
  CollectiveKind kind_;
  std::int32_t root_, n_, chunks_;
  std::vector<Gpu> gpus_;
  TokenPool values_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::deque<Message>> links_;
  bool clocks_ = false;
};

std::string_view name_of(MscclBuffer buffer) {
  return buffer == MscclBuffer::input ? "input" : buffer == MscclBuffer::output ? "output" : "scratch";
}

void MscclVerifier::check_form() const {
  if (n_ < 1) violation("the algorithm is for no GPUs");
  if (kind_ == CollectiveKind::barrier) violation("MSCCL describes no barriers");
  const bool rooted = kind_ == CollectiveKind::broadcast || kind_ == CollectiveKind::reduce;
  if (rooted && (root_ < 0 || root_ >= n_))
    violation("the root {} is not one of {}", root_, typed_count(n_, "GPU"));
  const bool scattered = kind_ == CollectiveKind::all_gather || kind_ == CollectiveKind::reduce_scatter ||
                         kind_ == CollectiveKind::all_to_all;
  if (scattered && chunks_ % n_ != 0)
    violation("{} cannot be spread evenly over {}", typed_count(chunks_, "chunk"), typed_count(n_, "GPU"));
  std::int64_t cells = 0, moved = 0;
  for (const MscclGpu& gpu : algorithm_.gpus) {
    cells += std::int64_t{2} * chunks_ + gpu.scratch_chunks;
    for (const MscclBlock& block : gpu.blocks)
      for (const MscclStep& step : block.steps) moved += step.count;
  }
  const std::int64_t value_bytes = static_cast<std::int64_t>(sizeof(Value)) + n_ / 8;
  if (cells > kMaxCells || moved > kMaxChunksMoved || (cells + moved) > kMaxTokenBytes / value_bytes)
    violation("too large to be verified: {} chunks of memory, {} chunks moved", cells, moved);
}

void MscclVerifier::place() {
  gpus_.resize(algorithm_.gpus.size());
  std::size_t blocks = 0;
  for (std::int32_t gpu = 0; gpu < n_; ++gpu) {
    Gpu& own = state(gpu);
    const MscclGpu& form = algorithm_.gpus[static_cast<std::size_t>(gpu)];
    const bool input_inside_output = algorithm_.in_place && kind_ == CollectiveKind::all_gather;
    if (!input_inside_output) own.input.resize(static_cast<std::size_t>(input_chunks()));
    if (input_inside_output || !algorithm_.in_place)
      own.output.resize(static_cast<std::size_t>(output_chunks()));
    own.scratch.resize(static_cast<std::size_t>(form.scratch_chunks));
    own.blocks.resize(form.blocks.size());
    own.first_block = blocks;
    blocks += form.blocks.size();
    // What is in the others' buffers before a broadcast must not get into the result: there it is nothing.
    if (kind_ == CollectiveKind::broadcast && gpu != root_) continue;
    for (std::int32_t index = 0; index < input_chunks(); ++index)
      physical(gpu, MscclBuffer::input, index).value =
          values_.add(chunk_of(gpu, index), Members::only(n_, gpu));
  }
  clocks_ = clocks_are_affordable();
  if (!clocks_) return;
  for (Gpu& gpu : gpus_)
    for (Block& block : gpu.blocks) block.clock.resize(blocks);
}

// Clocks take steps times threadblocks. Without them the result is still proved, of this one order.
bool MscclVerifier::clocks_are_affordable() const {
  std::int64_t blocks = 0, steps = 0;
  for (const MscclGpu& gpu : algorithm_.gpus) {
    blocks += static_cast<std::int64_t>(gpu.blocks.size());
    for (const MscclBlock& block : gpu.blocks) steps += static_cast<std::int64_t>(block.steps.size()) + 1;
  }
  return blocks == 0 || steps <= kMaxClocks / blocks;
}

void MscclVerifier::connect() {
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::int32_t> senders, receivers;
  // Two threadblocks at one end of a connection would take each other's messages, depending on who is first.
  const auto claim = [&](auto& ends, std::int32_t from, std::int32_t to, std::int32_t gpu, std::int32_t block,
                         std::string_view does) {
    const std::int32_t channel = described(gpu, block).channel;
    const auto [first, is_new] = ends.emplace(std::tuple(from, to, channel), block);
    if (!is_new)
      violation("GPU {}: tb {} and tb {} both {} GPU {} over channel {}", gpu,
                described(gpu, first->second).id, described(gpu, block).id, does, from == gpu ? to : from,
                channel);
    return &links_[{from, to, channel}];
  };
  for (std::int32_t gpu = 0; gpu < n_; ++gpu) {
    for (std::int32_t b = 0; b < static_cast<std::int32_t>(state(gpu).blocks.size()); ++b) {
      const MscclBlock& form = described(gpu, b);
      bool does_send = false, does_receive = false;
      for (const MscclStep& step : form.steps) {
        does_send |= sends(step.operation);
        does_receive |= receives(step.operation);
        // Whom to try again when this one goes on.
        if (step.awaited_block >= 0) state(gpu, step.awaited_block).waiting.push_back(b);
      }
      if (does_send) state(gpu, b).outbox = claim(senders, gpu, form.send_peer, gpu, b, "send to");
      if (does_receive)
        state(gpu, b).inbox = claim(receivers, form.receive_peer, gpu, gpu, b, "receive from");
    }
  }
  for (const auto& [link, block] : senders) {
    const auto [from, to, channel] = link;
    const auto receiver = receivers.find(link);
    if (receiver == receivers.end())
      violation("GPU {}: tb {} sends to GPU {} over channel {}, but nothing there receives it", from,
                described(from, block).id, to, channel);
    state(from, block).receiver = {to, receiver->second};
  }
}

// Steps are tried again only when something that they wait for has happened: a threadblock's when one that it
// awaits has gone on, a receiver's when its sender has. So O(steps) in all, in an order of no importance.
void MscclVerifier::execute() {
  std::deque<std::pair<std::int32_t, std::int32_t>> ready;
  std::size_t unfinished = 0;
  for (std::int32_t gpu = 0; gpu < n_; ++gpu) {
    for (std::int32_t b = 0; b < static_cast<std::int32_t>(state(gpu).blocks.size()); ++b) {
      ready.emplace_back(gpu, b);
      unfinished += described(gpu, b).steps.size();
    }
  }
  while (!ready.empty()) {
    const auto [gpu, b] = ready.front();
    ready.pop_front();
    Block& block = state(gpu, b);
    bool progressed = false;
    while (block.next < described(gpu, b).steps.size() && is_ready(gpu, b)) {
      const Where at{gpu, b, static_cast<std::int32_t>(block.next)};
      perform(at);
      finish(at);
      --unfinished;
      progressed = true;
    }
    if (!progressed) continue;
    for (const std::int32_t other : block.waiting) ready.emplace_back(gpu, other);
    if (block.receiver.first >= 0) ready.push_back(block.receiver);
  }
  if (unfinished > 0) report_stuck();
  for (const auto& [link, messages] : links_) {
    const auto [from, to, channel] = link;
    if (!messages.empty())
      violation("GPU {} sends {} to GPU {} over channel {} that nobody receives", from,
                typed_count(messages.size(), "message"), to, channel);
  }
}

bool MscclVerifier::is_ready(std::int32_t gpu, std::int32_t block) {
  const Block& own = state(gpu, block);
  const MscclStep& step = described(gpu, block).steps[own.next];
  if (step.awaited_block >= 0 &&
      state(gpu, step.awaited_block).next <= static_cast<std::size_t>(step.awaited_step))
    return false;
  return !receives(step.operation) || !own.inbox->empty();
}

void join(Clock& clock, const Clock& other) {
  for (std::size_t i = 0; i < clock.size() && i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

void MscclVerifier::perform(const Where& at) {
  Block& block = state(at.gpu, at.block);
  const MscclStep& step = described(at.gpu, at.block).steps[static_cast<std::size_t>(at.step)];
  if (clocks_ && step.awaited_block >= 0)
    join(block.clock, state(at.gpu, step.awaited_block).after[step.awaited_step]);
  Message in, out;
  if (receives(step.operation)) {
    in = std::move(block.inbox->front());
    block.inbox->pop_front();
    join(block.clock, in.clock);
    if (in.values.size() != static_cast<std::size_t>(step.count))
      violation("{}: receives {}, but GPU {} sends {}", shown(at), typed_count(step.count, "chunk"),
                described(at.gpu, at.block).receive_peer, in.values.size());
  }
  for (std::int32_t c = 0; c < step.count; ++c) {
    const auto arrived = [&] { return in.values[static_cast<std::size_t>(c)]; };
    switch (step.operation) {
      case MscclOperation::send:
        out.values.push_back(read(at, step.source, c));
        break;
      case MscclOperation::receive:
        write(at, step.destination, c, arrived());
        break;
      case MscclOperation::receive_copy_send:
        write(at, step.destination, c, arrived());
        out.values.push_back(arrived());
        break;
      case MscclOperation::receive_reduce_send:
        out.values.push_back(sum(at, read(at, step.source, c), arrived()));
        break;
      case MscclOperation::receive_reduce_copy:
      case MscclOperation::receive_reduce_copy_send: {
        const ValueId result = sum(at, read(at, step.source, c), arrived());
        write(at, step.destination, c, result);
        if (sends(step.operation)) out.values.push_back(result);
        break;
      }
      case MscclOperation::copy:
        write(at, step.destination, c, read(at, step.source, c));
        break;
      case MscclOperation::reduce:
        write(at, step.destination, c, sum(at, read(at, step.destination, c), read(at, step.source, c)));
        break;
      case MscclOperation::nop:
        break;
    }
  }
  if (sends(step.operation)) block.outbox->push_back(std::move(out));
}

void MscclVerifier::finish(const Where& at) {
  Block& block = state(at.gpu, at.block);
  ++block.next;
  if (!clocks_) return;
  block.clock[state(at.gpu).first_block + static_cast<std::size_t>(at.block)] =
      static_cast<std::uint32_t>(block.next);
  // Kept only where another threadblock awaits this one: else nobody asks.
  if (!block.waiting.empty()) block.after[at.step] = block.clock;
  // After its own step is counted: who receives the message comes behind it, too.
  const MscclStep& step = described(at.gpu, at.block).steps[static_cast<std::size_t>(at.step)];
  if (sends(step.operation)) block.outbox->back().clock = block.clock;
}

Cell& MscclVerifier::physical(std::int32_t gpu, MscclBuffer buffer, std::int32_t index) {
  Gpu& own = state(gpu);
  if (buffer == MscclBuffer::scratch) return own.scratch[static_cast<std::size_t>(index)];
  // One memory then: a GPU's own share of it lies at its place among all GPUs'.
  if (algorithm_.in_place) {
    const bool gathers = kind_ == CollectiveKind::all_gather;
    const bool scatters = kind_ == CollectiveKind::reduce_scatter;
    if (gathers && buffer == MscclBuffer::input) index += gpu * share();
    if (scatters && buffer == MscclBuffer::output) index += gpu * share();
    buffer = gathers ? MscclBuffer::output : MscclBuffer::input;
  }
  return (buffer == MscclBuffer::input ? own.input : own.output)[static_cast<std::size_t>(index)];
}

Cell& MscclVerifier::cell(const Where& at, MscclPlace place, std::int32_t offset) {
  const std::int32_t size = place.buffer == MscclBuffer::input ? input_chunks()
                            : place.buffer == MscclBuffer::output
                                ? output_chunks()
                                : static_cast<std::int32_t>(state(at.gpu).scratch.size());
  if (place.offset + offset >= size)
    violation("{}: uses chunk {} of the {}, which has {}", shown(at), place.offset + offset,
              name_of(place.buffer), size);
  return physical(at.gpu, place.buffer, place.offset + offset);
}

bool MscclVerifier::ordered(const Where& at, const Access& before) const {
  // What one threadblock does is in the order of its steps.
  if (!clocks_ || before.block < 0 || before.block == at.block) return true;
  const Gpu& gpu = gpus_[static_cast<std::size_t>(at.gpu)];
  const Clock& clock = gpu.blocks[static_cast<std::size_t>(at.block)].clock;
  return clock[gpu.first_block + static_cast<std::size_t>(before.block)] >
         static_cast<std::uint32_t>(before.step);
}

void MscclVerifier::check_order(const Where& at, const Access& before) const {
  if (!ordered(at, before))
    violation("{}: uses a chunk that tb {} step {} uses too, without waiting for it", shown(at),
              described(at.gpu, before.block).id, before.step);
}

ValueId MscclVerifier::read(const Where& at, MscclPlace place, std::int32_t offset) {
  Cell& from = cell(at, place, offset);
  check_order(at, from.written);
  if (from.value == kNothing)
    violation("{}: uses chunk {} of the {}, which holds nothing yet", shown(at), place.offset + offset,
              name_of(place.buffer));
  // Of a threadblock only its last read counts: who comes behind that comes behind the earlier ones.
  for (Access& access : from.read) {
    if (access.block != at.block) continue;
    access.step = at.step;
    return from.value;
  }
  from.read.push_back({at.block, at.step});
  return from.value;
}

void MscclVerifier::write(const Where& at, MscclPlace place, std::int32_t offset, ValueId value) {
  Cell& to = cell(at, place, offset);
  check_order(at, to.written);
  // What is overwritten must have been read by all who wanted it, not only have been written.
  for (const Access& access : to.read) check_order(at, access);
  to.read.clear();
  to.written = {at.block, at.step};
  to.value = value;
}

void MscclVerifier::report_stuck() {
  // Every stuck threadblock waits for one that is stuck, or for a message that will not come.
  const auto is_stuck = [&](std::int32_t gpu, std::int32_t b) {
    return state(gpu, b).next < described(gpu, b).steps.size();
  };
  // Follows who waits for whom from any of them: either into a circle, or to one whose message nobody sends.
  std::int32_t gpu = 0, b = 0;
  while (state(gpu).blocks.empty() || !is_stuck(gpu, b)) {
    if (++b >= static_cast<std::int32_t>(state(gpu).blocks.size())) {
      ++gpu;
      b = 0;
    }
  }
  std::map<std::pair<std::int32_t, std::int32_t>, bool> seen;
  std::string text;
  for (;;) {
    const auto next = static_cast<std::int32_t>(state(gpu, b).next);
    const MscclBlock& form = described(gpu, b);
    text += fmt::format("{}GPU {}, tb {} step {}", text.empty() ? "" : " waits for ", gpu, form.id, next);
    if (seen[{gpu, b}]) violation("never ends: {}", text);
    seen[{gpu, b}] = true;
    const MscclStep& step = form.steps[static_cast<std::size_t>(next)];
    if (step.awaited_block >= 0 &&
        state(gpu, step.awaited_block).next <= static_cast<std::size_t>(step.awaited_step)) {
      b = step.awaited_block;
      continue;
    }
    const std::int32_t peer = form.receive_peer;
    std::int32_t sender = -1;
    for (std::int32_t other = 0; other < static_cast<std::int32_t>(state(peer).blocks.size()); ++other)
      if (state(peer, other).receiver == std::pair(gpu, b) && is_stuck(peer, other)) sender = other;
    if (sender < 0)
      violation("never ends: {} waits for a message from GPU {} over channel {} that is never sent", text,
                peer, form.channel);
    gpu = peer;
    b = sender;
  }
}

void MscclVerifier::demand(std::int32_t gpu, std::int32_t index, std::int64_t chunk,
                           const Members& contributions) {
  const ValueId id = physical(gpu, MscclBuffer::output, index).value;
  const Value& value = values_[id];
  if (id == kNothing) violation("GPU {} ends with nothing in chunk {} of the output", gpu, index);
  if (value.chunk != chunk)
    violation("GPU {} ends with chunk {} in place of chunk {} of the output", gpu, value.chunk, chunk);
  for (std::int32_t member = 0; member < n_; ++member) {
    if (value.contributions.has(member) != contributions.has(member))
      violation("GPU {} ends with chunk {} of the output {} the contribution of GPU {}", gpu, index,
                contributions.has(member) ? "lacking" : "holding", member);
  }
}

void MscclVerifier::check_meaning() {
  const Members everyone = Members::all(n_);
  for (std::int32_t gpu = 0; gpu < n_; ++gpu) {
    for (std::int32_t index = 0; index < output_chunks(); ++index) {
      switch (kind_) {
        case CollectiveKind::all_reduce:
          demand(gpu, index, index, everyone);
          break;
        case CollectiveKind::reduce:
          if (gpu == root_) demand(gpu, index, index, everyone);
          break;
        case CollectiveKind::reduce_scatter:
          demand(gpu, index, std::int64_t{gpu} * share() + index, everyone);
          break;
        case CollectiveKind::all_gather:
          demand(gpu, index, index, Members::only(n_, index / share()));
          break;
        case CollectiveKind::broadcast:
          demand(gpu, index, index, Members::only(n_, root_));
          break;
        case CollectiveKind::all_to_all: {
          const std::int32_t source = index / share();
          demand(gpu, index, std::int64_t{source} * chunks_ + gpu * share() + index % share(),
                 Members::only(n_, source));
          break;
        }
        case CollectiveKind::barrier:
          break;
      }
    }
  }
}

}  // namespace

std::string verify_msccl(const MscclAlgorithm& algorithm, CollectiveKind kind, std::int32_t root) {
  return violation_of(MscclVerifier(algorithm, kind, root));
}

}  // namespace armilla
