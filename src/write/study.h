// Studies as YAML that `armilla run` takes (docs/formats/study.md), all in one file: the model's description,
// the machine with its device, and of the plan what is not the default.
#pragma once

#include <string>

#include "ir/study.h"

namespace armilla {

// As `study` was asked for, not as it was prepared: what of the plan follows from the rest is left out.
// `comment`: a line in front. The machine must be one without links of its own, devices of one kind and jobs
// that it is as large as; profiles, what-ifs and lengths of training are left out.
std::string write_study_yaml(const Study& study, const std::string& comment);

}  // namespace armilla
