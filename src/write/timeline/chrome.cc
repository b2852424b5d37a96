#include "write/timeline/chrome.h"

#include <fmt/format.h>

#include <iterator>

#include "write/format/json_text.h"
#include "write/timeline.h"

namespace armilla {
namespace {

std::string json_string(std::string_view text) {
  return to_inline_text(Json(std::string(text)));
}

// Exactly, without a detour through a double.
std::string microseconds_text(Time time) {
  constexpr std::int64_t kMicrosecond = 1'000'000;
  if (time.value % kMicrosecond == 0) return fmt::format("{}", time.value / kMicrosecond);
  std::string text = fmt::format("{}.{:06}", time.value / kMicrosecond, time.value % kMicrosecond);
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

std::string argument_text(const TraceArgument& argument) {
  if (const auto* text = std::get_if<std::string_view>(&argument.value)) return json_string(*text);
  if (const auto* number = std::get_if<std::int64_t>(&argument.value)) return fmt::format("{}", *number);
  return to_inline_text(finite(std::get<double>(argument.value)));
}

class ChromeWriter {
 public:
  std::string write(const Timeline& timeline) {
    text_ = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
    for (const TraceProcess& process : timeline.processes) write_process(process);
    text_ += "\n]}\n";
    return std::move(text_);
  }

 private:
  template <class... Arguments>
  void event(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_ += first_ ? "\n" : ",\n";
    first_ = false;
    fmt::format_to(std::back_inserter(text_), format, std::forward<Arguments>(arguments)...);
  }

  void write_process(const TraceProcess& process) {
    // Process 0 is the idle task to trace viewers, so ranks count from 1.
    const int pid = process.rank + 1;
    event(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":{}}}}})", pid,
          json_string(process.name));
    event(R"({{"ph":"M","pid":{},"name":"process_sort_index","args":{{"sort_index":{}}}}})", pid,
          process.rank);
    // Names and their order first, so that viewers have them before the slices.
    int tid = 0;
    for (const TraceTrack& track : process.tracks) {
      ++tid;
      event(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})", pid, tid,
            json_string(track.name));
      event(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_sort_index","args":{{"sort_index":{}}}}})", pid,
            tid, tid);
    }
    tid = 0;
    for (const TraceTrack& track : process.tracks) {
      ++tid;
      for (const TraceSlice& slice : track.slices) write_slice(slice, pid, tid);
    }
    for (const TraceCounter& counter : process.counters) {
      for (const TraceCounter::Sample& sample : counter.samples) {
        event(R"({{"ph":"C","pid":{},"ts":{},"name":{},"args":{{"{}":{}}}}})", pid,
              microseconds_text(sample.at), json_string(counter.name), counter.in_bytes ? "bytes" : "value",
              sample.value);
      }
    }
  }

  void write_slice(const TraceSlice& slice, int pid, int tid) {
    std::string arguments;
    for (const TraceArgument& argument : slice.arguments) {
      if (!arguments.empty()) arguments += ',';
      arguments += fmt::format("{}:{}", json_string(argument.key), argument_text(argument));
    }
    event(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"cat":{},"args":{{{}}}}})", pid, tid,
          microseconds_text(slice.start), microseconds_text(slice.end - slice.start), json_string(slice.name),
          json_string(slice.category), arguments);
    // An arrow starts inside its slice: at its very end a viewer may bind it to the next one.
    const Time middle = slice.start + (slice.end - slice.start) / 2;
    for (const std::uint64_t flow : slice.flows_out) {
      event(R"({{"ph":"s","pid":{},"tid":{},"ts":{},"id":{},"name":"gradient","cat":"flow"}})", pid, tid,
            microseconds_text(middle), flow);
    }
    for (const std::uint64_t flow : slice.flows_in) {
      event(R"({{"ph":"f","bp":"e","pid":{},"tid":{},"ts":{},"id":{},"name":"gradient","cat":"flow"}})", pid,
            tid, microseconds_text(slice.start), flow);
    }
  }

  std::string text_;
  bool first_ = true;
};

}  // namespace

std::string write_chrome(const Run& run, const TimelineSelection& selection) {
  return ChromeWriter().write(make_timeline(run, selection));
}

}  // namespace armilla
