#include "plugins/table_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "tune/machine.h"

namespace topotune::plugins {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A regular file of at most 4 MiB, whole; the reason in `wrong` otherwise.
std::string read_file(const std::string& path, std::string& wrong) {
  std::string out;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return wrong = path + ": " + std::strerror(errno), out;
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
    wrong = path + ": not a regular file";
  else if (static_cast<unsigned long long>(status.st_size) > tune::kMaxTableBytes)
    wrong = path + ": larger than 4 MiB";
  char buffer[16384];
  while (wrong.empty() && out.size() <= tune::kMaxTableBytes) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) wrong = path + ": " + std::strerror(errno);
    if (got <= 0) break;
    out.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(fd);
  return out;
}

std::string other_machine(const tune::Table& table, const TunerSettings& settings) {
  if (tune::accepts(settings.accept, "machine")) return "";
  const auto machine = tune::machine_fingerprint(settings.root);
  if (table.machine == machine) return "";
  return "it was measured on " + table.machine + ", this machine has " +
         (machine.empty() ? "no GPU that can be read" : machine);
}

}  // namespace

TunerSettings TunerSettings::from_environment() {
  TunerSettings out;
  out.table = variable("TOPOTUNE_TUNER_TABLE");
  if (const auto hash = variable("TOPOTUNE_TUNER_HASH"); !hash.empty()) {
    out.whole_job = !hash.starts_with(tune::kHashOfNode);
    out.hash = out.whole_job ? hash : hash.substr(tune::kHashOfNode.size());
  }
  out.accept = variable("TOPOTUNE_TUNER_ACCEPT");
  out.root = variable("TOPOTUNE_TUNER_ROOT");
  if (const auto folder = variable("TOPOTUNE_TUNER_SHM"); !folder.empty()) out.shared = folder;
  out.filtered = !variable("NCCL_ALGO").empty() || !variable("NCCL_PROTO").empty();
  return out;
}

Loaded load_table(const TunerSettings& settings) {
  Loaded out;
  if (settings.table.empty()) {
    out.off = "TOPOTUNE_TUNER_TABLE is not set";
    return out;
  }
  std::string wrong;
  const auto text = read_file(settings.table, wrong);
  if (!wrong.empty()) {
    out.off = wrong;
    return out;
  }
  auto parsed = tune::parse_table(text);
  if (!parsed.table) {
    out.off = settings.table + ":" + (parsed.error.line > 0 ? std::to_string(parsed.error.line) + ":" : "") +
              " " + parsed.error.text;
    return out;
  }
  out.hash = tune::hash_of(text);
  if (settings.hash && *settings.hash != tune::hash_text(out.hash))
    out.off =
        settings.table + ": its hash is " + tune::hash_text(out.hash) + ", the job wants " + *settings.hash;
  else if (auto why = other_machine(*parsed.table, settings); !why.empty())
    out.off = settings.table + ": " + why;
  else
    out.table = std::move(parsed.table);
  return out;
}

std::string other_nccl(const Loaded& loaded, const TunerSettings& settings, const std::string& nccl) {
  if (!loaded.table || tune::accepts(settings.accept, "nccl") || loaded.table->nccl == nccl) return "";
  return settings.table + ": it was measured with NCCL " + loaded.table->nccl + ", this is " +
         (nccl.empty() ? "an unknown version" : nccl);
}

bool shares_a_fabric(const std::string& root) {
  return ::access((root + "/dev/nvidia-caps-imex-channels").c_str(), F_OK) == 0;
}

bool job_is_on_one_node() {
  constexpr const char* sizes[][2] = {{"LOCAL_WORLD_SIZE", "WORLD_SIZE"},
                                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE"},
                                      {"MV2_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_SIZE"},
                                      {"MPI_LOCALNRANKS", "PMI_SIZE"}};
  // The innermost launcher says what the job is.
  for (const auto& [local, all] : sizes)
    if (const auto here = variable(local); !here.empty()) return here == variable(all);
  return variable("SLURM_STEP_NUM_NODES") == "1";
}

}  // namespace topotune::plugins
