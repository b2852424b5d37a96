// For tests: where the project's sources lie. One small source knows it, so that no other object depends on
// the place, and ccache shares them among clones.
#pragma once

#include <string>

namespace armilla {

// "models/llama2-7b.yaml" -> its absolute path; "" -> that of the project.
std::string source_path(const std::string& inside);

}  // namespace armilla
