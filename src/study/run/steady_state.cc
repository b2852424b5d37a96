#include "study/run/steady_state.h"

#include <algorithm>
#include <cstdlib>
#include <map>

namespace armilla {
namespace {

constexpr std::int64_t kTolerance = 1'000'000;  // one part in so many

// Spans that touch the window's start from before are outside; those without length at it are in.
template <class Span>
void cut(std::vector<Span>& spans, const TimeWindow& window) {
  std::erase_if(spans, [&](const Span& span) {
    return span.start >= window.until || span.end < window.from ||
           (span.end == window.from && span.start < span.end);
  });
  for (Span& span : spans) {
    span.start = std::max(span.start, window.from) - window.from;
    span.end = std::min(span.end, window.until) - window.from;
  }
}

// A collective belongs to the window in which it finished: then none is counted twice.
void cut(std::vector<CollectiveRecord>& records, const TimeWindow& window) {
  std::erase_if(records, [&](const CollectiveRecord& record) {
    return record.finished <= window.from || record.finished > window.until;
  });
  for (CollectiveRecord& record : records) {
    for (Time* const time : {&record.issued, &record.started, &record.finished}) *time -= window.from;
  }
}

}  // namespace

SteadyState find_steady_state(const std::function<Time(std::int64_t)>& end_of,
                              const std::function<bool(const SteadyState&)>& is_even) {
  SteadyState state;
  std::map<std::int64_t, Time> ends;
  const auto end = [&](std::int64_t iterations) {
    const auto [found, fresh] = ends.try_emplace(iterations);
    if (fresh) found->second = end_of(iterations);
    return found->second;
  };
  // The period is the mean over the second half, which leaves out how the pipeline fills; it is settled when
  // the last iteration agrees with it. Doubling keeps all runs together within a small multiple of the last.
  const auto is_lasting = [&] {
    const Time last = state.end - end(state.iterations - 1);
    return std::abs((last - state.period).value) <= state.period.value / kTolerance;
  };
  for (bool was_uneven = false;; state.iterations *= 2) {
    const std::int64_t n = state.iterations;
    state.end = end(n);
    state.period = (state.end - end(n / 2)) / (n / 2);
    // Each takes another run. What was missing of fewer iterations is likely to be missing again.
    if (was_uneven) {
      state.settled = is_even(state) && is_lasting();
    } else {
      const bool lasts = is_lasting();
      state.settled = lasts && is_even(state);
      was_uneven = lasts && !state.settled;
    }
    if (state.settled || n == kMostIterations) return state;
  }
}

bool is_equal_share(const Result& in_window, const Result& all, std::int64_t iterations) {
  for (std::size_t rank = 0; rank < all.class_of.size(); ++rank) {
    const Time whole = all.classes[all.class_of[rank]].compute;
    const Time part = in_window.classes[in_window.class_of[rank]].compute;
    if (std::abs((part * iterations - whole).value) > whole.value / kTolerance) return false;
  }
  return true;
}

void keep_window(Result& result, const TimeWindow& whole, std::int64_t iterations) {
  result.iteration = whole.until - whole.from;
  // What is left out lies on one side of each bound; records are as if it were not there. Without a flush all
  // ranks leave out the same.
  TimeWindow window = whole;
  std::vector<Repetition> within;
  Time left_out;
  for (const Repetition& again : result.classes.front().repeated) {
    const Time until = again.until + left_out + again.skipped();
    if (until < whole.from) window.from -= again.skipped();
    if (until < whole.until) {
      window.until -= again.skipped();
      if (again.from + left_out > whole.from) within.push_back(again);
    }
    left_out += again.skipped();
  }
  for (Repetition& again : within) {
    again.from -= window.from;
    again.until -= window.from;
  }
  for (RankClass& ranks : result.classes) {
    ranks.finish = result.iteration;
    ranks.repeated = within;
    for (auto* const intervals : {&ranks.computes, &ranks.collectives, &ranks.others})
      cut(*intervals, window);
    cut(ranks.chunks, window);
  }
  cut(result.collectives, window);
  // Link counters cannot be cut to the window; the mean iteration stands for it.
  for (LinkUse& link : result.links) {
    link.bytes = Bytes(link.bytes.value / iterations);
    link.busy = Time(link.busy.value / iterations);
  }
}

}  // namespace armilla
