// --fast-forward: the packet network's parameter `fast-forward` under a flag of its own, on every command
// that chooses a network.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "base/config.h"

namespace armilla {

void declare_fast_forward(CLI::App& app, bool& given);

// The network as it was chosen ("packet:cc=hpcc"), with fast-forward. Throws Error for other networks.
std::string with_fast_forward(std::string_view network);

// For commands that keep figures of many runs, and not what each says of itself: where the study is
// fast-forwarded, what that means for them; else empty.
std::string fast_forward_note(const Config& study);

}  // namespace armilla
