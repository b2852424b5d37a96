// prepare_study (study/run.h) for those who know of which kind the model is and prepare it many times.
#pragma once

#include "ir/study.h"

namespace armilla {

// `described`: is_described of the study's model (read/read.h), which looks into its file.
Study prepare_study(Study study, bool described);

}  // namespace armilla
