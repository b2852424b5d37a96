#include "study/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/units_text.h"
#include "cost/cost.h"
#include "read/study.h"
#include "study/run.h"

namespace armilla {
namespace {

constexpr double kSlowest = 0.1;  // of what a factor was
constexpr double kLeastEffect = 0.02;

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

// The factor that makes a share 1.
double largest(double share) {
  return -std::log(share);
}

std::string percent_more(Time predicted, Time measured) {
  return fmt::format("{:+.1f} %", 100 * (in_seconds(predicted) / in_seconds(measured) - 1));
}

class Calibrator {
 public:
  Calibrator(const std::vector<MeasuredStudy>& steps, Progress& meter) : steps_(steps), meter_(meter) {
    Study first = steps.front().study;
    most_.compute = largest(compute_share(first));
    most_.communication = std::numeric_limits<double>::infinity();
    for (const Dimension& dimension : first.machine.dimensions)
      most_.communication = std::min(most_.communication, largest(dimension.efficiency));
    least_.compute = least_.communication = std::log(kSlowest);
  }

  Calibration run() {
    meter_.begin("calibrating");
    Calibration result;
    const std::vector<Time> before = predict({});
    check_bounds();
    Point best = fit_compute();
    if (steps_.size() > 1) best = fit_both(best, result.notes);
    const std::vector<Time> after = predict(best);
    for (std::size_t i = 0; i < steps_.size(); ++i)
      result.steps.push_back({steps_[i].name, steps_[i].measured, before[i], after[i]});
    check_fit(result.steps);
    result.compute = std::exp(best.compute);
    result.communication = std::exp(best.communication);
    return result;
  }

  // `study` with the factors.
  static Study scaled(Study study, const Point& point) {
    double& share = compute_share(study);
    share = std::min(1.0, share * std::exp(point.compute));
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

  double loss(const Point& point) {
    const std::vector<Time> times = predict(point);
    double sum = 0;
    for (std::size_t i = 0; i < times.size(); ++i) {
      const double error = std::log(in_seconds(times[i]) / in_seconds(steps_[i].measured));
      sum += error * error;
    }
    return sum;
  }

  void check_bounds() {
    const std::vector<Time> fastest = predict(most_),
                            slowest = predict({least_.compute, most_.communication}),
                            all_slowest = predict(least_);
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const MeasuredStudy& step = steps_[i];
      const double effect = in_seconds(slowest[i]) / in_seconds(fastest[i]) - 1;
      if (effect < kLeastEffect)
        throw Error(
            step.where,
            fmt::format("the step of {} does not depend on how fast products are computed", step.name),
            "it waits for the CPU, memory or messages: give a larger job, or one that computes longer");
      if (in_seconds(step.measured) < in_seconds(fastest[i]) * (1 - kLeastEffect))
        throw Error(
            step.where,
            fmt::format("{} takes {} even with products at the peak of {} and all of its links' bandwidth",
                        step.name, to_text(fastest[i]), step.study.machine.device.name),
            "is the time of this study, and of one step?");
      const Time longest = steps_.size() > 1 ? all_slowest[i] : slowest[i];
      if (step.measured > longest)
        throw Error(
            step.where,
            fmt::format("{} takes {} with products at a tenth of the rate", step.name, to_text(longest)),
            "what makes it slower is not how fast products are: is the time of this study?");
    }
  }

  struct Direction {
    double compute, communication;
  };

  // A search by steps in these directions, halved where none of them is better.
  Point descend(Point point, std::span<const Direction> directions, double finest) {
    double best = loss(point);
    for (double step = 0.4; step > finest;) {
      bool better = false;
      for (const Direction& direction : directions) {
        const Point tried{std::clamp(point.compute + step * direction.compute, least_.compute, most_.compute),
                          std::clamp(point.communication + step * direction.communication,
                                     least_.communication, most_.communication)};
        const double value = loss(tried);
        if (value >= best) continue;
        best = value;
        point = tried;
        better = true;
        break;
      }
      if (!better) step /= 2;
    }
    return point;
  }

  // The loss of a monotone prediction has one minimum.
  Point fit_compute() {
    constexpr std::array kDirections = {Direction{1, 0}, Direction{-1, 0}};
    return descend({}, kDirections, 1e-4);
  }

  // Whether the steps tell the two factors apart, by how each changes with either.
  bool tell_apart(const Point& at, std::string& why) {
    constexpr double kNudge = 0.2, kLeastAngle = 0.01;
    const std::vector<Time> here = predict(at), compute = predict({at.compute - kNudge, at.communication}),
                            communication = predict({at.compute, at.communication - kNudge});
    double aa = 0, ab = 0, bb = 0;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const double a = std::log(in_seconds(compute[i]) / in_seconds(here[i])) / kNudge;
      const double b = std::log(in_seconds(communication[i]) / in_seconds(here[i])) / kNudge;
      aa += a * a;
      ab += a * b;
      bb += b * b;
    }
    if (bb < kLeastEffect * kLeastEffect) {
      why = "communication is left as it is: it is hidden behind computation in these steps";
      return false;
    }
    if (aa * bb - ab * ab < kLeastAngle * aa * bb) {
      why =
          "communication is left as it is: the steps have too similar shares of it to tell it from "
          "computation";
      return false;
    }
    return true;
  }

  Point fit_both(Point point, std::vector<std::string>& notes) {
    if (std::string why; !tell_apart(point, why)) {
      notes.push_back(std::move(why));
      return point;
    }
    // Along the valley where slower computation makes up for faster communication, too.
    constexpr std::array kDirections = {Direction{1, 0},  Direction{-1, 0}, Direction{0, 1},
                                        Direction{0, -1}, Direction{1, -1}, Direction{-1, 1},
                                        Direction{1, 1},  Direction{-1, -1}};
    return descend(point, kDirections, 1e-3);
  }

  void check_fit(const std::vector<CalibratedStep>& steps) const {
    constexpr double kMost = 2;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const double ratio = in_seconds(steps[i].after) / in_seconds(steps[i].measured);
      if (ratio > kMost || ratio < 1 / kMost)
        throw Error(
            steps_[i].where,
            fmt::format(
                "the steps contradict each other: with what fits them all best, {} would take {} ({})",
                steps[i].name, to_text(steps[i].after), percent_more(steps[i].after, steps[i].measured)),
            "is every time of its study, and of one step?");
    }
  }

  const std::vector<MeasuredStudy>& steps_;
  Progress& meter_;
  Point least_, most_;
};

void check_machines(const std::vector<MeasuredStudy>& steps) {
  const Study& first = steps.front().study;
  if (first.compute.name == "systolic")
    throw Error(steps.front().where, "the compute model 'systolic' has no factor to scale",
                "use kernels or roofline");
  for (const MeasuredStudy& step : steps) {
    if (!(step.measured > Time(0))) throw Error(step.where, "a step takes more than no time");
    const Machine& machine = step.study.machine;
    if (machine.name != first.machine.name || machine.device.name != first.machine.device.name ||
        step.study.compute.name != first.compute.name)
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
  const std::string study = yaml_text(first.config);
  result.machine =
      yaml_text(Config::parse(study, first.config.file(), settings, expand_machine).at("machine"));
  return result;
}

}  // namespace armilla
