#include "study/named_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <sstream>

#include "base/config.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "read/file_format.h"
#include "read/study.h"
#include "study/astra/trace_input.h"
#include "zoo/zoo.h"

namespace armilla {
namespace {

bool is_name_compiled_in(const std::string& name) {
  const auto has = [&](const std::vector<std::string>& names) {
    return std::ranges::find(names, name) != names.end();
  };
  return !is_path(name) && (names_model(name) || has(machine_names()) || has(device_names()));
}

bool may_name_files(FileKind kind) {
  switch (kind) {
    case FileKind::description:
    case FileKind::study:
    case FileKind::machine:
    case FileKind::sweep:
    case FileKind::astra1_network:
    case FileKind::astra2_system:
    case FileKind::astra2_network:
    case FileKind::custom_table:
    case FileKind::json:
    case FileKind::yaml:
      return true;
    default:
      return false;
  }
}

class NamedFiles {
 public:
  // A value: a file's name, or words around one, as in "machine=a.yaml" and "systolic:layout=b.csv".
  void look_for(const std::string& value, const std::string& folder) {
    constexpr std::size_t kLongest = 4096;
    if (value.empty() || value.size() > kLongest) return;
    look_at(value, folder);
    constexpr std::string_view kBetween = ",;=: []";
    for (std::size_t begin = 0; begin < value.size();) {
      const std::size_t end = std::min(value.find_first_of(kBetween, begin), value.size());
      if (end > begin && end - begin < value.size()) look_at(value.substr(begin, end - begin), folder);
      begin = end + 1;
    }
  }

  std::vector<std::string> files() && { return std::move(files_); }

 private:
  // Beside the file that it stands in, or where the program was started.
  void look_at(const std::string& name, const std::string& folder) {
    if (is_name_compiled_in(name)) return;
    if (!folder.empty() && !name.starts_with('/')) add(folder + name);
    add(name);
  }

  void add(const std::string& path) {
    std::error_code ignored;
    const std::filesystem::file_status status = std::filesystem::status(path, ignored);
    if (std::filesystem::is_regular_file(status)) {
      add_file(path);
    } else if (std::filesystem::is_directory(status)) {
      add_model_of(path);
    } else {
      for (std::int64_t rank = 0; const std::optional<std::string> file = trace_file(path, rank); ++rank)
        files_.push_back(*file);
    }
  }

  // A folder stands for the model in it.
  void add_model_of(const std::string& folder) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      const std::filesystem::path& path = entry.path();
      if (path.filename() == "config.json" || path.extension() == ".onnx") files_.push_back(path.string());
    }
  }

  void add_file(const std::string& path) {
    std::error_code ignored;
    if (!known_.insert(std::filesystem::weakly_canonical(path, ignored)).second) return;
    files_.push_back(path);
    constexpr std::uintmax_t kLargest = 1 << 20;
    if (std::filesystem::file_size(path, ignored) > kLargest) return;
    try {
      const FileKind kind = sniff_file(path);
      if (may_name_files(kind)) visit(Config::read(path));
      if (kind == FileKind::ns3_config || kind == FileKind::scalesim_config) visit_keys(path);
    } catch (const Error&) {
      // The reader of what it is meant to be says it.
    }
  }

  void visit(const Config& config) {
    constexpr std::array<std::string_view, 4> kForPeople = {"description", "notes", "source", "unverified"};
    if (config.is_map()) {
      for (const std::string& key : config.keys()) {
        if (std::ranges::find(kForPeople, key) == kForPeople.end()) visit(config.at(key));
      }
    } else if (config.is_list()) {
      for (const Config& item : config.items()) visit(item);
    } else if (config.is_scalar()) {
      look_for(config.text(), config.folder());
    }
  }

  // "FLOW_FILE f.txt" and "TopologyCsvLoc: t.csv"; other keys name what ns-3 and SCALE-Sim write.
  void visit_keys(const std::string& path) {
    const MappedFile file(path);
    std::istringstream text(std::string(file.bytes().begin(), file.bytes().end()));
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    for (std::string line, key, name; std::getline(text, line);) {
      std::ranges::replace_if(
          line, [](char c) { return c == ':' || c == '='; }, ' ');
      std::istringstream words(line);
      if (words >> key >> name && (key == "TOPOLOGY_FILE" || key == "FLOW_FILE" || key == "TopologyCsvLoc"))
        look_at(name, folder.empty() ? "" : folder.string() + "/");
    }
  }

  std::vector<std::string> files_;
  std::set<std::filesystem::path> known_;
};

}  // namespace

std::vector<std::string> files_named_by(const std::vector<std::string>& arguments) {
  NamedFiles named;
  for (const std::string& argument : arguments) named.look_for(argument, "");
  return std::move(named).files();
}

}  // namespace armilla
