// One name for several that differ in numbers only, so that equal rows of a table can be one:
// "pipeline rank 1" ... "pipeline rank 6" are "pipeline ranks 1-6".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace armilla {

// Where the names have no such pattern: the first "and N more": of `all`, where names stand for others, too.
// `names` must not be empty.
std::string name_of_all(const std::vector<std::string>& names, std::size_t all = 0);

}  // namespace armilla
