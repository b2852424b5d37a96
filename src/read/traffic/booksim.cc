#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/suggest.h"
#include "base/text.h"
#include "base/units_text.h"
#include "read/file_format.h"
#include "read/traffic.h"

namespace armilla {
namespace {

struct Assignment {
  std::string value;
  std::string where;  // "file:3: k"
};

class BooksimText {
 public:
  BooksimText(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  // "key = value;" up to the end; the last value of a key counts, as in BookSim.
  std::map<std::string, Assignment> assignments() {
    std::map<std::string, Assignment> found;
    for (skip(); at_ < text_.size(); skip()) {
      const std::string place = here();
      const std::string key = word();
      if (key.empty()) throw Error(place, fmt::format("expected a key, found '{}'", text_[at_]), kForm);
      expect('=', key);
      skip();
      const std::string value = text_.substr(at_, 1) == "{" ? list() : word();
      if (value.empty()) throw Error(place + ": " + key, "has no value", kForm);
      expect(';', key);
      found[key] = {value, place + ": " + key};
    }
    return found;
  }

 private:
  static constexpr const char* kForm = "statements are: key = value;";

  std::string here() const { return fmt::format("{}:{}", name_, line_); }
  void skip() {
    while (at_ < text_.size()) {
      if (text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (kBlank.find(text_[at_]) != kBlank.npos) {
        line_ += text_[at_++] == '\n' ? 1 : 0;
      } else {
        break;
      }
    }
  }
  std::string word() {
    std::string result;
    while (at_ < text_.size() && text_.substr(at_, 2) != "//" &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
            std::string_view("_-+./(){,}").find(text_[at_]) != std::string_view::npos))
      result += text_[at_++];
    return result;
  }
  // "{5}", "{1,2}" as one word.
  std::string list() {
    const std::size_t end = text_.find('}', at_);
    if (end == text_.npos) throw Error(here(), "a list has no end", kForm);
    const std::string result(text_.substr(at_, end + 1 - at_));
    at_ = end + 1;
    return result;
  }
  void expect(char c, const std::string& key) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c)
      throw Error(here() + ": " + key,
                  at_ >= text_.size() ? fmt::format("expected '{}', the file ends", c)
                                      : fmt::format("expected '{}', found '{}'", c, text_[at_]),
                  kForm);
    ++at_;
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
};

template <class Value>
struct Named {
  std::string_view name;
  Value value;
};
constexpr std::array kTopologyKeys = {Named{"mesh", FlitTopology::mesh}, Named{"torus", FlitTopology::torus},
                                      Named{"fattree", FlitTopology::fat_tree},
                                      Named{"dragonflynew", FlitTopology::dragonfly}};
constexpr std::array kPatterns = {
    Named{"uniform", FlitPattern::uniform},    Named{"transpose", FlitPattern::transpose},
    Named{"tornado", FlitPattern::tornado},    Named{"bitcomp", FlitPattern::bit_complement},
    Named{"bitrev", FlitPattern::bit_reverse}, Named{"shuffle", FlitPattern::shuffle},
    Named{"neighbor", FlitPattern::neighbor}};
constexpr std::array kAllocators = {Named{"islip", FlitAllocator::islip},
                                    Named{"separable_input_first", FlitAllocator::separable_input_first},
                                    Named{"separable_output_first", FlitAllocator::separable_output_first},
                                    Named{"wavefront", FlitAllocator::wavefront},
                                    Named{"pim", FlitAllocator::pim}};
constexpr std::array kMeasures = {Named{"latency", true}, Named{"throughput", false}};

// What a topology can be routed by.
struct Routing {
  std::string_view name;
  FlitTopology topology;
  FlitRouting routing;
};
constexpr std::array kRoutings = {
    Routing{"dor", FlitTopology::mesh, FlitRouting::dimension_order},
    Routing{"dim_order", FlitTopology::mesh, FlitRouting::dimension_order},
    Routing{"dim_order", FlitTopology::torus, FlitRouting::dimension_order},
    Routing{"nca", FlitTopology::fat_tree, FlitRouting::nearest_common_ancestor},
    Routing{"min", FlitTopology::dragonfly, FlitRouting::minimal}};

// What else BookSim has under the same keys (InitializeRoutingMap, Network::New, InitializeTrafficMap and
// NewAllocator of its source).
struct Unmodelled {
  std::string_view key, value;
};
constexpr std::array kUnmodelled = {
    Unmodelled{"topology", "cmesh"},
    Unmodelled{"topology", "fly"},
    Unmodelled{"topology", "qtree"},
    Unmodelled{"topology", "tree4"},
    Unmodelled{"topology", "flatfly"},
    Unmodelled{"topology", "anynet"},
    Unmodelled{"routing_function", "anca"},
    Unmodelled{"routing_function", "xy_yx"},
    Unmodelled{"routing_function", "adaptive_xy_yx"},
    Unmodelled{"routing_function", "romm"},
    Unmodelled{"routing_function", "romm_ni"},
    Unmodelled{"routing_function", "min_adapt"},
    Unmodelled{"routing_function", "planar_adapt"},
    Unmodelled{"routing_function", "dim_order_ni"},
    Unmodelled{"routing_function", "dim_order_pni"},
    Unmodelled{"routing_function", "dim_order_bal"},
    Unmodelled{"routing_function", "valiant"},
    Unmodelled{"routing_function", "valiant_ni"},
    Unmodelled{"routing_function", "chaos"},
    Unmodelled{"routing_function", "ugal"},
    Unmodelled{"traffic", "randperm"},
    Unmodelled{"traffic", "diagonal"},
    Unmodelled{"traffic", "asymmetric"},
    Unmodelled{"traffic", "taper64"},
    Unmodelled{"traffic", "bad_dragon"},
    Unmodelled{"traffic", "hotspot"},
    Unmodelled{"allocator", "max_size"},
    Unmodelled{"allocator", "loa"},
    Unmodelled{"allocator", "fair_wavefront"},
    Unmodelled{"allocator", "prio_wavefront"},
    Unmodelled{"allocator", "rr_wavefront"},
    Unmodelled{"allocator", "select"},
};

// "did you mean" is for misspellings, not for what BookSim has and this has not.
std::string hint_for(std::string_view key, std::string_view value,
                     const std::vector<std::string_view>& modelled) {
  const std::string_view kind = key.ends_with("_allocator") ? key.substr(key.find('_') + 1) : key;
  const bool known = std::ranges::any_of(
      kUnmodelled, [&](const Unmodelled& one) { return one.key == kind && one.value == value; });
  return known ? fmt::format("known: {}", fmt::join(modelled, ", ")) : suggest(value, modelled);
}

// Keys of BookSim of which one value is modelled, which is its default.
struct FixedKey {
  std::string_view key, value;
};
constexpr std::array kFixed = {
    FixedKey{"router", "iq"},
    FixedKey{"c", "1"},
    FixedKey{"xr", "1"},
    FixedKey{"subnets", "1"},
    FixedKey{"classes", "1"},
    FixedKey{"sim_count", "1"},
    FixedKey{"input_speedup", "1"},
    FixedKey{"output_speedup", "1"},
    FixedKey{"output_buffer_size", "-1"},
    FixedKey{"buf_size", "-1"},
    FixedKey{"buffer_policy", "private"},
    FixedKey{"priority", "none"},
    FixedKey{"injection_process", "bernoulli"},
    FixedKey{"include_queuing", "1"},
    FixedKey{"measure_stats", "1"},
    FixedKey{"packet_size_rate", "1"},
    FixedKey{"use_read_write", "0"},
    FixedKey{"link_failures", "0"},
    FixedKey{"noq", "0"},
    FixedKey{"vc_busy_when_full", "0"},
    FixedKey{"vc_prioritize_empty", "0"},
    FixedKey{"vc_shuffle_requests", "0"},
    FixedKey{"spec_check_elig", "1"},
    FixedKey{"spec_check_cred", "1"},
    FixedKey{"spec_sw_allocator", "prio"},
    FixedKey{"arb_type", "round_robin"},
};

// Keys of BookSim that change nothing of what is reported here: what it prints and traces, power, and what
// belongs to features that a fixed key excludes.
constexpr std::array<std::string_view, 66> kIdle = {"print_activity",
                                                    "print_csv_results",
                                                    "viewer_trace",
                                                    "watch_file",
                                                    "watch_flits",
                                                    "watch_packets",
                                                    "watch_transactions",
                                                    "watch_out",
                                                    "stats_out",
                                                    "pair_stats",
                                                    "deadlock_warn_timeout",
                                                    "sent_packets_out",
                                                    "sim_power",
                                                    "power_output_file",
                                                    "tech_file",
                                                    "channel_width",
                                                    "channel_sweep",
                                                    "network_file",
                                                    "channel_file",
                                                    "x",
                                                    "y",
                                                    "yr",
                                                    "fail_seed",
                                                    "in_ports",
                                                    "out_ports",
                                                    "output_delay",
                                                    "spec_mask_by_reqs",
                                                    "vc_priority_donation",
                                                    "private_bufs",
                                                    "private_buf_size",
                                                    "private_buf_start_vc",
                                                    "private_buf_end_vc",
                                                    "max_held_slots",
                                                    "feedback_aging_scale",
                                                    "feedback_offset",
                                                    "vct",
                                                    "class_priority",
                                                    "perm_seed",
                                                    "burst_alpha",
                                                    "burst_beta",
                                                    "burst_r1",
                                                    "batch_size",
                                                    "batch_count",
                                                    "max_outstanding_requests",
                                                    "write_fraction",
                                                    "read_request_begin_vc",
                                                    "read_request_end_vc",
                                                    "write_request_begin_vc",
                                                    "write_request_end_vc",
                                                    "read_reply_begin_vc",
                                                    "read_reply_end_vc",
                                                    "write_reply_begin_vc",
                                                    "write_reply_end_vc",
                                                    "read_request_subnet",
                                                    "read_reply_subnet",
                                                    "write_request_subnet",
                                                    "write_reply_subnet",
                                                    "read_request_size",
                                                    "write_request_size",
                                                    "read_reply_size",
                                                    "write_reply_size",
                                                    "injected_flits_out",
                                                    "received_flits_out",
                                                    "used_credits_out",
                                                    "free_credits_out",
                                                    "max_credits_out"};

class BooksimReader {
 public:
  BooksimReader(std::string_view text, const std::string& name)
      : name_(name), given_(BooksimText(text, name).assignments()) {}

  BooksimConfig read() {
    BooksimConfig config;
    FlitStudy& study = config.study;
    topology(study);
    study.long_links = flag("use_noc_latency", true);
    router(study.router);
    measuring(study.measuring);
    study.seed =
        whole("seed", 0, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max());
    traffic(study.traffic);
    config.notes = std::move(notes_);
    if (std::string idle = rest(); !idle.empty()) config.notes.push_back(std::move(idle));
    // Behind `rest`, which still calls it idle: no figure of the run depends on it.
    config.channel_bits = whole("channel_width", 128, 1, 1 << 20);
    return config;
  }

 private:
  void topology(FlitStudy& study) {
    study.topology = named("topology", kTopologyKeys, FlitTopology::torus);
    study.k = whole("k", 8, 1, 1 << 20);
    study.n = whole("n", 2, 1, 64);
    std::vector<std::string_view> known;
    const std::string name = text("routing_function", "none");
    std::optional<FlitRouting> routing;
    for (const Routing& one : kRoutings) {
      if (one.topology != study.topology) continue;
      known.push_back(one.name);
      if (one.name == name) routing = one.routing;
    }
    const std::string topology = text("topology", "torus");
    if (!routing)
      throw Error(where("routing_function"),
                  is_given("routing_function")
                      ? fmt::format("no routing '{}' of a {} is modelled", name, topology)
                      : "is missing",
                  is_given("routing_function")
                      ? hint_for("routing_function", name, known)
                      : fmt::format("with topology {}: routing_function = {};", topology, known.front()));
    study.routing = *routing;
  }

  void router(FlitRouter& router) {
    router.virtual_channels = whole("num_vcs", 16, 1, 256);
    router.buffer = whole("vc_buf_size", 8, 1, 32768);
    router.routing_delay = whole("routing_delay", 1, 0, kMostDelay);
    router.vc_allocation_delay = whole("vc_alloc_delay", 1, 1, kMostDelay);
    router.switch_allocation_delay = whole("sw_alloc_delay", 1, 1, kMostDelay);
    router.traversal_delay =
        whole("st_prepare_delay", 0, 0, kMostDelay) + whole("st_final_delay", 1, 0, kMostDelay);
    if (router.traversal_delay < 1)
      throw Error(where("st_final_delay"), "the switch takes no time: st_prepare_delay + st_final_delay is 0",
                  "at least 1");
    router.credit_delay = whole("credit_delay", 0, 0, kMostDelay);
    // BookSim takes fractions of a step by adding them up from cycle to cycle.
    const double speedup = number("internal_speedup", 1, 1, 16);
    if (speedup != std::floor(speedup))
      throw Error(where("internal_speedup"), "a fraction of a step is not modelled",
                  "a whole number, 1 to 16");
    router.speedup = static_cast<std::int64_t>(speedup);
    router.speculative = flag("speculative", false);
    router.atomic_vcs = flag("wait_for_tail_credit", false);
    router.hold_switch = flag("hold_switch_for_packet", false);
    router.vc_allocator = allocator("vc_allocator", router.vc_allocator_iterations);
    router.switch_allocator = allocator("sw_allocator", router.switch_allocator_iterations);
    // BookSim's router creates its allocators without the configuration, and with it without this key.
    if (const std::int64_t iterations = whole("alloc_iters", 1, 1, kMostIterations); iterations > 1)
      notes_.push_back(
          fmt::format("alloc_iters = {0} has no effect, as in BookSim: vc_allocator = islip({0}); and "
                      "sw_allocator = islip({0}); have",
                      iterations));
  }

  void measuring(FlitMeasuring& measuring) {
    measuring.sample_cycles = whole("sample_period", 1000, 1, 1'000'000'000);
    measuring.warm_up_samples = whole("warmup_periods", 3, 0, 1'000'000);
    measuring.most_samples = whole("max_samples", 10, 1, 1'000'000);
    if (measuring.most_samples <= measuring.warm_up_samples)
      throw Error(where("max_samples"),
                  fmt::format("{} at most, of which the warm-up takes {}: none is measured",
                              typed_count(measuring.most_samples, "sample"), measuring.warm_up_samples),
                  "raise max_samples");
    measuring.latency = named("sim_type", kMeasures, true);
    measuring.saturated_latency = number("latency_thres", 500, -1, 1e18);
    measuring.warm_up_latency_change = number("warmup_thres", 0.05, -1, 1e18);
    measuring.warm_up_throughput_change = number("acc_warmup_thres", 0.05, -1, 1e18);
    measuring.latency_change = number("stopping_thres", 0.05, -1, 1e18);
    measuring.throughput_change = number("acc_stopping_thres", 0.05, -1, 1e18);
  }

  void traffic(FlitTraffic& traffic) {
    traffic.pattern = named("traffic", kPatterns, FlitPattern::uniform);
    traffic.packet_flits = whole("packet_size", 1, 1, 1'000'000);
    const bool of_flits = flag("injection_rate_uses_flits", false);
    const double rate = number("injection_rate", 0.1, 0, 1e9);
    traffic.packets_per_node_cycle = rate / (of_flits ? static_cast<double>(traffic.packet_flits) : 1.0);
    if (rate <= 0) throw Error(where("injection_rate"), "offers no traffic", "above 0");
    if (traffic.packets_per_node_cycle > 1)
      throw Error(where("injection_rate"),
                  fmt::format("is {} packets per node and cycle", traffic.packets_per_node_cycle),
                  "at most 1");
  }

  // Of keys that were not asked for.
  std::string rest() {
    std::vector<std::string_view> known(kIdle.begin(), kIdle.end());
    known.insert(known.end(), asked_.begin(), asked_.end());
    for (const FixedKey& fixed : kFixed) known.push_back(fixed.key);
    std::string idle;
    for (const auto& [key, assignment] : given_) {
      const auto fixed =
          std::find_if(kFixed.begin(), kFixed.end(), [&](const FixedKey& one) { return one.key == key; });
      if (fixed != kFixed.end()) {
        if (value_of(assignment) != fixed->value)
          throw Error(assignment.where, fmt::format("'{}' is not modelled", assignment.value),
                      fmt::format("{} = {};", key, fixed->value));
      } else if (std::find(kIdle.begin(), kIdle.end(), key) != kIdle.end()) {
        idle += (idle.empty() ? "" : ", ") + key;
      } else if (std::find(asked_.begin(), asked_.end(), key) == asked_.end()) {
        const std::string hint = suggest(key, known);
        throw Error(assignment.where, "is not a key of BookSim",
                    hint.starts_with("did") ? hint : "docs/net.md has the keys");
      }
    }
    if (idle.empty()) return {};
    return "without effect here: " + idle;
  }

  bool is_given(std::string_view key) const { return given_.find(std::string(key)) != given_.end(); }
  std::string where(std::string_view key) const {
    const auto found = given_.find(std::string(key));
    return found == given_.end() ? fmt::format("{}: {}", name_, key) : found->second.where;
  }
  // A list of one is that one.
  static std::string value_of(const Assignment& assignment) {
    const std::string& value = assignment.value;
    if (value.size() > 2 && value.front() == '{' && value.back() == '}' && value.find(',') == value.npos)
      return std::string(trimmed(std::string_view(value).substr(1, value.size() - 2)));
    return value;
  }
  std::string text(std::string_view key, std::string_view otherwise) {
    asked_.push_back(key);
    const auto found = given_.find(std::string(key));
    return found == given_.end() ? std::string(otherwise) : value_of(found->second);
  }
  double number(std::string_view key, double otherwise, double least, double most) {
    asked_.push_back(key);
    if (!is_given(key)) return otherwise;
    const double value = parse_real(value_of(given_.at(std::string(key))), where(key));
    if (value < least || value > most)
      throw Error(where(key), fmt::format("'{}' is out of range", given_.at(std::string(key)).value),
                  most < 1e9     ? fmt::format("{} to {}", least, most)
                  : value > most ? fmt::format("at most {:.15g}", most)
                                 : fmt::format("at least {:.15g}", least));
    return value;
  }
  std::int64_t whole(std::string_view key, std::int64_t otherwise, std::int64_t least, std::int64_t most) {
    const double value =
        number(key, static_cast<double>(otherwise), static_cast<double>(least), static_cast<double>(most));
    if (value != std::floor(value))
      throw Error(where(key), fmt::format("'{}' is not a whole number", given_.at(std::string(key)).value));
    return static_cast<std::int64_t>(value);
  }
  bool flag(std::string_view key, bool otherwise) { return whole(key, otherwise ? 1 : 0, 0, 1) == 1; }
  template <class Value, std::size_t count>
  Value named(std::string_view key, const std::array<Named<Value>, count>& table, Value otherwise) {
    const std::string value = text(key, "");
    if (value.empty()) return otherwise;
    std::vector<std::string_view> known;
    for (const Named<Value>& one : table) {
      if (one.name == value) return one.value;
      known.push_back(one.name);
    }
    throw Error(where(key), fmt::format("no {} '{}' is modelled", key, value), hint_for(key, value, known));
  }

  // "islip", or with iterations "islip(2)".
  FlitAllocator allocator(std::string_view key, std::int64_t& iterations) {
    const std::string value = text(key, "islip");
    const std::string name = value.substr(0, value.find('('));
    std::vector<std::string_view> known;
    for (const Named<FlitAllocator>& one : kAllocators) {
      known.push_back(one.name);
      if (one.name != name) continue;
      if (name == value) return one.value;
      if (one.value != FlitAllocator::islip && one.value != FlitAllocator::pim)
        throw Error(where(key), fmt::format("'{}' is not modelled", value),
                    fmt::format("{} = {};", key, name));
      const double count =
          value.ends_with(')')
              ? parse_real(value.substr(name.size() + 1, value.size() - name.size() - 2), where(key))
              : 0;
      if (count < 1 || count > kMostIterations || count != std::floor(count))
        throw Error(where(key), fmt::format("'{}' does not give a number of iterations", value),
                    fmt::format("{} = {}(2);", key, name));
      iterations = static_cast<std::int64_t>(count);
      return one.value;
    }
    throw Error(where(key), fmt::format("no {} '{}' is modelled", key, value), hint_for(key, name, known));
  }

  static constexpr std::int64_t kMostDelay = 1000, kMostIterations = 1000;

  const std::string& name_;
  std::map<std::string, Assignment> given_;
  std::vector<std::string_view> asked_;
  std::vector<std::string> notes_;
};

}  // namespace

BooksimConfig parse_booksim(std::string_view text, const std::string& name) {
  return BooksimReader(text, name).read();
}

BooksimConfig read_booksim(const std::string& path) {
  const MappedFile file(path);
  require_kind(path, file.bytes(), FileKind::booksim_config, "a BookSim configuration");
  return parse_booksim({file.bytes().data(), file.bytes().size()}, path);
}

}  // namespace armilla
