#include "lower/pipeline/stage_program.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/checked.h"
#include "base/sorted.h"
#include "lower/data/data_pass.h"
#include "lower/data/program_writer.h"
#include "lower/pipeline/stage_transfer.h"

namespace armilla {
namespace {

// A pass of a block within a slot.
struct SlotPass {
  const PassTemplate* steps = nullptr;
  BlockPlace place;
  std::int32_t layer = 0;
  bool forward = false;
  bool needs_weights = false;        // the first pass of a block in a slot that computes with weights
  bool completes_gradients = false;  // the last one that makes weight gradients
  const SlotTime* fused = nullptr;   // of all that the slot does in the block, where that is not written out
};

// A slot that is being appended.
struct Cursor {
  const PipelineSlot* slot = nullptr;
  std::vector<SlotPass> passes;
  const SlotTime* fused = nullptr;  // of a slot that is one node: it has no passes
  // Its blocks that are, and how long each of these computes nothing.
  std::vector<std::pair<std::uint32_t, Time>> fused_blocks;
  std::size_t pass = 0, step = 0;
  bool begun = false;                // the pass
  std::vector<std::uint32_t> entry;  // communications that the pass waits for
  std::vector<std::uint32_t> start;  // the last computations before the pass
  std::vector<std::uint32_t> ids;    // of the pass's steps
  bool first_of_iteration = false, last_of_iteration = false;
  std::uint32_t sent = kNoNode;
  std::size_t steps = 0, steps_done = 0;
  bool done = false;
};

bool makes_weight_gradients(PipelineAction action) {
  return action == PipelineAction::backward || action == PipelineAction::weight_gradient;
}

class StageEmitter {
 public:
  StageEmitter(const ShardedModel& model, const StageJob& job, const std::vector<RoleChunk>& chunks,
               std::int64_t rank, TemplateCache& templates, JobTables& tables, Program& program)
      : model_(model),
        job_(job),
        plan_(job.plan),
        overlaps_(schedule_of(job.plan).overlaps_passes),
        chunks_(chunks),
        rank_(rank),
        templates_(templates),
        tables_(tables),
        slots_(job.order.slots[static_cast<std::size_t>(rank)]),
        program_(program),
        writer_(program),
        // Buckets are numbered in the order in which their gradients become final, so that exchanges start in
        // that order, too.
        data_(model, chunks, role_weights(model, chunks, completion_order(), job.holders, job.plan),
              job.iterations, job.host_bandwidth, job.plan, tables, writer_) {
    const auto iterations = static_cast<std::size_t>(job.iterations);
    forwards_seen_.assign(chunks.size(), std::vector<bool>(iterations));
    backwards_left_.assign(chunks.size(), std::vector<std::int64_t>(iterations));
    // Counted down as passes are written: at zero the iteration's gradients of that chunk are complete.
    for (const PipelineSlot& slot : slots_) {
      if (makes_weight_gradients(slot.action)) ++backwards_left(slot);
    }
    slots_left_.assign(iterations, 0);
    for (const PipelineSlot& slot : slots_) ++slots_left_[iteration_of(slot)];
    if (plan_.offload_activations) prepare_offload();
    if (!job.fusion.slots.empty()) choose_fused();
  }

  StageProgram emit() {
    StageProgram made;
    made.slots.reserve(slots_.size());
    data_.start();
    HostLead lead(plan_, issues_since(0));
    for (std::size_t first = 0; first < slots_.size();) {
      std::size_t end = first + 1;
      while (end < slots_.size() && slots_[end].beside_previous) ++end;
      const std::uint32_t begin = writer_.size();
      emit_group(first, end);
      made.slots.insert(made.slots.end(), end - first, NodeRange{begin, writer_.size()});
      if (!fused_.empty()) note_fused(first, begin, made, lead);
      // Slots of one iteration may end among those of the next (asynchronous schedules): the data-parallel
      // end comes with an iteration's own last slot.
      for (std::size_t s = first; s < end; ++s) {
        if (--slots_left_[iteration_of(slots_[s])] > 0) continue;
        gather_ends();
        data_.finish(static_cast<std::int64_t>(iteration_of(slots_[s])), ends_);
      }
      first = end;
    }
    if (!fused_.empty() && !made.slots.empty()) lead.issue(issues_since(made.slots.back().end));
    // One that stops at messages is not ahead of what comes behind them.
    made.host_is_ahead = is_followed_ || (lead.is_ahead() && !awaits_messages(plan_));
    return made;
  }

 private:
  // How far the CPU is ahead of the device, at least: the device has computed for so long before a slot
  // begins, and has waited besides.
  class HostLead {
   public:
    HostLead(const Plan& plan, std::int64_t before) : issue_time_(issue_time_of(plan)), issued_(before) {}
    // The first slot need not be issued before it begins: it is not fused where issuing takes time.
    void slot(std::int64_t nodes, Time compute) {
      if (is_first_) issued_ += nodes;
      if (!is_first_) issue(nodes);
      is_first_ = false;
      // In loops the same slots come again, and must not use the lead up.
      is_ahead_ = is_ahead_ && compute >= saturating_multiply(issue_time_, nodes);
      computed_ += compute;
    }
    void issue(std::int64_t nodes) {
      issued_ += nodes;
      is_ahead_ = is_ahead_ && computed_ >= saturating_multiply(issue_time_, issued_);
    }
    bool is_ahead() const { return is_ahead_; }

   private:
    Time issue_time_, computed_;
    std::int64_t issued_ = 0;
    bool is_first_ = true, is_ahead_ = true;
  };

  // First forward passes wait for parameters where these are gathered, last backward passes send gradients
  // off: these are written out, and so is what runs beside such exchanges where it might meet them.
  void choose_fused() {
    const bool gathers = plan_.zero_stage > 0 && plan_.overlap_parameters;
    fused_.assign(slots_.size(), true);
    is_followed_ =
        issue_time_of(plan_) == Time(0) ||
        std::ranges::all_of(job_.fusion.slots, [](const auto& slot) { return slot.second.is_chain(); });
    fused_.front() = is_followed_;
    std::map<std::pair<std::int32_t, PipelineAction>, std::pair<std::size_t, std::size_t>> ends;
    for (std::size_t s = 0; s < slots_.size(); ++s)
      ends.try_emplace({slots_[s].chunk, slots_[s].action}, s, s).first->second.second = s;
    std::size_t last_first = 0, first_last = slots_.size();
    for (const auto& [kind, slots] : ends) {
      const bool forward = kind.second == PipelineAction::forward;
      if (forward && !gathers) continue;
      const std::size_t slot = forward ? slots.first : slots.second;
      fused_[slot] = false;
      if (forward) {
        last_first = std::max(last_first, slot);
      } else {
        first_last = std::min(first_last, slot);
      }
    }
    if (job_.fusion.beside_exchanges) return;
    for (std::size_t s = 0; s < slots_.size(); ++s)
      fused_[s] = fused_[s] && (!gathers || s > last_first) && s < first_last;
  }

  const SlotTime& time_of(const PipelineSlot& slot) {
    const SlotTime*& known = times_[{slot.chunk, slot.action}];
    if (known == nullptr) known = &job_.fusion.slots.at({chunk_of(slot).shapes, slot.action});
    return *known;
  }

  // Activations come and go between blocks.
  bool fuses_whole(std::size_t slot) const {
    return !fused_.empty() && fused_[slot] && !plan_.offload_activations;
  }
  // Whether blocks of a slot that is not fused are: exchanges then take other links than these, and the
  // CPU has issued them.
  bool fuses_blocks(std::size_t slot) const {
    if (fused_.empty()) return false;
    if (plan_.offload_activations) return fused_[slot];
    return job_.fusion.beside_exchanges && !plan_.offload_optimizer && (slot > 0 || is_followed_);
  }

  // Of the nodes from this one on; what goes along with others counts as if it did not.
  std::int64_t issues_since(std::uint32_t node) const {
    std::int64_t issues = 0;
    for (; node < program_.size(); ++node)
      issues += std::max<std::int64_t>(tables_.host_issues(program_, node), 1);
    return issues;
  }

  void note_fused(std::size_t slot, std::uint32_t begin, StageProgram& made, HostLead& lead) {
    const std::int64_t messages = plan_.scatter_gather ? 3 : 2;  // with the gather of their parts
    const SlotTime& time = time_of(slots_[slot]);
    const Cursor& cursor = cursors_.front();
    const bool whole = fuses_whole(slot);
    if (whole) made.fused.emplace_back(cursor.ids.front(), time.duration - time.compute);
    // What follows the last computation may have waited for the host, too.
    const bool is_known = !whole || time.behind == Time(0) || !follows_host();
    made.ends.push_back({is_known ? writer_.last_compute() : kNoNode, whole ? time.behind : Time(0)});
    made.fused.insert(made.fused.end(), cursor.fused_blocks.begin(), cursor.fused_blocks.end());
    std::int64_t nodes = whole ? time.issues + messages : issues_since(begin);
    for (const SlotPass& pass : cursor.passes) nodes += pass.fused != nullptr ? pass.fused->issues : 0;
    lead.slot(nodes, time.compute);
  }

  std::size_t iteration_of(const PipelineSlot& slot) const {
    return static_cast<std::size_t>(slot.micro_batch / plan_.micro_batches);
  }
  const RoleChunk& chunk_of(const PipelineSlot& slot) const {
    return chunks_[static_cast<std::size_t>(slot.chunk)];
  }
  std::int64_t& backwards_left(const PipelineSlot& slot) {
    return backwards_left_[static_cast<std::size_t>(slot.chunk)][iteration_of(slot)];
  }

  // Chunks by the slot in which the first iteration's last gradients are made.
  std::vector<std::int32_t> completion_order() const {
    std::vector<std::size_t> last(chunks_.size(), 0);
    for (std::size_t s = 0; s < slots_.size(); ++s) {
      if (makes_weight_gradients(slots_[s].action) && iteration_of(slots_[s]) == 0)
        last[static_cast<std::size_t>(slots_[s].chunk)] = s;
    }
    std::vector<std::int32_t> order;
    for (std::size_t c = 0; c < chunks_.size(); ++c) order.push_back(static_cast<std::int32_t>(c));
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return last[static_cast<std::size_t>(a)] < last[static_cast<std::size_t>(b)];
    });
    return order;
  }

  void emit_group(std::size_t first, std::size_t end) {
    // Slots beside each other are chains of computations that both follow what came before the group.
    const std::uint32_t before = writer_.last_compute();
    cursors_.resize(end - first);
    for (std::size_t s = first; s < end; ++s) begin_slot(cursors_[s - first], slots_[s]);
    const bool paired = cursors_.size() > 1;
    if (paired) writer_.split(cursors_.size());
    // A single slot is written in one go. Of a pair, the one that is further behind adds its next
    // computations, so that the two chains interleave in the order of the program, which the device follows
    // where both are ready.
    for (std::size_t next = 0; next < cursors_.size(); next = furthest_behind()) {
      if (paired) writer_.use(next);
      advance(cursors_[next], paired);
    }
    if (paired) writer_.join();
    ends_.clear();
    for (const Cursor& cursor : cursors_) {
      // Frameworks that wait for communication in the compute stream wait for all of it. Where passes
      // overlap, only the same micro-batch's next pass in this chunk has to: weight gradients end its way, so
      // nothing is left over.
      if (!overlaps_) {
        ends_.insert(ends_.end(), cursor.entry.begin(), cursor.entry.end());
      } else if (!cursor.entry.empty() && !makes_weight_gradients(cursor.slot->action)) {
        left_over_[key_of(*cursor.slot)] = cursor.entry;
      }
      if (!plan_.overlap_pipeline) add_wait(ends_, cursor.sent);
    }
    // The next slot's receive is posted when this one starts.
    slot_start_ = before;
  }

  static std::pair<std::int32_t, std::int32_t> key_of(const PipelineSlot& slot) {
    return {slot.chunk, slot.micro_batch};
  }

  // What is under way when an iteration's passes are done.
  void gather_ends() {
    if (!overlaps_) return;
    for (const auto& [family, node] : latest_of_family_) ends_.push_back(node);
    for (const auto& [slot, nodes] : left_over_) ends_.insert(ends_.end(), nodes.begin(), nodes.end());
    left_over_.clear();
    sort_unique(ends_);
  }

  // The cursor that has done the smallest share of its steps; none is left: their number.
  std::size_t furthest_behind() const {
    std::size_t chosen = cursors_.size();
    for (std::size_t c = 0; c < cursors_.size(); ++c) {
      if (cursors_[c].done) continue;
      if (chosen == cursors_.size() ||
          cursors_[c].steps_done * cursors_[chosen].steps < cursors_[chosen].steps_done * cursors_[c].steps)
        chosen = c;
    }
    return chosen;
  }

  void begin_slot(Cursor& cursor, const PipelineSlot& slot) {
    cursor.slot = &slot;
    cursor.passes.clear();
    cursor.fused_blocks.clear();
    cursor.pass = cursor.step = 0;
    cursor.begun = cursor.done = false;
    cursor.entry = ends_;
    if (const auto own = left_over_.find(key_of(slot)); own != left_over_.end()) {
      cursor.entry.insert(cursor.entry.end(), own->second.begin(), own->second.end());
      left_over_.erase(own);
    }
    cursor.sent = kNoNode;
    const auto number = static_cast<std::size_t>(&slot - slots_.data());
    cursor.fused = fuses_whole(number) ? &time_of(slot) : nullptr;
    list_passes(cursor);
    // Steps are counted, as the host issues them, to compare shares of progress, not numbers: the two passes
    // differ in length.
    cursor.steps = cursor.steps_done = 0;
    for (const SlotPass& pass : cursor.passes)
      cursor.steps += pass.fused != nullptr ? 1 : pass.steps->issues();
    cursor.first_of_iteration = cursor.last_of_iteration = false;
    if (slot.action == PipelineAction::forward) {
      auto seen = forwards_seen_[static_cast<std::size_t>(slot.chunk)].begin() +
                  static_cast<std::ptrdiff_t>(iteration_of(slot));
      cursor.first_of_iteration = !*seen;
      *seen = true;
    }
    if (makes_weight_gradients(slot.action)) cursor.last_of_iteration = --backwards_left(slot) == 0;
    // Weight gradients are made of what is on the rank already.
    if (slot.action != PipelineAction::weight_gradient) receive(cursor);
  }

  void list_passes(Cursor& cursor) {
    const PipelineSlot& slot = *cursor.slot;
    const RoleChunk& chunk = chunk_of(slot);
    const auto blocks = static_cast<std::int32_t>(chunk.shapes.size());
    const bool forward = slot.action == PipelineAction::forward;
    if (cursor.fused != nullptr) return;
    const bool fuses = fuses_blocks(static_cast<std::size_t>(&slot - slots_.data()));
    for (std::int32_t i = 0; i < blocks; ++i) {
      // Backward passes go through the chunk's blocks in reverse.
      const std::int32_t block = forward ? i : blocks - 1 - i;
      const std::uint32_t shape = chunk.shapes[static_cast<std::size_t>(block)];
      const BlockTemplates& templates = templates_.of(shape);
      SlotPass pass;
      pass.place = {slot.chunk, block};
      pass.layer = chunk.layers[static_cast<std::size_t>(block)];
      pass.forward = forward;
      pass.needs_weights = slot.action != PipelineAction::weight_gradient;
      // Recomputation comes before input gradients alone: separate weight gradients find what it restored. It
      // is the first to need the block's weights, so a gather (ZeRO-3) is before it and serves the backward
      // pass as well.
      const bool repeats = !templates.recompute.steps.empty();
      if (fuses && !written_.insert({shape, slot.action}).second) {
        pass.fused = &job_.fusion.slots.at({{shape}, slot.action});
        pass.completes_gradients = makes_weight_gradients(slot.action);
        cursor.passes.push_back(pass);
        continue;
      }
      if (!forward && pass.needs_weights && repeats) {
        pass.steps = &templates.recompute;
        cursor.passes.push_back(pass);
        pass.needs_weights = false;
      }
      pass.completes_gradients = makes_weight_gradients(slot.action);
      switch (slot.action) {
        case PipelineAction::forward:
          pass.steps = &templates.forward;
          break;
        case PipelineAction::backward:
          pass.steps = &templates.backward;
          break;
        case PipelineAction::input_gradient:
          pass.steps = &templates.input_gradients;
          break;
        case PipelineAction::weight_gradient:
          pass.steps = &templates.weight_gradients;
          break;
      }
      cursor.passes.push_back(pass);
    }
  }

  // Appends the rest of the slot, or with `one` its computations up to the next that waits for communication,
  // and the communications around them: then it is another's turn.
  void advance(Cursor& cursor, bool one) {
    if (cursor.fused != nullptr) {
      const NodeLabel label{Phase::forward, 0, chunk_of(*cursor.slot).layers.front()};
      cursor.ids.assign(1, writer_.occupy(label, cursor.fused->duration, cursor.entry));
      stand_for(cursor.ids.front(), cursor.fused->parts);
      cursor.entry.clear();
    }
    bool computed = false;
    for (; cursor.pass < cursor.passes.size(); ++cursor.pass) {
      const SlotPass& pass = cursor.passes[cursor.pass];
      if (!cursor.begun) begin_pass(cursor, pass);
      if (pass.fused != nullptr) append_fused(cursor, pass);
      for (; pass.fused == nullptr && cursor.step < pass.steps->steps.size(); ++cursor.step) {
        const TemplateStep& step = pass.steps->steps[cursor.step];
        if (step.kind == NodeKind::compute) {
          if (one && computed && waits_for_communication(cursor, step)) return;
          computed = true;
        }
        append(cursor, pass, step);
        cursor.steps_done += static_cast<std::size_t>(step.issues);
      }
      end_pass(cursor, pass);
    }
    if (cursor.slot->action != PipelineAction::weight_gradient) send(cursor);
    cursor.done = true;
  }

  // A computation's waits within its pass are all communications (lower/pipeline/pass_template.h).
  static bool waits_for_communication(const Cursor& cursor, const TemplateStep& step) {
    return step.first_wait < step.end_of_waits || (step.enters && !cursor.entry.empty());
  }

  void begin_pass(Cursor& cursor, const SlotPass& pass) {
    cursor.begun = true;
    cursor.step = 0;
    cursor.ids.clear();
    if (pass.needs_weights) {
      const auto iteration = static_cast<std::int64_t>(iteration_of(*cursor.slot));
      if (!pass.forward && plan_.offload_activations) load_activations(cursor, pass);
      // Set after load_activations has used it, which is to start with the pass before this one, and before
      // weights are copied for this one.
      pass_start_ = writer_.last_compute();
      if (pass.forward) {
        // The first forward pass waits for the parameters that the optimizer of the iteration before left.
        data_.before_forward(pass.place, iteration, cursor.first_of_iteration, cursor.entry);
      } else {
        data_.before_backward(pass.place, cursor.entry);
      }
    }
    const auto last = writer_.last_computes();
    cursor.start.assign(last.begin(), last.end());
  }

  // What gradients wait for is the last computation; what comes next waits for all of the block.
  void append_fused(Cursor& cursor, const SlotPass& pass) {
    const SlotTime& time = *pass.fused;
    if (time.issues == 0) return;
    const NodeLabel label{pass.forward ? Phase::forward : Phase::input_gradient, 0, pass.layer};
    const Time ahead = time.duration - time.behind;
    const std::uint32_t node = writer_.occupy(label, ahead, cursor.entry);
    cursor.fused_blocks.emplace_back(node, ahead - time.compute);
    cursor.entry.clear();
    const std::span<const Time> parts = time.parts;
    stand_for(node, parts.first(parts.size() - time.parts_behind));
    std::uint32_t before = node;
    // The way to the host and back has no parts, so that each is a copy of its own.
    const bool in_parts = follows_host() && time.parts_behind > 0;
    for (std::size_t part = parts.size() - time.parts_behind; in_parts && part < parts.size();) {
      // A call that takes the host longer begins with issues of no length.
      std::size_t last = part;
      while (last + 1 < parts.size() && parts[last] == Time(0)) ++last;
      before = occupy_behind(cursor, label, parts[last], before);
      stand_for(before, parts.subspan(part, last + 1 - part));
      part = last + 1;
    }
    if (!in_parts && time.behind > Time(0)) before = occupy_behind(cursor, label, time.behind, before);
    if (before != node) cursor.entry.push_back(before);
  }

  std::uint32_t occupy_behind(Cursor& cursor, const NodeLabel& label, Time duration, std::uint32_t before) {
    if (!plan_.offload_activations) return writer_.host_copy(label, duration, std::span(&before, 1));
    // The way to the host is taken, and nothing else is computed meanwhile.
    const std::uint32_t node = writer_.occupy_aside(label, duration, std::span(&before, 1));
    cursor.fused_blocks.emplace_back(node, duration);
    return node;
  }

  // Whether what is fused waits for a host that issues nodes as its nodes do.
  bool follows_host() const { return issue_time_of(plan_) > Time(0) && is_followed_; }
  // The host issues what a delay stands for one by one.
  void stand_for(std::uint32_t node, std::span<const Time> parts) {
    if (!follows_host() || parts.empty()) return;
    const auto [known, fresh] = parts_.try_emplace(std::pair(parts.data(), parts.size()));
    if (fresh) known->second = tables_.parts(parts);
    writer_.stand_for(node, known->second);
  }

  void append(Cursor& cursor, const SlotPass& pass, const TemplateStep& step) {
    waits_.clear();
    for (std::uint32_t w = step.first_wait; w < step.end_of_waits; ++w)
      waits_.push_back(cursor.ids[pass.steps->waits[w]]);
    if (step.enters) waits_.insert(waits_.end(), cursor.entry.begin(), cursor.entry.end());
    const NodeLabel label{step.phase, step.name, pass.layer};
    if (step.kind == NodeKind::compute) {
      cursor.ids.push_back(writer_.compute(label, static_cast<std::uint32_t>(step.payload), waits_));
      note_issue(step, cursor.ids.back());
      return;
    }
    // Communication is outside of the chain of computations and has to be told what it follows.
    if (step.enters) waits_.insert(waits_.end(), cursor.start.begin(), cursor.start.end());
    const bool in_turn = overlaps_ && step.kind == NodeKind::collective;
    if (in_turn) take_turn(step.family);
    const std::uint32_t node = writer_.communicate(step.kind, label, step.payload, waits_);
    cursor.ids.push_back(node);
    note_issue(step, node);
    if (in_turn) latest_of_family_[step.family] = node;
  }

  void note_issue(const TemplateStep& step, std::uint32_t node) {
    if (step.along && issue_time_of(plan_) > Time(0)) writer_.stand_for(node, tables_.no_parts());
  }

  // Where no slot waits for the communications of the one before, those of one communicator follow each
  // other: who goes first must not depend on timing.
  void take_turn(std::uint32_t family) {
    const auto latest = latest_of_family_.find(family);
    if (latest == latest_of_family_.end()) return;
    if (std::find(waits_.begin(), waits_.end(), latest->second) == waits_.end())
      waits_.push_back(latest->second);
  }

  void end_pass(Cursor& cursor, const SlotPass& pass) {
    cursor.begun = false;
    cursor.step = 0;
    // A pass without steps on this rank hands on what it should have waited for.
    if (pass.fused == nullptr && !pass.steps->steps.empty()) {
      cursor.entry.clear();
      for (const std::uint32_t end : pass.steps->ends) cursor.entry.push_back(cursor.ids[end]);
    }
    if (pass.completes_gradients) data_.after_backward(pass.place, cursor.last_of_iteration, cursor.entry);
    if (pass.forward && plan_.offload_activations) store_activations(cursor, pass);
  }

  // Only neighbouring stages on other ranks get a message; the first and the last stage have none
  // on one side.
  struct SlotMessage {
    Bytes bytes;
    NodeLabel label;
    std::uint64_t transfer = 0;  // into the graph's
  };
  // The same in every slot of a chunk that goes this way, so that it is made and named once.
  const std::optional<SlotMessage>& message(const Cursor& cursor, bool from_here) {
    const bool forward = cursor.slot->action == PipelineAction::forward;
    messages_.resize(4 * chunks_.size());
    std::optional<std::optional<SlotMessage>>& known =
        messages_[4 * static_cast<std::size_t>(cursor.slot->chunk) + (from_here ? 2 : 0) + (forward ? 1 : 0)];
    if (known) return *known;
    known.emplace();
    const std::optional<PointToPoint> transfer =
        stage_transfer(model_, job_, chunk_of(*cursor.slot), rank_, from_here, forward, tables_);
    if (!transfer) return *known;
    const NodeLabel label = from_here ? message_label(cursor, "send activations", "send gradients")
                                      : message_label(cursor, "receive activations", "receive gradients");
    *known = SlotMessage{transfer->bytes, label, tables_.transfer(*transfer)};
    return *known;
  }

  NodeLabel message_label(const Cursor& cursor, const char* forward_name, const char* backward_name) {
    const bool forward = cursor.slot->action == PipelineAction::forward;
    return {forward ? Phase::forward : Phase::input_gradient,
            tables_.name(forward ? forward_name : backward_name), -1};
  }

  void receive(Cursor& cursor) {
    const std::optional<SlotMessage>& received = message(cursor, false);
    if (!received) return;
    waits_.clear();
    // Posted early, the message travels while the slot before is computed; the sender's own progress keeps
    // the order of micro-batches.
    add_wait(waits_, plan_.overlap_pipeline ? slot_start_ : writer_.last_compute());
    NodeLabel label = received->label;
    if (!cursor.passes.empty()) label.layer = cursor.passes.front().layer;
    cursor.entry.push_back(writer_.communicate(NodeKind::receive, label, received->transfer, waits_));
    if (gathers_after_transfer(plan_)) gather_parts(cursor, received->bytes, label.layer);
  }

  // Where the parts of all tensor ranks have arrived, between the computations before the slot and its own.
  void gather_parts(Cursor& cursor, Bytes part, std::int32_t layer) {
    const bool forward = cursor.slot->action == PipelineAction::forward;
    const std::uint32_t family = overlaps_ && !forward ? tables_.backward_family(GroupAxis::tensor)
                                                       : tables_.family(GroupAxis::tensor);
    waits_ = cursor.entry;
    if (overlaps_) {
      take_turn(family);
    } else {
      add_wait(waits_, writer_.last_compute());
    }
    NodeLabel label = message_label(cursor, "gather activations", "gather gradients");
    label.layer = layer;
    const std::uint64_t call =
        tables_.collective({CollectiveKind::all_gather, Bytes(part.value * plan_.tensor), family});
    const std::uint32_t node = writer_.communicate(NodeKind::collective, label, call, waits_);
    if (overlaps_) latest_of_family_[family] = node;
    cursor.entry.assign(1, node);
  }

  void send(Cursor& cursor) {
    const std::optional<SlotMessage>& sent = message(cursor, true);
    if (!sent) return;
    waits_ = cursor.entry;
    add_wait(waits_, writer_.last_compute());
    NodeLabel label = sent->label;
    if (!cursor.passes.empty()) label.layer = cursor.passes.back().layer;
    cursor.sent = writer_.communicate(NodeKind::send, label, sent->transfer, waits_);
  }

  void prepare_offload() {
    const std::int64_t micro_batches = plan_.micro_batches * job_.iterations;
    // Micro-batches are numbered through all iterations.
    for (const RoleChunk& chunk : chunks_)
      stored_.emplace_back(chunk.shapes.size() * static_cast<std::size_t>(micro_batches), kNoNode);
    store_name_ = tables_.name("activations to host");
    load_name_ = tables_.name("activations from host");
  }

  std::uint32_t& stored(const Cursor& cursor, const SlotPass& pass) {
    const std::size_t blocks = chunk_of(*cursor.slot).shapes.size();
    return stored_[static_cast<std::size_t>(pass.place.chunk)]
                  [static_cast<std::size_t>(cursor.slot->micro_batch) * blocks +
                   static_cast<std::size_t>(pass.place.block)];
  }

  Time copy_time(const Cursor& cursor, const SlotPass& pass) const {
    const RoleChunk& chunk = chunk_of(*cursor.slot);
    const std::uint32_t shape = chunk.shapes[static_cast<std::size_t>(pass.place.block)];
    return time_to_move(model_.shapes[shape].saved, job_.host_bandwidth);
  }

  void store_activations(const Cursor& cursor, const SlotPass& pass) {
    // The copy out starts when the block's forward pass is done; nothing waits for it but the copy back.
    waits_.clear();
    add_wait(waits_, writer_.last_compute());
    const NodeLabel label{Phase::forward, store_name_, pass.layer};
    stored(cursor, pass) = writer_.host_copy(label, copy_time(cursor, pass), waits_);
  }

  void load_activations(Cursor& cursor, const SlotPass& pass) {
    waits_.assign(1, stored(cursor, pass));
    add_wait(waits_, pass_start_);
    const NodeLabel label{Phase::input_gradient, load_name_, pass.layer};
    cursor.entry.push_back(writer_.host_copy(label, copy_time(cursor, pass), waits_));
  }

  const ShardedModel& model_;
  const StageJob& job_;
  const Plan& plan_;
  const bool overlaps_;  // slots wait only for what they need
  const std::vector<RoleChunk>& chunks_;
  std::int64_t rank_;
  TemplateCache& templates_;
  JobTables& tables_;
  const std::vector<PipelineSlot>& slots_;
  const Program& program_;
  ProgramWriter writer_;
  DataPass data_;
  std::vector<bool> fused_;   // per slot; empty: none is
  bool is_followed_ = false;  // what is fused waits for the host as its nodes do
  std::map<std::pair<const Time*, std::size_t>, std::uint32_t> parts_;  // of fused slots; into the graph's
  std::map<std::pair<std::int32_t, PipelineAction>, const SlotTime*>
      times_;                                                   // by chunk, once they were asked for
  std::set<std::pair<std::uint32_t, PipelineAction>> written_;  // shapes, in slots whose blocks are fused
  std::vector<std::vector<bool>> forwards_seen_;                // [chunk][iteration]
  std::vector<std::vector<std::int64_t>> backwards_left_;       // [chunk][iteration]
  std::vector<std::int64_t> slots_left_;                        // per iteration
  std::vector<std::vector<std::uint32_t>> stored_;              // [chunk], with offloaded activations
  std::uint32_t store_name_ = 0, load_name_ = 0;
  std::vector<Cursor> cursors_;
  std::vector<std::optional<std::optional<SlotMessage>>> messages_;  // [chunk, end and way], once asked for
  std::map<std::uint32_t, std::uint32_t> latest_of_family_;          // collectives, where slots overlap
  // Communications that ended a slot, by chunk and micro-batch, where slots overlap: only that micro-batch's
  // next slot needs them.
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::uint32_t>> left_over_;
  std::vector<std::uint32_t> ends_;     // communications that the next slot waits for
  std::vector<std::uint32_t> waits_;    // of the node at hand
  std::uint32_t slot_start_ = kNoNode;  // the last computation before the latest slot
  std::uint32_t pass_start_ = kNoNode;  // and before the latest pass
};

}  // namespace

std::vector<RoleChunk> role_chunks(const ShardedModel& model, const StageJob& job,
                                   std::int64_t pipeline_rank) {
  std::vector<RoleChunk> chunks;
  for (const PipelineChunk& chunk : job.order.chunks[static_cast<std::size_t>(pipeline_rank)])
    chunks.push_back(role_chunk(model, job.plan, job.stages, chunk));
  return chunks;
}

std::int64_t most_nodes(const std::vector<RoleChunk>& chunks, const StageJob& job, std::int64_t pipeline_rank,
                        TemplateCache& templates) {
  // Per chunk, of a slot by action: messages and the gather of parts; a block may add gathers,
  // exchanges, copies of what these move and copies to or from the host.
  constexpr std::int64_t kPerBlock = 10, kPerSlot = 3;
  std::vector<std::vector<std::int64_t>> of_slot;
  std::int64_t nodes = 0;
  for (const RoleChunk& chunk : chunks) {
    std::vector<std::int64_t> sum(4, kPerSlot);
    for (const std::uint32_t shape : chunk.shapes) {
      const BlockTemplates& made = templates.of(shape);
      const auto size = [](const PassTemplate& pass) { return static_cast<std::int64_t>(pass.steps.size()); };
      sum[static_cast<std::size_t>(PipelineAction::forward)] += size(made.forward) + kPerBlock;
      sum[static_cast<std::size_t>(PipelineAction::backward)] +=
          size(made.recompute) + size(made.backward) + kPerBlock;
      sum[static_cast<std::size_t>(PipelineAction::input_gradient)] +=
          size(made.recompute) + size(made.input_gradients) + kPerBlock;
      sum[static_cast<std::size_t>(PipelineAction::weight_gradient)] +=
          size(made.weight_gradients) + kPerBlock;
    }
    of_slot.push_back(std::move(sum));
    // Per block and iteration: exchanges, gathers, optimizer steps and copies of the data-parallel pass.
    nodes += (static_cast<std::int64_t>(chunk.shapes.size()) * 8 + 8) * job.iterations;
  }
  for (const PipelineSlot& slot : job.order.slots[static_cast<std::size_t>(pipeline_rank)])
    nodes += of_slot[static_cast<std::size_t>(slot.chunk)][static_cast<std::size_t>(slot.action)];
  return nodes;
}

StageProgram emit_stage_program(const ShardedModel& model, const StageJob& job,
                                const std::vector<RoleChunk>& chunks, std::int64_t pipeline_rank,
                                TemplateCache& templates, JobTables& tables, Program& program) {
  return StageEmitter(model, job, chunks, pipeline_rank, templates, tables, program).emit();
}

}  // namespace armilla
