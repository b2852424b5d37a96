// Machines and devices from YAML: machines/devices/NAME.yaml, machines/clusters/NAME.yaml (both compiled in),
// a user's own file, or the `machine:` section of a study. The keys are those of ir/machine.h;
// machines/README.md lists them. Every figure has its unit; a relative path is relative to the folder of the
// file it stands in.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "ir/machine.h"

namespace armilla {

Device read_device(const Config& config);
// `device:` inside is a device name, a path or a whole device mapping.
Machine read_machine(const Config& config);

// Names of the compiled-in ones, sorted.
std::vector<std::string> device_names();
std::vector<std::string> machine_names();
// The compiled-in ones that a name can mean: the one called so; else those whose names have all its words
// ("h100": dgx-h100; h100-pcie, h100-sxm); else, of machines, those with such a device. Case does not matter.
std::vector<std::string> devices_meant(std::string_view name);
std::vector<std::string> machines_meant(std::string_view name);
// A name that means one of the compiled-in ones, or the path of a YAML file. Throws Error with "did you
// mean".
Device load_device(const std::string& name_or_path, const std::string& where);
Machine load_machine(const std::string& name_or_path, const std::string& where);

// The YAML of a device, and of a machine with its device's figures in place; names and paths as above.
std::string device_text(const std::string& name_or_path, const std::string& where);
std::string machine_text(const std::string& name_or_path, const std::string& where);
// What `machine:` and its `device:` of a study stand for, so that overrides can change them (base/config.h).
std::optional<NamedText> expand_machine(const std::string& path, const std::string& value,
                                        const std::string& folder);

// The value's text: a name as it stands, a path seen from the folder of the file that it is written in.
std::string name_or_path(const Config& config);

}  // namespace armilla
