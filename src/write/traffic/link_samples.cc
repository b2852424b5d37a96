#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/units_text.h"
#include "ir/derived/traffic_figures.h"
#include "write/format/csv.h"
#include "write/format/svg.h"
#include "write/timeline/perfetto.h"
#include "write/traffic.h"

namespace armilla {
namespace {

// The busiest links come first: those that are left out carried less.
constexpr std::size_t kLinksShown = 40, kMostCounted = 200;

double start_of(const TrafficSamples& samples, std::size_t interval) {
  return samples.interval_s * static_cast<double>(interval);
}

// Rows are links, columns intervals; the darkest is `most`.
std::string heat_map(const TrafficSamples& samples, double top, const std::string& what, double most,
                     const std::function<double(const LinkSamples&, std::size_t)>& value) {
  constexpr double kLeft = 210, kWidth = 640, kRow = 14;
  const std::size_t rows = std::min(kLinksShown, samples.links.size());
  const std::size_t columns = samples.links.front().utilisation.size();
  const double cell = kWidth / static_cast<double>(columns);
  std::string svg = fmt::format("<g transform=\"translate({},{:.1f})\">\n<text y=\"-6\">{}</text>\n", kLeft,
                                top, svg_text(what));
  for (std::size_t row = 0; row < rows; ++row) {
    const LinkSamples& link = samples.links[row];
    const double y = kRow * static_cast<double>(row);
    svg += fmt::format("<text x=\"-6\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", y + kRow - 3,
                       svg_text(fmt::format("{:.16} - {:.16}", link.from, link.to)));
    for (std::size_t column = 0; column < columns; ++column) {
      const double share = std::clamp(value(link, column) / most, 0.0, 1.0);
      // Most cells of a large network are empty.
      if (share == 0) continue;
      svg += fmt::format("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\"/>\n",
                         cell * static_cast<double>(column), y, cell, kRow - 1, svg_blue(share));
    }
  }
  const double bottom = kRow * static_cast<double>(rows);
  svg +=
      fmt::format("<rect width=\"{}\" height=\"{:.1f}\" fill=\"none\" stroke=\"#444\"/>\n", kWidth, bottom);
  constexpr int kTicks = 4;
  for (int tick = 0; tick <= kTicks; ++tick) {
    const double share = static_cast<double>(tick) / kTicks;
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", share * kWidth,
                       bottom + 14, to_text(from_seconds(share * start_of(samples, columns))));
  }
  return svg + "</g>\n";
}

}  // namespace

std::string write_flows_csv(const FlowsResult& flows) {
  Csv csv({"source", "destination", "bytes", "start_s", "fct_s", "slow_down"});
  for (const FlowResult& flow : flows.flows) {
    csv.cell(flow.source).cell(flow.destination).cell(flow.bytes).cell(flow.start_s);
    csv.cell(flow.finished ? flow.fct_s : std::nan(""));
    csv.cell(slow_down(flow) > 0 ? slow_down(flow) : std::nan("")).end_record();
  }
  return csv.text();
}

std::string write_link_samples_csv(const TrafficSamples& samples) {
  Csv csv({"time_s", "from", "to", "utilisation", "queue_bytes", "paused_share"});
  for (const LinkSamples& link : samples.links) {
    for (std::size_t i = 0; i < link.utilisation.size(); ++i) {
      csv.cell(start_of(samples, i)).cell(link.from).cell(link.to).cell(link.utilisation[i]);
      csv.cell(link.queue_bytes[i]).cell(link.paused_share[i]).end_record();
    }
  }
  return csv.text();
}

std::string write_link_samples_svg(const TrafficSamples& samples, const std::string& title) {
  std::string svg = fmt::format("<text x=\"10\" y=\"20\" font-size=\"13\">{}</text>\n", svg_text(title));
  if (samples.links.empty()) return svg_document(880, 40, svg);
  double longest = 0, paused = 0;
  for (const LinkSamples& link : samples.links) {
    longest = std::max(longest, *std::ranges::max_element(link.queue_bytes));
    paused = std::max(paused, *std::ranges::max_element(link.paused_share));
  }
  const double step = 14 * static_cast<double>(std::min(kLinksShown, samples.links.size())) + 60;
  double top = 60;
  svg += heat_map(samples, top, "utilisation of links, pale to dark: 0 to 100 %", 1,
                  [](const LinkSamples& link, std::size_t i) { return link.utilisation[i]; });
  top += step;
  if (longest > 0) {
    svg += heat_map(samples, top,
                    fmt::format("bytes that wait for them: 0 to {}", to_text(Bytes(std::llround(longest)))),
                    longest, [](const LinkSamples& link, std::size_t i) { return link.queue_bytes[i]; });
    top += step;
  }
  if (paused > 0) {
    svg += heat_map(samples, top, "share of the time that PFC keeps them silent: 0 to 100 %", 1,
                    [](const LinkSamples& link, std::size_t i) { return link.paused_share[i]; });
    top += step;
  }
  return svg_document(880, top - 30, svg);
}

std::string write_link_samples_perfetto(const TrafficSamples& samples) {
  Timeline timeline;
  for (std::size_t l = 0; l < std::min(kMostCounted, samples.links.size()); ++l) {
    const LinkSamples& link = samples.links[l];
    TraceProcess process;
    process.name = fmt::format("{} - {}", link.from, link.to);
    process.rank = static_cast<std::int32_t>(l);
    const auto add = [&](const std::string& name, const std::vector<double>& values, double scale,
                         bool in_bytes) {
      // Else every link would have rows of nothing but zeros.
      if (std::ranges::all_of(values, [](double value) { return value == 0; })) return;
      TraceCounter counter{name, {}, in_bytes};
      for (std::size_t i = 0; i < values.size(); ++i)
        counter.samples.push_back({from_seconds(start_of(samples, i)), std::llround(scale * values[i])});
      // A counter keeps its last value to the end of the picture.
      counter.samples.push_back({from_seconds(start_of(samples, values.size())), 0});
      process.counters.push_back(std::move(counter));
    };
    add("utilisation, %", link.utilisation, 100, false);
    add("queue", link.queue_bytes, 1, true);
    add("paused by PFC, %", link.paused_share, 100, false);
    timeline.processes.push_back(std::move(process));
  }
  return write_perfetto(timeline);
}

}  // namespace armilla
