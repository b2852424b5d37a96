#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "base/units_text.h"
#include "read/profile.h"
#include "read/profile/profile_fields.h"
#include "read/study/csv_table.h"

namespace armilla {
namespace {

// All that `armilla events --csv` writes, also what says nothing of a time (dimensions, count, kernel): a
// name that is none of these is more likely a slip than a column of one's own.
constexpr std::array<std::string_view, 17> kColumns = {
    "event",      "name",  "phase",  "shapes", "type",    "flops",    "bytes",  "ranks",  "inter_node",
    "dimensions", "count", "device", "kernel", "repeats", "spread_s", "time_s", "source",
};

class ProfileTable {
 public:
  ProfileTable(std::string_view text, const std::string& name)
      : table_(parse_csv(text, name)), builder_(name) {
    for (const std::string& column : table_.columns) {
      if (std::find(kColumns.begin(), kColumns.end(), column) == kColumns.end())
        throw Error(name + ":1", fmt::format("unknown column '{:.60}'", column), suggest(column, kColumns));
    }
    for (const std::string_view column : {"name", "phase", "shapes", "type", "flops", "bytes", "time_s"})
      table_.at(column);
  }

  Profile read() {
    for (const CsvRecord& record : table_.records) read_record(record);
    return builder_.take();
  }

 private:
  std::string field(const CsvRecord& record, std::string_view column) const {
    const auto at = table_.find(column);
    return at ? std::string(trimmed(record.fields[*at])) : std::string();
  }
  std::int64_t count(const CsvRecord& record, std::string_view column) const {
    const std::string text = field(record, column);
    if (text.empty()) return 0;
    const std::string where = fmt::format("{}: {}", table_.where(record), column);
    const std::int64_t number = parse_count(text, where);
    if (number < 0)
      throw Error(where, fmt::format("'{:.60}' is not a count", text),
                  "expected a whole number of at least 0");
    return number;
  }
  Time seconds(const CsvRecord& record, std::string_view column) const {
    const std::string text = field(record, column);
    const std::string where = fmt::format("{}: {}", table_.where(record), column);
    return text.empty() ? Time(0) : duration_from(parse_real(text, where), text, where);
  }

  void read_record(const CsvRecord& record) {
    const std::string where = table_.where(record), event = field(record, "event");
    const bool communication = event == "communication";
    if (!event.empty() && event != "computation" && !communication)
      throw Error(where, fmt::format("unknown event '{:.60}'", event),
                  "expected computation or communication");
    if (table_.find("source") && !is_measured(field(record, "source"), where)) return;
    // All fields are checked, also where the time is not there yet.
    Measured measured{seconds(record, "time_s"), seconds(record, "spread_s"), count(record, "repeats"),
                      field(record, "device")};
    const bool timed = !field(record, "time_s").empty();
    if (communication) {
      const std::string inter_node = field(record, "inter_node");
      if (inter_node != "true" && inter_node != "false")
        throw Error(where + ": inter_node", fmt::format("'{:.60}' is neither true nor false", inter_node));
      if (timed)
        builder_.add(CommunicationKey{field(record, "name"), count(record, "bytes"), count(record, "ranks"),
                                      inter_node == "true"},
                     measured, where);
      return;
    }
    ComputationKey key{field(record, "name"),
                       phase_named(field(record, "phase"), where),
                       field(record, "shapes"),
                       field(record, "type"),
                       parse_count(field(record, "flops"), where + ": flops"),
                       parse_count(field(record, "bytes"), where + ": bytes")};
    if (timed) builder_.add(std::move(key), measured, where);
  }

  CsvTable table_;
  ProfileBuilder builder_;
};

}  // namespace

Profile parse_profile(std::string_view text, const std::string& name) {
  return ProfileTable(text, name).read();
}

}  // namespace armilla
