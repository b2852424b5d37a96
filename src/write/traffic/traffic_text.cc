#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "base/units_text.h"
#include "ir/derived/traffic_figures.h"
#include "write/traffic.h"

namespace armilla {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

Facts outcome_facts(const RateResult& rate) {
  return {
      {"packet latency", fmt::format("{:.2f} cycles on average", rate.packet_latency_avg_cycles)},
      {"network latency", fmt::format("{:.2f} cycles on average, without the wait at the source",
                                      rate.network_latency_avg_cycles)},
      {"accepted", fmt::format("{:.5f} flits per node and cycle", rate.accepted_flits_per_node_cycle)},
      {"hops", fmt::format("{:.3f} routers on average", rate.hops_avg)},
      {"saturated", rate.saturated ? "yes: the latencies are those of queues that grow without end" : "no"},
      {"simulated", fmt::format("{} cycles, {} flit-hops", with_separators(rate.cycles),
                                with_separators(rate.flit_hops))}};
}

Facts outcome_facts(const FlowsResult& traffic) {
  const auto all = static_cast<std::int64_t>(traffic.flows.size());
  const std::int64_t done = std::ranges::count(traffic.flows, true, &FlowResult::finished);
  Facts facts = {{"flows", done == all ? fmt::format("{}, all finished", with_separators(all))
                                       : fmt::format("{}, {} of them finished", with_separators(all),
                                                     with_separators(done))}};
  if (const auto times = completion_times(traffic)) {
    const auto text = [](double seconds) { return to_text(from_seconds(seconds)); };
    facts.emplace_back("completion",
                       fmt::format("shortest {}, median {}, 99 % {}, longest {}", text(times->least),
                                   text(times->median), text(times->p99), text(times->most)));
  }
  if (traffic.has_pfc)
    facts.emplace_back("PFC", fmt::format("{}, {}", counted(traffic.pfc_pauses, "pause"),
                                          counted(traffic.pfc_resumes, "resume")));
  // Fluids have no packets.
  facts.emplace_back("simulated", (traffic.packets > 0 ? counted(traffic.packets, "packet") + ", " : "") +
                                      counted(traffic.events, "event"));
  if (traffic.fast_forward) {
    const FastForwarded& forward = *traffic.fast_forward;
    facts.emplace_back(
        "fast-forward",
        forward.packets == 0
            ? fmt::format("nothing: {}", forward.unknown.empty() ? "no flows went on alike for long enough"
                                                                 : forward.unknown)
            : fmt::format("{:.1f} % of the packets counted, not played, in {}; completion times "
                          "within {:g} %",
                          100 * static_cast<double>(forward.packets) / static_cast<double>(traffic.packets),
                          counted(forward.stretches, "stretch"), 100 * forward.bound));
  }
  if (const auto slow = slow_downs(traffic))
    facts.emplace_back(
        "slow-down",
        fmt::format(
            "smallest {:.3f}, median {:.3f}, 99 % {:.3f}, largest {:.3f}, of the time that a flow takes "
            "alone{}",
            slow->least, slow->median, slow->p99, slow->most,
            done < all ? fmt::format("; only of the {} that finished", done) : ""));
  return facts;
}

// The busiest of those that were watched.
std::string links_table(const TrafficSamples& samples, const TextStyle& style) {
  constexpr std::size_t kMost = 5;
  TextTable table;
  table.columns = {{"busiest links", false}, {"utilisation"}, {"at most"}, {"longest queue"}, {"paused"}};
  const auto percent = [](double share) { return fmt::format("{:.1f} %", 100 * share); };
  const auto mean = [](const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  };
  for (const LinkSamples& link : std::span(samples.links).first(std::min(kMost, samples.links.size()))) {
    table.rows.push_back({fmt::format("{} -> {}", link.from, link.to), percent(mean(link.utilisation)),
                          percent(*std::ranges::max_element(link.utilisation)),
                          to_text(Bytes(std::llround(*std::ranges::max_element(link.queue_bytes)))),
                          percent(mean(link.paused_share))});
  }
  return to_text(table, 2, style);
}

}  // namespace

std::string write_traffic_text(const TrafficResult& result, const TextStyle& style) {
  Facts facts = std::visit([](const auto& outcome) { return outcome_facts(outcome); }, result.outcome);
  facts.insert(facts.end(), result.facts.begin(), result.facts.end());
  std::size_t width = 0;
  for (const auto& [name, value] : facts) width = std::max(width, display_width(name));
  std::string text = paint(printable(result.title), Ink::bold, style.colour) + '\n';
  for (const auto& [name, value] : facts)
    text += wrap(value, fmt::format("  {:<{}}  ", name, width), style.width);
  if (const auto* flows = std::get_if<FlowsResult>(&result.outcome); flows && !flows->samples.links.empty())
    text += links_table(flows->samples, style);
  for (const std::string& note : result.notes) text += wrap(note, "note: ", style.width);
  return text;
}

}  // namespace armilla
