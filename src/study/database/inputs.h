// What the outcome of a run depends on, as text and as a hash: the settings of its study, and what the names
// in them stand for.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/config.h"
#include "ir/model.h"
#include "ir/study.h"

namespace armilla {

// 32 hexadecimal digits (event/state_digest.h). Cost: some nanoseconds per character.
std::string digest_text(const std::string& text);
// Empty where the file cannot be read.
std::string contents_of(const std::string& path);

struct RunInputs {
  std::string settings;  // settings_text of the study
  std::string hash;  // of these, the machine, the models, the contents of files they name, and the version
  std::vector<std::string> warnings{};  // of reading it (read/study.h)
};

// Reads what studies name, each model and file once. May be used by several threads.
class InputReader {
 public:
  explicit InputReader(std::string version) : version_(std::move(version)) {}
  // Throws Error for what is no study.
  RunInputs inputs_of(const Config& config);
  // Of a run that is refused before it can be said what it is of.
  RunInputs inputs_of_refused(const std::string& settings, const std::string& message) const;

 private:
  std::string model_digest(const ModelSource& source);
  std::string file_digest(const std::string& path);

  std::string version_;
  std::mutex mutex_;  // of the tables below
  std::map<std::string, std::string> models_, files_;
};

}  // namespace armilla
