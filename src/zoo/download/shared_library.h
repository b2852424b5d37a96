// A shared library loaded when it is first needed. Linking libcurl and libcrypto would cost every start of
// the program about 3 ms, and only `zoo fetch` uses them.
#pragma once

#include <dlfcn.h>

#include <string>

#include "base/error.h"

namespace armilla {

class SharedLibrary {
 public:
  // Throws Error, with the Debian package in the hint, when `file` cannot be loaded.
  SharedLibrary(const char* file, const char* package)
      : handle_(::dlopen(file, RTLD_NOW | RTLD_LOCAL)), file_(file), package_(package) {
    if (handle_ == nullptr) throw Error({}, "cannot load " + file_, "apt install " + package_);
  }
  // Never unloaded: libcurl and libcrypto register handlers that run when the program ends.
  ~SharedLibrary() = default;
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;

  template <class Function>
  Function* function(const char* name) const {
    void* address = ::dlsym(handle_, name);
    if (address == nullptr) throw Error({}, file_ + " has no function " + name, "apt install " + package_);
    return reinterpret_cast<Function*>(address);
  }

 private:
  void* handle_;
  std::string file_;
  std::string package_;
};

}  // namespace armilla
