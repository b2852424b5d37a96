// Calibration: measured steps of a user's own cluster scale the factors of its machine.
//
//   computation    the rate of matrix products: `sustained` of devices with measured rates of kernels, else
//                  `matrix_efficiency`; scaled first, until predictions are as long as the steps
//   communication  `efficiency` of all links, by one factor; with two or more steps, where they tell the two
//                  apart: where their shares of computation and of exposed communication differ
//
// The factors minimise the sum of squares of log(predicted / measured), by a pattern search within what
// shares can be: at most 1, and not below a tenth of what they were. What does not depend on them
// (memory-bound kernels, a host that is slower than the device, pipeline bubbles) stays as it is.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "base/progress.h"
#include "ir/study.h"

namespace armilla {

struct MeasuredStudy {
  std::string name;  // of its file, for reports
  Config config;     // that it was read from
  Study study;       // prepared
  Time measured;
  std::string where;  // of the time, for errors
};

struct CalibratedStep {
  std::string name;
  Time measured, before, after;  // predicted
};

struct CalibratedFactor {
  std::string key;  // "device.kernels.sustained"
  double before = 0, after = 0;
};

struct Calibration {
  double compute = 1, communication = 1;
  std::vector<CalibratedFactor> factors;  // those that were changed
  std::vector<CalibratedStep> steps;
  std::vector<std::string> notes;
  std::string machine;  // the YAML of the machine with the factors
};

// Throws Error for steps that no such factors explain: shorter than with products at the devices' peak,
// longer than with a tenth of the rate, half as long or twice as long as each other's fit; for a step that
// does not depend on the rate of products; for studies of different machines.
Calibration calibrate(const std::vector<MeasuredStudy>& steps, Progress& meter = no_progress());

// The value as YAML that reads as the same.
std::string yaml_text(const Config& value);

}  // namespace armilla
