#include "study/profile.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

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

// Behind 8 KiB of what a database is filled with.
Profile many_times() {
  Profile profile = some_profile();
  for (std::int64_t m = 1; m <= 300; ++m)
    profile.computations.push_back({product_key({m, 64, 64, 1}, DType::bf16), {microseconds(1), {}, 0, "a"}});
  return profile;
}

TEST_F(ProfileDatabaseTest, ATruncatedOneIsNeitherReadNorWritten) {
  const std::string path = folder_ + "times.db";
  import_into(path, many_times());
  const std::uintmax_t whole = std::filesystem::file_size(path);
  for (const std::uintmax_t missing : {std::uintmax_t{1}, std::uintmax_t{100}, whole / 2}) {
    std::filesystem::resize_file(path, whole - missing);
    EXPECT_NE(error_of([&] { read_profile_database(path); }).find("this profile database is damaged"),
              std::string::npos);
    const std::string error = error_of([&] { import_into(path, some_profile()); });
    EXPECT_NE(error.find("is damaged"), std::string::npos);
    EXPECT_NE(error.find("hint: delete it, or name another file"), std::string::npos);
    EXPECT_EQ(std::filesystem::file_size(path), whole - missing);
    std::filesystem::remove(path);
    import_into(path, many_times());
  }
}

TEST_F(ProfileDatabaseTest, WhatCannotHaveBeenMeasuredIsRefused) {
  for (const auto& [change, wrong] :
       {std::pair("computation SET time_ps = 0", "'0' as the time of 'matmul'"),
        {"computation SET time_ps = -5", "'-5' as the time of 'matmul'"},
        {"computation SET time_ps = 'fast'", "'fast' as the time of 'matmul'"},
        {"computation SET repeats = -1", "'-1' as the number of repeats of 'matmul'"},
        {"computation SET spread_ps = 1.5", "'1.5' as the spread of 'matmul'"},
        {"computation SET shapes = 'round'", "'round' as the shapes of 'matmul'"},
        {"communication SET ranks = 0", "'0' as the ranks of 'all-reduce'"},
        {"communication SET kind = 'shout'", "an unknown communication 'shout'"}}) {
    const std::string path = folder_ + "times.db";
    std::filesystem::remove(path);
    import_into(path, some_profile());
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
    const std::string sql = std::string("UPDATE ") + change;
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sql;
    sqlite3_close(database);
    const std::string error = error_of([&] { read_profile_database(path); });
    EXPECT_NE(error.find(wrong), std::string::npos) << error;
    EXPECT_NE(error.find("hint: it is damaged: delete it, and import the measurements again"),
              std::string::npos);
    EXPECT_EQ(error_of([&] { import_into(path, some_profile()); }), error) << "nor is anything added to it";
  }
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
