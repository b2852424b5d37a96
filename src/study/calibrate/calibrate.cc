#include "study/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/units_text.h"
#include "cost/cost.h"
#include "read/study.h"
#include "study/run.h"
#include "write/text_table.h"

namespace armilla {
namespace {

constexpr double kSlowest = 0.1;  // of what a factor was
constexpr double kLeastEffect = 0.02;
constexpr double kFinest = 1e-4;  // of a factor's logarithm

// Factors on the rate of products and on the links, as logarithms.
struct Point {
  double compute = 0, communication = 0;
};

bool has_rates(const Study& study) {
  return study.compute.name == "kernels" && study.machine.device.kernels.has_value();
}

double& compute_share(Study& study) {
  return has_rates(study) ? study.machine.device.kernels->sustained : study.machine.device.matrix_efficiency;
}

// Of that share, as far as products run at the device's peak.
double most_compute(const Study& study) {
  return has_rates(study) ? most_sustained(*study.machine.device.kernels) : 1.0;
}

class Calibrator {
 public:
  Calibrator(const std::vector<MeasuredStudy>& steps, Progress& meter) : steps_(steps), meter_(meter) {
    Study first = steps.front().study;
    most_.compute = std::log(most_compute(first) / compute_share(first));
    most_.communication = std::numeric_limits<double>::infinity();
    for (const Dimension& dimension : first.machine.dimensions)
      most_.communication = std::min(most_.communication, -std::log(dimension.efficiency));
    least_.compute = least_.communication = std::log(kSlowest);
  }

  Calibration run() {
    meter_.begin("calibrating");
    Calibration result;
    const std::vector<Time> before = predict({});
    check_bounds();
    Point best = fit(fit_compute(0, kFinest), false);
    // One time cannot tell two factors apart: then products get all of it.
    if (steps_.size() > 1) best = fit_both(best, result.notes);
    const std::vector<Time> after = predict(best);
    for (std::size_t i = 0; i < steps_.size(); ++i)
      result.steps.push_back({steps_[i].name, steps_[i].measured, before[i], after[i]});
    check_fit(result.steps, result.notes);
    // In logarithms a factor of 2 is as far as one of 1/2, errors of long and of short steps count alike, and
    // no step can make a factor negative.
    result.compute = std::exp(best.compute);
    result.communication = std::exp(best.communication);
    return result;
  }

  // `study` with the factors.
  static Study scaled(Study study, const Point& point) {
    const double most = most_compute(study);
    double& share = compute_share(study);
    share = std::min(most, share * std::exp(point.compute));
    for (Dimension& dimension : study.machine.dimensions)
      dimension.efficiency = std::min(1.0, dimension.efficiency * std::exp(point.communication));
    return study;
  }

 private:
  std::vector<Time> predict(const Point& point) {
    SimulationOptions options;
    options.intervals = false;
    std::vector<Time> times;
    for (const MeasuredStudy& step : steps_)
      times.push_back(run_study(scaled(step.study, point), options).result.iteration);
    return times;
  }

  // Logarithms of predicted over measured times.
  std::vector<double> errors_at(const Point& point) {
    std::vector<double> errors;
    const std::vector<Time> times = predict(point);
    for (std::size_t i = 0; i < times.size(); ++i)
      errors.push_back(std::log(in_seconds(times[i]) / in_seconds(steps_[i].measured)));
    return errors;
  }

  static double squares(const std::vector<double>& values) {
    return std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
  }

  // Whether the CPU, which issues operators one by one, makes a step longer than it is with the fastest
  // products and links.
  bool waits_for_host(std::size_t i, Time fastest) const {
    Study study = scaled(steps_[i].study, most_);
    if (issue_time_of(study.plan) == Time(0)) return false;
    study.plan.issue_time = Time(0);
    SimulationOptions options;
    options.intervals = false;
    const Time without = run_study(study, options).result.iteration;
    return in_seconds(without) < in_seconds(fastest) * (1 - kLeastEffect);
  }

  static Error bound_by_host(const MeasuredStudy& step, const std::string& message) {
    return Error(step.where,
                 fmt::format("{}: the CPU issues one operator every {}", message,
                             to_text(issue_time_of(step.study.plan))),
                 "plan.host: compiled, where the step is compiled or captured in a graph, or a smaller "
                 "plan.issue_time; or give a job that computes longer");
  }

  void check_bounds() {
    const std::vector<Time> fastest = predict(most_),
                            slowest = predict({least_.compute, most_.communication}),
                            all_slowest = steps_.size() > 1 ? predict(least_) : slowest;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const MeasuredStudy& step = steps_[i];
      const double effect = in_seconds(slowest[i]) / in_seconds(fastest[i]) - 1;
      if (effect < kLeastEffect) {
        const std::string message =
            fmt::format("the step of {} does not depend on how fast products are computed", step.name);
        if (waits_for_host(i, fastest[i])) throw bound_by_host(step, message);
        throw Error(
            step.where, message,
            step.study.profile.file.empty()
                ? "it waits for the CPU, memory or messages: give a larger job, or one that computes longer"
                : "its profile says how long they take: leave `profile` out");
      }
      if (in_seconds(step.measured) < in_seconds(fastest[i]) * (1 - kLeastEffect)) {
        const std::string message =
            fmt::format("{} takes {} even with products at the peak of {} and all of its links' bandwidth",
                        step.name, to_text(fastest[i]), step.study.machine.device.name);
        if (waits_for_host(i, fastest[i])) throw bound_by_host(step, message);
        throw Error(step.where, message, "is the time of this study, and of one step?");
      }
      if (step.measured > all_slowest[i])
        throw Error(step.where,
                    fmt::format("{} takes {} with products at a tenth of the rate", step.name,
                                to_text(all_slowest[i])),
                    "what makes it slower is not how fast products are: is the time of this study?");
    }
  }

  // How the errors at a point change with either factor.
  struct Slopes {
    std::vector<double> compute, communication;
    double cc = 0, cm = 0, mm = 0;  // their products
  };

  // Over `reach`, towards less of the error where the bounds leave room; of computation only unless `both`.
  Slopes slopes_at(const Point& point, const std::vector<double>& errors, double reach, bool both) {
    // The slope is taken on the side to which the step will go: behind an edge (where something stops to be
    // hidden) the other side says nothing of it.
    const bool too_slow = std::accumulate(errors.begin(), errors.end(), 0.0) > 0;
    const auto slopes = [&](double Point::*factor) {
      const bool up =
          point.*factor + reach <= most_.*factor && (too_slow || point.*factor - reach < least_.*factor);
      const double nudge = up ? reach : -reach;
      Point nudged = point;
      nudged.*factor += nudge;
      std::vector<double> found = errors_at(nudged);
      for (std::size_t i = 0; i < found.size(); ++i) found[i] = (found[i] - errors[i]) / nudge;
      return found;
    };
    Slopes result{slopes(&Point::compute), std::vector<double>(errors.size())};
    if (both) result.communication = slopes(&Point::communication);
    result.cc = squares(result.compute);
    result.mm = squares(result.communication);
    result.cm =
        std::inner_product(result.compute.begin(), result.compute.end(), result.communication.begin(), 0.0);
    return result;
  }

  // Where predictions are right on the whole: they do not get longer with faster products, so that halving
  // finds it wherever slopes vanish, as where something else hides computation. Elsewhere errors are nearly
  // straight between two points: then the next is where a line through both is zero and a little beyond, so
  // that it is between the two soon.
  Point fit_compute(double communication, double finest) {
    double slower = least_.compute, faster = most_.compute;
    std::optional<double> too_long, too_short;  // their errors, where they are known
    bool halve = true;
    while (faster - slower > finest) {
      const double width = faster - slower;
      double next = std::midpoint(slower, faster);
      if (!halve && too_long && too_short && *too_long > *too_short) {
        const double straight = slower + width * *too_long / (*too_long - *too_short);
        next = std::clamp(straight + (straight < next ? finest : -finest) / 3, slower + finest / 3,
                          faster - finest / 3);
      }
      const std::vector<double> errors = errors_at({next, communication});
      const double error = std::accumulate(errors.begin(), errors.end(), 0.0);
      // Too long: faster products.
      (error > 0 ? slower : faster) = next;
      (error > 0 ? too_long : too_short) = error;
      halve = !halve && faster - slower > width / 2;
    }
    return {std::midpoint(slower, faster), communication};
  }

  // Gauss and Newton's steps towards the least sum of squared errors. The time of a step is a sum of terms
  // that a factor divides, but for what is hidden behind something else: so slopes are taken over no less
  // than the last step went, which sees beyond such an edge, and over a quarter where that was no better. Of
  // a step that goes too far a half or a quarter is tried.
  Point fit(Point point, bool both) {
    constexpr int kMostSteps = 40;
    std::vector<double> errors = errors_at(point);
    double reach = 0.2;
    for (int step = 0; step < kMostSteps && reach > kFinest; ++step) {
      const Slopes slopes = slopes_at(point, errors, reach, both);
      const double c = std::inner_product(errors.begin(), errors.end(), slopes.compute.begin(), 0.0);
      const double m = std::inner_product(errors.begin(), errors.end(), slopes.communication.begin(), 0.0);
      const double determinant = slopes.cc * slopes.mm - slopes.cm * slopes.cm;
      Point change;
      if (both && determinant > 0) {
        change = {(slopes.cm * m - slopes.mm * c) / determinant,
                  (slopes.cm * c - slopes.cc * m) / determinant};
      } else if (slopes.cc > 0) {
        change.compute = -c / slopes.cc;
      }
      Point tried;
      std::vector<double> there;
      bool better = false;
      for (const double share : {1.0, 0.5, 0.25}) {
        tried = {std::clamp(point.compute + share * change.compute, least_.compute, most_.compute),
                 std::clamp(point.communication + share * change.communication, least_.communication,
                            most_.communication)};
        there = errors_at(tried);
        better = squares(there) < squares(errors);
        if (better) break;
      }
      if (!better) {
        reach /= 4;
        continue;
      }
      reach = std::min(reach, std::max(std::abs(tried.compute - point.compute),
                                       std::abs(tried.communication - point.communication)));
      point = tried;
      errors = std::move(there);
    }
    return point;
  }

  // Whether the steps tell the two factors apart, by how each changes with either.
  bool tell_apart(const Point& at, std::string& why) {
    constexpr double kReach = 0.2, kLeastAngle = 0.01;
    const Slopes slopes = slopes_at(at, errors_at(at), kReach, true);
    if (slopes.mm < kLeastEffect * kLeastEffect) {
      why = "communication is left as it is: it is hidden behind computation in these steps";
      return false;
    }
    // The squared sine of the angle between the two slopes: nearly parallel ones make any sum of the factors
    // fit.
    if (slopes.cc * slopes.mm - slopes.cm * slopes.cm < kLeastAngle * slopes.cc * slopes.mm) {
      why =
          "communication is left as it is: the steps have too similar shares of it to tell it from "
          "computation";
      return false;
    }
    return true;
  }

  // From the best of a few factors on the links, each with the products that then are right on the whole:
  // where computation hides what is sent, nothing says from the machine as it is that slower links would not.
  Point fit_both(const Point& products_alone, std::vector<std::string>& notes) {
    constexpr int kTried = 8;
    constexpr double kCoarse = 0.02;
    Point best = products_alone;
    double least = squares(errors_at(best));
    for (int i = 0; i <= kTried && least > kFinest * kFinest; ++i) {
      const double communication =
          std::lerp(least_.communication, most_.communication, static_cast<double>(i) / kTried);
      const Point tried = fit_compute(communication, kCoarse);
      const double there = squares(errors_at(tried));
      if (there >= least) continue;
      least = there;
      best = tried;
    }
    if (std::string why; !tell_apart(best, why)) {
      notes.push_back(std::move(why));
      return products_alone;
    }
    return fit(best, true);
  }

  void check_fit(const std::vector<CalibratedStep>& steps, std::vector<std::string>& notes) const {
    constexpr double kMost = 2, kFits = 0.05;
    const bool all_fit = std::ranges::all_of(steps, [&](const CalibratedStep& step) {
      return std::abs(in_seconds(step.after) / in_seconds(step.measured) - 1) < kFits;
    });
    if (!all_fit)
      notes.emplace_back(steps.size() == 1
                             ? "no factor on products makes this step right"
                             : "no factors on products and links were found that make all steps right");
    std::vector<double> errors;
    for (const CalibratedStep& step : steps)
      errors.push_back(std::log(in_seconds(step.after) / in_seconds(step.measured)));
    const double all = std::accumulate(errors.begin(), errors.end(), 0.0);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const double ratio = std::exp(errors[i]);
      // Against what the others say on the whole.
      const double others = steps.size() > 1 ? (all - errors[i]) / static_cast<double>(steps.size() - 1) : 0;
      if (std::abs(errors[i]) > std::log(kMost) || std::abs(errors[i] - others) > std::log(kMost))
        throw Error(
            steps_[i].where,
            fmt::format(
                "the steps contradict each other: with what fits them all best, {} would take {} ({})",
                steps[i].name, to_text(steps[i].after), signed_percent(ratio - 1)),
            "is every time of its study, and of one step?");
    }
  }

  const std::vector<MeasuredStudy>& steps_;
  Progress& meter_;
  Point least_, most_;
};

// Of the dimensions that both use.
bool has_links_of(const Machine& machine, const Machine& other) {
  return std::ranges::all_of(machine.dimensions, [&](const Dimension& one) {
    const auto same = std::ranges::find(other.dimensions, one.name, &Dimension::name);
    return same == other.dimensions.end() ||
           (one.kind == same->kind && one.bandwidth == same->bandwidth && one.latency == same->latency &&
            one.efficiency == same->efficiency);
  });
}

void check_machines(const std::vector<MeasuredStudy>& steps) {
  const Study& first = steps.front().study;
  if (first.compute.name == "systolic")
    throw Error(steps.front().where, "the compute model 'systolic' has no factor to scale",
                "use kernels or roofline");
  for (const MeasuredStudy& step : steps) {
    if (!(step.measured > Time(0))) throw Error(step.where, "a step takes more than no time");
    const Machine& machine = step.study.machine;
    const bool same_names = machine.name == first.machine.name &&
                            machine.device.name == first.machine.device.name &&
                            step.study.compute.name == first.compute.name;
    if (same_names && !has_links_of(machine, first.machine))
      throw Error(
          step.where,
          fmt::format("{} is of another {} than the first step: their links differ", step.name, machine.name),
          "all steps that calibrate a machine are of that machine");
    if (!same_names)
      throw Error(step.where,
                  fmt::format("{} is of {} with {} by {}, the first step of {} with {} by {}", step.name,
                              machine.name, machine.device.name, step.study.compute.name, first.machine.name,
                              first.machine.device.name, first.compute.name),
                  "all steps that calibrate a machine are of that machine");
  }
}

}  // namespace

Calibration calibrate(const std::vector<MeasuredStudy>& steps, Progress& meter) {
  check_machines(steps);
  Calibration result = Calibrator(steps, meter).run();
  const MeasuredStudy& first = steps.front();
  Study before = first.study;
  if (!before.machine.others.empty())
    result.notes.push_back(
        fmt::format("the factor on products is of {}, the machine's usual device: those that have others are "
                    "left as they are",
                    before.machine.device.name));
  Study after = Calibrator::scaled(before, {std::log(result.compute), std::log(result.communication)});
  std::vector<Override> settings;
  const auto change = [&](const std::string& key, double old_share, double new_share) {
    result.factors.push_back({key, old_share, new_share});
    settings.emplace_back(fmt::format("machine.{}={:.6g}", key, new_share), "armilla calibrate");
  };
  change(has_rates(before) ? "device.kernels.sustained" : "device.matrix_efficiency", compute_share(before),
         compute_share(after));
  if (result.communication != 1) {
    for (std::size_t d = 0; d < before.machine.dimensions.size(); ++d)
      change(fmt::format("dimensions.{}.efficiency", before.machine.dimensions[d].name),
             before.machine.dimensions[d].efficiency, after.machine.dimensions[d].efficiency);
  }
  std::string source = fmt::format("Calibrated by armilla calibrate: products x {:.3f}, links x {:.3f}, from",
                                   result.compute, result.communication);
  for (const CalibratedStep& step : result.steps)
    source += fmt::format(" {} ({}; predicted {} before, {} after);", step.name, to_text(step.measured),
                          to_text(step.before), to_text(step.after));
  source.back() = '.';
  // Names stay: profiles know devices by them.
  std::string name = before.machine.name;
  if (const std::string_view word = " calibrated"; !name.ends_with(word)) name += word;
  settings.emplace_back(fmt::format("machine.name=\"{}\"", name), "armilla calibrate");
  if (!before.machine.source.empty()) source += ' ' + before.machine.source;
  std::string escaped;
  for (const char c : source) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c == '\n' ? ' ' : c;
  }
  settings.emplace_back(fmt::format("machine.source=\"{}\"", escaped), "armilla calibrate");
  // Through the reader, as if a user had set the factors: what comes out is a machine that reads back the
  // same.
  const std::string study = yaml_text(first.config);
  result.machine = yaml_text(Config::parse(study, first.config.file(), settings, expand_name).at("machine"));
  return result;
}

}  // namespace armilla
