#include "zoo/embedded.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/mapped_file.h"
#include "base/source_path_testing.h"
#include "zoo/zoo.h"

namespace armilla {
namespace {

TEST(Embedded, IsSortedByPath) {
  const auto files = embedded_files();
  ASSERT_FALSE(files.empty());
  for (std::size_t i = 1; i < files.size(); ++i) EXPECT_LT(files[i - 1].path, files[i].path);
}

TEST(Embedded, HoldsTheFilesOfTheRepositoryByteForByte) {
  std::set<std::string> expected;
  for (const char* folder : {"models", "machines"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(source_path(folder)))
      if (entry.path().extension() == ".onnx" || entry.path().extension() == ".yaml")
        expected.insert(std::filesystem::relative(entry.path(), source_path("")));
  std::set<std::string> found;
  for (const EmbeddedFile& file : embedded_files()) {
    found.insert(std::string(file.path));
    const MappedFile original(source_path(std::string(file.path)));
    EXPECT_TRUE(std::ranges::equal(file.bytes, original.bytes())) << file.path;
  }
  EXPECT_EQ(found, expected);
}

TEST(Embedded, FindsByExactPath) {
  const auto found = find_embedded("models/resnet50.onnx");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->path, "models/resnet50.onnx");
  EXPECT_FALSE(find_embedded("models/resnet50"));
  EXPECT_FALSE(find_embedded("resnet50.onnx"));
  EXPECT_FALSE(find_embedded(""));
  EXPECT_FALSE(find_embedded("zzz"));
}

TEST(Zoo, ListsEveryEmbeddedModelOnceAndInOrder) {
  std::vector<std::string_view> embedded, listed;
  for (const EmbeddedFile& file : embedded_files())
    if (file.path.starts_with("models/")) embedded.push_back(file.path);
  for (const ZooModel& model : zoo_models()) {
    const std::string base = "models/" + std::string(model.name);
    EXPECT_TRUE(model.file == base + ".onnx" || model.file == base + ".yaml") << model.file;
    EXPECT_FALSE(model.description.empty());
    listed.push_back(model.file);
  }
  std::ranges::sort(embedded);
  std::ranges::sort(listed);
  EXPECT_EQ(listed, embedded);
  EXPECT_TRUE(std::ranges::is_sorted(zoo_models(), {}, &ZooModel::name));
}

}  // namespace
}  // namespace armilla
