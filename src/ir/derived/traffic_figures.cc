#include "ir/derived/traffic_figures.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace armilla {
namespace {

std::optional<FlowQuantiles> quantiles_of(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  const auto quantile = [&](double share) {
    const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
    const auto place = values.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(rank, 1) - 1);
    std::nth_element(values.begin(), place, values.end());
    return *place;
  };
  return FlowQuantiles{quantile(0), quantile(0.5), quantile(0.99), quantile(1)};
}

}  // namespace

std::optional<FlowQuantiles> completion_times(const FlowsResult& traffic) {
  std::vector<double> times;
  for (const FlowResult& flow : traffic.flows) {
    if (flow.finished) times.push_back(flow.fct_s);
  }
  return quantiles_of(std::move(times));
}

std::optional<FlowQuantiles> slow_downs(const FlowsResult& traffic) {
  std::vector<double> slow;
  for (const FlowResult& flow : traffic.flows) {
    if (slow_down(flow) > 0) slow.push_back(slow_down(flow));
  }
  return quantiles_of(std::move(slow));
}

double slow_down(const FlowResult& flow) {
  return flow.finished && flow.least_s > 0 ? flow.fct_s / flow.least_s : 0;
}

}  // namespace armilla
