// What a sweep is of: the study, and the values that its keys take.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/config.h"

namespace armilla {

// The study itself, and one value for each key in every run.
class SweepFile {
 public:
  // `settings` hold for all runs. Throws Error, located in the file.
  SweepFile(const std::string& path, std::vector<Override> settings);

  const std::string& path() const { return path_; }
  const std::string& study() const { return study_name_; }
  const std::vector<std::string>& keys() const { return keys_; }
  std::size_t size() const { return size_; }
  // For people, one for each key; empty where the run leaves the study's own.
  std::vector<std::string> values_of(std::size_t run) const;
  // The study file of a run. Throws Error for keys that it cannot have.
  Config config_of(std::size_t run) const;

 private:
  struct Value {
    std::string text;   // for people
    std::string yaml;   // in one line
    std::string where;  // "sweep.yaml:4:9: vary.plan.tensor.1"
  };
  struct Axis {
    std::string key;
    std::vector<Value> values;
  };
  using Setting = std::pair<std::string, Value>;

  void read_axis(const std::string& key, const Config& values);
  void read_run(const Config& run);
  void add_key(const std::string& key);
  void check_settings() const;
  void check_places(const Config& study, const std::vector<Setting>& varied) const;
  std::vector<Setting> settings_of(std::size_t run) const;

  std::string path_;
  std::string study_name_;  // a path; or the sweep's file, where the study stands in it
  bool inline_ = false;
  std::vector<Override> settings_;
  std::vector<std::string> keys_;
  std::vector<std::vector<Setting>> list_;  // one empty run where there is none
  std::vector<Axis> grid_;
  std::size_t size_ = 0;
};

}  // namespace armilla
