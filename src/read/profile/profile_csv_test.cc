#include "read/profile.h"

#include <gtest/gtest.h>

#include "base/error_testing.h"

namespace armilla {
namespace {

const std::string kProfileHeader = "name,phase,shapes,type,flops,bytes,time_s\n";

std::string profile_error(const std::string& text) {
  return error_of([&] { parse_profile(text, "t.csv"); });
}

TEST(ProfileCsv, ReadsMeasuredComputations) {
  const Profile profile = parse_profile(
      kProfileHeader +
          "qkv,input gradient,\"2 x 4x5x6, 1x2x3\",bf16,480,99,0.000001234567\ngelu,forward,,fp32,7,8,2e-6\n",
      "t.csv");
  EXPECT_EQ(profile.file, "t.csv");
  ASSERT_EQ(profile.computations.size(), 2U);
  Work work{WorkKind::matrix, DType::bf16, Flops(480), Bytes(99), {{4, 5, 6, 2, true}, {1, 2, 3, 1, true}}};
  EXPECT_EQ(profile.computations[0].key, key_of("qkv", Phase::input_gradient, work));
  EXPECT_EQ(profile.computations[0].measured.time, Time(1'234'567));
  EXPECT_EQ(profile.computations[1].measured.time, microseconds(2));
}

TEST(ProfileCsv, OneProductIsWrittenInOneWay) {
  const Profile profile = parse_profile(
      kProfileHeader + "a,forward,1 x 4x5x6,bf16,240,99,1e-6\nb,forward,4x5x6,bf16,240,99,1e-6\n", "t.csv");
  ASSERT_EQ(profile.computations.size(), 2U);
  EXPECT_EQ(profile.computations[0].key.shapes, profile.computations[1].key.shapes);
}

TEST(ProfileCsv, WhatIsNotMeasuredIsPassedOver) {
  const Profile profile = parse_profile(
      "event,name,phase,shapes,type,flops,bytes,ranks,inter_node,dimensions,count,time_s,source\n"
      "computation,a,forward,,bf16,1,2,1,false,,5,,measured\n"
      "computation,pause,other,,,0,0,1,false,,5,1,given\n"
      "computation,c,forward,,bf16,1,2,1,false,,5,1,modelled\n"
      "computation,b,forward,,bf16,1,2,1,false,,5,3,measured\n"
      "communication,all-reduce,,,,0,64,8,false,nvlink,5,1,simulated\n",
      "t.csv");
  ASSERT_EQ(profile.computations.size(), 1U);
  EXPECT_EQ(profile.computations[0].key.name, "b");
}

TEST(ProfileCsv, WhatIsWrongIsSaidWithItsPlace) {
  EXPECT_EQ(profile_error("name,phase\n"),
            "t.csv:1: column 'shapes' is missing\n  hint: there are: name, phase");
  EXPECT_EQ(profile_error("name,tme_s\n"), "t.csv:1: unknown column 'tme_s'\n  hint: did you mean 'time_s'?");
  EXPECT_EQ(profile_error(kProfileHeader + "a,foward,,bf16,1,2,3\n"),
            "t.csv:2: unknown phase 'foward'\n  hint: did you mean 'forward'?");
  EXPECT_EQ(profile_error(kProfileHeader + "a,forward,,bf17,1,2,3\n"),
            "t.csv:2: unknown type 'bf17'\n  hint: for example bf16");
  EXPECT_EQ(profile_error(kProfileHeader + "a,forward,,bf16,1,2,0\n"),
            "t.csv:2: a time of 0\n  hint: nothing takes no time: leave it out");
  EXPECT_EQ(profile_error(kProfileHeader + "a,forward,,bf16,1,-2,1\n"),
            "t.csv:2: 1 flops and -2 bytes\n  hint: expected at least 0 of each");
  for (const std::string time : {"-1", "nan", "inf", "1e30"}) {
    EXPECT_NE(profile_error(kProfileHeader + "a,forward,,bf16,1,2," + time + "\n").find("t.csv:2: time_s: "),
              std::string::npos)
        << time;
  }
  EXPECT_NE(profile_error(kProfileHeader + "a,forward,,bf16,x,2,3\n").find("t.csv:2: flops: "),
            std::string::npos);
  EXPECT_EQ(
      profile_error(kProfileHeader + "a,forward,,bf16,1,2,3\na,forward,,bf16,1,2,3\na,forward,,bf16,1,2,4\n"),
      "t.csv:4: 'a' has another time further up");
  EXPECT_EQ(profile_error("source," + kProfileHeader + "measurd,a,forward,,bf16,1,2,3\n"),
            "t.csv:2: unknown source 'measurd'\n  hint: did you mean 'measured'?");
  EXPECT_EQ(profile_error("event," + kProfileHeader + "kernel,a,forward,,bf16,1,2,3\n"),
            "t.csv:2: unknown event 'kernel'\n  hint: expected computation or communication");
}

}  // namespace
}  // namespace armilla
