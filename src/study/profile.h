// Profile databases: measured times of events of any number of jobs and devices in one file of SQLite
// (docs/formats/profile_database.md). `profile:` of a study takes one as it takes a table of events.
#pragma once

#include <string>

#include "ir/profile.h"

namespace armilla {

// All of it, in the order of devices and names. Any number of processes may read at once. Throws Error for a
// file that is none.
Profile read_profile_database(const std::string& path);

struct ProfileImport {
  std::int64_t added = 0, replaced = 0, unchanged = 0;  // events
};

// Puts the events of `profile` into the database, which is made where it is not there. What was measured
// again replaces what was there. All of it or nothing. Throws Error as above.
ProfileImport import_into(const std::string& path, const Profile& profile);

// Whether the file is a database of any kind.
bool is_database(const std::string& path);

}  // namespace armilla
