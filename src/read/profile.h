// Measured times of events (ir/profile.h) from files: Armilla's own tables, and what other tools measured.
#pragma once

#include <string>
#include <string_view>

#include "ir/profile.h"

namespace armilla {

// The CSV that `armilla events` and `armilla profile export` write, with measured times in the column
// `time_s` (docs/formats/events.md), and the JSON likewise. Passed over: events without a time, and those
// whose `source` is not "measured".

// Throws Error with file:line for missing and unknown columns, a phase, type, shape or number that is none, a
// negative time, and an event that is there twice with different times.
Profile parse_profile(std::string_view text, const std::string& name);
// The same with the place in the document.
Profile parse_profile_json(std::string_view text, const std::string& name);
// One of both, by contents.
Profile read_profile(const std::string& path);

// What nccl-tests prints (github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md): the times out of place, of as
// many ranks and nodes as it lists. Which collective it was is said by "Collective test starting", else
// `collective`. Throws Error where neither says it, or nothing was measured.
Profile parse_nccl_tests(std::string_view text, const std::string& name, const std::string& collective = {});

// A trace of PyTorch's profiler (Kineto) that was taken with record_shapes: matrix products (aten::mm, addmm,
// bmm, baddbmm) as kProduct, with the time of their kernels, or, where it has no kernels, of the CPU; and
// collectives of NCCL with their sizes. Of several calls the median and the quartiles' distance. The device
// is as the trace calls it.
Profile parse_torch_profile(std::string_view text, const std::string& name);

// Any of these, by contents.
Profile import_profile(const std::string& path, const std::string& collective = {});

}  // namespace armilla
