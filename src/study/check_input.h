// Says what an input is (read/file_format.h) and validates it whole, without simulating: a study is lowered,
// traces are checked against each other, an MSCCL algorithm is proved.
#pragma once

#include <string>

#include "base/progress.h"
#include "read/read.h"

namespace armilla {

struct CheckOptions {
  ModelOptions model;
  std::string groups;      // a file of communicator groups, for traces
  std::int64_t ranks = 0;  // of a job of traces; 0: as many as there are files
  Progress* progress = &no_progress();
};

struct CheckedInput {
  std::string text;  // what it is, in lines
  // Which of the options said something about it.
  bool uses_model = false, uses_groups = false, uses_ranks = false;
};

// `input` is a name, a file, a folder with a model or the prefix of traces. Throws Error for what is not
// valid, and for files that no command reads.
CheckedInput check_input(const std::string& input, const CheckOptions& options);

}  // namespace armilla
