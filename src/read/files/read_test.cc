#include "read/read.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/source_path_testing.h"

namespace armilla {
namespace {

std::string error_in_file(const std::string& name) {
  try {
    read_model(name, {});
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ReadModel, ZooNameOrPath) {
  const Model zoo = read_model("resnet18", {});
  EXPECT_EQ(zoo.name, "resnet18");
  EXPECT_EQ(totals(zoo).parameters, 11689512);
  const std::string path = source_path("models/resnet18.onnx");
  const Model file = read_model(path, {});
  EXPECT_EQ(file.source, path);
  EXPECT_EQ(dump_model(file), dump_model(zoo));
}

TEST(ReadModel, NeitherOfThem) {
  EXPECT_EQ(error_in_file("resnet51"),
            "resnet51: is neither a file nor a model of the zoo\n  hint: did you mean 'resnet50'?");
  EXPECT_EQ(error_in_file("absent.onnx"), "absent.onnx: cannot open the file: No such file or directory");
  EXPECT_EQ(error_in_file(source_path("src/base")),
            source_path("src/base") +
                ": is a folder without a config.json, so it is not a model\n"
                "  hint: a model's folder is one that was downloaded from Hugging Face");
  EXPECT_EQ(error_in_file("-"),
            "-: standard input is not read\n  hint: name a file; one that is called '-' is ./-");
}

}  // namespace
}  // namespace armilla
