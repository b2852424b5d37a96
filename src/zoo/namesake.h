// Names that are compiled in (the zoo's models, the machines) win over whatever in the working directory has
// the same name; this finds what they hide, so that it can be said. "./NAME" is always the file.
#pragma once

#include <string>
#include <string_view>

namespace armilla {

// "resnet50 is the model of the zoo; the traces resnet50.0.et ... here are not used: write ./resnet50 for
// them". Empty where nothing is hidden. `what` is "the model of the zoo".
std::string namesake_note(const std::string& name, std::string_view what);

// The path of the model that a folder holds: its config.json. Throws Error for a folder without one, with
// what is in it instead.
std::string model_in_folder(const std::string& folder);

}  // namespace armilla
