#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace topotune::host {

// Plain access to the files of this machine; `path` is the true path, texts of errors name `shown`.
// Only regular files are opened: a FIFO or a device could block, or act.
Result<std::string> read_file(const std::string& path, std::string_view shown);
Result<std::vector<std::string>> list_folder(const std::string& path, std::string_view shown);
Result<std::string> read_link(const std::string& path, std::string_view shown);

// ENOENT, ENOTDIR: not_found; EACCES, EPERM: denied; EINVAL, ENOTSUP, EOPNOTSUPP, ENODEV, ENXIO, EISDIR,
// ENOTTY, ENOSYS: unsupported; ETIMEDOUT: timed_out; EFBIG: too_large; others: io. The text is "SHOWN: <what
// the C library says>".
Error error_of(int number, std::string_view shown);

// `path` of a machine whose "/" is the folder `root`, with every symbolic link on the way resolved inside
// `root` (the last component too, unless `keep_last`). The result is a path on this machine that holds no
// link and no "..".
Result<std::string> resolve(const std::string& root, std::string_view path, bool keep_last);

}  // namespace topotune::host
