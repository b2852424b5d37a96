// How ranks spent the iteration, by role: the table and the bars.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/units_text.h"
#include "ir/derived/metrics.h"
#include "ir/derived/stage_table.h"
#include "write/report/alike.h"
#include "write/report/run_parts.h"

namespace armilla {
namespace {

constexpr std::size_t kMostRows = 20, kMostBars = 8, kMostGroups = 3;
constexpr std::size_t kBarWidth = 60, kRoleWidth = 24, kMostRangeText = 16;

// Ranks that are shown as one: classes of a role that spent their time alike.
struct Group {
  std::vector<std::string> names;
  std::int64_t ranks = 0;
  Time compute, communication, exposed;
  std::vector<Time> by_kind;  // empty: not recorded
  Time idle;
  Bytes needed, capacity;
};

// A role of one of several jobs; what data-parallel ranks are need not be said.
std::string role_name(const Run& run, std::uint32_t program) {
  constexpr std::string_view kUsual = ", data-parallel rank";
  std::string role = run.graph.programs[program].role;
  if (!run.jobs.empty() && role.ends_with(kUsual)) role.resize(role.size() - kUsual.size());
  return role;
}

// "rank 13", "ranks 0-12,14-63" of the classes; "ranks like 14" where that is too long.
// Classes are the simulator's; users know ranks. Text that would be longer than its column names one rank
// instead.
std::string ranks_text(const Run& run, const std::vector<std::size_t>& classes) {
  std::string text;
  std::int64_t count = 0, first = -1;
  const std::vector<std::uint32_t>& class_of = run.result.class_of;
  const auto is_in = [&](std::size_t rank) {
    return rank < class_of.size() &&
           std::find(classes.begin(), classes.end(), class_of[rank]) != classes.end();
  };
  for (std::size_t rank = 0; rank < class_of.size() && text.size() <= kMostRangeText; ++rank) {
    if (!is_in(rank)) continue;
    std::size_t last = rank;
    while (is_in(last + 1)) ++last;
    if (first < 0) first = static_cast<std::int64_t>(rank);
    count += static_cast<std::int64_t>(last - rank + 1);
    text += (text.empty() ? "" : ",") +
            (last == rank ? fmt::format("{}", rank) : fmt::format("{}-{}", rank, last));
    rank = last;
  }
  if (first < 0) first = run.result.classes[classes.front()].representative;
  if (text.empty() || text.size() > kMostRangeText) return fmt::format("ranks like {}", first);
  return (count == 1 ? "rank " : "ranks ") + text;
}

// Figures of a class as they are shown, which is what makes two of them alike.
std::vector<std::string> figures(const Run& run, const RankClass& ranks) {
  return {to_text(ranks.compute), to_text(ranks.communication), to_text(ranks.exposed_communication),
          to_text(idle(ranks, run.result.iteration))};
}

// Weighted by ranks; through double, since sums over many ranks would overflow.
Time mean(const Run& run, const std::vector<std::size_t>& classes, Time RankClass::*figure) {
  double sum = 0, ranks = 0;
  for (const std::size_t i : classes) {
    const RankClass& each = run.result.classes[i];
    sum += in_seconds(each.*figure) * static_cast<double>(each.ranks);
    ranks += static_cast<double>(each.ranks);
  }
  return classes.size() == 1 || ranks <= 0 ? run.result.classes[classes.front()].*figure
                                           : from_seconds(sum / ranks);
}

Group group_of(const Run& run, std::uint32_t program, const std::vector<std::size_t>& classes, bool alike,
               const StageSummary* stage) {
  Group group;
  group.names = {role_name(run, program)};
  for (const std::size_t i : classes) group.ranks += run.result.classes[i].ranks;
  const RankClass& first = run.result.classes[classes.front()];
  group.compute = alike ? first.compute : mean(run, classes, &RankClass::compute);
  group.communication = alike ? first.communication : mean(run, classes, &RankClass::communication);
  group.exposed = alike ? first.exposed_communication : mean(run, classes, &RankClass::exposed_communication);
  // compute + exposed + idle = iteration: what is left is idle.
  group.idle = run.result.iteration - group.compute - group.exposed;
  // The stage's figures tell communication by kind; they are known for the recorded class only, and the three
  // still add up to the iteration.
  if (stage != nullptr) {
    group.by_kind = stage->exposed;
    group.idle = stage->bubble;
    group.exposed = run.result.iteration - group.compute - stage->bubble;
  }
  for (const RoleMemory& role : run.roles) {
    if (role.program != program) continue;
    group.needed = role.use.needed();
    group.capacity = role.use.capacity;
  }
  return group;
}

// One group for a role whose ranks are all alike, some where they fall into a few, else one of their means.
void add_role(const Run& run, const std::vector<std::size_t>& classes, const StageSummary& stage,
              const RankClass* recorded, std::vector<Group>& groups) {
  std::map<std::vector<std::string>, std::size_t> index;
  std::vector<std::vector<std::size_t>> parts;
  for (const std::size_t i : classes) {
    const auto [part, fresh] = index.try_emplace(figures(run, run.result.classes[i]), parts.size());
    if (fresh) parts.emplace_back();
    parts[part->second].push_back(i);
  }
  // Too many different times for a table: the mean stands for the role.
  if (parts.size() > kMostGroups) {
    groups.push_back(group_of(run, stage.program, classes, false, nullptr));
    return;
  }
  for (const std::vector<std::size_t>& part : parts) {
    const bool known = has_model(run) && std::any_of(part.begin(), part.end(), [&](std::size_t i) {
                         return &run.result.classes[i] == recorded;
                       });
    groups.push_back(group_of(run, stage.program, part, true, known ? &stage : nullptr));
    if (parts.size() == 1) continue;
    std::string& name = groups.back().names.front();
    const std::string ranks = ranks_text(run, part);
    name = run.graph.programs.size() == 1 ? ranks : fmt::format("{}: {}", name, ranks);
  }
}

std::vector<Group> groups_of(const Run& run, const StageTable& table) {
  std::vector<std::vector<std::size_t>> classes(run.graph.programs.size());
  for (std::size_t i = 0; i < run.result.classes.size(); ++i)
    classes[run.result.classes[i].program].push_back(i);
  const std::vector<const RankClass*> recorded = representatives(run);
  std::vector<Group> groups;
  for (const StageSummary& stage : table.stages)
    add_role(run, classes[stage.program], stage, recorded[stage.program], groups);
  return groups;
}

// The kinds with most exposed time have columns of their own as far as the line has room, the rest share one.
struct KindColumns {
  std::vector<std::size_t> kinds;  // into StageTable::kinds
  bool others = false;
};

KindColumns kind_columns(const StageTable& table, const std::vector<Group>& groups, std::size_t room) {
  constexpr std::size_t kGap = 2, kNarrowest = 5;
  KindColumns columns;
  // One kind is the exposed time itself: a column of its own would repeat it.
  if (table.kinds.size() < 2) return columns;  // it is what is exposed at all
  std::vector<double> seconds(table.kinds.size());
  for (const Group& group : groups) {
    for (std::size_t kind = 0; kind < group.by_kind.size(); ++kind)
      seconds[kind] += in_seconds(group.by_kind[kind]) * static_cast<double>(group.ranks);
  }
  std::vector<std::size_t> order(table.kinds.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return seconds[a] > seconds[b]; });
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t width = kGap + std::max(kNarrowest, display_width(table.kinds[order[i]]));
    // A column for the others must still fit behind the last kind shown.
    const std::size_t reserve = i + 1 < order.size() ? kGap + kNarrowest : 0;
    columns.others = width + reserve > room;
    if (columns.others) break;
    room -= width;
    columns.kinds.push_back(order[i]);
  }
  // Back in the table's order, so that columns do not move from run to run.
  std::sort(columns.kinds.begin(), columns.kinds.end());
  return columns;
}

// The cells of a row after its name and ranks.
std::vector<std::string> cells(const Run& run, const Group& group, const StageTable& table,
                               const KindColumns& columns) {
  const auto share = [&](Time part) { return percent_digits(ratio(part, run.result.iteration)); };
  std::vector<std::string> row = {to_text(group.compute), share(group.compute)};
  if (table.kinds.size() < 2) {
    row.push_back(to_text(group.communication));
    row.push_back(to_text(group.exposed));
  }
  row.push_back(share(group.exposed));
  Time others = group.exposed;
  for (const std::size_t kind : columns.kinds) {
    row.push_back(group.by_kind.empty() ? "" : share(group.by_kind[kind]));
    if (!group.by_kind.empty()) others -= group.by_kind[kind];
  }
  if (columns.others) row.push_back(group.by_kind.empty() ? "" : share(others));
  row.push_back(share(group.idle));
  if (has_model(run)) {
    row.push_back(to_text(group.needed));
    row.push_back(group.capacity > Bytes(0) ? percent_digits(ratio(group.needed, group.capacity))
                                            : "unknown");
  }
  return row;
}

TextTable empty_table(const Run& run, const StageTable& table, const KindColumns& columns) {
  TextTable rows{{{"role", false}, {"ranks", true, SIZE_MAX, 1}, {"compute"}, {"%"}}, {}};
  const auto add = [&](std::string header, int spare = 0) {
    rows.columns.push_back({std::move(header), true, SIZE_MAX, spare});
  };
  if (table.kinds.size() < 2) {
    add("communication", 5);
    add("exposed", 4);
    add("%");
  } else {
    add("exposed");
  }
  for (const std::size_t kind : columns.kinds) add(std::string(table.kinds[kind]), 6);
  if (columns.others) add("other", 6);
  add("idle");
  if (has_model(run)) {
    add("memory", 2);
    add("%", 3);
  }
  return rows;
}

// Groups of different roles with the same figures become one.
std::vector<Group> merged(const Run& run, const StageTable& table, const std::vector<Group>& groups) {
  KindColumns all;
  for (std::size_t kind = 0; kind < table.kinds.size(); ++kind) all.kinds.push_back(kind);
  std::map<std::vector<std::string>, std::size_t> index;
  std::vector<Group> rows;
  for (const Group& group : groups) {
    const auto [row, fresh] = index.try_emplace(cells(run, group, table, all), rows.size());
    if (fresh) {
      rows.push_back(group);
    } else {
      rows[row->second].ranks += group.ranks;
      rows[row->second].names.push_back(group.names.front());
    }
  }
  return rows;
}

// "pipeline rank 3, expert position 7" where that is too long for the column.
std::string short_name(const Group& group) {
  std::string name = name_of_all(group.names);
  for (const std::string_view word : {" positions", " position", " ranks", " rank"}) {
    const std::size_t at = name.find(word);
    if (display_width(name) > kRoleWidth && at != std::string::npos && at > 0) name.erase(at, word.size());
  }
  return shorten(name, 2 * kRoleWidth);
}

std::string times(std::string_view text, std::size_t count) {
  std::string repeated;
  for (std::size_t i = 0; i < count; ++i) repeated += text;
  return repeated;
}

std::string bar(const Group& group, Time iteration, std::size_t width, const TextStyle& style) {
  const auto until = [&](Time time) {
    return static_cast<std::size_t>(
        std::llround(static_cast<double>(width) * std::clamp(ratio(time, iteration), 0.0, 1.0)));
  };
  const std::size_t compute = until(group.compute);
  const std::size_t busy = std::max(compute, until(group.compute + group.exposed));
  return paint(times("█", compute), Ink::green, style.colour) +
         paint(times("▓", busy - compute), Ink::yellow, style.colour) +
         paint(times("░", width - busy), Ink::dim, style.colour) + '\n';
}

// Of some rows, the first and the last among them, where there are many.
std::string bars(const Run& run, const std::vector<Group>& rows, const TextStyle& style) {
  std::size_t names = 0;
  for (const Group& row : rows) names = std::max(names, std::min(display_width(short_name(row)), kRoleWidth));
  const std::size_t room = style.width > names + 6 ? style.width - names - 6 : 10;
  const std::size_t shown = std::min(rows.size(), kMostBars);
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    const Group& row = rows[shown < 2 ? 0 : i * (rows.size() - 1) / (shown - 1)];
    const std::string name = shorten(short_name(row), names);
    const std::string label =
        rows.size() == 1 ? "" : printable(name) + std::string(names - display_width(name) + 2, ' ');
    text += "  " + label + bar(row, run.result.iteration, std::min(room, kBarWidth), style);
  }
  return text +
         paint(flow({"  █ compute", "▓ exposed communication", "░ idle"}, 2, style.width), Ink::dim,
               style.colour) +
         '\n';
}

// Worth a line where not all of it is the compute model's, or some of it is beyond what that was fitted to.
std::string sources_text(const ComputeShares& shares, const Device& device, std::size_t width) {
  constexpr double kLeastShown = 0.0005;
  if (shares.measured + shares.interpolated < kLeastShown && shares.extrapolated < kLeastShown) return {};
  std::string text = "computing time: ";
  if (shares.measured + shares.interpolated >= kLeastShown)
    text +=
        fmt::format("{} measured, {} interpolated, ", percent(shares.measured), percent(shares.interpolated));
  text += fmt::format("{} modelled", percent(shares.modelled));
  if (shares.extrapolated >= kLeastShown && device.kernels && are_of_nothing(*device.kernels)) {
    text += fmt::format(": no kernel of {} was measured, its rates are another device's", device.name);
  } else if (shares.extrapolated >= kLeastShown) {
    text += fmt::format(
        ", of all {} extrapolated: outside the range of the measurements that the rates were "
        "fitted to",
        percent(shares.extrapolated));
  }
  return wrap(text, "  ", width);
}

// The role whose ranks differ most, where one row stands for ranks that differ: jitter, many other devices.
std::string spread_text(const Run& run, const StageTable& table, const std::vector<Group>& groups,
                        std::size_t width) {
  if (groups.size() > table.stages.size()) return {};  // every row is of ranks that are alike
  const auto widest = std::max_element(
      table.stages.begin(), table.stages.end(), [](const StageSummary& a, const StageSummary& b) {
        return a.most_compute - a.least_compute < b.most_compute - b.least_compute;
      });
  if (widest == table.stages.end() || widest->least_compute == widest->most_compute) return {};
  return wrap(fmt::format("means; ranks of a role differ: those of {} compute for {} to {}",
                          role_name(run, widest->program), to_text(widest->least_compute),
                          to_text(widest->most_compute)),
              "  ", width);
}

}  // namespace

std::string time_section(const Run& run, const TextStyle& style) {
  StageTable table = stage_table(run);
  if (!has_model(run)) table.kinds.clear();  // names of groups in a trace say little
  const std::vector<Group> groups = groups_of(run, table);
  const std::vector<Group> rows = merged(run, table, groups);
  std::size_t role = 0;
  for (const Group& row : rows) role = std::max(role, display_width(short_name(row)));
  constexpr std::size_t kOtherColumns = 57;
  const std::size_t taken = kOtherColumns + std::min(role, kRoleWidth);
  const KindColumns columns = kind_columns(table, rows, style.width > taken ? style.width - taken : 0);
  const std::size_t shown = rows.size() > kMostRows ? kMostRows - 1 : rows.size();
  TextTable text = empty_table(run, table, columns);
  for (std::size_t i = 0; i < shown; ++i) {
    std::vector<std::string>& row = text.rows.emplace_back();
    row = {short_name(rows[i]), with_separators(rows[i].ranks)};
    for (std::string& cell : cells(run, rows[i], table, columns)) row.push_back(std::move(cell));
  }
  const std::string title = has_model(run) ? "Time and memory of a rank" : "Time of a rank";
  // The share of the memory is the last column, and the first to go where the line is too short.
  const std::string plain = to_text(text, 2, {false, style.width});
  const bool of_memory = plain.substr(0, plain.find('\n')).ends_with("%");
  const std::string remark = !has_model(run) ? "% of the run"
                             : of_memory     ? "% of the iteration, of the device's memory"
                                             : "% of the iteration";
  std::string section = heading(title, style, remark) + to_text(text, 2, style);
  if (shown < rows.size()) section += fmt::format("  and {}\n", typed_count(rows.size() - shown, "more row"));
  section += bars(run, rows, style);
  if (run.study.plan.pipeline > 1 && has_model(run)) {
    section += wrap(fmt::format("bubble {} of the time, {} of the computing time",
                                percent(bubble_fraction(run)), percent(bubble_ratio(run))),
                    "  ", style.width);
  }
  if (constexpr double kShown = 0.0005; host_fraction(run) >= kShown) {
    std::string waits =
        fmt::format("waiting for the CPU to issue kernels {} of the time", percent(host_fraction(run)));
    // Of several jobs each has its own.
    if (const std::optional<Time> issue = run.study.plan.issue_time)
      waits +=
          fmt::format(", one operator every {}{}", to_text(*issue),
                      run.study.plan.check_collectives ? " and longer for collectives, which it checks" : "");
    section += wrap(waits, "  ", style.width);
  }
  section += sources_text(run.shares, run.study.machine.device, style.width);
  return section + spread_text(run, table, groups, style.width);
}

}  // namespace armilla
