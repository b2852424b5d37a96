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

}  // namespace armilla
