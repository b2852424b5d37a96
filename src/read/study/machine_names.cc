// Which compiled-in machine or device a name means, and its YAML.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/suggest.h"
#include "base/text.h"
#include "read/file_format.h"
#include "read/study.h"
#include "read/topology.h"
#include "zoo/embedded.h"
#include "zoo/zoo.h"

namespace armilla {
namespace {

constexpr std::string_view kDevices = "machines/devices/";
constexpr std::string_view kClusters = "machines/clusters/";
constexpr std::string_view kSuffix = ".yaml";

using Names = std::vector<std::string>;

Names names_in(std::string_view folder) {
  Names names;
  for (const EmbeddedFile& file : embedded_files()) {
    if (!file.path.starts_with(folder) || !file.path.ends_with(kSuffix)) continue;
    names.emplace_back(file.path.substr(folder.size(), file.path.size() - folder.size() - kSuffix.size()));
  }
  return names;
}

Names words_of_name(std::string_view name) {
  Names words(1);
  for (const char c : lower_case(name)) {
    if (c == '-' || c == '_' || c == ' ') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  std::erase(words, "");
  return words;
}

// Those of `known` that have every word of `name`, or one that begins so.
Names with_words(const Names& known, std::string_view name, bool beginnings) {
  const Names wanted = words_of_name(name);
  Names found;
  if (wanted.empty()) return found;
  for (const std::string& candidate : known) {
    const Names words = words_of_name(candidate);
    const auto has = [&](const std::string& word) {
      return std::any_of(words.begin(), words.end(), [&](const std::string& own) {
        return own == word || (beginnings && own.starts_with(word));
      });
    };
    // The same words with other separators or cases: that one alone.
    if (words == wanted) return {candidate};
    if (std::all_of(wanted.begin(), wanted.end(), has)) found.push_back(candidate);
  }
  return found;
}

Names meant(const Names& known, std::string_view name, bool beginnings = false) {
  // A long hostile name is none of ours, nor is a number alone, which dgx-1 has as a word.
  constexpr std::size_t kLongest = 128;
  const bool has_letter =
      std::any_of(name.begin(), name.end(), [](unsigned char c) { return std::isalpha(c) != 0; });
  if (name.size() > kLongest || !has_letter) return {};
  if (std::find(known.begin(), known.end(), name) != known.end()) return {std::string(name)};
  return with_words(known, name, beginnings);
}

bool shares_word(const std::string& name, const Names& others) {
  const Names words = words_of_name(name);
  return std::any_of(others.begin(), others.end(), [&](const std::string& other) {
    const Names theirs = words_of_name(other);
    return std::find_first_of(words.begin(), words.end(), theirs.begin(), theirs.end()) != words.end();
  });
}

// Those that are named after the device, as dgx-h100 is and a cloud's instance is not, if there are any.
Names machines_with(const Names& devices) {
  Names machines;
  for (const std::string& name : machine_names()) {
    const Machine machine = load_machine(name, name);
    if (std::find(devices.begin(), devices.end(), machine.device.name) != devices.end())
      machines.push_back(name);
  }
  Names namesakes = machines;
  std::erase_if(namesakes, [&](const std::string& name) { return !shares_word(name, devices); });
  return namesakes.empty() ? machines : namesakes;
}

std::string alternatives(const Names& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += fmt::format("{}'{}'", i == 0 ? "" : i + 1 == names.size() ? " or " : ", ", names[i]);
  return text;
}

[[noreturn]] void refuse(std::string_view family, const Names& candidates, const Names& known,
                         const std::string& name, const std::string& where) {
  // A name that means several is refused with all of them; one that means none, with those that have words
  // which begin so.
  if (names_topology(name)) {
    throw Error(
        where, fmt::format("'{:.60}' is a topology, not a {}: it has no devices", name, family),
        fmt::format("a file with the lines 'device: h100-sxm' and 'topology: \"{:.60}\"' is a machine, "
                    "--machine FILE; armilla net takes a topology alone",
                    name));
  }
  const Names likely = candidates.empty() ? meant(known, name, true) : candidates;
  throw Error(where, fmt::format("unknown {} '{:.60}'", family, name),
              likely.empty() ? suggest(name, known) : fmt::format("did you mean {}?", alternatives(likely)));
}

NamedText embedded_text(std::string_view folder, const std::string& name) {
  const std::string path = fmt::format("{}{}{}", folder, name, kSuffix);
  const EmbeddedFile file = *find_embedded(path);
  return {path, {file.bytes.data(), file.bytes.size()}};
}

NamedText file_text(const std::string& path, FileKind kind) {
  const MappedFile file(path);
  require_kind(path, file.bytes(), kind, file_format(kind).what);
  return {path, {file.bytes().data(), file.bytes().size()}};
}

NamedText device_document(const std::string& name_or_path, const std::string& where) {
  if (is_path(name_or_path)) return file_text(name_or_path, FileKind::device);
  const Names candidates = devices_meant(name_or_path);
  if (candidates.size() != 1) refuse("device", candidates, device_names(), name_or_path, where);
  return embedded_text(kDevices, candidates.front());
}

NamedText machine_document(const std::string& name_or_path, const std::string& where) {
  if (is_path(name_or_path)) return file_text(name_or_path, FileKind::machine);
  const Names candidates = machines_meant(name_or_path);
  if (candidates.size() == 1) return embedded_text(kClusters, candidates.front());
  const Names devices = candidates.empty() ? devices_meant(name_or_path) : Names();
  if (devices.empty()) refuse("machine", candidates, machine_names(), name_or_path, where);
  throw Error(where,
              fmt::format("{} {}, and no machine of that kind is compiled in", alternatives(devices),
                          devices.size() == 1 ? "is a device" : "are devices"),
              fmt::format("give another machine that device: --machine dgx-h100 --set machine.device={}",
                          devices.front()));
}

// What is compiled in stays as it is, and warns of nothing: each document is read once, a file whenever it is
// asked for. May be used by several threads.
template <class Value, class Read>
Value read_document(const NamedText& document, bool is_file, const Read& read) {
  static std::mutex mutex;  // of `known`; not held while reading, as machines load devices
  static std::map<std::string, Value> known;
  if (!is_file) {
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(document.name); found != known.end()) return found->second;
  }
  Value value = read(Config::parse(document.text, document.name));
  if (is_file) return value;
  const std::lock_guard lock(mutex);
  return known.try_emplace(document.name, std::move(value)).first->second;
}

}  // namespace

Names device_names() {
  return names_in(kDevices);
}

Names machine_names() {
  return names_in(kClusters);
}

Names devices_meant(std::string_view name) {
  return meant(device_names(), name);
}

// A device's name means the machines that are made of it.
Names machines_meant(std::string_view name) {
  const Names found = meant(machine_names(), name);
  return found.empty() ? machines_with(devices_meant(name)) : found;
}

Device load_device(const std::string& name_or_path, const std::string& where, int in_turn) {
  return read_document<Device>(device_document(name_or_path, where), is_path(name_or_path),
                               [in_turn](const Config& config) { return read_device(config, in_turn); });
}

Machine load_machine(const std::string& name_or_path, const std::string& where,
                     std::vector<std::string>* warnings) {
  return read_document<Machine>(machine_document(name_or_path, where), is_path(name_or_path),
                                [warnings](const Config& config) { return read_machine(config, warnings); });
}

std::string device_text(const std::string& name_or_path, const std::string& where) {
  return device_document(name_or_path, where).text;
}

std::string machine_text(const std::string& name_or_path, const std::string& where) {
  const NamedText document = machine_document(name_or_path, where);
  const Config device = Config::parse(document.text, document.name).at("device");
  if (!device.is_scalar()) return document.text;
  // The line of the name gives way to the device's file, moved to the right.
  std::string indented;
  const std::string figures = device_text(armilla::name_or_path(device), device.where());
  for (std::size_t begin = 0; begin < figures.size();) {
    const std::size_t end = std::min(figures.find('\n', begin), figures.size());
    indented += "\n" + (end > begin ? "  " + figures.substr(begin, end - begin) : "");
    begin = end + 1;
  }
  std::string text = document.text;
  const std::size_t key = text.starts_with("device:") ? 0 : text.find("\ndevice:") + 1;
  const std::size_t colon = text.find(':', key) + 1;
  return text.replace(colon, text.find('\n', colon) - colon, indented);
}

// Relative paths begin at the folder of the file that they stand in.
std::optional<NamedText> expand_name(const std::string& path, const std::string& value,
                                     const std::string& folder) {
  const std::string name = is_path(value) && !value.starts_with('/') ? folder + value : value;
  if (path == "machine" && value.find(',') != std::string::npos) {
    throw Error(
        path, fmt::format("'{:.60}' are several machines, and --price or --set is for one", value),
        "name one machine, or put the figure into files of these machines (armilla show NAME --yaml)");
  }
  if (path == "machine") return machine_document(name, path);
  if (path == "model" && value.find(',') == std::string::npos) return NamedText{"", "name"};
  // Parameters behind the name have no place in the long form.
  if ((path == "network" || path == "compute") && value.find_first_of(",:") == std::string::npos)
    return NamedText{"", "model"};
  if (path == "machine.device" || (path.starts_with("machine.devices.") && path.ends_with(".device")))
    return device_document(name, path);
  return std::nullopt;
}

}  // namespace armilla
