// Several jobs that share a machine's network: the `jobs` section of a study file, and what became of each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/study.h"
#include "ir/what_if.h"

namespace armilla {

struct JobRequest {
  std::string name;
  std::string where;
  Study study;                     // its model and plan; the rest is the same in all
  std::vector<RankRange> devices;  // in order of its ranks; empty: the first that are free
  std::string devices_where;
  Time start;
};

struct JobsStudy {
  Study shared;  // machine, components and what_if; no model, no plan
  std::vector<JobRequest> jobs;
};

}  // namespace armilla
