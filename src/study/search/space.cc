#include "study/search/space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/size_list.h"
#include "base/text.h"
#include "base/units_text.h"
#include "lower/pipeline_schedule.h"
#include "lower/plan.h"
#include "lower/sharded_model.h"
#include "read/read.h"
#include "read/topology.h"
#include "study/run.h"
#include "study/run/prepare.h"

namespace armilla {
namespace {

constexpr std::int64_t kMostPoints = std::int64_t{1} << 40;
constexpr std::string_view kPlan = "plan.";

Override setting(const SearchAxis& axis, const std::string& value) {
  return {fmt::format("{}={}", axis.key, value),
          axis.where.empty() ? fmt::format("{} {}", axis.key, value) : axis.where, axis.file};
}

const SearchAxis* find_axis(const std::vector<SearchAxis>& axes, std::string_view key) {
  const auto found =
      std::find_if(axes.begin(), axes.end(), [&](const SearchAxis& axis) { return axis.key == key; });
  return found == axes.end() ? nullptr : &*found;
}

using Values = std::vector<std::string>;

// Of numbers; nothing of words.
Values larger(Values values, const std::string& last) {
  const auto number = [](const std::string& text) -> std::int64_t {
    const bool digits = text.find_first_not_of("0123456789") == std::string::npos;
    return digits ? parse_count(text, "search") : -1;
  };
  std::erase_if(values, [&](const std::string& value) { return number(value) <= number(last); });
  if (number(last) < 0) values.clear();
  return values;
}

bool is_any(const SearchAxis& axis) {
  return axis.values.size() == 1 && axis.values.front() == "any";
}

const PlanAxis* plan_axis(std::string_view key) {
  for (const PlanAxis& axis : plan_axes()) {
    if (key.starts_with(kPlan) && key.substr(kPlan.size()) == axis.key) return &axis;
  }
  return nullptr;
}

// A value of each axis with which the study can be read, before it is known what "any" is.
std::string first_value(const SearchAxis& axis) {
  if (!is_any(axis)) return axis.values.front();
  const PlanAxis* const row = plan_axis(axis.key);
  const Study nothing;
  const std::vector<std::string> values = row->any({.study = nothing, .model = {}, .tensor = {}});
  return values.empty() ? "1" : values.front();
}

std::int64_t largest_batch(const PlanRequest& request) {
  if (request.batch) return *request.batch;
  if (request.global_batch) return *request.global_batch;
  return 0;
}

SpaceFacts facts_of(const Study& study) {
  const Machine& machine = study.machine;
  const std::int64_t devices = rank_count(machine);
  const std::int64_t ranks = study.request.ranks.value_or(devices);
  const std::int64_t node = machine.dimensions.empty() ? 1 : machine.dimensions.front().size;
  Model model = read_model(study.model, 1);
  // Whether a graph has sequences is found in it.
  if (model.blocks.empty()) annotate_parallelism(model);
  SpaceFacts facts{.study = study,
                   .model = model.facts,
                   .ranks = ranks,
                   .node = node,
                   .batch = largest_batch(study.request),
                   .run_micro_batch = 0,
                   .tensor = {}};
  for (const Operator& op : model.operators) {
    if (op.core_attention) facts.parts.add(Part::core_attn);
    for (const Part part : recomputable_parts()) {
      if (op.parts.has(part)) facts.parts.add(part);
    }
  }
  try {
    facts.run_micro_batch = prepare_study(study).plan.micro_batch();
  } catch (const Error&) {
    // Degrees that are searched may be legal where none at all is not: that of the most replicas that
    // share the batch.
    const PlanRequest& request = study.request;
    for (std::int64_t replicas = ranks; request.global_batch && replicas >= 1; --replicas) {
      if (ranks % replicas != 0 || *request.global_batch % replicas != 0) continue;
      facts.run_micro_batch = *request.global_batch / replicas / request.micro_batches.value_or(1);
      break;
    }
  }
  return facts;
}

// Keys of a plan that no axis varies, but for those whose value may be a list.
constexpr std::array<std::string_view, 38> kFixedKeys = {"accumulation_fusion",
                                                         "batch",
                                                         "bucket",
                                                         "channels_last",
                                                         "check_collectives",
                                                         "dispatch_type",
                                                         "embedding_parallel",
                                                         "expert_capacity",
                                                         "expert_dispatch",
                                                         "expert_load",
                                                         "expert_skew",
                                                         "first_bucket",
                                                         "fp8_attention",
                                                         "framework",
                                                         "fused_experts",
                                                         "global_batch",
                                                         "gradient_type",
                                                         "head_parallel",
                                                         "host",
                                                         "issue_time",
                                                         "loss",
                                                         "loss_parallel",
                                                         "no_sync",
                                                         "optimizer",
                                                         "overlap_tensor_gradients",
                                                         "parameter_type",
                                                         "precision",
                                                         "recompute_early_stop",
                                                         "reduce_scatter",
                                                         "scaling",
                                                         "seed",
                                                         "state_type",
                                                         "step_overhead",
                                                         "tensor_method",
                                                         "weight_type",
                                                         "wide_first_layers",
                                                         "wide_last_layers",
                                                         "zero_partition"};

// Of these, what plans may take or not, by their degrees.
constexpr std::array<std::string_view, 2> kBatchKeys = {"batch", "global_batch"};

// Keys beside the plan with a value that has no comma of its own.
constexpr std::array<std::string_view, 9> kFixedBeside = {
    "model.sequence",       "training.tokens",           "training.samples",
    "machine.device.price", "collectives.chunks",        "collectives.active_chunks",
    "collectives.order",    "collectives.decomposition", "compute"};

// What stands at a path of keys; nothing where one of them is not there.
std::optional<Config> find_at(Config config, std::string_view path) {
  for (;;) {
    const std::size_t dot = path.find('.');
    std::optional<Config> found = config.is_map() ? config.find(path.substr(0, dot)) : std::nullopt;
    if (!found || dot == std::string_view::npos) return found;
    config = *found;
    path.remove_prefix(dot + 1);
  }
}

void refuse_values(const Config& value) {
  const bool is_one =
      value.is_scalar() && value.text() != "any" && value.text().find(',') == std::string::npos;
  if (is_one || (!value.is_scalar() && !value.is_list())) return;
  throw Error(value.where(), "this key takes one value",
              "a search does not vary it: give one, or vary it with armilla sweep");
}

// What a list or a range stands for. A value that is there twice is tried once.
void add_values(SearchAxis& axis, const std::string& text, const std::string& where) {
  if (text == "any") {
    throw Error(where, "'any' is every value: it does not stand beside others",
                "give it alone, in place of the list");
  }
  std::vector<std::string> values;
  // The path of a machine may have dots of its own.
  const std::size_t dots = axis.key == "machine" ? std::string::npos : text.find("..");
  if (dots == std::string::npos) {
    values.push_back(text);
  } else {
    values = numbers_of_range(text, where);
    const bool has_zero =
        axis.key == "plan.zero" || axis.key == "plan.hybrid_shard" || axis.key == "plan.recompute_blocks";
    if (values.front() == "0" && !has_zero)
      throw Error(where, fmt::format("the range '{}' begins too low", text), "the lowest value is 1");
  }
  for (std::string& value : values) {
    if (std::ranges::find(axis.values, value) == axis.values.end()) axis.values.push_back(std::move(value));
  }
}

bool may_be_list(std::string_view key) {
  return key == "plan.order" || key == "plan.stage_blocks" || key == "plan.offload" ||
         key == "plan.recompute_modules";
}

// Whether a list is a single value of a key whose values may be lists: axes in their order, blocks of stages,
// parts that are computed again, and what is offloaded together. A list of those has lists in it, or values
// that are no part of one.
bool is_one_value(const std::string& key, const std::vector<Config>& items) {
  const auto no_part = [&](const Config& item) {
    if (item.is_list()) return true;
    const std::string text = item.text();
    if (key == "plan.order") return text.find('-') != std::string::npos;
    if (key == "plan.stage_blocks") return text == "even" || text == "balanced";
    return items.size() > 1 && text == "none";
  };
  return may_be_list(key) && !items.empty() && std::ranges::none_of(items, no_part);
}

void add_list(SearchAxis& axis, const std::vector<Config>& items) {
  for (const Config& item : items) {
    if (item.is_list()) {
      std::vector<std::string> parts;
      for (const Config& part : item.items()) parts.push_back(part.text());
      axis.values.push_back(fmt::format("[{}]", fmt::join(parts, ", ")));
    } else {
      add_values(axis, item.text(), item.where());
    }
  }
}

// The comma that ends the item at `begin`. In "torus:x=4,y=4" it belongs to the parameters of a topology.
std::size_t end_of_item(const std::string& text, std::size_t begin, bool has_parameters) {
  std::size_t end = std::min(text.find(',', begin), text.size());
  while (has_parameters && end < text.size() && text.find(':', begin) < end) {
    const std::size_t next = std::min(text.find(',', end + 1), text.size());
    const std::size_t equals = text.find('=', end);
    if (equals >= next || text.find(':', end) < equals) break;
    end = next;
  }
  return end;
}

void add_text(SearchAxis& axis, const std::string& text, const std::string& where) {
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = end_of_item(text, begin, axis.key == "machine");
    std::string item = text.substr(begin, end - begin);
    item.erase(0, std::min(item.find_first_not_of(' '), item.size()));
    if (item.empty())
      throw Error(where,
                  begin == 0 || end == text.size() ? "a comma has no value on one side"
                                                   : "a value is missing between the commas",
                  "list the values, such as 1,2,4");
    add_values(axis, item, where);
    begin = end + 1;
  }
}

}  // namespace

void refuse_all_plans(const SearchSpace& space, const PlanRequest& request, const Error& error) {
  const auto is_fixed = [](std::string_view key) {
    if (!key.starts_with(kPlan)) return false;
    key.remove_prefix(kPlan.size());
    return std::ranges::find(kFixedKeys, key) != kFixedKeys.end() &&
           std::ranges::find(kBatchKeys, key) == kBatchKeys.end();
  };
  if (space.bases().size() > 1 || error.keys.empty() || !std::ranges::all_of(error.keys, is_fixed)) return;
  throw Error(place_of(request, error.keys), error.message, error.hint, error.keys);
}

void require_one_plan(const Config& config, std::string_view taker) {
  const std::vector<SearchAxis> axes = search_axes(config);
  // The commas of a topology's parameters: what a machine is, the reader of machines tells.
  if (axes.empty() || names_topology(axes.front().values.front())) return;
  const SearchAxis& axis = axes.front();
  std::string hint = "'armilla search' compares plans with lists, ranges and 'any'";
  if (may_be_list(axis.key) && axis.values.size() > 1)
    hint = fmt::format("together they stand in brackets, '[{}]'; {}", fmt::join(axis.values, ", "), hint);
  throw Error(axis.where, fmt::format("is more than one value, and {} takes one", taker), hint);
}

std::vector<SearchAxis> search_axes(const Config& config) {
  std::vector<SearchAxis> axes;
  const auto look_at = [&](const std::string& key, const Config& value) {
    SearchAxis axis{key, {}, true, value.where(), value.stands_in()};
    if (value.is_list()) {
      const std::vector<Config> items = value.items();
      if (items.empty()) throw Error(value.where(), "the list is empty", "give at least one value");
      if (is_one_value(key, items)) return;
      add_list(axis, items);
    } else if (!value.is_scalar()) {
      return;
    } else if (const std::string text = value.text(); text == "any") {
      if (plan_axis(key) == nullptr)
        throw Error(value.where(), "'any' is not a value of this key",
                    key == "machine" ? "list machines, such as dgx-a100,dgx-h100"
                                     : "list the values, such as 64,128");
      axis.values = {text};
    } else if (lower_case(text) == "any" && plan_axis(key) != nullptr) {
      throw Error(value.where(), fmt::format("unknown value '{}'", text), "did you mean 'any'?");
    } else if (text.find(',') != std::string::npos ||
               (text.find("..") != std::string::npos && key != "machine")) {
      add_text(axis, text, value.where());
    } else {
      return;
    }
    axes.push_back(std::move(axis));
  };
  if (const auto machine = config.find("machine")) look_at("machine", *machine);
  if (const auto plan = config.find("plan"); plan && plan->is_map()) {
    if (const auto ranks = plan->find("ranks")) look_at("plan.ranks", *ranks);
    for (const PlanAxis& axis : plan_axes()) {
      if (const auto value = plan->find(axis.key))
        look_at(std::string(kPlan) + std::string(axis.key), *value);
    }
    for (const std::string_view key : kFixedKeys) {
      if (const auto value = plan->find(key)) refuse_values(*value);
    }
  }
  for (const std::string_view key : kFixedBeside) {
    const auto value = find_at(config, key);
    if (value && value->is_scalar() && value->text().find(':') == std::string::npos) refuse_values(*value);
  }
  return axes;
}

SearchSpace::SearchSpace(const SearchRequest& request) {
  std::vector<const SearchAxis*> outer;
  std::vector<Override> first;
  for (const SearchAxis& axis : request.axes) {
    if (plan_axis(axis.key) == nullptr) outer.push_back(&axis);
    first.push_back(setting(axis, first_value(axis)));
  }
  outer_ = outer.size();
  for (const SearchAxis* axis : outer) axes_.push_back(*axis);

  std::vector<std::size_t> at(outer.size(), 0);
  for (bool more = true; more;) {
    SearchBase base;
    std::vector<Override> settings = first;
    for (std::size_t o = 0; o < outer.size(); ++o) {
      base.values.push_back(outer[o]->values[at[o]]);
      settings.push_back(setting(*outer[o], base.values.back()));
    }
    base.study = request.read(settings);
    // Else each plan would be refused for it.
    check_names(base.study);
    if (const auto schedule = base.study.request.places.find("schedule");
        schedule != base.study.request.places.end())
      find_component("schedule", pipeline_schedules(), base.study.request.plan.schedule, schedule->second);
    SpaceFacts facts = facts_of(base.study);
    base.model = facts.model;
    for (const PlanAxis& row : plan_axes()) {
      const std::string key = std::string(kPlan) + std::string(row.key);
      const SearchAxis* const named = find_axis(request.axes, key);
      // What the study fixes stays as it is.
      if (named == nullptr && base.study.request.places.contains(row.key)) continue;
      const bool fixes_batch = base.study.request.places.contains("micro_batches") ||
                               base.study.request.places.contains("micro_batch");
      if (named == nullptr && row.key == "micro_batch" && fixes_batch) continue;
      if (named == nullptr && row.key == "recompute" &&
          (base.study.request.places.contains("recompute_blocks") ||
           base.study.request.places.contains("recompute_modules")))
        continue;
      // Stages that the user cut by hand are so many.
      if (named == nullptr && row.key == "virtual_stages" && !base.study.request.plan.stage_blocks.empty())
        continue;
      SearchAxis axis{key, {}, named != nullptr, named != nullptr ? named->where : ""};
      axis.values = named == nullptr ? row.usual(facts) : is_any(*named) ? row.any(facts) : named->values;
      if (axis.values.empty()) continue;
      // What later axes may be follows from it.
      if (row.key == "tensor") facts.tensor = axis.values;
      if (row.key == "expert") facts.expert = axis.values;
      std::vector<PlanRequest> choices;
      for (const std::string& value : axis.values) {
        if (row.key == "schedule") {
          find_component("schedule", pipeline_schedules(), value, setting(axis, value).where);
        }
        std::vector<Override> with = settings;
        with.push_back(setting(axis, value));
        choices.push_back(request.read(with).request);
      }
      if (__builtin_mul_overflow(base.points, static_cast<std::int64_t>(axis.values.size()), &base.points) ||
          base.points > kMostPoints)
        throw Error("search", fmt::format("the space has more than {} points", with_separators(kMostPoints)),
                    "fix some keys, or list fewer values");
      base.choices.push_back(std::move(choices));
      base.beyond.push_back(named == nullptr ? larger(row.any(facts), axis.values.back()) : Values{});
      base.inner.push_back(&row);
      base.axes.push_back(std::move(axis));
    }
    bases_.push_back(std::move(base));
    more = false;
    for (std::size_t o = outer.size(); o-- > 0 && !more;) {
      more = ++at[o] < outer[o]->values.size();
      if (!more) at[o] = 0;
    }
  }
  // Values differ between bases where they follow from the ranks.
  for (const SearchBase& base : bases_) {
    for (const SearchAxis& axis : base.axes) {
      const auto known = std::find_if(axes_.begin(), axes_.end(),
                                      [&](const SearchAxis& other) { return other.key == axis.key; });
      if (known == axes_.end()) {
        axes_.push_back(axis);
        continue;
      }
      for (const std::string& value : axis.values) {
        if (std::find(known->values.begin(), known->values.end(), value) == known->values.end())
          known->values.push_back(value);
      }
    }
  }
}

std::int64_t SearchSpace::points() const {
  std::int64_t points = 0;
  for (const SearchBase& base : bases_) points += base.points;
  return points;
}

void SearchSpace::for_each(std::size_t number,
                           const std::function<Onward(std::int64_t, const PlanRequest&, std::int64_t)>& visit,
                           const std::function<void(std::int64_t, const std::string&)>& skip) const {
  const SearchBase& base = bases_[number];
  const std::int64_t ranks = base.study.request.ranks.value_or(rank_count(base.study.machine));
  const bool grows = base.study.machine.elastic && !base.study.request.ranks;
  std::vector<std::int64_t> below(base.inner.size() + 1, 1);
  for (std::size_t a = base.inner.size(); a-- > 0;)
    below[a] = below[a + 1] * static_cast<std::int64_t>(base.choices[a].size());
  const auto cutting = static_cast<std::size_t>(std::ranges::count_if(base.inner, [](const PlanAxis* axis) {
    return static_cast<std::size_t>(axis - plan_axes().data()) < kCuttingAxes;
  }));
  // From this depth on the degrees are known.
  const auto is_degree = [](const PlanAxis* axis) {
    return axis->key == "tensor" || axis->key == "context" || axis->key == "pipeline";
  };
  const auto degrees = static_cast<std::size_t>(
      std::find_if(base.inner.rbegin(), base.inner.rend(), is_degree).base() - base.inner.begin());
  std::int64_t point = 0, passed_over = 0;  // points before which none is visited
  bool goes_on = true;
  PlanRequest so_far = base.study.request;  // of axes beyond the depth it has whatever was there last
  const auto descend = [&](const auto& self, std::size_t depth) -> void {
    const std::int64_t product =
        so_far.tensor.value_or(1) * so_far.context.value_or(1) * so_far.pipeline.value_or(1);
    if (depth >= degrees && !grows && ranks % product != 0) {
      skip(below[depth],
           fmt::format("plan.tensor {} x plan.context {} x plan.pipeline {} does not divide {}",
                       so_far.tensor.value_or(1), so_far.context.value_or(1), so_far.pipeline.value_or(1),
                       ranks == 1 ? "1 rank" : fmt::format("{} ranks", ranks)));
      point += below[depth];
      return;
    }
    if (depth == base.inner.size()) {
      const std::int64_t behind = below[cutting] - 1 - point % below[cutting];
      const Onward onward = visit(point, so_far, behind);
      goes_on = onward != Onward::stop;
      if (onward == Onward::past_cut_alike) passed_over = point + 1 + behind;
      ++point;
      return;
    }
    for (const PlanRequest& choice : base.choices[depth]) {
      if (point + below[depth + 1] <= passed_over) {
        point += below[depth + 1];
        continue;
      }
      if (!goes_on) return;
      base.inner[depth]->copy(choice, so_far);
      self(self, depth + 1);
    }
  };
  descend(descend, 0);
}

std::size_t SearchSpace::value_index(std::size_t number, std::int64_t point, std::size_t axis) const {
  const SearchBase& base = bases_[number];
  for (std::size_t a = base.choices.size(); a-- > axis + 1;)
    point /= static_cast<std::int64_t>(base.choices[a].size());
  return static_cast<std::size_t>(point % static_cast<std::int64_t>(base.choices[axis].size()));
}

PlanRequest SearchSpace::request_of(std::size_t number, std::int64_t point) const {
  const SearchBase& base = bases_[number];
  PlanRequest request = base.study.request;
  for (std::size_t a = 0; a < base.inner.size(); ++a)
    base.inner[a]->copy(base.choices[a][value_index(number, point, a)], request);
  return request;
}

std::int64_t SearchSpace::changed(std::size_t number, std::int64_t point, std::size_t axis,
                                  std::size_t value) const {
  const SearchBase& base = bases_[number];
  std::int64_t stride = 1;
  for (std::size_t a = base.choices.size(); a-- > axis + 1;)
    stride *= static_cast<std::int64_t>(base.choices[a].size());
  const auto now = static_cast<std::int64_t>(value_index(number, point, axis));
  return point + (static_cast<std::int64_t>(value) - now) * stride;
}

std::vector<std::string> SearchSpace::values_of(std::size_t number, std::int64_t point) const {
  const SearchBase& base = bases_[number];
  std::vector<std::string> values = base.values;
  for (std::size_t a = outer_; a < axes_.size(); ++a) {
    const auto own = std::find_if(base.axes.begin(), base.axes.end(),
                                  [&](const SearchAxis& axis) { return axis.key == axes_[a].key; });
    if (own == base.axes.end()) {
      values.emplace_back();
      continue;
    }
    const auto axis = static_cast<std::size_t>(own - base.axes.begin());
    values.push_back(own->values[value_index(number, point, axis)]);
  }
  return values;
}

}  // namespace armilla
