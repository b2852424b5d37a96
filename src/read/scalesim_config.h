// Configurations of SCALE-Sim (.cfg): sections in brackets, "key = value" or "key : value" lines, as Python's
// configparser reads them: keys in any case, lines that begin with # or ; are comments.
//
// A file that has what only v3 knows (a section layout or sparsity, UseRamulatorTrace) is run by v3's rules,
// any other by v2's. v1's names of the sizes (IfmapSramSz ...) and files without InterfaceBandwidth are read
// as v2's with CALC; the notes say so. Errors instead of other results: v3's sparsity, custom layouts and
// Ramulator, which are not modelled. Addresses (offsets) have no influence on any figure.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/registry.h"
#include "ir/formats/systolic.h"

namespace armilla {

// `name` is what errors call the text. Throws Error with file:line and key.
ScaleSimConfig parse_scalesim_config(std::string_view text, const std::string& name);
ScaleSimConfig read_scalesim_config(const std::string& path);

// A compute model as --compute and a study's `compute` take it: a component ("systolic:rows=8"), or a
// configuration of SCALE-Sim by its file name, which ends with .cfg: its array, and with USER its buffers and
// bandwidth (v2's rules). A relative name is relative to `folder` ("" or with the final slash).
ComponentChoice read_compute_choice(const std::string& text, const std::string& where,
                                    const std::string& folder = "");

}  // namespace armilla
