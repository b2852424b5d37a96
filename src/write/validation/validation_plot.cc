#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/units_text.h"
#include "write/format/svg.h"
#include "write/validation.h"

namespace armilla {
namespace {

// Okabe and Ito's colours, told apart by everybody; further sets begin again.
constexpr std::array<std::string_view, 8> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                      "#e69f00", "#56b4e9", "#000000", "#7f7f7f"};
constexpr double kSide = 420, kMargin = 60, kTitle = 24, kLine = 14, kLegend = 230;

struct Decades {
  double first = 0, last = 1;  // exponents of ten
  double place(double value) const {
    return (std::log10(value) - first) / (last - first) * (kSide - 2 * kMargin);
  }
};

// One scale for both axes: the diagonal is where predictions are right.
Decades decades_of(const Validation& validation, const ValidatedSet& total) {
  double least = 1e300, most = 0;
  for (const std::size_t index : total.misses) {
    const ValidatedRow& row = validation.rows[index];
    for (const double value : {row.measured.value, *row.predicted}) {
      if (value > 0) least = std::min(least, value);
      most = std::max(most, value);
    }
  }
  Decades decades{std::floor(std::log10(least)), std::ceil(std::log10(most))};
  if (decades.last <= decades.first) decades.last = decades.first + 1;
  return decades;
}

std::string axes(const Decades& decades, std::string_view unit) {
  const double inside = kSide - 2 * kMargin;
  std::string svg = fmt::format(
      "<rect width=\"{0}\" height=\"{0}\" fill=\"none\" stroke=\"#444\"/>\n"
      "<line x1=\"0\" y1=\"{0}\" x2=\"{0}\" y2=\"0\" stroke=\"#444\"/>\n",
      inside);
  const auto count = static_cast<int>(decades.last - decades.first);
  for (int i = 0; i <= count; ++i) {
    const double at = inside * i / count;
    const auto exponent = static_cast<int>(decades.first) + i;
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"0\" x2=\"{0:.1f}\" y2=\"{2}\" stroke=\"#ddd\"/>"
        "<line x1=\"0\" y1=\"{1:.1f}\" x2=\"{2}\" y2=\"{1:.1f}\" stroke=\"#ddd\"/>"
        "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">1e{4}</text>"
        "<text x=\"-4\" y=\"{5:.1f}\" text-anchor=\"end\">1e{4}</text>\n",
        at, inside - at, inside, inside + kLine, exponent, inside - at + 4);
  }
  svg += fmt::format(
      "<text x=\"{0}\" y=\"{1}\" text-anchor=\"middle\">measured, {2}</text>"
      "<text transform=\"translate(-38,{0}) rotate(-90)\" text-anchor=\"middle\">predicted, {2}</text>\n",
      inside / 2, inside + 2 * kLine + 2, unit);
  return svg;
}

std::string panel(const Validation& validation, const ValidatedSet& total, double top) {
  const Decades decades = decades_of(validation, total);
  const double inside = kSide - 2 * kMargin;
  std::string svg = fmt::format(
      "<g transform=\"translate({},{})\">\n<text y=\"-8\" font-weight=\"bold\">{}: {}, "
      "MAPE {:.1f} %</text>\n",
      kMargin, top + kMargin, svg_text(total.kind), typed_count(total.errors.count, "row"),
      100 * total.errors.mape);
  svg += axes(decades, total.kind == "memory" ? "bytes" : "s");
  std::size_t number = 0;
  for (const ValidatedSet& set : validation.sets) {
    if (set.kind != total.kind || set.misses.empty()) continue;
    const std::string_view colour = kColours[number % kColours.size()];
    svg += fmt::format("<g fill=\"{}\" fill-opacity=\"0.5\">", colour);
    for (const std::size_t index : set.misses) {
      const ValidatedRow& row = validation.rows[index];
      if (!(*row.predicted > 0)) continue;
      svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2\"/>", decades.place(row.measured.value),
                         inside - decades.place(*row.predicted));
    }
    const double y = static_cast<double>(number) * kLine;
    svg += fmt::format(
        "</g>\n<circle cx=\"{}\" cy=\"{}\" r=\"4\" fill=\"{}\"/><text x=\"{}\" y=\"{}\">{} {:.1f} %</text>\n",
        inside + 14, y + 4, colour, inside + 22, y + 8, svg_text(set.name), 100 * set.errors.mape);
    ++number;
  }
  return svg + "</g>\n";
}

double height_of(const Validation& validation, const ValidatedSet& total) {
  const auto sets =
      std::count_if(validation.sets.begin(), validation.sets.end(),
                    [&](const ValidatedSet& set) { return set.kind == total.kind && !set.misses.empty(); });
  return std::max(kSide, 2 * kMargin + static_cast<double>(sets) * kLine);
}

}  // namespace

std::string write_validation_svg(const Validation& validation) {
  double height = 0;
  std::string panels;
  for (const ValidatedSet& total : validation.totals) {
    if (total.misses.empty()) continue;
    panels += panel(validation, total, height);
    height += height_of(validation, total) + kTitle;
  }
  return svg_document(kSide + kLegend, height, panels);
}

}  // namespace armilla
