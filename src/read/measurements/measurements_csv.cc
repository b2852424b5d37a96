#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/checked.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "base/text.h"
#include "base/units_text.h"
#include "read/file_format.h"
#include "read/measurements.h"
#include "read/study/csv_table.h"

namespace armilla {
namespace {

constexpr double kGiga = 1e9, kGiB = 1073741824.0;

// The fields of one record by the names of their columns, without blanks around them. A column that is
// missing, or beyond the end of a short line, reads as empty.
class Fields {
 public:
  Fields(const CsvTable& table, const CsvRecord& record) : table_(table), record_(record) {}

  std::string text(std::string_view column) const {
    const auto at = table_.find(column);
    return at && *at < record_.fields.size() ? std::string(trimmed(record_.fields[*at])) : std::string();
  }
  // Nothing where that is what it stands for; but "none" is a word.
  std::string word(std::string_view column) const {
    const std::string value = text(column);
    return is_nothing(value) && lower_case(value) != "none" ? std::string() : value;
  }
  std::string place(std::string_view column) const {
    return fmt::format("{}: {}", table_.where(record_), column);
  }
  double real(std::string_view column, double otherwise = 0) const {
    const std::string value = text(column);
    if (is_nothing(value)) return otherwise;
    const double number = parse_real(value, place(column));
    if (!std::isfinite(number) || number < 0)
      throw Error(place(column), fmt::format("'{:.60}' is not a quantity", value),
                  "expected a number of at least 0");
    return number;
  }
  // Also "4096.0", as spreadsheets write counts.
  std::int64_t count(std::string_view column, std::int64_t otherwise = 0) const {
    const std::string value = text(column);
    if (is_nothing(value)) return otherwise;
    constexpr double kMost = 1e15;
    std::optional<double> number;
    try {
      number = parse_real(value, place(column));
    } catch (const Error&) {
      // Below.
    }
    if (!number || *number != std::floor(*number) || *number < 0 || *number > kMost)
      throw Error(place(column), fmt::format("'{:.60}' is not a count", value),
                  "expected a whole number, or nothing");
    return static_cast<std::int64_t>(*number);
  }
  // Of parallelism, or devices: 1 where nothing is said, and never none.
  std::int64_t degree(std::string_view column) const {
    const std::int64_t number = count(column, 1);
    if (number < 1)
      throw Error(place(column), fmt::format("'{:.60}' is too few", text(column)),
                  "expected a whole number of at least 1, or nothing");
    return number;
  }
  // 0: nothing was measured.
  double measured(std::string_view column) const {
    if (is_nothing(text(column))) return 0;
    const double value = real(column);
    if (!(value > 0))
      throw Error(place(column), fmt::format("'{:.60}' is not a measurement", text(column)),
                  "expected more than 0, or nothing");
    return value;
  }

 private:
  // What tables put where there is no number.
  static bool is_nothing(const std::string& value) {
    constexpr std::array<std::string_view, 7> kWords = {"", "-", "n/a", "na", "nan", "none", "null"};
    return std::ranges::find(kWords, lower_case(value)) != kWords.end();
  }

  const CsvTable& table_;
  const CsvRecord& record_;
};

// Without whose it is, where it is called as on Hugging Face's hub: "meta-llama/Meta-Llama-3-8B".
std::string model_name(std::string text) {
  const bool has_blank = text.find(' ') != std::string::npos;
  if (const std::size_t slash = text.find('/');
      slash != std::string::npos && slash > 0 && !has_blank && slash == text.rfind('/'))
    text.erase(0, slash + 1);
  constexpr std::string_view kMeta = "meta-";
  if (lower_case(text).starts_with("meta-llama")) text.erase(0, kMeta.size());
  return text;
}

MeasuredPlan plan_of(const Fields& f) {
  constexpr double kBillion = 1e9;
  MeasuredPlan plan;
  plan.model = model_name(f.text("model"));
  plan.device = f.text("gpu");
  plan.layers = f.count("layers");
  plan.hidden = f.count("hidden");
  plan.heads = f.count("heads");
  plan.kv_heads = f.count("kv_heads");
  plan.feed_forward = f.count("ffn_hidden");
  plan.vocabulary = f.count("vocab");
  plan.sequence = f.count("seq_len");
  plan.parameters = f.real("params_B") * kBillion;
  plan.devices = f.count("gpus");
  plan.devices_per_node = f.count("gpus_per_node");
  plan.inter_bandwidth = f.real("inter_bw") * kGiga;
  plan.tensor = f.degree("tp");
  plan.pipeline = f.degree("pp");
  plan.data = f.count("dp");
  plan.context = f.degree("cp");
  plan.expert = f.degree("ep");
  plan.virtual_stages = f.count("vpp");
  // Of a row that tells its degrees alone.
  if (plan.devices == 0) {
    plan.devices = plan.data;
    for (const std::int64_t degree : {plan.tensor, plan.pipeline, plan.context})
      plan.devices = checked_multiply(plan.devices, degree, f.place("gpus"));
  }
  plan.micro_batch = f.real("micro_batch");
  plan.global_batch = f.count("global_batch");
  plan.precision = f.text("precision");
  plan.recompute = f.word("recompute");
  plan.sequence_parallel = f.word("sequence_parallel");
  plan.zero = f.text("zero_stage");
  plan.schedule = f.word("schedule");
  plan.source = f.text("source");
  plan.notes = f.text("notes");
  // Where a table is of a way of training, its name is all that says so ("LoRA Performance").
  if (const std::string table = f.text("table_or_figure"); !table.empty()) plan.notes += "; " + table;
  return plan;
}

constexpr double kMicro = 1e-6;
constexpr std::string_view kStepTime = "step_time_s", kPeak = "peak_GiB";

// Each says first what the row is of, whatever of it can be read.
void read_step(const Fields& f, Measurement& row) {
  MeasuredStep& step = row.what.emplace<MeasuredStep>();
  step.plan = plan_of(f);
  row.value = f.measured(kStepTime);
}
// A peak is that of as many micro-batches as fill the pipeline, however many more there are.
void fill_batch(MeasuredPlan& plan, const std::string& where) {
  constexpr double kMost = 1e9;
  if (plan.global_batch > 0 || plan.micro_batch < 1 || plan.micro_batch > kMost) return;
  const auto at_least_one = [](std::int64_t degree) { return std::max<std::int64_t>(1, degree); };
  const std::int64_t stages = at_least_one(plan.pipeline);
  const std::int64_t of_replica = checked_multiply(checked_multiply(at_least_one(plan.tensor), stages, where),
                                                   at_least_one(plan.context), where);
  const std::int64_t data = at_least_one(plan.data > 0 ? plan.data : plan.devices / of_replica);
  plan.global_batch =
      checked_multiply(checked_multiply(std::llround(plan.micro_batch), data, where), stages, where);
}

void read_peak(const Fields& f, Measurement& row) {
  MeasuredPeak& peak = row.what.emplace<MeasuredPeak>();
  peak.plan = plan_of(f);
  fill_batch(peak.plan, row.where);
  peak.scope = lower_case(f.text("rank_scope"));
  peak.reserved = lower_case(f.text("measure")).find("reserved") != std::string::npos;
  row.value = f.measured(kPeak) * kGiB;
}
void read_collective(const Fields& f, Measurement& row) {
  MeasuredCollective& collective = row.what.emplace<MeasuredCollective>();
  collective.system = f.text("system");
  collective.kind = f.text("collective");
  collective.devices = f.count("gpus");
  collective.nodes = f.count("nodes");
  collective.bytes = f.count("bytes");
  if (f.text("bytes").empty()) throw Error(f.place("bytes"), "is missing", "expected a number of bytes");
  row.value = f.measured("time_us") * kMicro;
}
void read_kernel(const Fields& f, Measurement& row) {
  MeasuredKernel& kernel = row.what.emplace<MeasuredKernel>();
  kernel.device = f.text("gpu");
  kernel.operation = f.text("op");
  kernel.dtype = f.text("dtype");
  kernel.batch = f.degree("batch");
  kernel.m = f.count("m");
  kernel.n = f.count("n");
  kernel.k = f.count("k");
  kernel.heads = f.count("heads");
  kernel.kv_heads = f.count("kv_heads");
  kernel.head_dim = f.count("head_dim");
  kernel.queries = f.count("seq_q");
  kernel.keys = f.count("seq_kv");
  kernel.notes = f.text("notes");
  row.value = f.measured("time_us") * kMicro;
}

// Names of columns are known in upper and lower case.
void spell_columns(CsvTable& table) {
  for (std::string& column : table.columns) {
    std::string usual = lower_case(column);
    for (const std::string_view name : {std::string_view("params_B"), kPeak}) {
      if (usual == lower_case(std::string(name))) usual = name;
    }
    if (!table.find(usual)) column = std::move(usual);
  }
}

struct TableKind {
  std::string_view name;
  std::string_view measured;               // the column that only these tables have
  std::array<std::string_view, 9> needed;  // columns that must be there; empty: none
  void (*read)(const Fields& fields, Measurement& row);
};
// The first whose own column and first needed one are there; times in us are of collectives or of kernels.
constexpr std::array kKinds = {
    TableKind{"training",
              kStepTime,
              {"model", "gpu", "gpus", "tp", "pp", "micro_batch", "global_batch", "seq_len", "precision"},
              read_step},
    TableKind{"memory",
              kPeak,
              {"model", "gpu", "gpus", "tp", "pp", "micro_batch", "global_batch", "seq_len", "precision"},
              read_peak},
    TableKind{"collectives", "time_us", {"collective", "system", "gpus", "bytes"}, read_collective},
    TableKind{"kernels", "time_us", {"op", "gpu", "dtype"}, read_kernel},
};

const TableKind& kind_of_columns(const CsvTable& table) {
  const TableKind* with_times = nullptr;
  for (const TableKind& kind : kKinds) {
    if (!table.find(kind.measured)) continue;
    with_times = &kind;
    if (kind.measured != "time_us" || table.find(kind.needed.front())) return kind;
  }
  if (with_times)
    throw Error(table.name + ":1", "neither 'collective' nor 'op' is among the columns",
                "times in us are of collectives or of kernels (docs/validation.md)");
  throw Error(table.name + ":1", "is not a table of measurements",
              "one of the columns step_time_s, peak_GiB and time_us must be there "
              "(docs/validation.md)");
}

Measurement read_row(const CsvTable& table, const CsvRecord& record, const TableKind& kind) {
  const Fields fields(table, record);
  Measurement row;
  row.where = table.where(record);
  row.id = fields.text("id");
  row.source = fields.text("source");
  const std::string tier = fields.text("tier");
  row.tier = tier.empty() ? ' ' : tier.front();
  try {
    kind.read(fields, row);
  } catch (const Error& error) {
    const std::string row_place = row.where + ": ";
    row.fault = error.where.starts_with(row_place)
                    ? fmt::format("{}: {}", error.where.substr(row_place.size()), error.message)
                    : error.message;
    row.expected = error.hint;
  }
  // What stands in which column of such a line is anybody's guess.
  if (std::string wrong = raggedness(table, record); !wrong.empty()) {
    row.fault = std::move(wrong);
    row.expected = "expected a comma between any two cells, also where they are empty";
    row.value = 0;
  }
  return row;
}

// Of a table with both, a line is a step and a peak, where it has both or neither has a value.
std::vector<const TableKind*> kinds_of_record(const CsvTable& table, const CsvRecord& record,
                                              const TableKind& kind) {
  const bool has_both = kind.read == read_step && table.find(kPeak);
  if (!has_both || !raggedness(table, record).empty()) return {&kind};
  const Fields fields(table, record);
  const bool has_step = !fields.word(kStepTime).empty(), has_peak = !fields.word(kPeak).empty();
  std::vector<const TableKind*> kinds;
  if (has_step || !has_peak) kinds.push_back(&kind);
  if (has_peak) kinds.push_back(&*std::ranges::find(kKinds, kPeak, &TableKind::measured));
  return kinds;
}

}  // namespace

MeasurementFile parse_measurements(std::string_view text, const std::string& name) {
  CsvTable table = parse_csv(text, name, Ragged::kept);
  spell_columns(table);
  const TableKind& kind = kind_of_columns(table);
  for (const std::string_view column : kind.needed) {
    if (!column.empty()) table.at(column);
  }
  MeasurementFile file{name, std::string(kind.name), {}};
  for (const CsvRecord& record : table.records) {
    for (const TableKind* of_row : kinds_of_record(table, record, kind))
      file.rows.push_back(read_row(table, record, *of_row));
  }
  if (file.rows.empty())
    throw Error(name, "has no rows", "expected a measurement in each line after the first");
  return file;
}

MeasurementFile read_measurements(const std::string& path) {
  const MappedFile file(path);
  require_kind(path, file.bytes(), FileKind::measurements, file_format(FileKind::measurements).what);
  return parse_measurements({file.bytes().data(), file.bytes().size()}, path);
}

}  // namespace armilla
