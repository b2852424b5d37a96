#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/error.h"
#include "ir/collective.h"
#include "read/profile.h"
#include "read/profile/profile_fields.h"

namespace armilla {
namespace {

using TraceJson = nlohmann::json;
using Sizes = std::vector<std::int64_t>;

constexpr double kMicro = 1e-6;

std::optional<DType> torch_type(const std::string& name) {
  constexpr std::array<std::pair<std::string_view, DType>, 13> kTypes = {{{"float", DType::fp32},
                                                                          {"Float", DType::fp32},
                                                                          {"double", DType::fp64},
                                                                          {"Double", DType::fp64},
                                                                          {"c10::BFloat16", DType::bf16},
                                                                          {"BFloat16", DType::bf16},
                                                                          {"c10::Half", DType::fp16},
                                                                          {"Half", DType::fp16},
                                                                          {"c10::Float8_e4m3fn", DType::fp8},
                                                                          {"c10::Float8_e5m2", DType::fp8},
                                                                          {"Long", DType::int64},
                                                                          {"Int", DType::int32},
                                                                          {"Byte", DType::int8}}};
  for (const auto& [text, dtype] : kTypes) {
    if (name == text) return dtype;
  }
  return std::nullopt;
}

std::optional<CollectiveKind> torch_collective(const std::string& name) {
  constexpr std::array<std::pair<std::string_view, CollectiveKind>, 12> kNames = {
      {{"allreduce", CollectiveKind::all_reduce},
       {"allreduce_coalesced", CollectiveKind::all_reduce},
       {"allgather_into_tensor_coalesced", CollectiveKind::all_gather},
       {"reduce_scatter_tensor_coalesced", CollectiveKind::reduce_scatter},
       {"_allgather_base", CollectiveKind::all_gather},
       {"all_gather", CollectiveKind::all_gather},
       {"allgather", CollectiveKind::all_gather},
       {"_reduce_scatter_base", CollectiveKind::reduce_scatter},
       {"reduce_scatter", CollectiveKind::reduce_scatter},
       {"all_to_allv", CollectiveKind::all_to_all},
       {"all_to_all", CollectiveKind::all_to_all},
       {"broadcast", CollectiveKind::broadcast}}};
  for (const auto& [text, kind] : kNames) {
    if (name == text) return kind;
  }
  return std::nullopt;
}

// Whatever is not there or of another kind is as good as empty: traces of many versions are read.
std::string trace_text(const TraceJson& object, const char* key) {
  return object.contains(key) && object.at(key).is_string() ? object.at(key).get<std::string>() : "";
}
double trace_number(const TraceJson& object, const char* key) {
  return object.contains(key) && object.at(key).is_number() ? object.at(key).get<double>() : 0;
}

std::string place_of(const std::string& name, std::size_t index) {
  return fmt::format("{}: traceEvents[{}]", name, index);
}

struct ProductOperands {
  std::string_view name;
  std::size_t first;  // which input is the left operand
};
constexpr std::array kProductOperands = {ProductOperands{"aten::mm", 0}, ProductOperands{"aten::addmm", 1},
                                         ProductOperands{"aten::bmm", 0}, ProductOperands{"aten::baddbmm", 1},
                                         ProductOperands{"aten::_scaled_mm", 0}};

// The product of a call; nothing for other operators and where shapes were not recorded.
std::optional<ComputationKey> product_of(const TraceJson& event) {
  const std::string name = trace_text(event, "name");
  const auto operands = std::find_if(kProductOperands.begin(), kProductOperands.end(),
                                     [&](const ProductOperands& o) { return o.name == name; });
  if (operands == kProductOperands.end() || !event.contains("args")) return std::nullopt;
  const TraceJson& arguments = event.at("args");
  const char* const types_key = arguments.contains("Input type") ? "Input type" : "Input Types";
  if (!arguments.contains("Input Dims") || !arguments.contains(types_key)) return std::nullopt;
  const TraceJson &dims = arguments.at("Input Dims"), &types = arguments.at(types_key);
  const std::size_t left = operands->first;
  if (!dims.is_array() || dims.size() < left + 2 || !types.is_array() || types.size() <= left ||
      !types[left].is_string())
    return std::nullopt;
  const auto sizes = [](const TraceJson& value) {
    Sizes result;
    if (!value.is_array()) return result;
    for (const TraceJson& size : value)
      result.push_back(size.is_number_integer() ? size.get<std::int64_t>() : 0);
    return result;
  };
  const Sizes a = sizes(dims[left]), b = sizes(dims[left + 1]);
  const std::optional<DType> dtype = torch_type(types[left].get<std::string>());
  if (!dtype || a.size() != b.size() || a.size() < 2 || a.size() > 3) return std::nullopt;
  Gemm gemm{a[a.size() - 2], b.back(), a.back(), a.size() == 3 ? a.front() : 1};
  if (std::min({gemm.m, gemm.n, gemm.k, gemm.count}) < 1) return std::nullopt;
  return product_key(gemm, *dtype);
}

// Whether the ranks of a collective are on several nodes. Ranks are numbered node by node, and listed as "[0,
// 1, 2]", of long lists the first and the last. `devices`: that the trace lists. A process that sees its own
// device alone does not say how many a node has: then it is the usual eight.
bool is_between_nodes(const TraceJson& arguments, std::int64_t ranks, std::int64_t devices) {
  constexpr std::int64_t kUsual = 8;
  if (devices < 2) devices = kUsual;
  const std::string listed = trace_text(arguments, "Process Group Ranks");
  std::vector<std::int64_t> nodes;
  for (std::size_t at = 0; at < listed.size();) {
    std::int64_t rank = 0;
    const auto [end, error] = std::from_chars(listed.data() + at, listed.data() + listed.size(), rank);
    if (error == std::errc()) nodes.push_back(rank / devices);
    at = error == std::errc() ? static_cast<std::size_t>(end - listed.data()) : at + 1;
  }
  return nodes.empty() ? ranks > devices : std::ranges::count(nodes, nodes.front()) < std::ssize(nodes);
}

// Of a kernel of NCCL. Throws Error for more ranks or bytes than can be counted.
std::optional<CommunicationKey> collective_of(const TraceJson& event, const std::string& name,
                                              std::size_t index, std::int64_t devices) {
  if (!event.contains("args")) return std::nullopt;
  const TraceJson& arguments = event.at("args");
  const auto kind = torch_collective(trace_text(arguments, "Collective name"));
  const auto dtype = torch_type(trace_text(arguments, "dtype"));
  const double ranks = trace_number(arguments, "Group size");
  if (!kind || !dtype || ranks < 2) return std::nullopt;
  const double elements = *kind == CollectiveKind::all_gather ? trace_number(arguments, "Out msg nelems")
                                                              : trace_number(arguments, "In msg nelems");
  constexpr double kBitsPerByte = 8, kMost = 1e15;
  const double size = elements * bits_of(*dtype) / kBitsPerByte;
  if (ranks > kMost || size > kMost)
    throw Error(place_of(name, index),
                fmt::format("a collective of {:g} bytes among {:g} ranks", size, ranks),
                "is the trace what the profiler wrote?");
  const auto bytes = static_cast<std::int64_t>(size);
  if (bytes < 1) return std::nullopt;
  const auto count = static_cast<std::int64_t>(ranks);
  return CommunicationKey{std::string(name_of(*kind)), bytes, count,
                          is_between_nodes(arguments, count, devices)};
}

// Median and distance of the quartiles, as tools/profile_events.py takes them.
Measured summary_of(std::vector<double> seconds, const std::string& device, const std::string& where) {
  std::ranges::sort(seconds);
  const std::size_t count = seconds.size(), quarter = count / 4;
  const double median = (seconds[(count - 1) / 2] + seconds[count / 2]) / 2;
  return {duration_from(median, "a median", where),
          duration_from(seconds[count - 1 - quarter] - seconds[quarter], "a spread", where),
          static_cast<std::int64_t>(count), device};
}

class TorchProfile {
 public:
  TorchProfile(std::string_view text, const std::string& name)
      : document_(TraceJson::parse(text, nullptr, false)), name_(name) {
    if (document_.is_discarded()) throw Error(name, "is broken JSON");
    if (!document_.is_object() || !document_.contains("traceEvents") ||
        !document_.at("traceEvents").is_array())
      throw Error(name, "is not a trace of PyTorch's profiler", "expected the key 'traceEvents'");
  }

  Profile read() {
    const TraceJson& events = document_.at("traceEvents");
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (events[i].is_object() && trace_text(events[i], "cat") == "kernel") add_kernel(events[i], i);
    }
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (events[i].is_object() && trace_text(events[i], "cat") == "cpu_op") add_call(events[i], i);
    }
    const std::string device = device_name();
    // Launches are asynchronous: how long they take says nothing of the device.
    if (!has_kernels_ && !device.empty() && !products_.empty()) {
      throw Error(name_, fmt::format("has calls, but no kernels of '{:.60}'", device),
                  "take the trace with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]");
    }
    ProfileBuilder builder(name_);
    for (auto& [key, seconds] : products_)
      builder.add(key, summary_of(std::move(seconds), device, name_), name_);
    for (auto& [key, seconds] : collectives_)
      builder.add(key, summary_of(std::move(seconds), device, name_), name_);
    Profile profile = builder.take();
    if (profile.computations.empty() && profile.communications.empty())
      throw Error(name_, "has neither matrix products with shapes nor collectives",
                  "take the trace with torch.profiler.profile(record_shapes=True)");
    return profile;
  }

 private:
  double seconds_of(const TraceJson& event, std::size_t index) const {
    if (!event.contains("dur") || !event.at("dur").is_number())
      throw Error(place_of(name_, index), "has no number 'dur'", "is the trace what the profiler wrote?");
    const double micros = trace_number(event, "dur");
    duration_from(micros * kMicro, fmt::format("dur {:g}", micros), place_of(name_, index));
    return micros * kMicro;
  }

  void add_kernel(const TraceJson& event, std::size_t index) {
    has_kernels_ = true;
    const double seconds = seconds_of(event, index);
    // Profilers that write whole microseconds have none for the shortest kernels.
    if (seconds == 0) return;
    if (const std::optional<double> call = call_of(event)) kernels_[*call] += seconds;
    if (const auto key = collective_of(event, name_, index, device_count()))
      collectives_[*key].push_back(seconds);
  }

  // Asynchronous launches say nothing of the time: where there are kernels, theirs counts.
  void add_call(const TraceJson& event, std::size_t index) {
    std::optional<ComputationKey> key;
    try {
      key = product_of(event);
    } catch (const Error& error) {
      throw Error(place_of(name_, index), error.message, error.hint);
    }
    if (!key) return;
    if (!has_kernels_) {
      if (const double seconds = seconds_of(event, index); seconds > 0) products_[*key].push_back(seconds);
      return;
    }
    const std::optional<double> call = call_of(event);
    if (!call) return;
    const auto kernel = kernels_.find(*call);
    if (kernel != kernels_.end()) products_[*key].push_back(kernel->second);
  }

  // What joins a call and its kernels.
  static std::optional<double> call_of(const TraceJson& event) {
    constexpr const char* kId = "External id";
    if (!event.contains("args") || !event.at("args").contains(kId) || !event.at("args").at(kId).is_number())
      return std::nullopt;
    return trace_number(event.at("args"), kId);
  }

  // Of the node that the trace was taken on; 0: not told.
  std::int64_t device_count() const {
    if (!document_.contains("deviceProperties") || !document_.at("deviceProperties").is_array()) return 0;
    return std::ssize(document_.at("deviceProperties"));
  }

  std::string device_name() const {
    if (!document_.contains("deviceProperties")) return {};
    const TraceJson& devices = document_.at("deviceProperties");
    return devices.is_array() && !devices.empty() && devices.front().is_object()
               ? trace_text(devices.front(), "name")
               : "";
  }

  TraceJson document_;
  std::string name_;
  bool has_kernels_ = false;
  std::map<double, double> kernels_;  // by external id
  std::map<ComputationKey, std::vector<double>> products_;
  std::map<CommunicationKey, std::vector<double>> collectives_;
};

}  // namespace

Profile parse_torch_profile(std::string_view text, const std::string& name) {
  return TorchProfile(text, name).read();
}

}  // namespace armilla
