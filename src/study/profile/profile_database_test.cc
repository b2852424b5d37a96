#include "study/profile.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error_testing.h"
#include "base/folder_testing.h"
#include "base/output_file.h"
#include "read/profile.h"
#include "write/report.h"

namespace armilla {
namespace {

class ProfileDatabaseTest : public testing::Test {
 protected:
  ProfileDatabaseTest() : folder_(path_for_test("profile").string() + "/") {
    std::filesystem::create_directories(folder_);
  }
  ~ProfileDatabaseTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

Profile some_profile() {
  return {"times.csv",
          {{product_key({64, 32, 16, 1}, DType::bf16), {microseconds(3), Time(5), 20, "a"}},
           {product_key({64, 32, 16, 1}, DType::bf16), {microseconds(4), {}, 0, "b"}},
           {{"norm", Phase::input_gradient, "", "fp32", 7, 9}, {microseconds(2), {}, 1, "a"}}},
          {{{"all-reduce", 1024, 8, true}, {microseconds(9), Time(1), 5, "a"}}}};
}

bool equal(const Profile& a, const Profile& b) {
  return write_profile_csv(a) == write_profile_csv(b);
}

TEST_F(ProfileDatabaseTest, HoldsWhatWasPutIn) {
  const std::string path = folder_ + "times.db";
  const ProfileImport first = import_into(path, some_profile());
  EXPECT_EQ(first.added, 4);
  Profile again = some_profile();
  again.computations[0].measured.time = microseconds(5);
  const ProfileImport second = import_into(path, again);
  EXPECT_EQ(second.added, 0);
  EXPECT_EQ(second.replaced, 1);
  EXPECT_EQ(second.unchanged, 3);
  const Profile stored = read_profile_database(path);
  EXPECT_EQ(stored.computations.size(), 3U);
  EXPECT_EQ(stored.communications.size(), 1U);
  EXPECT_EQ(stored.communications[0].measured, again.communications[0].measured);
  // And through its files.
  EXPECT_TRUE(equal(parse_profile(write_profile_csv(stored), "x.csv"), stored));
  EXPECT_TRUE(equal(parse_profile_json(write_profile_json(stored), "x.json"), stored));
  for (const auto& [key, measured] : stored.computations) {
    if (key.name == "matmul" && measured.device == "a") {
      EXPECT_EQ(measured, (Measured{microseconds(5), Time(5), 20, "a"}));
    }
  }
}

TEST_F(ProfileDatabaseTest, ReadersDoNotExcludeEachOther) {
  const std::string path = folder_ + "times.db";
  import_into(path, some_profile());
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  EXPECT_TRUE(equal(read_profile_database(path), read_profile_database(path)));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1)
      << "nothing is left beside it";
}

TEST_F(ProfileDatabaseTest, OthersFilesAreRefused) {
  const std::string path = folder_ + "other.db";
  write_file(path, "no database at all, but some text that is long enough");
  EXPECT_NE(error_of([&] {
              read_profile_database(path);
            }).find("is not a database, so it is not a profile database"),
            std::string::npos);
  EXPECT_NE(error_of([&] { import_into(path, some_profile()); }).find("is not a database"),
            std::string::npos);
  EXPECT_NE(error_of([&] { read_profile_database(folder_ + "none.db"); }).find("cannot be opened"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "none.db"));
}

}  // namespace
}  // namespace armilla
