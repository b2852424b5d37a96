#include "read/scalesim.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/suggest.h"
#include "base/text.h"

namespace armilla {
namespace {

// What SCALE-Sim reads, and what stands in its files and is read by none of its versions.
constexpr std::array<std::string_view, 37> kKeys = {"run_name",
                                                    "ArrayHeight",
                                                    "ArrayWidth",
                                                    "IfmapSramSzkB",
                                                    "FilterSramSzkB",
                                                    "OfmapSramSzkB",
                                                    "IfmapSramSz",
                                                    "FilterSramSz",
                                                    "OfmapSramSz",
                                                    "IfmapOffset",
                                                    "FilterOffset",
                                                    "OfmapOffset",
                                                    "Dataflow",
                                                    "Bandwidth",
                                                    "InterfaceBandwidth",
                                                    "TopologyCsvLoc",
                                                    "MemoryBanks",
                                                    "OnChipMemoryBanks",
                                                    "OnChipMemoryBankPorts",
                                                    "ReadRequestBuffer",
                                                    "WriteRequestBuffer",
                                                    "UseRamulatorTrace",
                                                    "IfmapCustomLayout",
                                                    "FilterCustomLayout",
                                                    "IfmapSRAMBankBandwidth",
                                                    "IfmapSRAMBankNum",
                                                    "IfmapSRAMBankPort",
                                                    "FilterSRAMBankBandwidth",
                                                    "FilterSRAMBankNum",
                                                    "FilterSRAMBankPort",
                                                    "SparsitySupport",
                                                    "SparseRep",
                                                    "OptimizedMapping",
                                                    "BlockSize",
                                                    "RandomNumberGeneratorSeed",
                                                    "NonZeroElems",
                                                    "SystolicMode"};

constexpr std::array<std::string_view, 6> kSections = {
    "general", "architecture_presets", "run_presets", "network_presets", "layout", "sparsity"};

std::string_view short_name_of(Dataflow dataflow) {
  return dataflow == Dataflow::output_stationary   ? "os"
         : dataflow == Dataflow::weight_stationary ? "ws"
                                                   : "is";
}

struct Value {
  std::string text;
  std::string where;  // file:line: key
};

class ConfigReader {
 public:
  ConfigReader(std::string_view text, const std::string& name) : name_(name) {
    // A byte order mark, as some editors write it.
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    for (std::int64_t line = 1; !text.empty(); ++line) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      read_line(trimmed(text.substr(0, end)), line);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (sections_.empty()) throw Error(name_, "is not a SCALE-Sim configuration", "expected '[general]'");
  }

  ScaleSimConfig read() {
    ScaleSimConfig config;
    SystolicBuffers& buffers = config.buffers;
    // Files carry no version: these sections and this key exist in v3 only.
    const bool v3 =
        sections_.contains("layout") || sections_.contains("sparsity") || find("UseRamulatorTrace");
    buffers.version = v3 ? ScaleSimVersion::v3 : ScaleSimVersion::v2;
    const std::optional<Value> run_name = find("run_name");
    config.run_name = run_name ? unquoted(run_name->text) : "scale_run";
    if (config.run_name.empty() || config.run_name.find('/') != std::string::npos)
      throw Error(run_name->where, "is the name of a folder and must not be empty or hold a slash");
    config.array.rows = number("ArrayHeight", 1, 65536);
    config.array.columns = number("ArrayWidth", 1, 65536);
    config.array.dataflow = dataflow();
    config.ifmap_kib = size("IfmapSramSzkB", "IfmapSramSz", config);
    config.filter_kib = size("FilterSramSzkB", "FilterSramSz", config);
    config.ofmap_kib = size("OfmapSramSzkB", "OfmapSramSz", config);
    buffers.ifmap = config.ifmap_kib * 1024;
    buffers.filter = config.filter_kib * 1024;
    buffers.ofmap = config.ofmap_kib * 1024;
    read_bandwidths(config, v3);
    refuse_unmodelled();
    if (const std::optional<Value> topology = find("TopologyCsvLoc"))
      config.topology = unquoted(topology->text);
    return config;
  }

 private:
  void read_line(std::string_view line, std::int64_t number) {
    if (line.empty() || line.front() == '#' || line.front() == ';') return;
    const std::string where = fmt::format("{}:{}", name_, number);
    if (line.front() == '[') {
      if (line.back() != ']') throw Error(where, fmt::format("'{:.60}' does not end with ]", line));
      const std::string section(line.substr(1, line.size() - 2));
      if (std::find(kSections.begin(), kSections.end(), section) == kSections.end())
        throw Error(where, fmt::format("unknown section '{:.60}'", section),
                    suggest(section, std::vector<std::string>(kSections.begin(), kSections.end())));
      if (!sections_.emplace(section, where).second)
        throw Error(where, fmt::format("section '{}' is there twice", section));
      return;
    }
    if (sections_.empty())
      throw Error(where, "comes before the first section", "SCALE-Sim configurations begin with '[general]'");
    // Python's configparser, which SCALE-Sim uses, takes either character and ignores the case of keys.
    const std::size_t separator = line.find_first_of("=:");
    if (separator == std::string_view::npos)
      throw Error(where, fmt::format("'{:.60}' is neither '[section]' nor 'key = value'", line));
    const std::string key(trimmed(line.substr(0, separator)));
    const auto known = std::find_if(kKeys.begin(), kKeys.end(), [&](std::string_view name) {
      return lower_case(name) == lower_case(key);
    });
    if (known == kKeys.end())
      throw Error(where, fmt::format("unknown key '{:.60}'", key),
                  suggest(key, std::vector<std::string>(kKeys.begin(), kKeys.end())));
    const Value value{std::string(trimmed(line.substr(separator + 1))), fmt::format("{}: {}", where, *known)};
    if (!values_.emplace(*known, value).second) throw Error(value.where, "is there twice");
  }

  std::optional<Value> find(std::string_view key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }

  Value at(std::string_view key) const {
    const std::optional<Value> value = find(key);
    if (!value) throw Error(name_, fmt::format("has no key '{}'", key));
    return *value;
  }

  static std::string unquoted(const std::string& text) {
    return text.size() > 1 && text.front() == '"' && text.back() == '"' ? text.substr(1, text.size() - 2)
                                                                        : text;
  }

  static std::int64_t parse(std::string_view text, const std::string& where, std::int64_t lowest,
                            std::int64_t highest) {
    const auto value = number_from<std::int64_t>(text);
    if (!value) throw Error(where, fmt::format("'{:.60}' is not a whole number", text));
    if (*value < lowest || *value > highest)
      throw Error(where, fmt::format("{} is out of range", *value),
                  fmt::format("it lies between {} and {}", lowest, highest));
    return *value;
  }

  std::int64_t number(std::string_view key, std::int64_t lowest, std::int64_t highest) const {
    const Value value = at(key);
    return parse(value.text, value.where, lowest, highest);
  }

  std::int64_t size(std::string_view key, std::string_view v1_key, ScaleSimConfig& config) const {
    // Files of v1 are still about, and differ in these three names.
    const bool old = !find(key) && find(v1_key);
    if (old && config.notes.empty())
      config.notes.push_back(fmt::format("{}: a file of SCALE-Sim v1, run by v2's rules", name_));
    return number(old ? v1_key : key, 1, 1 << 30);
  }

  Dataflow dataflow() const {
    const Value value = at("Dataflow");
    if (value.text == "os") return Dataflow::output_stationary;
    if (value.text == "ws") return Dataflow::weight_stationary;
    if (value.text == "is") return Dataflow::input_stationary;
    throw Error(value.where, fmt::format("unknown dataflow '{:.60}'", value.text), "known: os, ws, is");
  }

  void read_bandwidths(ScaleSimConfig& config, bool v3) const {
    SystolicBuffers& buffers = config.buffers;
    buffers.ofmap_bandwidth = config.array.columns;
    const std::optional<Value> mode = find("InterfaceBandwidth");
    if (!mode) {
      config.notes.push_back(fmt::format("{}: has no InterfaceBandwidth, taken as CALC", name_));
      return;
    }
    // CALC: nothing waits for DRAM, and SCALE-Sim reports the bandwidth that this takes.
    if (mode->text == "CALC") return;
    if (mode->text != "USER")
      throw Error(mode->where, fmt::format("unknown mode '{:.60}'", mode->text), "known: CALC, USER");
    buffers.limited = true;
    const Value given = at("Bandwidth");
    const std::size_t comma = std::min(given.text.find(','), given.text.size());
    buffers.ofmap_bandwidth =
        parse(trimmed(std::string_view(given.text).substr(0, comma)), given.where, 1, 1 << 30);
    if (comma < given.text.size())
      config.notes.push_back(fmt::format("{}: SCALE-Sim uses the first of several bandwidths", given.where));
    config.bandwidths = given.text;
    buffers.ifmap_bandwidth = v3 ? bank("Ifmap") : buffers.ofmap_bandwidth;
    buffers.filter_bandwidth = v3 ? bank("Filter") : buffers.ofmap_bandwidth;
  }

  // v3 reads operands at the bandwidth of the SRAM's banks together.
  std::int64_t bank(std::string_view operand) const {
    const std::string bandwidth = fmt::format("{}SRAMBankBandwidth", operand);
    const std::string banks = fmt::format("{}SRAMBankNum", operand);
    const std::int64_t all = find(bandwidth) ? number(bandwidth, 1, 1 << 30) : 10;
    const std::int64_t count = find(banks) ? number(banks, 1, 1 << 30) : 10;
    if (all % count != 0)
      throw Error(find(bandwidth) ? at(bandwidth).where : at(banks).where,
                  fmt::format("a bandwidth of {} cannot be divided by {} banks", all, count));
    return all;
  }

  void refuse_unmodelled() const {
    // Not passed over: they change cycles, and an answer without them would be taken for SCALE-Sim's.
    for (const std::string_view key :
         {"UseRamulatorTrace", "IfmapCustomLayout", "FilterCustomLayout", "SparsitySupport"}) {
      const std::optional<Value> value = find(key);
      constexpr std::array<std::string_view, 4> kTrue = {"true", "yes", "on", "1"};
      if (value && std::find(kTrue.begin(), kTrue.end(), lower_case(value->text)) != kTrue.end())
        throw Error(value->where, "a SCALE-Sim feature that is not modelled", "set it to False");
    }
  }

  const std::string& name_;
  std::map<std::string, std::string> sections_;
  std::map<std::string_view, Value> values_;
};

}  // namespace

ScaleSimConfig parse_scalesim_config(std::string_view text, const std::string& name) {
  return ConfigReader(text, name).read();
}

ScaleSimConfig read_scalesim_config(const std::string& path) {
  const MappedFile file(path);
  return parse_scalesim_config({file.bytes().data(), file.bytes().size()}, path);
}

ComponentChoice read_compute_choice(const std::string& text, const std::string& where,
                                    const std::string& folder) {
  if (!text.ends_with(".cfg")) return parse_component(text, where);
  const std::string path = text.starts_with('/') ? text : folder + text;
  const ScaleSimConfig config = read_scalesim_config(path);
  ComponentChoice choice{"systolic", {}, where};
  const auto set = [&](const char* name, std::string value) {
    choice.parameters[name] = {std::move(value), path};
  };
  const auto set_size = [&](const char* name, std::int64_t kib) { set(name, fmt::format("{}KiB", kib)); };
  set("rows", std::to_string(config.array.rows));
  set("columns", std::to_string(config.array.columns));
  set("dataflow", std::string(short_name_of(config.array.dataflow)));
  // Without a limit on the bandwidth nothing waits for DRAM, and buffers change no time.
  if (!config.buffers.limited) return choice;
  if (config.buffers.ifmap_bandwidth != config.buffers.ofmap_bandwidth ||
      config.buffers.filter_bandwidth != config.buffers.ofmap_bandwidth)
    throw Error(path, "has different bandwidths for its buffers, which a compute model does not know",
                "make IfmapSRAMBankBandwidth and FilterSRAMBankBandwidth equal to Bandwidth");
  set("dram_bandwidth", std::to_string(config.buffers.ofmap_bandwidth));
  set_size("ifmap_sram", config.ifmap_kib);
  set_size("filter_sram", config.filter_kib);
  set_size("ofmap_sram", config.ofmap_kib);
  return choice;
}

}  // namespace armilla
