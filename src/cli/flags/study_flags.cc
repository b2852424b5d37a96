#include "cli/flags/study_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/error.h"
#include "cli/flags/fast_forward.h"
#include "cli/flags/model_flags.h"
#include "lower/plan.h"
#include "read/read.h"
#include "read/study.h"
#include "zoo/namesake.h"
#include "zoo/zoo.h"

namespace armilla {

// As a YAML scalar that means exactly this text.
std::string yaml_scalar(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

std::string yaml_list(const std::vector<std::string>& items) {
  std::string list;
  for (const std::string& item : items) list += (list.empty() ? "" : ", ") + yaml_scalar(item);
  return "[" + list + "]";
}

namespace {

// The single values of what stands under `key`: plan={tensor: 2, pipeline: 4} has two.
void collect_values(const Config& config, const std::string& key,
                    std::map<std::string, std::string>& values) {
  if (config.is_map()) {
    for (const std::string& below : config.keys())
      collect_values(config.at(below), key + "." + below, values);
  } else if (config.is_list()) {
    values[key] = fmt::format("a list of {}", config.items().size());
    for (std::size_t i = 0; const Config& item : config.items())
      collect_values(item, fmt::format("{}.{}", key, i++), values);
  } else {
    values[key] = config.is_scalar() ? config.text() : std::string();
  }
}

// That a setting "KEY=VALUE" gives, by key; none where it is malformed, which its reader says.
std::map<std::string, std::string> values_of(const std::string& setting) {
  std::map<std::string, std::string> values;
  const std::size_t equals = setting.find('=');
  if (equals == std::string::npos) return values;
  try {
    const Config config = Config::parse("value: " + setting.substr(equals + 1), "--set");
    collect_values(config.at("value"), setting.substr(0, equals), values);
  } catch (const Error&) {
    values.clear();
  }
  return values;
}

}  // namespace

void refuse_two_values(const std::vector<Override>& settings) {
  const auto typed = [](const Override& one) {
    return one.where.empty() ? fmt::format("--set {:.100}", one.setting) : one.where;
  };
  std::map<std::string, std::pair<std::string, const Override*>> known;  // by key: the first value
  for (const Override& setting : settings) {
    for (const auto& [key, value] : values_of(setting.setting)) {
      const auto [before, is_new] = known.emplace(key, std::pair(value, &setting));
      if (is_new || before->second.first == value) continue;
      throw Error(typed(setting),
                  fmt::format("is given beside {}, and both set {}", typed(*before->second.second), key),
                  "give one of them");
    }
  }
}

namespace {

enum class Value { scalar, list };

struct StudyFlag {
  std::string_view flag;
  std::string_view key;
  std::string_view type;
  std::string_view help;
  Value value = Value::scalar;
  std::string_view tried = {};  // the help of commands that try several values where nobody names one
};

// Flags are settings of a study: each names the key it stands for, so both have one reader and the same
// messages.
constexpr std::array kStudyFlags = {
    StudyFlag{"--ranks", "plan.ranks", "N", "devices that take part (default: the whole machine)"},
    StudyFlag{"--tp", "plan.tensor", "N", "tensor parallelism: ranks that share every layer"},
    StudyFlag{"--pp", "plan.pipeline", "N", "pipeline parallelism: ranks that share the layers out"},
    StudyFlag{"--dp", "plan.data", "N", "data parallelism (default: what the other degrees leave)"},
    StudyFlag{"--cp", "plan.context", "N", "context parallelism: ranks that share every sequence"},
    StudyFlag{"--ep", "plan.expert", "N", "expert parallelism: ranks that share the experts out"},
    StudyFlag{"--etp", "plan.expert_tensor", "N", "tensor parallelism of the experts (default: --tp)",
              Value::scalar, "tensor parallelism of the experts (default: tries 1 and --tp)"},
    StudyFlag{"--vpp", "plan.virtual_stages", "N", "model chunks per pipeline rank (default 1)",
              Value::scalar, "model chunks per pipeline rank (default: tries 1, 2 and 4)"},
    StudyFlag{"--schedule", "plan.schedule", "NAME",
              "order of micro-batches in the pipeline (armilla list schedules)"},
    StudyFlag{"--stage-blocks", "plan.stage_blocks", "N,N,...",
              "blocks of every stage, 'even', or 'balanced' by cost (default: even)", Value::list},
    StudyFlag{"--rank-order", "plan.order", "AXES",
              "axes on the machine, innermost first (default tensor-context-data-pipeline)"},
    StudyFlag{"--batch", "plan.batch", "N",
              "samples per replica and iteration (default 32; of described models 1 per micro-batch)"},
    StudyFlag{"--global-batch", "plan.global_batch", "N",
              "samples of all replicas together, instead of --batch"},
    StudyFlag{"--micro-batch", "plan.micro_batch", "N",
              "samples of one micro-batch of a replica (default: what --micro-batches leaves)", Value::scalar,
              "samples of one micro-batch of a replica (default: tries powers of two)"},
    StudyFlag{"--micro-batches", "plan.micro_batches", "N",
              "micro-batches per iteration (default 1; in a pipeline up to 4 per stage)", Value::scalar,
              "micro-batches per iteration (default: what --micro-batch leaves)"},
    StudyFlag{"--seq", "model.sequence", "N", "tokens per sample (default: the model's own)"},
    StudyFlag{"--tokens", "training.tokens", "N",
              "tokens of the whole training, such as 15T: days and device hours"},
    StudyFlag{"--samples", "training.samples", "N", "likewise samples, such as 115M"},
    StudyFlag{"--price", "machine.device.price", "PRICE",
              "of the machine's usual device for an hour, such as 2.5USD/h (default: as the machine says, "
              "where it does)"},
    StudyFlag{"--context-method", "plan.context_method", "NAME", "ring or all-to-all (default ring)"},
    StudyFlag{"--expert-load", "plan.expert_load", "NAME",
              "tokens of the experts: uniform, zipf or random (default uniform)"},
    StudyFlag{"--expert-skew", "plan.expert_skew", "X",
              "exponent or deviation of that distribution (default: zipf 1, random 0.2)"},
    StudyFlag{
        "--expert-dispatch", "plan.expert_dispatch", "NAME",
        "copies of a token: per-expert, deduplicated, one-hot or sorted (default: as the model routes)"},
    StudyFlag{"--dispatch-type", "plan.dispatch_type", "TYPE",
              "of tokens on their way to experts (default: as the model says)"},
    StudyFlag{"--seed", "plan.seed", "N", "of random expert loads (default 1)"},
    StudyFlag{"--zero", "plan.zero", "STAGE", "ZeRO stage, 0 to 3 (default 0)", Value::scalar,
              "ZeRO stage, 0 to 3 (default: tries 0 and 1)"},
    StudyFlag{"--hybrid-shard", "plan.hybrid_shard", "N",
              "shard within groups of so many ranks of --dp x --cp (default: over all)"},
    StudyFlag{"--recompute", "plan.recompute", "NAME",
              "none, selective, operators, full, block or block:N (default none)", Value::scalar,
              "none, selective, operators, full, block or block:N (default: tries none, selective and full)"},
    StudyFlag{"--recompute-blocks", "plan.recompute_blocks", "N",
              "recompute the first blocks of every model chunk"},
    StudyFlag{"--recompute-modules", "plan.recompute_modules", "NAME,...",
              "with selective: core_attn, layernorm, mla_up_proj, mlp, moe, moe_act, shared_experts",
              Value::list},
    StudyFlag{"--offload", "plan.offload", "WHAT",
              "optimizer, activations or optimizer,activations, to the CPU's memory", Value::list},
    StudyFlag{"--precision", "plan.precision", "TYPE",
              "of compute and activations: fp32, tf32, bf16, fp16, fp8 ..."},
    StudyFlag{"--optimizer", "plan.optimizer", "NAME", "sgd, momentum or adam"},
    StudyFlag{"--bucket", "plan.bucket", "SIZE", "gradient bucket (default 25MiB)"},
    StudyFlag{"--first-bucket", "plan.first_bucket", "SIZE", "the first gradient bucket (default 1MiB)"},
    StudyFlag{"--framework", "plan.framework", "NAME",
              "whose kernels and buffers: megatron or pytorch (default megatron)"},
    StudyFlag{"--host", "plan.host", "NAME",
              "how the CPU issues kernels: eager or compiled (default: eager on GPUs)"},
    StudyFlag{"--compute", "compute", "MODEL",
              "compute model, such as roofline or systolic:rows=128,dataflow=os (default kernels)"},
    StudyFlag{
        "--profile", "profile", "FILE",
        "measured times of computations: a table (armilla events --csv) or a database (armilla profile)"},
    StudyFlag{"--network", "network", "MODEL", "network model (default analytical, of graphs of links flow)"},
    StudyFlag{"--fail-link", "what_if.failed_links", "A-B[=SHARE],...",
              "links of the machine's graph that fail, or carry a share: leaf0-spine1,leaf0-spine2=0.5",
              Value::list},
    StudyFlag{"--decomposition", "collectives.decomposition", "NAME",
              "multi-axis, bandwidth-aware, baseline or flat"},
    StudyFlag{"--chunks", "collectives.chunks", "N", "pieces of a collective (default: by its size)"},
    StudyFlag{"--active-chunks", "collectives.active_chunks", "N",
              "chunks at once per rank and dimension (default 4)"},
    StudyFlag{"--chunk-order", "collectives.order", "NAME", "fifo, lifo or priority (default fifo)"},
};

// Flags that take no value: they set their key to true.
struct Switch {
  std::string_view flag;
  std::string_view key;
  std::string_view help;
};
constexpr std::array kSwitches = {
    Switch{"--sequence-parallel", "plan.sequence_parallel",
           "share norms and residuals out among tensor ranks"},
    Switch{"--overlap-tensor", "plan.overlap_tensor",
           "tensor-parallel communication beside the products it feeds"},
};

// "plan.zero any" in hints, as it is typed where no flag stands for the key.
void write_any(std::string& text, bool study) {
  constexpr std::string_view kKey = "plan.", kAny = " any";
  for (std::size_t at = 0; (at = text.find(kAny, at)) != std::string::npos; at += kAny.size()) {
    const std::size_t before = text.find_last_of(" (", at - 1);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    if (at == 0 || text.compare(begin, kKey.size(), kKey) != 0) continue;
    text.replace(at, 1, study ? ": " : "=");
    if (!study) text.insert(begin, "--set ");
  }
}

// Messages name keys; whoever typed flags is to read flags.
void replace_key(std::string& text, std::string_view key, std::string_view flag) {
  for (std::size_t at = 0; (at = text.find(key, at)) != std::string::npos;) {
    const std::size_t end = at + key.size();
    // "--set plan.batch=4" is to be typed as it stands.
    if (end < text.size() && text[end] == '=') {
      at = end;
      continue;
    }
    const auto belongs = [](char c) { return (c >= 'a' && c <= 'z') || c == '_' || c == '.' || c == '-'; };
    const bool starts = at == 0 || !belongs(text[at - 1]);
    // A full stop after a key ends a sentence.
    const bool ends = end == text.size() || !belongs(text[end]) || text.compare(end, 2, ". ") == 0;
    if (starts && ends) {
      text.replace(at, key.size(), flag);
      at += flag.size();
    } else {
      at = end;
    }
  }
}

// "a,b" or "[a, b]" as a list; a single word stays one, which is how a list's alternative is written.
std::string yaml_value(const StudyFlag& flag, std::string_view text) {
  // A list of lists is YAML as it stands.
  if (flag.value == Value::list && text.starts_with('[') && text.ends_with(']') &&
      text.find('[', 1) < text.size())
    return std::string(text);
  if (flag.value == Value::list && text.starts_with('[') && text.ends_with(']')) {
    text.remove_prefix(1);
    text.remove_suffix(1);
  }
  const bool digits = text.find_first_not_of("0123456789") == std::string_view::npos;
  if (flag.value == Value::scalar || (text.find(',') == std::string_view::npos && !digits))
    return yaml_scalar(text);
  std::vector<std::string> items;
  const auto add = [&](std::string_view item) {
    item.remove_prefix(std::min(item.find_first_not_of(' '), item.size()));
    items.emplace_back(item);
  };
  for (std::size_t comma; (comma = text.find(',')) != std::string_view::npos; text.remove_prefix(comma + 1))
    add(text.substr(0, comma));
  add(text);
  return yaml_list(items);
}

}  // namespace

void StudyFlags::declare(CLI::App& app, StudyDefaults defaults) {
  app.add_option("input", input, "a model (zoo name, ONNX file, description or config.json) or a study file")
      ->type_name("MODEL|STUDY")
      ->required();
  app.add_option("--machine", machine, "a machine by name or file (armilla list machines)")
      ->type_name("NAME|FILE");
  values.resize(kStudyFlags.size());
  for (std::size_t i = 0; i < kStudyFlags.size(); ++i) {
    const bool tries = defaults == StudyDefaults::tried && !kStudyFlags[i].tried.empty();
    app.add_option(std::string(kStudyFlags[i].flag), values[i],
                   std::string(tries ? kStudyFlags[i].tried : kStudyFlags[i].help))
        ->type_name(std::string(kStudyFlags[i].type))
        ->group("Study");
  }
  for (std::size_t i = 0; i < kSwitches.size(); ++i) {
    app.add_flag(std::string(kSwitches[i].flag), switches[i], std::string(kSwitches[i].help))->group("Study");
  }
  declare_fast_forward(app, fast_forward);
  app.get_option("--fast-forward")->group("Study");
  app.add_flag("--fsdp", fsdp, "fully sharded data parallelism: --zero 3")->group("Study");
  app.add_option("--algorithm", algorithms,
                 "collective algorithm: one for all dimensions, or one each, innermost first")
      ->type_name("NAME")
      ->delimiter(';')
      ->group("Study");
  app.add_flag("--no-overlap", no_overlap, "exchange gradients only after the backward pass")->group("Study");
  app.add_option("--dim", dimensions, "size of a symbolic dimension of the model")
      ->type_name("NAME=SIZE")
      ->allow_extra_args(false)
      ->group("Study");
  app.add_option("--set", settings, "any key of the study, over the file")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false)
      ->group("Study");
}

std::function<Config(const std::vector<Override>&)> StudyFlags::configurations(
    std::string_view command) const {
  std::vector<Override> overrides;
  const auto set = [&](std::string_view key, const std::string& value, const std::string& flag) {
    overrides.emplace_back(fmt::format("{}={}", key, value), flag);
  };
  const auto sets = [&](std::string_view key) {
    return std::any_of(settings.begin(), settings.end(),
                       [&](const std::string& setting) { return setting.starts_with(key); });
  };
  const bool study = holds_study(input);
  if (study) require_study(Config::read(input));  // settings would only hide that it holds no keys
  if (!study) set("model.name", yaml_scalar(input), std::string(command));
  if (!machine.empty()) set("machine", yaml_scalar(machine), "--machine " + machine);
  if (!study && machine.empty() && !sets("machine")) {
    is_described(input);  // what is no model at all needs no machine
    throw Error(std::string(command), "--machine is missing",
                "name one, such as dgx-a100 ('armilla list machines'), or give a study file");
  }
  if (fsdp) set("plan.zero", "3", "--fsdp");
  for (std::size_t i = 0; i < kStudyFlags.size(); ++i) {
    if (fsdp && kStudyFlags[i].flag == "--zero" && !values[i].empty() && values[i] != "3")
      throw Error("--zero " + values[i], "cannot be combined with --fsdp, which is --zero 3",
                  "give one of them");
    if (!values[i].empty())
      set(kStudyFlags[i].key, yaml_value(kStudyFlags[i], values[i]),
          fmt::format("{} {}", kStudyFlags[i].flag, values[i]));
  }
  for (std::size_t i = 0; i < kSwitches.size(); ++i) {
    if (switches[i]) set(kSwitches[i].key, "true", std::string(kSwitches[i].flag));
  }
  // Commas separate the parameters of one algorithm, so that algorithms are told apart by semicolons.
  if (!algorithms.empty()) set("collectives.algorithms", yaml_list(algorithms), "--algorithm");
  if (no_overlap) set("plan.overlap", "false", "--no-overlap");
  for (const auto& [name, size] : parse_dimensions(dimensions)) {
    const std::string flag = fmt::format("--dim {}={}", name, size);
    if (name.find('.') != std::string::npos)
      throw Error(flag, "the name contains a dot", "put it under model.dimensions in a study file");
    set("model.dimensions." + name, fmt::format("{}", size), flag);
  }
  overrides.insert(overrides.end(), settings.begin(), settings.end());
  if (!study) {
    for (const std::string& setting : settings) {
      const std::string_view key = std::string_view(setting).substr(0, setting.find('='));
      if (key == "model" || key == "model.name")
        throw Error(fmt::format("--set {:.100}", setting), fmt::format("is given beside the model {}", input),
                    "give one of them");
    }
  }
  refuse_two_values(overrides);
  sort_upper_first(overrides);
  const Config given = study ? Config::read(input, overrides, expand_name)
                             : Config::parse("", "command line", overrides, expand_name);
  if (!fast_forward)
    return [given](const std::vector<Override>& more) { return given.with(more, expand_name); };
  return [given](const std::vector<Override>& more) {
    const Config config = given.with(more, expand_name);
    const std::optional<Config> network = config.find("network");
    const bool is_name = !network || network->is_scalar();
    const std::string name = !network  ? "analytical"
                             : is_name ? network->text()
                                       : network->at("model").text();
    const std::string fast = with_fast_forward(name);
    return config.with(
        {{is_name ? "network=" + yaml_scalar(fast) : "network.fast-forward=true", "--fast-forward"}});
  };
}

std::string StudyFlags::as_typed(std::string_view text) const {
  std::string typed(text);
  const bool study = holds_study(input);
  const auto put = [&](std::string_view key, std::string_view flag, bool given) {
    // Keys of one word ("compute", "network") are words of any sentence, too.
    if (key.find('.') == std::string_view::npos) return;
    // By --set plan.batch=4, or as one of the map of --set plan={batch: 4}.
    const bool set = std::any_of(settings.begin(), settings.end(), [&](std::string_view setting) {
      const std::string_view name = setting.substr(0, setting.find('='));
      return key == name || (key.starts_with(name) && key[name.size()] == '.');
    });
    if (!set && (given || !study)) replace_key(typed, key, flag);
  };
  for (std::size_t i = 0; i < kStudyFlags.size(); ++i)
    put(kStudyFlags[i].key, kStudyFlags[i].flag, i < values.size() && !values[i].empty());
  for (std::size_t i = 0; i < kSwitches.size(); ++i) put(kSwitches[i].key, kSwitches[i].flag, switches[i]);
  write_any(typed, study);
  return typed;
}

Error StudyFlags::as_typed(const Error& error) const {
  std::string where = error.where, message = as_typed(error.message);
  // "--tp 6: --tp 6 does not divide ...", "--vpp 3: --schedule zb-v with --vpp 3" and "study.yaml:3:5:
  // plan.tensor: plan.tensor 6 does not ..." say it twice.
  const std::size_t last = where.rfind(": ");
  const std::string_view name = std::string_view(where).substr(last == std::string::npos ? 0 : last + 2);
  const std::size_t said = name.empty() ? std::string::npos : message.find(name);
  const bool flag_and_value = name.starts_with("--") && name.find(' ') != std::string_view::npos;
  const std::size_t end = said == std::string::npos ? 0 : said + name.size();
  const bool whole = said != std::string::npos && (said == 0 || message[said - 1] == ' ') &&
                     (end == message.size() ? flag_and_value : message[end] == ' ');
  const bool flags_alone = where == kWholePlan && message.starts_with("--");  // "plan: --ranks 1000000000"
  if (flags_alone || (whole && (said == 0 || flag_and_value)))
    where.resize(last == std::string::npos ? 0 : last);
  return Error(where, message, as_typed(error.hint), error.keys);
}

std::string links_note(const Config& config) {
  const std::optional<Config> machine = config.find("machine");
  if (!machine || machine->is_list() || (machine->is_scalar() && !is_path(machine->text()))) return {};
  if (machine->is_scalar() && machine->text().find(',') != std::string::npos) return {};
  std::vector<std::string> notes;
  if (machine->is_scalar()) {
    load_machine(name_or_path(*machine), machine->where(), &notes);
  } else {
    read_machine(*machine, &notes);
  }
  return notes.empty() ? std::string() : notes.front();
}

std::string hidden_by_machine(const Config& config) {
  const auto machine = config.find("machine");
  if (!machine || !machine->is_scalar() || is_path(machine->text())) return {};
  return namesake_note(machine->text(), "a machine that is compiled in");
}

}  // namespace armilla
