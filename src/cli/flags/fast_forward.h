// --fast-forward: the packet network's parameter `fast-forward` under a flag of its own, on every command
// that chooses a network.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace armilla {

void declare_fast_forward(CLI::App& app, bool& given);

// The network as it was chosen ("packet:cc=hpcc"), with fast-forward. Throws Error for other networks.
std::string with_fast_forward(std::string_view network);

}  // namespace armilla
