#include "study/database/database.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <system_error>

#include "base/error.h"
#include "base/file_status.h"

namespace armilla {
namespace {

constexpr const char* kPermissions = "you need permission to write the file and its folder";

constexpr const char* kDamaged = "delete it, or name another file";

constexpr std::array kDatabaseKinds = {&kSavedSearch, &kSweepDatabase, &kProfileDatabase};

const DatabaseKind* kind_with_id(std::int64_t application) {
  const auto found = std::ranges::find(kDatabaseKinds, application, &DatabaseKind::application);
  return found == kDatabaseKinds.end() ? nullptr : *found;
}

}  // namespace

const DatabaseKind* kind_of_database(const std::string& path) {
  // Four bytes, the highest first (sqlite.org/fileformat.html, "The Database Header").
  constexpr std::size_t kApplication = 68;
  std::array<char, kApplication + 4> header{};
  if (!std::ifstream(path, std::ios::binary).read(header.data(), header.size())) return nullptr;
  std::int64_t application = 0;
  for (std::size_t byte = kApplication; byte < header.size(); ++byte)
    application = application << 8 | static_cast<unsigned char>(header[byte]);
  return kind_with_id(application);
}

Statement::Statement(Database& database, std::string_view sql) : database_(database) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(database.handle_.get(), sql.data(), static_cast<int>(sql.size()),
                                      &statement, nullptr);
  handle_.reset(statement);
  database.check(code);
}

Statement& Statement::set(int parameter, std::int64_t value) {
  database_.check(sqlite3_bind_int64(handle_.get(), parameter + 1, value));
  return *this;
}

Statement& Statement::set(int parameter, std::string_view value) {
  database_.check(sqlite3_bind_text(handle_.get(), parameter + 1, value.data(),
                                    static_cast<int>(value.size()), SQLITE_TRANSIENT));
  return *this;
}

Statement& Statement::set(int parameter, double value) {
  database_.check(std::isnan(value) ? sqlite3_bind_null(handle_.get(), parameter + 1)
                                    : sqlite3_bind_double(handle_.get(), parameter + 1, value));
  return *this;
}

bool Statement::next() {
  const int code = sqlite3_step(handle_.get());
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) database_.check(code);
  return false;
}

void Statement::run() {
  while (next()) {
  }
  database_.check(sqlite3_reset(handle_.get()));
}

std::string Statement::text(int column) const {
  const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(handle_.get(), column));
  return text == nullptr
             ? std::string()
             : std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(handle_.get(), column)));
}

double Statement::real(int column) const {
  return sqlite3_column_type(handle_.get(), column) == SQLITE_NULL
             ? std::numeric_limits<double>::quiet_NaN()
             : sqlite3_column_double(handle_.get(), column);
}

Database::Database(const std::string& path, const DatabaseForm& form, DatabaseUse use)
    : path_(path), what_(form.what) {
  if (path.empty() || path == "-")
    throw Error(path, fmt::format("is not a file, as a {} is", form.what), "name a file, such as plans.db");
  sqlite3* database = nullptr;
  // The name as it is, not as an address: "file:..." would be one.
  const std::string name = path.front() == '/' ? path : "./" + path;
  const bool writes = use == DatabaseUse::writing;
  const int code =
      sqlite3_open_v2(name.c_str(), &database,
                      writes ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY, nullptr);
  handle_.reset(database);
  check(code);
  sqlite3_extended_result_codes(database, 0);
  if (writes && sqlite3_db_readonly(database, "main") == 1)
    throw Error(path, "cannot be written", kPermissions);
  if (writes) execute("PRAGMA locking_mode = EXCLUSIVE");
  const std::int64_t application = number_of("PRAGMA application_id");
  const std::int64_t version = number_of("PRAGMA user_version");
  is_new_ = writes && application == 0 && number_of("SELECT count(*) FROM sqlite_master") == 0;
  if (!is_new_ && application != form.application) {
    const DatabaseKind* const other = kind_with_id(application);
    throw Error(
        path,
        fmt::format("is a {}{}",
                    other == nullptr ? "database, but not a " : fmt::format("{}, and not a ", other->what),
                    form.what),
        "name another file");
  }
  if (!is_new_ && version != form.version) {
    throw Error(path,
                fmt::format("is a {} of form {}, and this version of Armilla knows form {}", form.what,
                            version, form.version),
                "name another file, or use the version of Armilla that wrote it");
  }
  // Behind a log the file may be shorter than it says.
  if (!is_new_ && !form.log) refuse_truncated();
  if (!writes) return;
  if (form.log) {
    // Closed before anything else: an open statement is a transaction.
    const std::string journal = text_of("PRAGMA journal_mode = WAL");
    if (journal != "wal") throw Error(path, "cannot have a write-ahead log", "name a file on a local disk");
    execute("PRAGMA synchronous = NORMAL");
  }
  if (!is_new_) return;
  execute(fmt::format("BEGIN EXCLUSIVE; {} PRAGMA application_id = {}; PRAGMA user_version = {}; COMMIT",
                      form.tables, form.application, form.version));
}

void Database::execute(const std::string& sql) {
  check(sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr));
}

void Database::refuse_truncated() {
  // What is missing of a page reads as zeros.
  const std::int64_t whole = number_of("PRAGMA page_count") * number_of("PRAGMA page_size");
  std::error_code failed;
  const std::uintmax_t size = std::filesystem::file_size(path_, failed);
  if (failed || static_cast<std::int64_t>(size) >= whole) return;
  throw Error(path_, fmt::format("this {} is damaged: its end is missing", what_), kDamaged);
}

std::int64_t Database::number_of(const std::string& query) {
  Statement statement(*this, query);
  return statement.next() ? statement.number(0) : 0;
}

std::string Database::text_of(const std::string& query) {
  Statement statement(*this, query);
  return statement.next() ? statement.text(0) : std::string();
}

void Database::check(int code) const {
  switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
      return;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw Error(path_, fmt::format("this {} is in use by another process", what_),
                  "wait until that ends, or name another file");
    case SQLITE_NOTADB:
      throw Error(path_, fmt::format("is not a database, so it is not a {}", what_), "name another file");
    case SQLITE_ERROR:  // a table of its form is missing
    case SQLITE_CORRUPT:
      throw Error(path_, fmt::format("this {} is damaged", what_), kDamaged);
    case SQLITE_CANTOPEN: {
      const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
      if (is_folder(path_)) throw Error(path_, "is a folder", "name a file in it, such as plans.db");
      if (!folder.empty() && !is_there(folder))
        throw Error(path_, fmt::format("cannot be made: the folder {} does not exist", folder.string()),
                    "make the folder first, or name a file in another one");
      throw Error(path_, fmt::format("this {} can be neither opened nor made", what_), kPermissions);
    }
    case SQLITE_READONLY:
    case SQLITE_PERM:
      throw Error(path_, "cannot be written", kPermissions);
    case SQLITE_FULL:
      throw Error(path_, "cannot be written: the disk is full");
    default:
      throw Error(path_, fmt::format("this {} cannot be used: {}", what_, sqlite3_errstr(code)));
  }
}

}  // namespace armilla
