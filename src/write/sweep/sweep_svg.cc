#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "base/amount.h"
#include "base/error.h"
#include "base/suggest.h"
#include "base/units_text.h"
#include "ir/derived/headline.h"
#include "write/format/svg.h"
#include "write/sweep.h"

namespace armilla {
namespace {

// Okabe and Ito's colours, told apart by everybody; dashes tell the second and third eight.
constexpr std::array<std::string_view, 8> kLineColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                          "#e69f00", "#56b4e9", "#000000", "#7f7f7f"};
constexpr std::array<std::string_view, 3> kDashes = {"none", "6 3", "2 2"};
constexpr std::size_t kMostLinesOfSweep = kLineColours.size() * kDashes.size(), kMostMaps = 36;
constexpr double kPlotWidth = 460, kPlotSide = 300, kAround = 76, kLegendLine = 15, kLegendWidth = 300,
                 kBetween = 6, kBoldLetters = 1.1;

// A value's place on an axis: its size, where all values are quantities of one kind.
struct Tick {
  std::string text;
  std::optional<double> number;
};

// A quantity, in the unit of its kind.
struct Amount {
  std::size_t kind = 0;
  double value = 0;
};

// "100GB/s" is larger than "50GB/s", "1min" than "30s", "8" than "4". Nothing for what is no quantity.
std::optional<Amount> amount_of(const std::string& text) {
  using Parse = double (*)(const std::string&);
  constexpr std::array<Parse, 9> kParsers = {
      [](const std::string& t) { return parse_real(t, ""); },
      [](const std::string& t) { return parse_amount(t, ""); },
      [](const std::string& t) { return static_cast<double>(parse_time(t, "").value); },
      [](const std::string& t) { return static_cast<double>(parse_bytes(t, "").value); },
      [](const std::string& t) { return parse_bandwidth(t, "").value; },
      [](const std::string& t) { return parse_flop_rate(t, "").value; },
      [](const std::string& t) { return parse_frequency(t, "").value; },
      [](const std::string& t) { return parse_power(t, "").value; },
      [](const std::string& t) { return parse_fraction(t, ""); }};
  for (std::size_t kind = 0; kind < kParsers.size(); ++kind) {
    try {
      // Amounts are numbers with a suffix.
      return Amount{std::max<std::size_t>(kind, 1), kParsers[kind](text)};
    } catch (const Error&) {
      continue;
    }
  }
  return std::nullopt;
}

// In the order of the axis: by size where values have one.
std::vector<Tick> ticks_of(const SweepResult& result, std::size_t key) {
  std::vector<Tick> ticks;
  for (const SweepRun& run : result.runs) {
    const std::string& text = run.values[key];
    if (std::none_of(ticks.begin(), ticks.end(), [&](const Tick& tick) { return tick.text == text; }))
      ticks.push_back({text, std::nullopt});
  }
  std::vector<Amount> amounts;
  for (const Tick& tick : ticks) {
    const std::optional<Amount> amount = amount_of(tick.text);
    if (!amount || (!amounts.empty() && amount->kind != amounts.front().kind)) return ticks;
    amounts.push_back(*amount);
  }
  for (std::size_t i = 0; i < ticks.size(); ++i) ticks[i].number = amounts[i].value;
  std::stable_sort(ticks.begin(), ticks.end(),
                   [](const Tick& a, const Tick& b) { return *a.number < *b.number; });
  return ticks;
}

// Where the ticks of an axis stand, of `length`: by value, in decades where values span more than one;
// else evenly.
std::vector<double> places_of(const std::vector<Tick>& ticks, double length) {
  std::vector<double> places;
  const std::size_t count = ticks.size();
  const bool numbers = ticks.front().number.has_value();
  const bool decades =
      numbers && *ticks.front().number > 0 && *ticks.back().number >= 8 * *ticks.front().number;
  const auto scaled = [&](std::size_t i) { return decades ? std::log(*ticks[i].number) : *ticks[i].number; };
  for (std::size_t i = 0; i < count; ++i) {
    const double whole = numbers ? scaled(count - 1) - scaled(0) : static_cast<double>(count - 1);
    const double part = numbers ? scaled(i) - scaled(0) : static_cast<double>(i);
    places.push_back(whole > 0 ? part / whole * length : length / 2);
  }
  return places;
}

// 1, 2 or 5 times a power of ten, at least `step`.
double round_step(double step) {
  const double power = std::pow(10, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= step) return factor * power;
  }
  return 10 * power;
}

// Of long ones both ends: lists often begin alike.
std::string shortened(const std::string& text) {
  constexpr std::size_t kMost = 18, kBegin = 8, kEnd = 7;
  if (text.empty()) return "-";
  if (text.size() <= kMost) return text;
  // No character is cut in two.
  const auto whole = [&](std::size_t at) {
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
    return at;
  };
  return text.substr(0, whole(kBegin)) + "..." + text.substr(whole(text.size() - kEnd));
}

// The whole of a shortened one shows where the mouse rests.
std::string tick_text(const std::string& text) {
  const std::string shown = shortened(text);
  if (shown == text || text.empty()) return svg_text(shown);
  return svg_text(shown) + fmt::format("<title>{}</title>", svg_text(text));
}

double widest_of(const std::vector<Tick>& ticks) {
  double widest = 0;
  for (const Tick& tick : ticks) widest = std::max(widest, svg_width(shortened(tick.text)));
  return widest;
}

std::size_t column_called(const std::string& name) {
  const auto figures = headline_figures();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    if (figures[i].name == name) return i;
    names.emplace_back(figures[i].name);
  }
  throw Error("--plot " + name, "is not a column of a sweep", suggest(name, names));
}

std::vector<std::size_t> keys_called(const std::vector<std::string>& keys,
                                     const std::vector<std::string>& names) {
  std::vector<std::size_t> found;
  for (const std::string& name : names) {
    const auto at = std::find(keys.begin(), keys.end(), name);
    if (at == keys.end())
      throw Error("--over " + name, "is not a key that varies in this sweep", suggest(name, keys));
    found.push_back(static_cast<std::size_t>(at - keys.begin()));
  }
  if (found.size() > 2) throw Error("--over", "names more than two keys", "a plot is over one or two");
  if (found.size() == 2 && found[0] == found[1]) throw Error("--over", "names the same key twice");
  return found;
}

class SweepPlotter {
 public:
  SweepPlotter(const SweepResult& result, const SweepPlot& plot) : result_(result) {
    column_ = column_called(plot.column);
    over_ = keys_called(result.keys, plot.over);
    for (std::size_t key = 0; plot.over.empty() && key < std::min<std::size_t>(result.keys.size(), 2); ++key)
      over_.push_back(key);
    make_groups();
    if (over_.size() == 1 && groups_.size() > kMostLinesOfSweep) {
      throw Error("--svg", fmt::format("would have {} lines", groups_.size()),
                  "two keys of --over make a heat map for each combination of the others");
    }
    if (over_.size() == 2 && groups_.size() > kMostMaps) {
      throw Error("--svg", fmt::format("would have {} heat maps", groups_.size()),
                  fmt::format("the most are {}: vary fewer keys besides the two of --over", kMostMaps));
    }
  }

  std::string draw() {
    find_range();
    // What failed throughout has neither a line nor a map.
    std::erase_if(groups_, [&](const Group& group) {
      return std::ranges::none_of(group.runs,
                                  [&](const SweepRun* run) { return value_of(*run).has_value(); });
    });
    return over_.size() == 1 ? lines() : heat_maps();
  }

 private:
  void make_groups() {
    std::vector<std::size_t> others;
    std::vector<std::vector<Tick>> ticks;  // of each of these
    for (std::size_t key = 0; key < result_.keys.size(); ++key) {
      if (std::find(over_.begin(), over_.end(), key) != over_.end()) continue;
      others.push_back(key);
      ticks.push_back(ticks_of(result_, key));
    }
    std::map<std::vector<std::size_t>, Group> groups;  // by the places of the values of the other keys
    for (const SweepRun& run : result_.runs) {
      std::vector<std::size_t> places;
      std::vector<std::string> names;
      for (std::size_t i = 0; i < others.size(); ++i) {
        const std::string& text = run.values[others[i]];
        places.push_back(
            static_cast<std::size_t>(std::ranges::find(ticks[i], text, &Tick::text) - ticks[i].begin()));
        if (!text.empty()) names.push_back(fmt::format("{} {}", result_.keys[others[i]], text));
      }
      Group& group = groups[places];
      group.name = fmt::format("{}", fmt::join(names, ", "));
      group.runs.push_back(&run);
    }
    for (auto& [places, group] : groups) groups_.push_back(std::move(group));
  }

  std::optional<double> value_of(const SweepRun& run) const {
    if (run.figures.empty() || !std::isfinite(run.figures[column_])) return std::nullopt;
    return run.figures[column_];
  }

  void find_range() {
    for (const SweepRun& run : result_.runs) {
      if (const std::optional<double> value = value_of(run)) {
        least_ = std::min(least_, *value);
        most_ = std::max(most_, *value);
      }
    }
    if (least_ > most_)
      throw Error(fmt::format("--plot {}", column()), "no run has this column", "name another");
  }

  std::string_view column() const { return headline_figures()[column_].name; }

  std::string lines() const {
    const std::vector<Tick> ticks = ticks_of(result_, over_[0]);
    const std::vector<double> places = places_of(ticks, kPlotWidth);
    // From zero, where that does not flatten the lines; to round numbers.
    const double low = least_ >= 0 && least_ < 0.5 * most_ ? 0 : least_;
    const double span = most_ > low ? most_ - low : most_ != 0 ? std::abs(most_) : 1;
    const double step = round_step(span / 5);
    const double from = std::floor(low / step) * step, to = (std::floor(most_ / step) + 1) * step;
    const auto height_of = [&](double value) { return kPlotSide - (value - from) / (to - from) * kPlotSide; };
    std::string svg = fmt::format(
        "<g transform=\"translate({0},26)\">\n<rect width=\"{1}\" height=\"{2}\" fill=\"none\" "
        "stroke=\"#444\"/>\n",
        kAround, kPlotWidth, kPlotSide);
    double free_from = -kAround;  // where nothing is written yet
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      svg += fmt::format("<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" stroke=\"#444\"/>",
                         places[i], kPlotSide, kPlotSide + 4);
      const double half = svg_width(shortened(ticks[i].text)) / 2;
      if (places[i] - half >= free_from) {
        svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>", places[i],
                           kPlotSide + 17, tick_text(ticks[i].text));
        free_from = places[i] + half + kBetween;
      }
      svg += '\n';
    }
    const auto steps = static_cast<int>(std::lround((to - from) / step));
    for (int i = 0; i <= steps; ++i) {
      const double value = step * (std::round(from / step) + i);
      svg += fmt::format(
          "<line x1=\"0\" y1=\"{0:.1f}\" x2=\"{1}\" y2=\"{0:.1f}\" stroke=\"#ddd\"/><text x=\"-6\" "
          "y=\"{2:.1f}\" text-anchor=\"end\">{3:.6g}</text>\n",
          height_of(value), kPlotWidth, height_of(value) + 4, value);
    }
    svg += fmt::format(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text><text y=\"-8\" "
        "font-weight=\"bold\">{}</text>\n",
        kPlotWidth / 2, kPlotSide + 36, svg_text(result_.keys[over_[0]]), column());
    std::size_t number = 0;
    for (const auto& [name, runs] : groups_) {
      const std::string_view colour = kLineColours[number % kLineColours.size()];
      const std::string_view dash = kDashes[number / kLineColours.size()];
      std::vector<std::pair<double, double>> points;
      for (const SweepRun* const run : runs) {
        const std::optional<double> value = value_of(*run);
        if (!value) continue;
        const auto tick = std::find_if(ticks.begin(), ticks.end(),
                                       [&](const Tick& t) { return t.text == run->values[over_[0]]; });
        points.emplace_back(places[static_cast<std::size_t>(tick - ticks.begin())], height_of(*value));
      }
      std::sort(points.begin(), points.end());
      std::string path, dots;
      for (const auto& [x, y] : points) {
        path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "" : " ", x, y);
        dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>", x, y, colour);
      }
      svg += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-dasharray=\"{}\"/>{}\n",
                         path, colour, dash, dots);
      const double y = 10 + static_cast<double>(number) * kLegendLine;
      if (!name.empty()) {
        svg += fmt::format(
            "<line x1=\"{0}\" y1=\"{2}\" x2=\"{1}\" y2=\"{2}\" stroke=\"{3}\" "
            "stroke-dasharray=\"{4}\"/><text "
            "x=\"{5}\" y=\"{6}\">{7}</text>\n",
            kPlotWidth + 12, kPlotWidth + 36, y, colour, dash, kPlotWidth + 42, y + 4, svg_text(name));
      }
      ++number;
    }
    const double height =
        std::max(kPlotSide + kAround, 40 + static_cast<double>(groups_.size()) * kLegendLine);
    double right = std::max(20.0, free_from - kPlotWidth);  // of the plot
    for (const auto& [name, runs] : groups_) {
      if (!name.empty()) right = std::max({right, kLegendWidth, 42 + svg_width(name) + kBetween});
    }
    return svg_document(std::ceil(kAround + kPlotWidth + right), height, svg + "</g>\n");
  }

  std::string colour_of(double value) const {
    return svg_blue(most_ > least_ ? (value - least_) / (most_ - least_) : 0.5);
  }

  std::string heat_maps() const {
    const std::vector<Tick> columns = ticks_of(result_, over_[0]), rows = ticks_of(result_, over_[1]);
    const double cell_width =
        std::max({56.0, kPlotWidth / static_cast<double>(columns.size()), widest_of(columns) + kBetween});
    const double cell_height = std::clamp(kPlotSide / static_cast<double>(rows.size()), 18.0, 48.0);
    const double width = cell_width * static_cast<double>(columns.size()),
                 height = cell_height * static_cast<double>(rows.size());
    const double title = 22, step = height + title + 52;
    const double left = std::max(kAround + 44, widest_of(rows) + 30);  // of the maps
    double right = left + width;
    std::string svg;
    std::size_t number = 0;
    const auto index_of = [](const std::vector<Tick>& ticks, const std::string& text) {
      const auto tick =
          std::find_if(ticks.begin(), ticks.end(), [&](const Tick& t) { return t.text == text; });
      return static_cast<double>(tick - ticks.begin());
    };
    for (const auto& [name, runs] : groups_) {
      const std::string heading = fmt::format("{}{}{}", column(), name.empty() ? "" : ": ", name);
      right = std::max(right, left + kBoldLetters * svg_width(heading));
      svg +=
          fmt::format("<g transform=\"translate({},{})\">\n<text y=\"-8\" font-weight=\"bold\">{}</text>\n",
                      left, title + static_cast<double>(number++) * step, svg_text(heading));
      for (const SweepRun* const run : runs) {
        const double x = cell_width * index_of(columns, run->values[over_[0]]);
        const double y = height - cell_height * (1 + index_of(rows, run->values[over_[1]]));
        const std::optional<double> value = value_of(*run);
        const bool dark = value && most_ > least_ && (*value - least_) / (most_ - least_) > 0.55;
        svg += fmt::format(
            "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" "
            "stroke=\"white\"/>"
            "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"{}\">{}</text>\n",
            x, y, cell_width, cell_height, value ? colour_of(*value) : "#eeeeee", x + cell_width / 2,
            y + cell_height / 2 + 4, dark ? "white" : "black",
            value ? fmt::format("{:.4g}", *value) : std::string(name_of(run->state)));
      }
      for (std::size_t i = 0; i < columns.size(); ++i)
        svg +=
            fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                        cell_width * (static_cast<double>(i) + 0.5), height + 15, tick_text(columns[i].text));
      for (std::size_t i = 0; i < rows.size(); ++i)
        svg +=
            fmt::format("<text x=\"-6\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
                        height - cell_height * (static_cast<double>(i) + 0.5) + 4, tick_text(rows[i].text));
      svg += fmt::format(
          "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text><text "
          "transform=\"translate({},{:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n</g>\n",
          width / 2, height + 32, svg_text(result_.keys[over_[0]]), 16 - left, height / 2,
          svg_text(result_.keys[over_[1]]));
    }
    return svg_document(std::ceil(right) + 20, step * static_cast<double>(groups_.size()), svg);
  }

  const SweepResult& result_;
  std::size_t column_ = 0;
  std::vector<std::size_t> over_;
  // A line, or a map: runs that have the same of all other keys, in the order of these.
  struct Group {
    std::string name;
    std::vector<const SweepRun*> runs;
  };
  std::vector<Group> groups_;
  double least_ = 1e300, most_ = -1e300;
};

}  // namespace

void check_sweep_plot(const SweepResult& outline, const SweepPlot& plot) {
  SweepPlotter(outline, plot);
}

std::string write_sweep_svg(const SweepResult& result, const SweepPlot& plot) {
  return SweepPlotter(result, plot).draw();
}

}  // namespace armilla
