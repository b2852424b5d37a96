#include "zoo/fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <protozero/pbf_reader.hpp>

#include "base/error.h"
#include "base/file_status.h"
#include "base/mapped_file.h"
#include "base/suggest.h"
#include "base/text.h"
#include "zoo/download/http_get.h"
#include "zoo/download/part_file.h"
#include "zoo/download/sha256.h"
#include "zoo/zoo.h"

namespace armilla {
namespace {

constexpr std::string_view kSuffix = ".onnx";
constexpr std::size_t kLongestName =
    200;  // a file name has 255 bytes, and ".onnx.part.source" comes after it

// What to fetch from where.
struct Target {
  std::string name;
  std::string url;
  std::string sha256;  // empty: not known
};

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
         c == '-';
}

bool is_model_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && !name.starts_with('.') &&
         std::ranges::all_of(name, is_name_character);
}

void check_url(const std::string& url, const std::string& where) {
  const std::string scheme = lower_case(url.substr(0, url.find("://")));
  if (scheme != "http" && scheme != "https")
    throw Error(where, "not an address that models can be fetched from",
                "it begins with https:// or http://");
  if (std::ranges::any_of(url, [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 127; }))
    throw Error(where, "the address contains a space or a control character", "write a space as %20");
}

// The last part of the path without ".onnx"; what is no name character becomes '_'.
std::string name_from_url(const std::string& url) {
  std::string path = url.substr(url.find("://") + 3);
  path.resize(std::min(path.size(), path.find_first_of("?#")));
  const std::size_t slash = path.rfind('/');
  std::string name = slash == std::string::npos ? "" : path.substr(slash + 1);
  if (name.ends_with(kSuffix)) name.resize(name.size() - kSuffix.size());
  for (char& c : name)
    if (!is_name_character(c)) c = '_';
  if (!is_model_name(name))
    throw Error(url, "the address does not end in a usable file name", "give the address of an .onnx file");
  return name;
}

// "{model}" stands for the name; without it a folder is meant.
std::string zoo_url(std::string base, const std::string& name) {
  constexpr std::string_view kPlace = "{model}";
  if (base.find(kPlace) == std::string::npos) {
    while (base.ends_with('/')) base.pop_back();
    base += "/{model}.onnx";
  }
  for (std::size_t at = 0; (at = base.find(kPlace, at)) != std::string::npos; at += name.size())
    base.replace(at, kPlace.size(), name);
  return base;
}

[[noreturn]] void unknown_model(const std::string& name) {
  std::vector<std::string_view> known;
  for (const ZooDownload& download : zoo_downloads()) known.push_back(download.name);
  const bool compiled_in =
      std::ranges::any_of(zoo_models(), [&](const ZooModel& m) { return m.name == name; });
  throw Error(name,
              compiled_in ? "is compiled in and needs no download" : "no such model in the ONNX Model Zoo",
              suggest(name, known));
}

Target resolve(const std::string& name_or_url, const FetchOptions& options) {
  if (name_or_url.find("://") != std::string::npos) {
    check_url(name_or_url, name_or_url);
    return {name_from_url(name_or_url), name_or_url, options.sha256};
  }
  std::string base = options.base_url;
  std::string where = "base URL " + base;
  if (const char* variable = std::getenv("ARMILLA_ZOO_URL"); base.empty() && variable != nullptr) {
    base = variable;
    where = "ARMILLA_ZOO_URL=" + base;
  }
  // Only another zoo than the usual one can hold models that the table does not list.
  const bool usual = base.empty() || base == kZooUrl;
  const std::span<const ZooDownload> known = zoo_downloads();
  const auto listed = std::ranges::find(known, name_or_url, &ZooDownload::name);
  if (listed == known.end() && (usual || !is_model_name(name_or_url))) unknown_model(name_or_url);
  if (base.empty()) base = kZooUrl;
  check_url(base, where);
  const std::string listed_sha256(listed == known.end() ? "" : listed->sha256);
  return {name_or_url, zoo_url(base, name_or_url), options.sha256.empty() ? listed_sha256 : options.sha256};
}

std::string checked_sha256(const std::string& given) {
  std::string text = lower_case(given);
  if (!text.empty() && (text.size() != 64 || text.find_first_not_of("0123456789abcdef") != std::string::npos))
    throw Error("checksum " + given, "not a SHA-256",
                "it has 64 hexadecimal digits, as sha256sum prints them");
  return text;
}

// An ONNX file is a protobuf ModelProto: known field numbers that fill the file exactly, and a graph (field
// 7).
bool is_onnx(std::span<const char> bytes) {
  constexpr protozero::pbf_tag_type kGraph = 7, kHighestField = 30;
  bool graph = false;
  try {
    protozero::pbf_reader model(bytes.data(), bytes.size());
    while (model.next()) {
      if (model.tag() > kHighestField) return false;
      graph |= model.tag() == kGraph && model.wire_type() == protozero::pbf_wire_type::length_delimited;
      model.skip();
    }
  } catch (const protozero::exception&) {
    return false;
  }
  return graph;
}

void check_content(std::span<const char> bytes, const std::string& url) {
  const std::string_view text(bytes.data(), bytes.size());
  const std::size_t first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (text.empty()) throw Error(url, "the server sent an empty file", "check the address");
  if (first != std::string_view::npos && text[first] == '<')
    throw Error(url, "the server sent a web page, not an ONNX model",
                "give the address of the file itself; on GitHub it has /raw/ in place of /blob/");
  if (text.starts_with("version https://git-lfs"))
    throw Error(url, "the server sent a Git LFS pointer, not the model itself",
                "the ONNX Model Zoo's files are at https://huggingface.co/onnxmodelzoo");
  if (!is_onnx(bytes))
    throw Error(url, "the file is not an ONNX model",
                "check the address; archives have to be unpacked first");
}

class Download final : public HttpReceiver {
 public:
  Download(PartFile& part, const Target& target, const FetchOptions& options)
      : part_(part), target_(target), options_(options) {}

  void begin(const HttpResponse& response) override {
    total_ = Bytes(static_cast<std::int64_t>(response.size.value_or(0)));
    if (response.offset == 0) part_.restart({target_.url, response.validator, {}});
    resumed_from_ = response.offset;
  }

  void receive(std::span<const char> bytes) override {
    part_.append(bytes);
    if (options_.progress) options_.progress({Bytes(static_cast<std::int64_t>(part_.size())), total_});
  }

  std::uint64_t resumed_from() const { return resumed_from_; }

 private:
  PartFile& part_;
  const Target& target_;
  const FetchOptions& options_;
  Bytes total_;
  std::uint64_t resumed_from_ = 0;
};

// Fills the part; returns how much of it an earlier attempt had brought.
std::uint64_t fill(PartFile& part, const Target& target, const FetchOptions& options,
                   std::string& validator) {
  HttpRequest request{.url = target.url, .validator = {}, .silence_seconds = options.silence_seconds};
  const std::optional<SourceNote>& earlier = part.source();
  // Without a validator the server could not tell us that the file has changed in the meantime.
  if (!options.refresh && earlier && earlier->url == target.url && !earlier->validator.empty()) {
    request.offset = part.size();
    request.validator = earlier->validator;
  }
  Download download(part, target, options);
  HttpResponse response = http_get(request, download);
  if (response.status == 416) {
    // Nothing follows the part: either it is the whole file already, or it belongs to a longer one.
    if (response.size == part.size()) {
      validator = request.validator;
      return part.size();
    }
    request.offset = 0;
    request.validator.clear();
    response = http_get(request, download);
  }
  validator = response.validator;
  return download.resumed_from();
}

FetchedModel describe(const Target& target, const std::string& path, std::span<const char> bytes,
                      const std::string& digest) {
  // A model that is compiled in comes first by its name.
  const bool shadowed =
      std::ranges::any_of(zoo_models(), [&](const ZooModel& model) { return model.name == target.name; });
  return {.name = shadowed ? "" : target.name,
          .path = path,
          .url = target.url,
          .size = Bytes(static_cast<std::int64_t>(bytes.size())),
          .sha256 = digest,
          .verified = !target.sha256.empty(),
          .resumed_from = Bytes(0)};
}

// The model as an earlier fetch left it, if that is what is wanted now.
std::optional<FetchedModel> find_fetched(const Target& target, const std::string& path) {
  if (!is_file(path)) return std::nullopt;
  const std::optional<SourceNote> note = read_source_note(path);
  // With a checksum any file that has it will do; without one the note of its origin decides.
  if (target.sha256.empty() && (!note || note->url != target.url)) return std::nullopt;
  const MappedFile file(path);
  const std::string digest = sha256(file.bytes());
  if (digest != (target.sha256.empty() ? note->sha256 : target.sha256)) return std::nullopt;
  FetchedModel model = describe(target, path, file.bytes(), digest);
  model.was_there = true;
  return model;
}

FetchedModel download(const Target& target, const std::string& path, const FetchOptions& options) {
  PartFile part(path);
  // Another process may have brought it between the first look and the lock.
  if (!options.refresh) {
    if (std::optional<FetchedModel> model = find_fetched(target, path)) {
      part.discard();
      return *model;
    }
  }
  std::string validator;
  const std::uint64_t resumed_from = fill(part, target, options, validator);

  const MappedFile file(part.path());
  try {
    check_content(file.bytes(), target.url);
    const std::string digest = sha256(file.bytes());
    if (!target.sha256.empty() && digest != target.sha256)
      throw Error(target.url, fmt::format("the file has SHA-256 {}, expected {}", digest, target.sha256),
                  "it was damaged on the way or is another file; nothing of it was kept");
    part.publish({target.url, validator, digest});
    FetchedModel model = describe(target, path, file.bytes(), digest);
    model.resumed_from = Bytes(static_cast<std::int64_t>(resumed_from));
    return model;
  } catch (const Error&) {
    part.discard();
    throw;
  }
}

}  // namespace

FetchedModel fetch_model(const std::string& name_or_url, const FetchOptions& options) {
  FetchOptions checked = options;
  checked.sha256 = checked_sha256(options.sha256);
  const Target target = resolve(name_or_url, checked);
  const std::string folder = options.cache.empty() ? model_cache_directory() : options.cache;
  if (folder.empty())
    throw Error(name_or_url, "there is not a folder to keep models in", "set XDG_CACHE_HOME or HOME");
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code)
    throw Error(folder, fmt::format("cannot create the folder: {}", code.message()),
                "another cache folder can be chosen with XDG_CACHE_HOME");
  const std::string path = fmt::format("{}/{}{}", folder, target.name, kSuffix);
  if (!options.refresh)
    if (std::optional<FetchedModel> model = find_fetched(target, path)) return *model;
  return download(target, path, checked);
}

std::string model_cache_directory() {
  // Relative paths are to be ignored (XDG Base Directory Specification 0.8).
  const auto absolute = [](const char* variable) -> std::string {
    const char* value = std::getenv(variable);
    return value != nullptr && value[0] == '/' ? value : "";
  };
  if (const std::string cache = absolute("XDG_CACHE_HOME"); !cache.empty()) return cache + "/armilla/models";
  if (const std::string home = absolute("HOME"); !home.empty()) return home + "/.cache/armilla/models";
  return {};
}

std::vector<std::string> cached_models() {
  std::vector<std::string> names;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(model_cache_directory(), code)) {
    const std::string file = entry.path().filename().string();
    if (!file.ends_with(kSuffix)) continue;
    const std::string name = file.substr(0, file.size() - kSuffix.size());
    if (find_cached_model(name)) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

std::optional<std::string> find_cached_model(const std::string& name) {
  const std::string folder = model_cache_directory();
  if (folder.empty() || !is_model_name(name)) return std::nullopt;
  std::string path = fmt::format("{}/{}{}", folder, name, kSuffix);
  if (!is_file(path)) return std::nullopt;
  return path;
}

}  // namespace armilla
