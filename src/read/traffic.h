// Files that describe traffic on a network, as other simulators take them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/flit.h"

namespace armilla {

struct BooksimConfig {
  FlitStudy study;
  std::int64_t channel_bits = 128;  // of a flit: channel_width, which no cycle depends on
  std::vector<std::string> notes;   // what stands in the file and has no effect
};

// A configuration of BookSim 2 ("topology = mesh; k = 8; // ..."), with its defaults for keys that are
// missing. Throws Error with file:line for unknown keys and values, and for what is not modelled.
BooksimConfig parse_booksim(std::string_view text, const std::string& name);
BooksimConfig read_booksim(const std::string& path);

}  // namespace armilla
