// Machines and devices from YAML: machines/devices/NAME.yaml, machines/clusters/NAME.yaml (both compiled in),
// a user's own file, or the `machine:` section of a study.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "ir/machine.h"

namespace armilla {

Device read_device(const Config& config);
// `device:` inside is a device name or a whole device mapping.
Machine read_machine(const Config& config);

// Names of the compiled-in ones, sorted.
std::vector<std::string> device_names();
std::vector<std::string> machine_names();
// A compiled-in name or the path of a YAML file. Throws Error with "did you mean".
Device load_device(const std::string& name_or_path, const std::string& where);
Machine load_machine(const std::string& name_or_path, const std::string& where);

}  // namespace armilla
