#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "base/output_file.h"
#include "base/text.h"
#include "base/units_text.h"
#include "cli/command.h"
#include "cli/flags/fast_forward.h"
#include "cli/flags/model_flags.h"
#include "cli/flags/output_flags.h"
#include "cli/flags/patience.h"
#include "cli/flags/study_flags.h"
#include "cli/interrupt.h"
#include "read/study.h"
#include "study/run.h"
#include "study/search.h"
#include "study/spread.h"
#include "write/search.h"
#include "write/text_table.h"

namespace armilla {
namespace {

// In the order of SearchObjective, and then other names: samples have as many tokens in all plans
// of a search.
constexpr std::array<std::string_view, 6> kObjectives = {"time",   "throughput", "cost",
                                                         "energy", "memory",     "tokens"};

constexpr std::int64_t kMostRanked = 1'000'000;

std::vector<SearchObjective> objectives_of(const std::string& text) {
  const std::string where = "--objective " + text;
  std::vector<SearchObjective> objectives;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string name(trimmed(std::string_view(text).substr(begin, end - begin)));
    if (name.empty())
      throw Error(where, "an objective is missing beside a comma",
                  "list objectives such as time,memory, without a comma at the end");
    std::size_t choice = parse_choice(name, kObjectives, "--objective");
    if (kObjectives[choice] == "tokens") choice = static_cast<std::size_t>(SearchObjective::throughput);
    const auto objective = static_cast<SearchObjective>(choice);
    if (std::ranges::find(objectives, objective) != objectives.end())
      throw Error(where, fmt::format("names {} twice", name_of(objective)),
                  text.find("tokens") != std::string::npos
                      ? "tokens and throughput are the same: samples have as many tokens "
                        "in all plans"
                      : "give each once");
    objectives.push_back(objective);
    begin = end + 1;
  }
  return objectives;
}

class SearchCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    study_.declare(app, StudyDefaults::tried);
    app.add_option(
           "--objective", objective_,
           "what the best plan is best at: time, tokens, throughput, cost, energy or memory; of several the "
           "first, and their front is found (default: time; without a global batch throughput)")
        ->type_name("NAME,...")
        ->group("Search");
    app.add_option("--top", top_, "plans in the ranking, exactly")->type_name("N")->group("Search");
    app.add_flag("--front", front_,
                 "find the whole front, of time and memory unless --objective names several")
        ->group("Search");
    app.add_option("--memory-share", memory_share_, "of the device's memory that a plan may take")
        ->type_name("SHARE")
        ->group("Search");
    app.add_option("--deadline", deadline_, "longest iteration that counts, such as 2s")
        ->type_name("TIME")
        ->group("Search");
    app.add_option("--budget", budget_,
                   "most that the whole training may cost, such as 2.5MUSD; with --tokens")
        ->type_name("MONEY")
        ->group("Search");
    app.add_flag("--explain", explain_, "simulate the best plan with each knob changed")->group("Search");
    app.add_flag("--brute-force", brute_force_, "simulate every plan that is legal and fits, without bounds")
        ->group("Search");
    app.add_option("--threads", threads_,
                   "simulations at once (default: one per core; under mpirun, one per rank)")
        ->type_name("N")
        ->group("Search");
    add_patience_flag(app, patience_, "Search");
    outputs_.add(app, "--json", json_, "write what was found to FILE (docs/formats/search_json.md)")
        ->group("Output");
    outputs_.add(app, "--csv", csv_, "write every plan that was simulated to FILE")->group("Output");
    outputs_.add(app, "--svg", svg_, "plot time over memory, and the plans' knobs, to FILE")->group("Output");
    outputs_
        .add(app, "--save", save_, "keep every finished simulation in FILE (docs/formats/search_database.md)",
             OutputKind::database)
        ->group("Output");
    app.add_flag("--resume", resume_, "go on with what is in the file of --save")->group("Output");
    app.add_flag("--quiet", quiet_, "print nothing but errors")->group("Output");
  }

  void execute(const Session& session) override {
    SearchRequest request;
    std::vector<SearchObjective> objectives;
    if (objective_) objectives = objectives_of(*objective_);
    request.top = parse_flag(top_, "--top", 1, kMostRanked);
    request.memory_share = parse_fraction(memory_share_, "--memory-share " + memory_share_);
    if (!deadline_.empty()) request.deadline = parse_time(deadline_, "--deadline " + deadline_);
    if (!budget_.empty()) request.budget = parse_money(budget_, "--budget " + budget_);
    request.explain = explain_;
    request.brute_force = brute_force_;
    if (!threads_.empty()) request.threads = parse_flag(threads_, "--threads", 1, kMostAtOnce);
    if (resume_ && save_.empty())
      throw Error("--resume", "there is nothing to go on with",
                  "--save FILE names what an earlier search has saved");
    Crew crew = Crew::of_job(request.threads);
    // Under mpirun the other ranks simulate what they are told, and nothing else.
    if (crew.follows()) return crew.follow();
    request.save = save_;
    request.resume = resume_;
    request.version = build_version();
    request.progress = session.meter;
    request.patience = patience_of(patience_, session, quiet_);
    const CatchInterrupt interrupt;
    request.stopped = CatchInterrupt::happened;

    std::optional<Run> best;
    SearchResult result = study_.speaking_of_flags([&] {
      if (objectives.empty()) objectives = {usual_objective()};
      request.objective = objectives.front();
      if (objectives.size() > 1) {
        request.front = objectives;
      } else if (front_) {
        const bool per_sample = request.objective == SearchObjective::throughput;
        request.front = {per_sample ? SearchObjective::throughput : SearchObjective::time,
                         SearchObjective::memory};
      }
      request.axes = search_axes(study_.configuration("armilla search"));
      // A database of another question is not resumed.
      if (!save_.empty()) request.asked = settings_text(study_.configuration("armilla search"));
      request.read = [with = study_.configurations("armilla search")](const std::vector<Override>& settings) {
        return read_study(with(settings));
      };
      SearchResult found = search_plans(request, crew);
      // The search keeps figures of its plans, not their runs: the JSON report has all of the best one's.
      if (!json_.empty() && !found.ranking.empty())
        best = run_study(prepare_study(request.read(settings_of(found, found.ranking.front()))));
      return found;
    });
    for (auto& [reason, refusal] : result.space.refusals) {
      refusal.example = study_.as_typed(refusal.example);
      refusal.hint = study_.as_typed(refusal.hint);
    }
    result.why_none.example = study_.as_typed(result.why_none.example);
    result.why_none.hint = study_.as_typed(result.why_none.hint);
    for (std::string& note : result.notes) note = study_.as_typed(note);
    for (SearchEdge& edge : result.edges) edge.widen = study_.as_typed(edge.widen);
    for (Neighbour& neighbour : result.neighbours) neighbour.refusal = study_.as_typed(neighbour.refusal);
    std::vector<NamedContents> files;
    if (!json_.empty()) files.push_back({json_, write_search_json(result, best ? &*best : nullptr)});
    if (!csv_.empty()) files.push_back({csv_, write_search_csv(result)});
    if (!svg_.empty()) files.push_back({svg_, write_search_svg(result)});
    write_files(files);
    const Session people = for_people(session, {json_, csv_, svg_});
    if (!quiet_) {
      people.out << write_search_text(result, people.style());
      const Config config = study_.configuration("armilla search");
      for (const std::string& note : {links_note(config), fast_forward_note(config)}) {
        if (!note.empty()) people.out << wrap(note, "note: ", people.style().width);
      }
    }
    if (!result.complete) {
      throw Interrupted("armilla search",
                        result.ranking.empty() ? "was interrupted before any plan was found"
                                               : "was interrupted: there may be better plans",
                        save_.empty() ? "" : "the same command with --resume goes on");
    }
    if (result.ranking.empty()) throw Error("armilla search", nothing_found(result), hint_of(result));
  }

 private:
  // The time of an iteration says little where plans have batches of their own.
  SearchObjective usual_objective() const {
    const std::optional<Config> plan = study_.configuration("armilla search").find("plan");
    const bool is_given = plan && plan->is_map() && plan->find("global_batch");
    return is_given ? SearchObjective::time : SearchObjective::throughput;
  }

  // Why there is no plan, by what came nearest: the user hears what to change, not only that nothing was
  // found.
  std::string nothing_found(const SearchResult& result) const {
    if (result.late) {
      // What does not fit may be within them.
      return fmt::format(
          "{} is within {}: {}", result.nearest ? "no plan that fits" : "no plan", limits(),
          nearest_to_limits(result.late->iteration, result.late->training_cost(),
                            result.late_beside_unfit && !result.nearest ? " that fits" : "", ""));
    }
    if (!result.nearest) return "no plan of the space can be run";
    const std::string needs = needs_of(result);
    if (!result.late_bound) return "no plan fits: the nearest " + needs;
    return fmt::format(
        "no plan fits, nor is one within {}: the smallest {}, {}", limits(), needs,
        nearest_to_limits(result.late_bound->iteration, result.late_bound->training_cost, "", "at least "));
  }
  static std::string needs_of(const SearchResult& result) {
    return fmt::format("needs {} of {}", to_text(result.nearest->memory.needed()),
                       to_text(result.nearest_room));
  }
  // "the deadline of 2s"
  std::string limits() const {
    if (budget_.empty()) return "the deadline of " + deadline_;
    if (deadline_.empty()) return "the budget of " + budget_;
    return fmt::format("the deadline of {} and the budget of {}", deadline_, budget_);
  }
  std::string nearest_to_limits(Time iteration, const std::optional<Money>& cost, std::string_view which,
                                std::string_view least) const {
    if (budget_.empty()) return fmt::format("the fastest{} takes {}{}", which, least, to_text(iteration));
    if (deadline_.empty()) return fmt::format("the cheapest{} costs {}{}", which, least, to_text(*cost));
    return fmt::format("the nearest{0} takes {1}{2} and costs {1}{3}", which, least, to_text(iteration),
                       to_text(*cost));
  }
  std::string room_hint(const SearchResult& result) const {
    return study_.as_typed(untried_room(result)) +
           (memory_share_ == "1" ? "" : ", or a larger --memory-share");
  }
  // Where plans fit, and none of them is within the limits.
  std::string hint_of_late(const SearchResult& result) const {
    const auto unfit = result.space.refusals.find("memory");
    if (!result.nearest || unfit == result.space.refusals.end()) {
      return fmt::format("try {}, or list more values of what is fixed",
                         budget_.empty()     ? "more ranks or a faster machine"
                         : deadline_.empty() ? "fewer ranks or another machine"
                                             : "other numbers of ranks or another machine");
    }
    const std::int64_t plans = unfit->second.plans;
    return fmt::format("{} that may be {} enough {} not fit, and {} {}: {}; or try {} machine",
                       counted(plans, "plan"),
                       budget_.empty()     ? "fast"
                       : deadline_.empty() ? "cheap"
                                           : "fast and cheap",
                       plans == 1 ? "does" : "do", plans == 1 ? "it" : "the smallest", needs_of(result),
                       room_hint(result), budget_.empty() ? "a faster" : "another");
  }
  std::string hint_of(const SearchResult& result) const {
    if (result.late) return hint_of_late(result);
    if (result.late_bound)
      return fmt::format("try {} other machines, or list more values of what is fixed{}",
                         budget_.empty() ? "more ranks or" : "other numbers of ranks or",
                         memory_share_ == "1" ? "" : ", with a larger --memory-share");
    if (!result.nearest) {
      const std::string refusal = main_refusal(result);
      return refusal.empty() ? "list more values" : "what stands in the way: " + refusal;
    }
    if (result.nearest_changes.empty()) return room_hint(result);
    return study_.as_typed(fmt::format("what would make it fit, and what is needed then: {}",
                                       fmt::join(result.nearest_changes, "; ")));
  }

  StudyFlags study_;
  std::optional<std::string> objective_;
  std::string patience_, top_ = "10", memory_share_ = "1", deadline_, budget_, threads_;
  std::string json_, csv_, svg_, save_;
  bool front_ = false, explain_ = false, brute_force_ = false, quiet_ = false, resume_ = false;
};

}  // namespace

std::unique_ptr<Command> make_search_command() {
  return std::make_unique<SearchCommand>();
}

}  // namespace armilla
