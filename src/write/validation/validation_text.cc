#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units_text.h"
#include "write/validation.h"

namespace armilla {
namespace {

void add_row(TextTable& table, const ValidatedSet& set) {
  const ErrorSummary& e = set.errors;
  const bool any = e.count > 0, ranked = set.ranking.groups > 0;
  const std::string rows = e.count == set.rows
                               ? with_separators(set.rows)
                               : fmt::format("{} of {}", with_separators(e.count), with_separators(set.rows));
  table.rows.push_back({set.name, rows, any ? percent_digits(e.mape) : "",
                        any ? percent_digits(e.median) : "", any ? signed_percent_digits(e.bias) : "",
                        any ? percent_digits(e.p90) : "", any ? percent_digits(e.largest) : "",
                        set.constant.count > 0 ? percent_digits(set.constant.mape) : "",
                        ranked ? fmt::format("{:.2f}", set.ranking.spearman) : "",
                        ranked ? percent_digits(set.ranking.regret) : ""});
}

constexpr std::size_t kSetWidth = 40;

std::string section(const Validation& validation, const ValidatedSet& total, const TextStyle& style) {
  TextTable table{{{total.kind, false, kSetWidth},
                   {"rows"},
                   {"MAPE %"},
                   {"median", true, SIZE_MAX, 2},
                   {"bias"},
                   {"90 %", true, SIZE_MAX, 3},
                   {"most", true, SIZE_MAX, 2},
                   {"const.", true, SIZE_MAX, 1},
                   {"rank", true, SIZE_MAX, 1},
                   {"regret", true, SIZE_MAX, 1}},
                  {}};
  for (const ValidatedSet& set : validation.sets) {
    if (set.kind == total.kind) add_row(table, set);
  }
  add_row(table, total);
  // Columns without a figure leave their room to the names of sets, by which alone these are told apart.
  for (std::size_t column = table.columns.size(); column-- > 0;) {
    const auto is_empty = [&](const std::vector<std::string>& row) { return row[column].empty(); };
    if (!std::ranges::all_of(table.rows, is_empty)) continue;
    const auto at = static_cast<std::ptrdiff_t>(column);
    table.columns.erase(table.columns.begin() + at);
    for (std::vector<std::string>& row : table.rows) row.erase(row.begin() + at);
  }
  return to_text(table, 2, style) + '\n';
}

std::string value_text(const ValidatedRow& row, double value) {
  constexpr double kGiB = 1073741824.0;
  if (std::holds_alternative<MeasuredPeak>(row.measured.what)) return fmt::format("{:.2f} GiB", value / kGiB);
  return to_text(from_seconds(value));
}

std::string miss_text(const ValidatedRow& row, const TextStyle& style) {
  const Measurement& m = row.measured;
  return wrap(
      fmt::format("{}{}: {} %, {} predicted, {} measured; {}{}{}", m.where, m.id.empty() ? "" : ' ' + m.id,
                  signed_percent_digits(row.error()), value_text(row, *row.predicted),
                  value_text(row, m.value), row.study, row.likely.empty() ? "" : "; ", row.likely),
      "  ", style.width);
}

// Of the columns that are there.
std::string legend(const Validation& validation) {
  const auto any_set = [&](const auto& has) {
    return std::ranges::any_of(validation.sets, has) || std::ranges::any_of(validation.totals, has);
  };
  std::string text =
      "error = predicted / measured - 1; MAPE: mean of its absolute value; bias: the median error, negative "
      "where predictions are too fast (or too small); 90 %: what so many rows stay below";
  if (any_set([](const ValidatedSet& set) { return set.constant.count > 0; }))
    text += "; const.: MAPE of one constant efficiency, the set's median";
  if (any_set([](const ValidatedSet& set) { return set.ranking.groups > 0; }))
    text += "; rank: Spearman's correlation, and regret, over the plans of one model";
  return text;
}

}  // namespace

std::string write_validation_text(const Validation& validation, std::size_t misses, const TextStyle& style) {
  std::string text;
  for (const ValidatedSet& total : validation.totals) text += section(validation, total, style);
  text += wrap(legend(validation), "", style.width);
  for (const ValidatedSet& total : validation.totals) {
    const std::size_t listed = std::min(misses, total.misses.size());
    if (listed == 0) continue;
    text += paint(fmt::format("\nlargest errors of {}", total.kind), Ink::bold, style.colour) + '\n';
    for (std::size_t i = 0; i < listed; ++i) text += miss_text(validation.rows[total.misses[i]], style);
  }
  if (!validation.unpredicted.empty()) text += paint("\nnot predicted", Ink::bold, style.colour) + '\n';
  for (const auto& [reason, rows] : validation.unpredicted) {
    const ValidatedRow& first = validation.rows[rows.front()];
    text += wrap(
        fmt::format("{}: {} (first: {})", counted(rows.size(), "row"),
                    printable(rows.size() == 1 ? first.unpredicted_detail : reason), first.measured.where),
        "  ", style.width);
  }
  return text;
}

}  // namespace armilla
