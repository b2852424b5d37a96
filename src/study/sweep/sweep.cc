#include "study/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "ir/derived/headline.h"
#include "network/network.h"
#include "read/study.h"
#include "study/database/inputs.h"
#include "study/run.h"
#include "study/sweep/sweep_database.h"
#include "study/sweep/sweep_file.h"

namespace armilla {
namespace {

using Clock = std::chrono::steady_clock;
using Outcome = nlohmann::json;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string error_text(const Error& error) {
  return error.where.empty() ? error.message : fmt::format("{}: {}", error.where, error.message);
}

// What is kept of a run is read by other sweeps, too, and by this one when its lines have moved:
// "study.plan.ranks" of "sweep.yaml:4:17: study.plan.ranks".
std::string lasting_text(const Error& error, const SweepFile& file) {
  std::string_view where = error.where;
  for (const std::string& path : {file.path(), file.study()}) {
    if (!where.starts_with(path + ":")) continue;
    const std::size_t key = where.find(": ");
    where = key == std::string_view::npos ? std::string_view() : where.substr(key + 2);
  }
  return where.empty() ? error.message : fmt::format("{}: {}", where, error.message);
}

// A run that is given up.
struct GivenUp {};

// The simulator says often how far it is, which is where a run can be given up.
class Stoppable final : public Progress {
 public:
  explicit Stoppable(const std::function<bool()>& stopped) : stopped_(stopped) {}
  void begin(std::string_view) override { look(); }
  void update(double) override { look(); }

 private:
  void look() const {
    if (stopped_ && stopped_()) throw GivenUp{};
  }
  const std::function<bool()>& stopped_;
};

// As `armilla run`, but for what only a report of the run would need.
SimulationOptions options_with(Progress& progress) {
  SimulationOptions options;
  options.intervals = options.every_interval = false;
  options.progress = &progress;
  return options;
}
Run simulate_study(const Config& config, Progress& progress) {
  return config.has("jobs") ? run_jobs(read_jobs(config), options_with(progress))
                            : run_study(prepare_study(read_study(config)), options_with(progress));
}

// Of a study, or the first of its jobs; empty where the time of the run does not go by its bytes.
std::string network_that_plays_bytes(const Config& config) {
  try {
    const ComponentChoice network =
        config.has("jobs") ? read_jobs(config).shared.network : read_study(config).network;
    return promises_of(network).plays_bytes ? network.name : "";
  } catch (const Error&) {
    return "";
  }
}

// Nothing where it is refused.
std::optional<PlayTime> foreseen_time(const Config& config) {
  try {
    const SimulationOptions options = options_with(no_progress());
    return config.has("jobs") ? foresee_jobs(read_jobs(config), options)
                              : foresee_study(prepare_study(read_study(config)), options);
  } catch (const Error&) {
    return std::nullopt;  // the run says it
  }
}

// One run of a sweep, by whoever is to do it: figures or a message, and how long it took; nothing, where it
// was given up.
std::string perform_run(const SweepFile& file, std::size_t i, const std::function<bool()>& stopped) {
  const Clock::time_point begin = Clock::now();
  Outcome outcome = Outcome::object();
  try {
    Stoppable progress(stopped);
    outcome["figures"] = headline_of(simulate_study(file.config_of(i), progress));  // NaN becomes null
  } catch (const Error& error) {
    outcome["message"] = lasting_text(error, file);
  } catch (const std::bad_alloc&) {
    outcome["message"] = "not enough memory for this run";
    outcome["passes"] = true;
  } catch (const GivenUp&) {
    return "{}";
  }
  outcome["elapsed_s"] = since(begin);
  return outcome.dump(-1, ' ', false, Outcome::error_handler_t::replace);
}

class Sweep {
 public:
  Sweep(const SweepRequest& request, const SweepFile& file, Crew& crew)
      : request_(request), file_(file), crew_(crew), reader_(request.version), database_(request.database) {}

  SweepResult run() {
    const Clock::time_point begin = Clock::now();
    result_ = sweep_outline(request_);
    settings_.resize(file_.size());
    warnings_.resize(file_.size());
    mistakes_ = std::vector<std::optional<Error>>(file_.size());
    read_runs();
    look_up_runs();
    tell_damage();
    foresee();
    simulate_runs();
    copy_equal_runs();
    database_.make_view();
    result_.of_other_builds = database_.not_of(request_.version);
    result_.elapsed_seconds = since(begin);
    return std::move(result_);
  }

 private:
  bool stopped() const { return request_.stopped && request_.stopped(); }

  // The hash of every run; what is refused here needs no simulation.
  void read_runs() {
    request_.progress->begin("reading the studies");
    std::int64_t next = 0, read = 0;
    const auto size = static_cast<std::int64_t>(file_.size());
    Piecework work;
    work.next = [&]() -> std::optional<Piece> {
      return next < size && !stopped() ? std::optional(Piece{next++}) : std::nullopt;
    };
    // Of what several threads do, each has runs of its own.
    work.perform = [&](const Piece& run) {
      read_run(static_cast<std::size_t>(run.number));
      return std::string();
    };
    work.finish = [&](std::int64_t, const std::string&) {
      request_.progress->update(static_cast<double>(++read) / static_cast<double>(size));
    };
    share_among_threads(work, crew_.jobs());
    for (const std::vector<std::string>& warnings : warnings_) {
      for (const std::string& warning : warnings) {
        if (std::ranges::count(result_.notes, warning) == 0) result_.notes.push_back(warning);
      }
    }
    if (is_one_mistake()) throw Error(*mistakes_.front());
  }

  // Each value of a key has a place of its own in the sweep's file. Of other places the message says too
  // little.
  bool is_one_mistake() const {
    const auto place = [&](const Error& mistake) {
      return mistake.where.starts_with(request_.file + ":") ? request_.file : mistake.where;
    };
    return std::ranges::all_of(mistakes_, [&](const std::optional<Error>& mistake) {
      const std::optional<Error>& first = mistakes_.front();
      return mistake && first && mistake->message == first->message && place(*mistake) == place(*first);
    });
  }

  void read_run(std::size_t i) {
    SweepRun& run = result_.runs[i];
    try {
      const Config config = file_.config_of(i);
      const RunInputs inputs = reader_.inputs_of(config);
      run.hash = inputs.hash;
      settings_[i] = inputs.settings;
      warnings_[i] = inputs.warnings;
    } catch (const Error& error) {
      run.state = SweepState::failed;
      run.message = error_text(error);
      mistakes_[i].emplace(error);
      for (std::size_t key = 0; key < file_.keys().size(); ++key)
        settings_[i] += fmt::format("{}: {}\n", file_.keys()[key], run.values[key]);
      run.hash = reader_.inputs_of_refused(settings_[i], run.message).hash;
    }
  }

  // What is in the database already, what was refused while it was read, and runs that are the same
  // as others.
  void look_up_runs() {
    for (std::size_t i = 0; i < result_.runs.size(); ++i) {
      SweepRun& run = result_.runs[i];
      if (run.hash.empty()) continue;  // not read before the sweep was stopped
      if (!first_with_.emplace(run.hash, i).second) continue;
      if (run.state == SweepState::failed) {
        keep(i);
      } else if (database_.find(run)) {
        if (request_.retry && run.state == SweepState::failed) {
          run.known = false;
          run.state = SweepState::open;
          run.message.clear();
          open_.push_back(i);
        } else {
          database_.add_values(run, file_.keys());
        }
      } else {
        open_.push_back(i);
      }
    }
  }

  void tell_damage() {
    const std::int64_t damaged = database_.damaged();
    if (damaged == 0) return;
    result_.notes.push_back(
        damaged == 1
            ? fmt::format("{}: 1 run was damaged, and is done again", request_.database)
            : fmt::format("{}: {} runs were damaged, and are done again", request_.database, damaged));
  }

  void keep(std::size_t i) {
    database_.add(result_.runs[i], settings_[i], request_.version);
    database_.add_values(result_.runs[i], file_.keys());
  }

  // How long it takes. What is refused is not simulated.
  void foresee() {
    if (stopped()) return;
    std::map<std::string, std::vector<std::size_t>> by_network;
    for (const std::size_t run : open_) {
      // Most say nothing of a network: need not be read again.
      if (!settings_[run].starts_with("network") && settings_[run].find("\nnetwork") == std::string::npos)
        continue;
      const std::string network = network_that_plays_bytes(file_.config_of(run));
      if (!network.empty()) by_network[network].push_back(run);
    }
    ForeseenRuns runs{
        .what = open_.empty() ? "" : "run", .at_once = crew_.jobs(), .fewer = "fewer values make fewer runs"};
    PlayTime sum, longest;
    for (const auto& [network, its] : by_network) {
      const auto count = static_cast<std::int64_t>(its.size());
      const SomeRuns some = look_at_some(count, [&](std::int64_t i) {
        return foreseen_time(file_.config_of(its[static_cast<std::size_t>(i)]));
      });
      if (some.times.empty()) continue;
      // As many of the others are refused.
      const auto known = static_cast<double>(some.times.size()), refused = static_cast<double>(some.refused);
      const double others = (static_cast<double>(count) - known - refused) * known / (known + refused);
      const PlayTime mean = some.mean();
      sum.least += mean.least * known + some.shortest().least * others;
      sum.most += mean.most * (known + others);
      longest = {std::max(longest.least, some.longest().least), std::max(longest.most, some.longest().most)};
      runs.most += count - some.refused;
      runs.network += (runs.network.empty() ? "" : ", ") + network;
    }
    runs.least = runs.most;
    // One run is on one core.
    const auto at_once = static_cast<double>(runs.at_once);
    runs.together = {std::max(longest.least, sum.least / at_once),
                     std::max(longest.most, sum.most / at_once)};
    check_patience(runs, request_.patience);
  }

  void simulate_runs() {
    request_.progress->begin("simulating");
    std::size_t next = 0, finished = 0;
    Piecework work;
    work.next = [&]() -> std::optional<Piece> {
      if (next == open_.size() || stopped()) return std::nullopt;
      return Piece{static_cast<std::int64_t>(open_[next++])};
    };
    work.perform = [&](const Piece& run) {
      return perform_run(file_, static_cast<std::size_t>(run.number), request_.stopped);
    };
    work.finish = [&](std::int64_t i, const std::string& text) {
      take(static_cast<std::size_t>(i), Outcome::parse(text));
      request_.progress->update(static_cast<double>(++finished) / static_cast<double>(open_.size()));
    };
    work.give_up = [&](std::int64_t i, const std::string& how) {
      SweepRun& run = result_.runs[static_cast<std::size_t>(i)];
      run.state = SweepState::failed;
      run.message = fmt::format("{} processes died of this run: {}", kMostDeaths, how);
      keep(static_cast<std::size_t>(i));
    };
    work.stopped = request_.stopped;
    crew_.share_out(work);
  }

  void take(std::size_t i, const Outcome& outcome) {
    if (outcome.empty()) return;
    SweepRun& run = result_.runs[i];
    run.elapsed_seconds = outcome.at("elapsed_s");
    if (outcome.contains("message")) {
      run.state = SweepState::failed;
      run.message = outcome.at("message");
      // Another time there may be more memory: it is not known of the run, but of the machine it was made on.
      if (outcome.contains("passes")) return;
    } else {
      run.state = SweepState::done;
      for (const Outcome& figure : outcome.at("figures"))
        run.figures.push_back(figure.is_null() ? std::numeric_limits<double>::quiet_NaN()
                                               : figure.get<double>());
    }
    keep(i);
  }

  void copy_equal_runs() {
    for (std::size_t i = 0; i < result_.runs.size(); ++i) {
      SweepRun& run = result_.runs[i];
      const auto first = first_with_.find(run.hash);
      if (first == first_with_.end() || first->second == i) continue;
      std::vector<std::string> values = std::move(run.values);
      run = result_.runs[first->second];
      run.values = std::move(values);
      run.is_repeated = run.state != SweepState::open;
    }
  }

  const SweepRequest& request_;
  const SweepFile& file_;
  Crew& crew_;
  InputReader reader_;
  SweepDatabase database_;
  SweepResult result_;
  std::vector<std::string> settings_;               // of the study of every run
  std::vector<std::vector<std::string>> warnings_;  // of reading it
  std::map<std::string, std::size_t> first_with_;   // by hash
  std::vector<std::size_t> open_;                   // to be simulated, in this order
  std::vector<std::optional<Error>> mistakes_;      // what refused every run while it was read
};

}  // namespace

SweepResult sweep_outline(const SweepRequest& request) {
  const SweepFile file(request.file, request.settings);
  SweepResult outline;
  outline.study = file.study();
  outline.keys = file.keys();
  outline.runs.resize(file.size());
  for (std::size_t i = 0; i < file.size(); ++i) outline.runs[i].values = file.values_of(i);
  return outline;
}

SweepResult run_sweep(const SweepRequest& request, Crew& crew) {
  const SweepFile file(request.file, request.settings);
  if (crew.serves()) {
    crew.serve([&](const Piece& run) {
      return perform_run(file, static_cast<std::size_t>(run.number), {});  // the leader knows when it is over
    });
  }
  return Sweep(request, file, crew).run();
}

}  // namespace armilla
