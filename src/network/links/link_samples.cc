#include "network/links/link_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace armilla {

LinkSampler::Interval& LinkSampler::at(std::uint32_t link, std::int64_t ns) {
  // How long a run lasts is not known beforehand: intervals double in length, of powers of two, when there
  // would be too many.
  while (static_cast<std::size_t>(ns >> shift_) >= kMostIntervals) coarsen();
  const auto place = static_cast<std::size_t>(ns >> shift_);
  std::vector<Interval>& series = series_[link];
  if (series.size() <= place) series.resize(place + 1);
  return series[place];
}

// In place: an interval is read before another one is put there.
void LinkSampler::coarsen() {
  ++shift_;
  for (std::vector<Interval>& series : series_) {
    for (std::size_t i = 0; i < series.size(); ++i) {
      Interval& merged = series[i / 2];
      const Interval one = series[i];
      if (i % 2 == 0) {
        merged = one;
      } else {
        merged = {merged.bytes + one.bytes, std::max(merged.queue, one.queue),
                  merged.paused_ns + one.paused_ns};
      }
    }
    series.resize((series.size() + 1) / 2);
  }
}

void LinkSampler::carries(std::uint32_t link, double start_ns, double end_ns, double bytes) {
  if (!(end_ns > start_ns)) return;
  at(link, static_cast<std::int64_t>(end_ns));  // so that intervals are as long as they will be
  for (double from = start_ns; from < end_ns;) {
    const auto whole = static_cast<std::int64_t>(from);
    const double until = std::min(end_ns, static_cast<double>(((whole >> shift_) + 1) << shift_));
    at(link, whole).bytes += bytes * (until - from) / (end_ns - start_ns);
    from = until;
  }
}

void LinkSampler::waits(std::uint32_t link, std::int64_t now_ns, std::int64_t bytes) {
  Waiting& waiting = queues_[link];
  Interval& last = at(link, now_ns);
  last.queue = std::max({last.queue, bytes, waiting.bytes});
  // What has waited unchanged for longer than an interval.
  const std::int64_t before = now_ns >> shift_;
  for (std::int64_t i = (waiting.since_ns >> shift_) + 1; i < before && waiting.bytes > 0; ++i) {
    Interval& between = at(link, i << shift_);
    between.queue = std::max(between.queue, waiting.bytes);
  }
  waiting = {now_ns, bytes};
}

void LinkSampler::paused(std::uint32_t link, std::int64_t start_ns, std::int64_t end_ns) {
  at(link, end_ns);
  for (std::int64_t from = start_ns; from < end_ns;) {
    const std::int64_t until = std::min(end_ns, ((from >> shift_) + 1) << shift_);
    at(link, from).paused_ns += until - from;
    from = until;
  }
}

TrafficSamples LinkSampler::samples(std::int64_t end_ns) {
  const std::int64_t last = std::max<std::int64_t>(end_ns - 1, 0);
  for (std::uint32_t link = 0; link < series_.size(); ++link) {
    if (queues_[link].bytes > 0) waits(link, last, queues_[link].bytes);
  }
  while (static_cast<std::size_t>(last >> shift_) >= kMostIntervals) coarsen();
  const auto intervals = static_cast<std::size_t>(last >> shift_) + 1;
  const auto length_ns = static_cast<double>(std::int64_t{1} << shift_);

  TrafficSamples samples;
  samples.interval_s = length_ns * 1e-9;
  const auto name = [&](std::int64_t node) {
    return graph_.names.empty() ? fmt::format("node {}", node) : graph_.names[static_cast<std::size_t>(node)];
  };
  std::vector<double> mean;
  for (std::uint32_t link = 0; link < series_.size(); ++link) {
    const GraphLink& cable = graph_.links[link / 2];
    const bool back = link % 2 == 1;
    const double bits =
        static_cast<double>(back && cable.back ? cable.back->bits_per_second : cable.bits_per_second);
    LinkSamples one{name(back ? cable.b : cable.a), name(back ? cable.a : cable.b), {}, {}, {}};
    series_[link].resize(std::max(intervals, series_[link].size()));
    double bytes = 0;
    for (std::size_t i = 0; i < intervals; ++i) {
      const Interval& interval = series_[link][i];
      // The last interval may be cut short.
      const double ns =
          std::min(length_ns, static_cast<double>(last + 1) - static_cast<double>(i) * length_ns);
      one.utilisation.push_back(interval.bytes * 8e9 / (bits * ns));
      one.queue_bytes.push_back(static_cast<double>(interval.queue));
      one.paused_share.push_back(std::min(1.0, static_cast<double>(interval.paused_ns) / ns));
      bytes += interval.bytes;
    }
    if (bytes == 0) continue;
    mean.push_back(bytes / bits);
    samples.links.push_back(std::move(one));
  }
  // The busiest first: whoever shows some shows these.
  std::vector<std::size_t> order(mean.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return mean[a] > mean[b]; });
  std::vector<LinkSamples> sorted;
  for (const std::size_t i : order) sorted.push_back(std::move(samples.links[i]));
  samples.links = std::move(sorted);
  return samples;
}

}  // namespace armilla
