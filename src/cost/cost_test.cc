#include "cost/cost.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace armilla {
namespace {

Device plain_device() {
  Device device;
  device.vector_rate = teraflops(10);
  device.memory_bandwidth = gigabytes_per_second(1000);
  return device;
}

TEST(CostModels, EveryOneIsMadeFromItsDefaults) {
  ASSERT_FALSE(cost_models().empty());
  for (const CostModelInfo& info : cost_models()) {
    SCOPED_TRACE(info.name);
    EXPECT_FALSE(info.help.empty());
    for (const ParameterInfo& parameter : info.parameters)
      EXPECT_FALSE(parameter.help.empty()) << parameter.name;
    const auto model = make_cost_model({std::string(info.name), {}, "test"}, plain_device());
    Work work;
    EXPECT_EQ(model->time(work), Time(0));
    work.kind = WorkKind::copy;
    work.bytes = Bytes(1'000'000);
    EXPECT_EQ(model->time(work), microseconds(1));
  }
}

TEST(CostModels, AnUnknownOneIsRefused) {
  try {
    make_cost_model({"rooflin", {}, "study.yaml:4:10: compute"}, plain_device());
    FAIL() << "was accepted";
  } catch (const Error& e) {
    EXPECT_STREQ(
        e.what(),
        "study.yaml:4:10: compute: unknown compute model 'rooflin'\n  hint: did you mean 'roofline'?");
  }
}

}  // namespace
}  // namespace armilla
