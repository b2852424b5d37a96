#include "read/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/suggest.h"
#include "base/units_text.h"
#include "read/file_format.h"
#include "read/study/csv_table.h"

namespace armilla {
namespace {

constexpr std::array<std::string_view, 13> kColumns = {
    "event", "name",       "phase",      "shapes", "type",   "flops",  "bytes",
    "ranks", "inter_node", "dimensions", "count",  "time_s", "source",
};

Phase phase_named(const std::string& text, const std::string& where) {
  std::vector<std::string_view> names;
  for (const Phase phase : {Phase::forward, Phase::input_gradient, Phase::weight_gradient,
                            Phase::gradient_exchange, Phase::optimizer, Phase::other}) {
    if (text == name_of(phase)) return phase;
    names.push_back(name_of(phase));
  }
  throw Error(where, fmt::format("unknown phase '{:.60}'", text),
              suggest(text, std::span<const std::string_view>(names)));
}

bool is_measured(const std::string& source, const std::string& where) {
  constexpr std::array<std::string_view, 3> kSources = {"measured", "modelled", "given"};
  if (std::find(kSources.begin(), kSources.end(), source) == kSources.end())
    throw Error(where, fmt::format("unknown source '{:.60}'", source), suggest(source, kSources));
  return source == "measured";
}

Time seconds_in(const std::string& text, const std::string& where) {
  const double seconds = parse_real(text, where);
  if (!(seconds >= 0) || from_seconds(seconds) >= kEndOfTime)
    throw Error(where, fmt::format("{:.60} is not a duration", text), "expected seconds, such as 0.000125");
  return from_seconds(seconds);
}

}  // namespace

Profile parse_profile(std::string_view text, const std::string& name) {
  const CsvTable table = parse_csv(text, name);
  for (const std::string& column : table.columns) {
    if (std::find(kColumns.begin(), kColumns.end(), column) == kColumns.end())
      throw Error(name + ":1", fmt::format("unknown column '{:.60}'", column), suggest(column, kColumns));
  }
  const std::size_t operation = table.at("name"), phase = table.at("phase"), shapes = table.at("shapes");
  const std::size_t type = table.at("type"), flops = table.at("flops"), bytes = table.at("bytes");
  const std::size_t time = table.at("time_s");
  const std::optional<std::size_t> event = table.find("event"), source = table.find("source");
  Profile profile;
  profile.file = name;
  std::map<ComputationKey, Time> known;
  for (const CsvRecord& record : table.records) {
    const std::vector<std::string>& fields = record.fields;
    const std::string where = table.where(record);
    if (event && fields[*event] == "communication") continue;
    if (event && fields[*event] != "computation")
      throw Error(where, fmt::format("unknown event '{:.60}'", fields[*event]),
                  "expected computation or communication");
    if (source && !is_measured(fields[*source], where)) continue;
    const auto dtype = dtype_from_name(fields[type]);
    if (!dtype) throw Error(where, fmt::format("unknown type '{:.60}'", fields[type]), "for example bf16");
    ComputationKey key{fields[operation],
                       phase_named(fields[phase], where),
                       fields[shapes],
                       std::string(name_of(*dtype)),
                       parse_count(fields[flops], where + ": flops"),
                       parse_count(fields[bytes], where + ": bytes")};
    if (fields[time].empty()) continue;
    const Time measured = seconds_in(fields[time], where + ": time_s");
    const auto [found, fresh] = known.try_emplace(key, measured);
    if (!fresh && found->second != measured)
      throw Error(where, fmt::format("'{}' has another time further up", key.name));
    if (fresh) profile.computations.push_back({std::move(key), measured});
  }
  return profile;
}

Profile read_profile(const std::string& path) {
  const MappedFile file(path);
  require_kind(path, file.bytes(), FileKind::profile, "a table of events");
  return parse_profile({file.bytes().data(), file.bytes().size()}, path);
}

}  // namespace armilla
