#include "study/scale.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>

#include "base/error.h"
#include "base/sorted.h"
#include "base/units_text.h"
#include "study/search/plan_room.h"

namespace armilla {
namespace {

constexpr std::string_view kRanks = "plan.ranks";

// What is to be known of the best plans of some sizes.
struct NoteOfSizes {
  std::string note;
  std::vector<std::int64_t> ranks;
};

std::string refusal_of(const SearchResult& result) {
  if (!result.nearest) {
    const std::string why = main_refusal(result);
    return why.empty() ? "no plan is legal" : "no plan is legal: " + why;
  }
  return fmt::format("no plan fits: the nearest needs {} of {}", to_text(result.nearest->memory.needed()),
                     to_text(result.nearest_room));
}

// The search of one size.
SearchRequest at_size(const ScaleRequest& request, const ScalePoint& point) {
  SearchRequest search = request.search;
  std::erase_if(search.axes, [](const SearchAxis& axis) { return axis.key == kRanks; });
  search.top = 1;
  search.patience = {.longest = kEndOfTime};  // all sizes together were looked at
  const auto read = search.read;
  const std::vector<Override> size = {fmt::format("{}={}", kRanks, point.ranks),
                                      {fmt::format("plan.global_batch={}", point.global_batch),
                                       fmt::format("--global-batch {}", point.global_batch)}};
  search.read = [read, size](const std::vector<Override>& settings) {
    std::vector<Override> all = size;
    all.insert(all.end(), settings.begin(), settings.end());
    return read(all);
  };
  return search;
}

std::vector<SearchRequest> at_all_sizes(const ScaleRequest& request, const std::vector<ScalePoint>& points) {
  std::vector<SearchRequest> searches;
  for (const ScalePoint& point : points) {
    searches.push_back(at_size(request, point));
    searches.back().part = static_cast<std::int64_t>(searches.size()) - 1;
  }
  return searches;
}

// Of all sizes, which are searched one after the other.
ForeseenRuns foreseen_plans(const std::vector<SearchRequest>& searches, Crew& crew) {
  ForeseenRuns all{.what = "plan"};
  for (const SearchRequest& search : searches) {
    if (search.stopped && search.stopped()) return {};
    const ForeseenRuns runs = foresee_search(search, crew);
    if (runs.network.empty()) continue;
    all = {.what = runs.what,
           .network = runs.network,
           .least = all.least + runs.least,
           .most = all.most + runs.most,
           .together = {all.together.least + runs.together.least, all.together.most + runs.together.most},
           .at_once = runs.at_once,
           .fewer = "fewer sizes, or fixed values, make fewer plans"};
  }
  return all;
}

std::vector<std::int64_t> rank_sizes(const SearchRequest& search) {
  std::vector<std::int64_t> sizes;
  for (const SearchAxis& axis : search.axes) {
    if (axis.key != kRanks) continue;
    for (const std::string& value : axis.values) sizes.push_back(parse_count(value, axis.where));
  }
  sort_unique(sizes);
  if (sizes.size() < 2)
    throw Error("--ranks", "names no two sizes", "give a range or a list, such as 64..1024 or 64,96,128");
  return sizes;
}

// Of one size after the other, as the leader searches them.
[[noreturn]] void serve(const std::vector<SearchRequest>& searches, Crew& crew) {
  std::optional<PlanRoom> room;
  std::int64_t part = -1;  // of the room
  crew.serve([&](const Piece& piece) {
    if (piece.part != part) room.emplace(searches[static_cast<std::size_t>(part = piece.part)]);
    return room->perform(piece);
  });
}

}  // namespace

ScaleResult scale_plans(const ScaleRequest& request) {
  Crew crew(request.search.threads);
  return scale_plans(request, crew);
}

ScaleResult scale_plans(const ScaleRequest& request, Crew& crew) {
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<std::int64_t> sizes = rank_sizes(request.search);
  ScaleResult result;
  result.weak = request.weak;
  std::vector<ScalePoint> points;
  for (const std::int64_t ranks : sizes) {
    ScalePoint& point = points.emplace_back(ScalePoint{ranks, request.global_batch, {}, {}, {}, {}, {}, {}});
    if (request.weak) {
      if (request.global_batch * ranks % sizes.front() != 0) {
        throw Error(
            "--global-batch",
            fmt::format("{} on {} would be {:.2f} on {}", counted(request.global_batch, "sample"),
                        counted(sizes.front(), "rank"),
                        static_cast<double>(request.global_batch) * static_cast<double>(ranks) /
                            static_cast<double>(sizes.front()),
                        counted(ranks, "rank")),
            "--weak gives every rank as many samples: give a multiple of the smallest number of ranks");
      }
      point.global_batch = request.global_batch * ranks / sizes.front();
    }
  }
  const std::vector<SearchRequest> searches = at_all_sizes(request, points);
  if (crew.serves()) serve(searches, crew);
  check_patience(foreseen_plans(searches, crew), request.search.patience);
  std::string hint;  // where the size looked at last has no plan
  std::vector<NoteOfSizes> notes;
  for (const SearchRequest& search : searches) {
    ScalePoint& point = points[static_cast<std::size_t>(search.part)];
    if (search.stopped && search.stopped()) break;
    const SearchResult found = search_plans(search, crew);
    if (!found.complete) break;  // half a search says nothing of the best
    point.space = found.space;
    point.edges = found.edges;
    point.axes = found.axes;
    result.tokens_per_sample = found.tokens_per_sample;
    for (const std::string& note : found.notes) {
      const auto known = std::ranges::find(notes, note, &NoteOfSizes::note);
      (known == notes.end() ? notes.emplace_back(NoteOfSizes{note, {}}) : *known)
          .ranks.push_back(point.ranks);
    }
    if (found.ranking.empty()) {
      point.refusal = refusal_of(found);
      hint = found.nearest ? untried_room(found) : "list more values, or other numbers of ranks";
    } else {
      point.best = found.ranking.front();
      point.settings = {fmt::format("{}={}", kRanks, point.ranks),
                        fmt::format("plan.global_batch={}", point.global_batch)};
      for (const Override& setting : settings_of(found, *point.best))
        point.settings.push_back(setting.setting);
    }
    result.points.push_back(std::move(point));
  }
  result.complete = result.points.size() == sizes.size();
  const auto with_plan =
      std::ranges::count_if(result.points, [](const ScalePoint& point) { return point.best.has_value(); });
  for (const NoteOfSizes& note : notes) {
    const bool is_of_all = static_cast<std::ptrdiff_t>(note.ranks.size()) == with_plan;
    if (is_of_all) {
      result.notes.push_back(note.note);
      continue;
    }
    const auto first = std::span(note.ranks).first(note.ranks.size() - 1);
    result.notes.push_back(fmt::format("on {}{}{}: {}", fmt::join(first, ", "), first.empty() ? "" : " and ",
                                       counted(note.ranks.back(), "rank"), note.note));
  }
  if (result.complete && !result.has_plan()) {
    throw Error("armilla scale", "no size has a plan that can be run: " + result.points.back().refusal, hint);
  }
  result.elapsed_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace armilla
