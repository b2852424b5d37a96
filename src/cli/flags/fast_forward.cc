#include "cli/flags/fast_forward.h"

#include <fmt/format.h>

#include "base/error.h"

namespace armilla {

void declare_fast_forward(CLI::App& app, bool& given) {
  app.add_flag("--fast-forward", given,
               "with --network packet: count packets of flows that go on alike instead of playing them "
               "(docs/models/fast_forward.md)");
}

std::string with_fast_forward(std::string_view network) {
  const std::string_view name = network.substr(0, network.find(':'));
  if (name != "packet")
    throw Error("--fast-forward", fmt::format("is for the packet network, and this is {:.60}", name),
                "choose it with --network packet, or omit --fast-forward");
  if (network.find("fast-forward=true") != std::string_view::npos) return std::string(network);
  return fmt::format("{}{}fast-forward=true", network, name.size() == network.size() ? ":" : ",");
}

std::string fast_forward_note(const Config& study) {
  const std::optional<Config> network = study.find("network");
  if (!network) return {};
  const auto given = network->is_scalar() ? std::nullopt : network->find("fast-forward");
  const bool chosen = network->is_scalar() ? network->text().find("fast-forward=true") != std::string::npos
                                           : given && given->boolean();
  return chosen ? std::string(
                      "fast-forward: packets of messages that go on alike, or come again, are counted, not "
                      "played; iterations take exactly what they take packet by packet "
                      "(docs/models/fast_forward.md); armilla run of a plan says how many were left out")
                : std::string();
}

}  // namespace armilla
