#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units_text.h"
#include "write/format/svg.h"
#include "write/search.h"
#include "write/search/search_words.h"

namespace armilla {
namespace {

constexpr double kWidth = 760, kPlotHeight = 360, kMargin = 70, kStep = 110;
constexpr std::size_t kMostLines = 400;  // of the parallel coordinates: the best

struct Scale {
  double least = 0, most = 1, length = 1;
  double place(double value) const {
    return most > least ? (value - least) / (most - least) * length : length / 2;
  }
};

template <class Value>
Scale scale_of(const std::vector<PlanOutcome>& plans, double length, const Value& value) {
  Scale scale{1e300, 0, length};
  for (const PlanOutcome& plan : plans) {
    scale.least = std::min(scale.least, value(plan));
    scale.most = std::max(scale.most, value(plan));
  }
  // Wide enough for the digits of the ticks to differ, be all plans alike.
  const double room = std::max(0.05 * (scale.most - scale.least), scale.most > 0 ? 0.01 * scale.most : 0.5);
  scale.least = std::max(0.0, scale.least - room);
  scale.most += room;
  return scale;
}

// The first two objectives of the front: usually time over memory, where what is up and right is worse; the
// front is a line.
std::string scatter(const SearchResult& result) {
  const double width = kWidth - 2 * kMargin, height = kPlotHeight - kMargin;
  const auto across = [&](const PlanOutcome& plan) {
    return objective_words(result, result.front_of[1], plan);
  };
  const auto up = [&](const PlanOutcome& plan) { return objective_words(result, result.front_of[0], plan); };
  const auto right_of = [&](const PlanOutcome& plan) { return across(plan).value; };
  const auto height_of = [&](const PlanOutcome& plan) { return up(plan).value; };
  const Scale x = scale_of(result.simulated, width, right_of),
              y = scale_of(result.simulated, height, height_of);
  std::string svg = fmt::format(
      "<g transform=\"translate({0},20)\">\n<rect width=\"{1}\" height=\"{2}\" fill=\"none\" "
      "stroke=\"#444\"/>\n",
      kMargin, width, height);
  constexpr int kTicks = 5;
  for (int i = 0; i <= kTicks; ++i) {
    const double share = static_cast<double>(i) / kTicks;
    svg += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:.4g}</text><text x=\"-6\" y=\"{:.1f}\" "
        "text-anchor=\"end\">{:.4g}</text>\n",
        share * width, height + 16, x.least + share * (x.most - x.least), height - share * height + 4,
        y.least + share * (y.most - y.least));
  }
  const PlanOutcome& first = result.simulated.front();
  svg += fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n"
      "<text transform=\"translate(-52,{:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
      width / 2, height + 34, svg_text(across(first).title), height / 2, svg_text(up(first).title));
  // Of more than two objectives it is no line in two.
  std::string front;
  for (const PlanOutcome& plan : result.front_of.size() == 2 ? result.front : std::vector<PlanOutcome>{})
    front += fmt::format("{}{:.1f},{:.1f}", front.empty() ? "" : " ", x.place(right_of(plan)),
                         height - y.place(height_of(plan)));
  svg += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"#d55e00\"/>\n", front);
  for (const PlanOutcome& plan : result.front_of.size() == 2 ? std::vector<PlanOutcome>{} : result.front)
    svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"6\" fill=\"none\" stroke=\"#d55e00\"/>\n",
                       x.place(right_of(plan)), height - y.place(height_of(plan)));
  for (std::size_t i = result.simulated.size(); i-- > 0;) {
    const PlanOutcome& plan = result.simulated[i];
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\" fill-opacity=\"0.6\"><title>{}: {}, "
        "{}</title></circle>\n",
        x.place(right_of(plan)), height - y.place(height_of(plan)), i == 0 ? 5 : 3,
        i == 0 ? "#d55e00" : "#0072b2", svg_text(plan_text(result, plan)), point_text(up(plan)),
        point_text(across(plan)));
  }
  return svg + "</g>\n";
}

// One vertical line per axis that has a choice, and one for the first objective of the front; a plan is a
// line across them.
std::string parallel_coordinates(const SearchResult& result, double& width) {
  std::vector<std::size_t> axes;
  for (std::size_t axis = 0; axis < result.axes.size(); ++axis) {
    if (result.axes[axis].values.size() > 1) axes.push_back(axis);
  }
  const double height = kPlotHeight - kMargin;
  double between = kStep;  // two lines: the values of one are written in front of the next
  for (const std::size_t axis : axes) {
    for (const std::string& value : result.axes[axis].values)
      between = std::max(between, svg_width(value) + 12);
  }
  width = std::max(kWidth, std::ceil(2 * kMargin + static_cast<double>(axes.size()) * between));
  const auto words_of = [&](const PlanOutcome& plan) {
    return objective_words(result, result.front_of[0], plan);
  };
  const auto value_of = [&](const PlanOutcome& plan) { return words_of(plan).value; };
  const Scale time = scale_of(result.simulated, height, value_of);
  std::string svg = fmt::format("<g transform=\"translate({},{})\">\n", kMargin, kPlotHeight + 50);
  const auto at = [&](std::size_t position) { return static_cast<double>(position) * between; };
  const auto place = [&](const PlanOutcome& plan, std::size_t axis) {
    const std::vector<std::string>& values = result.axes[axis].values;
    const auto found = std::find(values.begin(), values.end(), plan.values[axis]) - values.begin();
    return height - static_cast<double>(found) / static_cast<double>(values.size() - 1) * height;
  };
  for (std::size_t i = std::min(result.simulated.size(), kMostLines); i-- > 0;) {
    const PlanOutcome& plan = result.simulated[i];
    std::string points;
    for (std::size_t p = 0; p < axes.size(); ++p)
      points += fmt::format("{:.1f},{:.1f} ", at(p), place(plan, axes[p]));
    points += fmt::format("{:.1f},{:.1f}", at(axes.size()), height - time.place(value_of(plan)));
    svg += fmt::format(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-opacity=\"{}\"/>\n",
        points, i == 0 ? "#d55e00" : "#0072b2", i == 0 ? 2.5 : 1, i == 0 ? 1.0 : 0.25);
  }
  for (std::size_t p = 0; p <= axes.size(); ++p) {
    const bool is_time = p == axes.size();
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"0\" x2=\"{0:.1f}\" y2=\"{1}\" stroke=\"#444\"/><text x=\"{0:.1f}\" "
        "y=\"-10\" text-anchor=\"middle\" font-weight=\"bold\">{2}</text>\n",
        at(p), height,
        is_time ? svg_text(words_of(result.simulated.front()).title)
                : svg_text(short_key(result.axes[axes[p]].key)));
    if (is_time) {
      svg += fmt::format(
          "<text x=\"{0:.1f}\" y=\"{1}\">{2:.4g}</text><text x=\"{0:.1f}\" y=\"10\">{3:.4g}</text>\n",
          at(p) + 4, height, time.least, time.most);
      continue;
    }
    const std::vector<std::string>& values = result.axes[axes[p]].values;
    for (std::size_t v = 0; v < values.size(); ++v) {
      svg +=
          fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", at(p) + 4,
                      height - static_cast<double>(v) / static_cast<double>(values.size() - 1) * height + 4,
                      svg_text(values[v]));
    }
  }
  return svg + "</g>\n";
}

}  // namespace

std::string write_search_svg(const SearchResult& result) {
  std::string plots = "<text x=\"20\" y=\"40\">no plan was simulated</text>\n";
  double width = kWidth;
  if (!result.simulated.empty()) plots = scatter(result) + parallel_coordinates(result, width);
  return svg_document(width, 2 * kPlotHeight + 60, plots);
}

}  // namespace armilla
