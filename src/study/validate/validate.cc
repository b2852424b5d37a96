#include "study/validate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "base/units_text.h"
#include "cost/cost.h"
#include "ir/derived/metrics.h"
#include "study/run.h"
#include "study/search/evaluate.h"
#include "study/validate/row_machine.h"
#include "study/validate/row_model.h"
#include "study/validate/row_recipe.h"
#include "study/validate/statistics.h"

namespace armilla {
namespace {

// The letters of an id before its first word with a figure behind the first: "vtrain-multi-001" is of
// "vtrain-multi".
std::string family_of(const Measurement& row) {
  if (row.id.empty()) {
    // "github owner/name@commit:path" is of "name".
    const std::string_view source = row.source;
    const std::string_view repository = source.substr(0, source.find_first_of("@:,"));
    return std::string(repository.substr(repository.rfind('/') + 1));
  }
  std::string family;
  for (std::string_view rest = row.id; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find('-'));
    const bool numbered = std::any_of(word.begin(), word.end(),
                                      [](char c) { return std::isdigit(static_cast<unsigned char>(c)); });
    if (numbered && !family.empty()) break;
    family += family.empty() ? word : fmt::format("-{}", word);
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
  }
  return family;
}

// "vtrain-multi A100": the family, where rows have one, in front of what else makes a set.
std::string set_of(const Measurement& row, const std::string& rest) {
  const std::string family = family_of(row);
  return family.empty() ? rest : fmt::format("{} {}", family, rest);
}

bool is_of_vidur(const Measurement& row) {
  return lower_case(row.id + ' ' + row.source).find("vidur") != std::string::npos;
}

// Numbers are of one case: reasons are counted with an N for each. What has letters, too, is a name.
std::string without_numbers(const std::string& text) {
  static const std::regex kWord(R"([\w.-]+)"), kNumber(R"(-?[0-9][0-9.e+-]*)");
  std::string kind;
  std::size_t done = 0;
  for (auto word = std::sregex_iterator(text.begin(), text.end(), kWord); word != std::sregex_iterator();
       ++word) {
    const auto at = static_cast<std::size_t>(word->position());
    kind += text.substr(done, at - done);
    kind += std::regex_match(word->str(), kNumber) ? "N" : word->str();
    done = at + word->str().size();
  }
  return kind + text.substr(done);
}

// What is wrong with something else than the row says what that is, without its place in a text that was made
// of the row: "gpt-3.6B:4:9: hidden".
std::string without_row(const Error& error, const std::string& row) {
  if (error.where.starts_with(row)) return error.message;
  const std::size_t place = error.where.rfind(": ");
  return fmt::format("{}: {}", place == std::string::npos ? error.where : error.where.substr(place + 2),
                     error.message);
}

std::string whole_percent(double share) {
  return fmt::format("{:.0f} %", 100 * share);
}

// Rows of one model under several plans.
std::string group_of(const std::string& set, const MeasuredPlan& plan) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {}", set, plan.model, plan.layers, plan.hidden,
                     plan.heads, plan.kv_heads, plan.feed_forward, plan.vocabulary, plan.sequence,
                     plan.devices, plan.global_batch);
}

// Where the time of a predicted step goes: what a large miss is likeliest to be about.
std::string spent_on(const Result& result) {
  const double step = in_seconds(result.iteration);
  if (!(step > 0)) return "no time at all";
  double computing = 0, exposed = 0, ranks = 0;
  for (const RankClass& rank : result.classes) {
    const auto count = static_cast<double>(rank.ranks);
    computing += count * in_seconds(rank.compute);
    exposed += count * in_seconds(rank.exposed_communication);
    ranks += count;
  }
  computing /= ranks * step;
  exposed /= ranks * step;
  return fmt::format("{} computing, {} exposed communication, {} waiting", whole_percent(computing),
                     whole_percent(exposed), whole_percent(std::max(0.0, 1 - computing - exposed)));
}

std::string describe_plan(const Plan& plan) {
  std::string text = fmt::format("tp {} pp {} dp {}", plan.tensor, plan.pipeline, plan.data());
  if (plan.context > 1) text += fmt::format(" cp {}", plan.context);
  if (plan.expert > 1) text += fmt::format(" ep {}", plan.expert);
  if (plan.virtual_stages > 1) text += fmt::format(" vpp {}", plan.virtual_stages);
  text += fmt::format(", {} x {}, {}", plan.micro_batch(), plan.micro_batches, name_of(plan.precision));
  if (plan.zero_stage > 0) text += fmt::format(", ZeRO-{}", plan.zero_stage);
  if (plan.recompute == Recompute::selective && plan.recompute_modules != Parts{Part::core_attn}) {
    text += fmt::format(", recompute {}", fmt::join(names_of(plan.recompute_modules), " and "));
  } else if (plan.recompute != Recompute::none) {
    text += fmt::format(", recompute {}", name_of(plan.recompute));
  }
  return text;
}

class Validator {
 public:
  explicit Validator(Progress& meter) : meter_(meter) {}

  void predict(const MeasurementFile& file, Validation& validation) {
    meter_.begin("predicting " + file.path);
    std::size_t done = 0;
    for (const Measurement& measurement : file.rows) {
      ValidatedRow& row = validation.rows.emplace_back();
      row.measured = measurement;
      row.set = family_of(measurement);
      if (row.set.empty()) row.set = "not read";
      try {
        if (!measurement.fault.empty())
          throw Error(measurement.where, measurement.fault, measurement.expected);
        if (measurement.value == 0) throw Error(measurement.where, "the row has no measured value");
        std::visit([&](const auto& what) { predict(what, row); }, measurement.what);
      } catch (const Error& error) {
        const std::string what = without_row(error, measurement.where);
        row.unpredicted = without_numbers(what);
        row.unpredicted_detail = what;
        if (!first_)
          first_.emplace(error.where.starts_with(measurement.where) ? error.where : measurement.where, what,
                         error.hint);
      }
      meter_.update(static_cast<double>(++done) / static_cast<double>(file.rows.size()));
    }
    validation.files.push_back(file.path);
  }

  // Where nothing at all can be predicted: that is bad input, no set without figures. After `summarize`.
  void refuse_what_says_nothing(const Validation& validation) const {
    const bool any = std::ranges::any_of(validation.rows,
                                         [](const ValidatedRow& row) { return row.predicted.has_value(); });
    if (any || !first_) return;
    if (validation.unpredicted.size() == 1) throw Error(*first_);
    constexpr std::size_t kMostReasons = 3;
    std::vector<std::pair<std::size_t, std::string>> by_rows;
    for (const auto& [reason, members] : validation.unpredicted) by_rows.emplace_back(members.size(), reason);
    std::ranges::stable_sort(by_rows, std::greater(), &std::pair<std::size_t, std::string>::first);
    std::vector<std::string> reasons;
    for (const auto& [rows, reason] : by_rows) {
      if (reasons.size() == kMostReasons) {
        reasons.push_back("...");
        break;
      }
      reasons.push_back(fmt::format("{} ({})", reason, counted(static_cast<std::int64_t>(rows), "row")));
    }
    throw Error(first_->where, fmt::format("no row can be predicted: {}", fmt::join(reasons, "; ")),
                first_->hint);
  }

 private:
  void predict(const MeasuredStep& measured, ValidatedRow& row) {
    const MeasuredPlan& plan = measured.plan;
    row.set = set_of(row.measured, fmt::format("{} {}", plan.device, lower_case(plan.precision)));
    const PredictedStep& step = predicted(plan, study_of(plan, row.measured.where));
    if (step.has_experts) row.set += " MoE";
    row.group = group_of(row.set, plan);
    row.predicted = step.seconds;
    row.work = step.work;
    row.study = step.study;
    row.likely = step.likely;
  }

  void predict(const MeasuredPeak& peak, ValidatedRow& row) {
    const MeasuredPlan& plan = peak.plan;
    row.set = set_of(row.measured, plan.device);
    const Run run = lowered(plan, study_of(plan, row.measured.where));
    row.group = group_of(row.set, plan);
    const RoleMemory* role = &run.roles.front();
    for (const RoleMemory& other : run.roles) {
      if (other.use.peak() > role->use.peak()) role = &other;
    }
    // Of nanotron's benchmarks it is rank 0 that writes (log_throughput in its helpers.py).
    const bool is_first = names(plan, "nanotron"), is_last = peak.scope.starts_with("last rank");
    if (is_first || is_last) {
      const std::uint32_t program = is_first ? run.graph.program_of.front() : run.graph.program_of.back();
      role = &*std::ranges::find(run.roles, program, &RoleMemory::program);
    }
    const MemoryUse& use = role->use;
    // Memory that was measured as allocated has no fragments in it. Nanotron's is reserved: its log_memory
    // resets the counters of a step when the backward passes are over, and what its benchmarks write after
    // the optimizer's step has activations in it.
    const Bytes lost = peak.reserved || is_first ? Bytes(0) : use.fragmentation;
    row.predicted = static_cast<double>(use.peak().value - lost.value);
    row.study =
        fmt::format("{} on {}: {}", run.model.name, run.study.machine.name, describe_plan(run.study.plan));
    row.likely =
        fmt::format("weights {}, gradients {}, optimizer {}, activations {}, temporary {}, buffers {}",
                    to_text(use.weights), to_text(use.gradients), to_text(use.optimizer),
                    to_text(use.activations), to_text(use.temporary), to_text(use.communication_buffers()));
  }

  void predict(const MeasuredCollective& collective, ValidatedRow& row) {
    const std::string name = collective_name(collective.kind);
    // A message from one device to another is what a broadcast between two is.
    const auto kind = name == "send-recv" && collective.devices == 2 ? CollectiveKind::broadcast
                                                                     : collective_from_name(name);
    constexpr std::int64_t kSmall = 1 << 20;
    row.set = fmt::format("{} {} {}", device_name(collective.system, row.measured.where),
                          counted(std::max<std::int64_t>(1, collective.nodes), "node"),
                          collective.bytes < kSmall ? "below 1 MiB" : "from 1 MiB");
    if (!kind)
      throw Error(row.measured.where, fmt::format("unknown collective '{:.60}'", collective.kind),
                  "for example all_reduce");
    SimulationOptions options;
    options.intervals = false;
    const Study study = study_of(collective, row.measured.where);
    const Run run = run_collective(study, *kind, Bytes(collective.bytes), options);
    row.predicted = in_seconds(run.result.iteration);
    const bool between_nodes = collective.nodes > 1 && name == "send-recv";
    if (between_nodes && is_of_vidur(row.measured) && by_sockets(collective.system, row.measured.where))
      row.predicted = sender_seconds(study, collective.bytes, *row.predicted);
    row.work = static_cast<double>(collective.bytes) * bus_factor(*kind, collective.devices);
    row.study = fmt::format("{} among {} of {}", name, collective.devices, run.study.machine.name);
    for (const CollectiveRecord& record : run.result.collectives)
      row.likely = fmt::format("{}, limited by {}", record.algorithm, name_of(record.limit));
  }

  void predict(const MeasuredKernel& kernel, ValidatedRow& row) {
    row.set = fmt::format("{} {}", device_name(kernel.device, row.measured.where),
                          lower_case(kernel.operation).starts_with("attention_") ||
                                  lower_case(kernel.operation).ends_with("gemm")
                              ? fmt::format("{} {}", kernel.operation, kernel.dtype)
                              : "memory-bound");
    const Work work = work_of(kernel, row.measured.where);
    const CostModel& cost = cost_of(kernel, row.measured.where);
    if (work.kind == WorkKind::matrix && !cost.computes_in(work.dtype))
      throw Error(row.measured.where,
                  fmt::format("{} does not compute in {}", kernel.device, name_of(work.dtype)));
    const Device& of = device(kernel.device, row.measured.where);
    Time time = cost.time(within_layer(work, kernel, of));
    if (const std::optional<Work> before = timed_before(kernel)) time += cost.time(*before);
    row.predicted = in_seconds(time);
    row.work = work.kind == WorkKind::matrix ? static_cast<double>(work.flops.value)
                                             : static_cast<double>(work.bytes.value);
    row.study = fmt::format("{}, {}", typed_count(work.flops.value, "flop"), to_text(work.bytes));
  }

  // A step that was measured several times is played once.
  struct PredictedStep {
    Plan plan;  // as the row says it
    bool chooses_recompute = false, has_experts = false;
    double seconds = 0, work = 0;
    std::string study, likely;
  };
  const PredictedStep& predicted(const MeasuredPlan& plan, Study study) {
    const ModelSource& model = study.model;
    // The plan is compared as a whole; this is the rest that tells predictions apart.
    const std::string place =
        fmt::format("{}{}\n{}\n{} {} {} {}", dump_machine(study.machine), model.name, model.text,
                    model.sequence, model.layers, model.lora_rank, study.request.balance_stages);
    std::deque<PredictedStep>& known = steps_[place];
    const auto same = std::ranges::find_if(known, [&](const PredictedStep& step) {
      return step.plan == study.plan && step.chooses_recompute == chooses_recompute(plan);
    });
    if (same != known.end()) return *same;
    PredictedStep step{study.plan, chooses_recompute(plan), false, 0, 0, {}, {}};
    PlanEvaluator& evaluator = evaluator_of(study, place);
    PlanPrepared made = evaluator.prepare(study.request);
    if (chooses_recompute(plan)) {
      choose_recompute(study.request.plan.recompute, [&] {
        made = evaluator.prepare(study.request);
        return evaluator.memory(made);
      });
    }
    step.has_experts = made.model->facts.experts > 0;
    const Result result = evaluator.play(made);
    step.seconds = in_seconds(result.iteration);
    step.work = evaluator.hardware_flops(made) / static_cast<double>(made.plan.ranks);
    step.study =
        fmt::format("{} on {}: {}", made.model->name, made.setting->machine.name, describe_plan(made.plan));
    step.likely = spent_on(result);
    if (const MemoryUse use = evaluator.memory(made); !use.fits()) {
      step.likely +=
          fmt::format("; needs {} of {}, so that something of the plan is probably not as the row says",
                      to_text(use.needed()), to_text(use.capacity));
    }
    if (chooses_recompute(plan)) {
      step.likely +=
          fmt::format("; recomputation is not published, taken as {}", name_of(made.plan.recompute));
    }
    known.push_back(std::move(step));
    return known.back();
  }

  // What rows of one machine and model share.
  PlanEvaluator& evaluator_of(const Study& study, const std::string& place) {
    if (const auto known = evaluators_.find(place); known != evaluators_.end()) return known->second;
    // A MB each; rows of a source stand together.
    constexpr std::size_t kMostKept = 256;
    if (evaluators_.size() == kMostKept) evaluators_.clear();
    Study base = study;
    base.request = {};
    return evaluators_.try_emplace(place, base).first->second;
  }

  // Within the error of nine in ten predicted peaks (docs/accuracy.md).
  static bool fits_nearly(const MemoryUse& use) {
    constexpr double kError = 1.25;
    return static_cast<double>(use.needed().value) <= kError * static_cast<double>(use.capacity.value);
  }

  // Recomputation that nobody published is the least that fits. `memory`: of a plan with it.
  template <class Memory>
  static void choose_recompute(Recompute& recompute, const Memory& memory) {
    for (const Recompute more : {recompute, Recompute::selective, Recompute::full}) {
      recompute = more;
      if (fits_nearly(memory())) return;
    }
    // Something else of the plan saves memory, and recomputation is as likely without.
    recompute = Recompute::none;
    memory();
  }

  static bool chooses_recompute(const MeasuredPlan& plan) { return !knows_recompute(plan); }

 public:
  // The study without its simulation.
  static Run lowered(const MeasuredPlan& plan, Study study) {
    const auto cost = make_cost_model(study.compute, study.machine.device);
    const auto lower = [&] { return lower_bare_study(study, *cost, no_progress(), Written::loops); };
    if (chooses_recompute(plan)) {
      choose_recompute(study.request.plan.recompute, [&] {
        study.plan.recompute = study.request.plan.recompute;
        return lower().memory;
      });
      study.plan.recompute = study.request.plan.recompute;
    }
    return lower();
  }

 private:
  const std::string& device_name(const std::string& name, const std::string& where) {
    return device(name, where).name;
  }
  const Device& device(const std::string& name, const std::string& where) {
    const auto known = devices_.find(name);
    if (known != devices_.end()) return known->second;
    return devices_.emplace(name, device_of_row(name, where)).first->second;
  }
  // Tables of kernels are measured in short bursts, unless they say that calls followed each other.
  const CostModel& cost_of(const MeasuredKernel& kernel, const std::string& where) {
    const std::string notes = lower_case(kernel.notes);
    const bool is_in_a_row =
        notes.find("back-to-back") != std::string::npos || notes.find("back to back") != std::string::npos;
    const std::string sustained = is_in_a_row ? "true" : "false";
    std::unique_ptr<CostModel>& cost = costs_[{kernel.device, sustained}];
    if (!cost) {
      cost = make_cost_model({"kernels", {{"sustained", {sustained, where}}}, where},
                             device(kernel.device, where));
    }
    return *cost;
  }

  Progress& meter_;
  std::optional<Error> first_;                              // of rows that cannot be predicted
  std::map<std::string, std::deque<PredictedStep>> steps_;  // by machine and model
  std::map<std::string, PlanEvaluator> evaluators_;         // likewise
  std::map<std::string, Device> devices_;
  std::map<std::pair<std::string, std::string>,
           std::unique_ptr<CostModel>>
      costs_;  // by device and whether sustained
};

std::string kind_of(const Measurement& row) {
  constexpr std::array<std::string_view, 4> kKinds = {"training", "memory", "collectives", "kernels"};
  return std::string(kKinds[row.what.index()]);
}

ValidatedSet set_of(const std::string& kind, const std::string& name, const std::vector<std::size_t>& members,
                    const Validation& validation) {
  ValidatedSet set{name, kind, static_cast<std::int64_t>(members.size()), {}, {}, {}, {}};
  std::vector<double> errors, constant;
  std::vector<const ValidatedRow*> rows;
  for (const std::size_t index : members) {
    const ValidatedRow& row = validation.rows[index];
    if (!row.predicted) continue;
    rows.push_back(&row);
    errors.push_back(row.error());
    if (row.by_constant) constant.push_back(*row.by_constant / row.measured.value - 1);
    set.misses.push_back(index);
  }
  set.errors = summarize_errors(std::move(errors));
  set.constant = summarize_errors(std::move(constant));
  set.ranking = summarize_rankings(rows);
  // Of equal misses the order of the file.
  std::stable_sort(set.misses.begin(), set.misses.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(validation.rows[a].error()) > std::abs(validation.rows[b].error());
  });
  return set;
}

void summarize(Validation& validation) {
  std::map<std::string, std::map<std::string, std::vector<std::size_t>>> sets;
  std::map<std::string, std::vector<std::size_t>> kinds, reasons;
  for (std::size_t i = 0; i < validation.rows.size(); ++i) {
    const ValidatedRow& row = validation.rows[i];
    const std::string kind = kind_of(row.measured);
    sets[kind][row.set].push_back(i);
    kinds[kind].push_back(i);
    if (!row.predicted) reasons[row.unpredicted].push_back(i);
  }
  for (auto& [kind, members] : reasons) {
    const std::string& first = validation.rows[members.front()].unpredicted_detail;
    const bool alike = std::ranges::all_of(
        members, [&](std::size_t i) { return validation.rows[i].unpredicted_detail == first; });
    validation.unpredicted.emplace(alike ? first : kind, std::move(members));
  }
  for (const auto& [kind, names] : sets) {
    for (const auto& [name, members] : names) {
      std::vector<ValidatedRow*> rows;
      for (const std::size_t index : members) rows.push_back(&validation.rows[index]);
      predict_by_constant(rows);
      validation.sets.push_back(set_of(kind, name, members, validation));
    }
    validation.totals.push_back(set_of(kind, "all", kinds[kind], validation));
  }
}

}  // namespace

std::optional<Study> study_of_row(const Measurement& row) {
  if (!row.fault.empty()) throw Error(row.where, row.fault, row.expected);
  const auto* step = std::get_if<MeasuredStep>(&row.what);
  const auto* peak = std::get_if<MeasuredPeak>(&row.what);
  if (step == nullptr && peak == nullptr) return std::nullopt;
  const MeasuredPlan& plan = step != nullptr ? step->plan : peak->plan;
  Study study = study_of(plan, row.where);
  return knows_recompute(plan) ? std::move(study) : Validator::lowered(plan, std::move(study)).study;
}

Validation validate(const std::vector<MeasurementFile>& files, Progress& meter) {
  Validation validation;
  Validator validator(meter);
  for (const MeasurementFile& file : files) validator.predict(file, validation);
  summarize(validation);
  validator.refuse_what_says_nothing(validation);
  return validation;
}

}  // namespace armilla
