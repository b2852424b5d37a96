// A SQLite database (sqlite.org) that one process at a time writes results into.
//
// What is committed survives the death of the process at any moment: changes go to a write-ahead log first
// ("-wal" beside the file until the database is closed), and a database is made in one transaction, so that
// it has all of its tables or none; one without any is made anew. (synchronous=NORMAL: the end of the machine
// can cost the last plans, never the database.) The file is locked from the first look at it until it is
// closed, or the process ends however it does.
//
// Which program a database belongs to is its application_id, in which form it is its user_version
// (sqlite.org/pragma.html). Others' databases are refused before anything is changed.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace armilla {

// An application_id of Armilla's, and what people call such a database.
struct DatabaseKind {
  std::int32_t application = 0;
  std::string_view what;
};
inline constexpr DatabaseKind kSavedSearch{0x41726d53, "saved search"};          // "ArmS"
inline constexpr DatabaseKind kSweepDatabase{0x41726d57, "database of sweeps"};  // "ArmW"
inline constexpr DatabaseKind kProfileDatabase{0x41726d50, "profile database"};  // "ArmP"

// Which of these the file is; nothing: another program's, none at all, or one that was never closed. Only the
// beginning of the file is looked at.
const DatabaseKind* kind_of_database(const std::string& path);

struct DatabaseForm {
  std::string_view what;  // "saved search", for messages
  std::int32_t application = 0;
  std::int32_t version = 0;
  std::string_view tables;  // SQL that makes them
  bool log = true;  // changes go to a write-ahead log; else to the file, with a journal that undoes them
};

enum class DatabaseUse : std::uint8_t { writing, reading };

class Database;

// A prepared statement. Parameters and columns are numbered from 0.
class Statement {
 public:
  Statement(Database& database, std::string_view sql);

  Statement& set(int parameter, std::int64_t value);
  Statement& set(int parameter, std::string_view value);
  Statement& set(int parameter, double value);  // NULL where it is no number
  // Whether there is another row.
  bool next();
  // For statements without rows: executes it, and makes it ready for other parameters.
  void run();

  std::int64_t number(int column) const { return sqlite3_column_int64(handle_.get(), column); }
  std::string text(int column) const;
  double real(int column) const;  // NaN for NULL

 private:
  struct Close {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  Database& database_;
  std::unique_ptr<sqlite3_stmt, Close> handle_;
};

class Database {
 public:
  // Opens the file at `path`, or makes it. Only to read: others may read it, too, and it must be there (and
  // have no log, which readers would have to write). Throws Error: in use, another's, another form's,
  // damaged, not writable.
  Database(const std::string& path, const DatabaseForm& form, DatabaseUse use = DatabaseUse::writing);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  const std::string& path() const { return path_; }
  // Whether it had no tables before.
  bool is_new() const { return is_new_; }
  void execute(const std::string& sql);
  // Of the first row; 0 or empty where there is none.
  std::int64_t number_of(const std::string& query);
  std::string text_of(const std::string& query);

 private:
  friend class Statement;
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  };
  // Throws Error for a file that is shorter than its pages.
  void refuse_truncated();
  // Throws what a result code means.
  void check(int code) const;

  std::string path_;
  std::string_view what_;
  std::unique_ptr<sqlite3, Close> handle_;
  bool is_new_ = false;
};

}  // namespace armilla
