#include "study/steady_state.h"

#include <algorithm>

namespace armilla {
namespace {

struct Window {
  Time from, until;
};

template <class Span>
void cut(std::vector<Span>& spans, const Window& window) {
  std::erase_if(spans, [&](const Span& span) {
    return span.start >= window.until || span.end < window.from ||
           (span.end == window.from && span.start < span.end);
  });
  for (Span& span : spans) {
    span.start = std::max(span.start, window.from) - window.from;
    span.end = std::min(span.end, window.until) - window.from;
  }
}

void cut(std::vector<CollectiveRecord>& records, const Window& window) {
  std::erase_if(records, [&](const CollectiveRecord& record) {
    return record.finished <= window.from || record.finished > window.until;
  });
  for (CollectiveRecord& record : records) {
    for (Time* const time : {&record.issued, &record.started, &record.finished}) *time -= window.from;
  }
}

}  // namespace

void keep_steady_iteration(Result& result, const Result& shorter, std::int64_t iterations) {
  const Time period = result.iteration - shorter.iteration;
  const Time before = Time((result.iteration - period).value / 2);
  const Window window{before, before + period};
  for (RankClass& ranks : result.classes) {
    const auto rank = static_cast<std::size_t>(ranks.representative);
    const RankClass& less = shorter.classes[shorter.class_of[rank]];
    ranks.compute = ranks.compute - less.compute;
    ranks.communication = ranks.communication - less.communication;
    ranks.exposed_communication = ranks.exposed_communication - less.exposed_communication;
    ranks.finish = period;
    for (auto* const intervals : {&ranks.computes, &ranks.collectives, &ranks.others})
      cut(*intervals, window);
    cut(ranks.chunks, window);
  }
  cut(result.collectives, window);
  for (LinkUse& link : result.links) {
    link.bytes = Bytes(link.bytes.value / iterations);
    link.busy = Time(link.busy.value / iterations);
  }
  result.iteration = period;
}

}  // namespace armilla
