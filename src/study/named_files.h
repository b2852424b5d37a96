// Files that the arguments of a command name, and those that these name in turn: what no output may take the
// place of. A study names its machine, a sweep its study, a prefix the traces of all ranks, a configuration
// of ns-3 its topology and flows. Names in tables, binary files, and descriptions and sources (which people
// read) are not followed. What cannot be read is passed over: whoever needs it says so. Cost: reads YAML and
// JSON of up to 1 MiB; a look at the disk for every word.
#pragma once

#include <string>
#include <vector>

namespace armilla {

std::vector<std::string> files_named_by(const std::vector<std::string>& arguments);

}  // namespace armilla
