// Packages and versions: drivers, OFED, CUDA, libraries that are overwritten.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "lint/context.h"
#include "parse/config_shell.h"

namespace topotune::lint {

namespace {

using model::Severity;
using parse::Command;
using parse::ConfigKind;
using sv = std::string_view;

struct PackageCommand {
  bool removes = false, installs = false;
  std::vector<std::string> packages;
};

PackageCommand package_command(const Command& command) {
  PackageCommand out;
  const std::size_t at = parse::program_index(command.words);
  if (at >= command.words.size()) return out;
  const sv program = parse::base_name(command.words[at]);
  if (!is_one_of(program,
                 {"apt", "apt-get", "aptitude", "yum", "dnf", "microdnf", "zypper", "dpkg", "rpm", "tdnf"}))
    return out;
  for (std::size_t n = at + 1; n < command.words.size(); ++n) {
    const sv word = command.words[n];
    if (is_one_of(word, {"purge", "remove", "autoremove", "erase", "--purge", "-P", "--remove", "-e"}))
      out.removes = true;
    else if (is_one_of(word, {"install", "-i", "reinstall", "in"}))
      out.installs = true;
    else if (!word.starts_with('-'))
      out.packages.emplace_back(word);
  }
  return out;
}

// --- CMD01
// -----------------------------------------------------------------------------------------------------

bool takes_the_driver(sv package) {
  const bool wild =
      package.find('*') != sv::npos || package.starts_with('^') || package.find(".*") != sv::npos;
  sv name = package;
  while (!name.empty() && (name[0] == '^' || name[0] == '*')) name.remove_prefix(1);
  return wild && (name.starts_with("nvidia") || name.starts_with("cuda") || name.starts_with("libnvidia")) &&
         !name.starts_with("nvidia-cuda-toolkit") && !name.starts_with("cuda-toolkit") &&
         !name.starts_with("nvidia-container") && !name.starts_with("cuda-samples") &&
         !name.starts_with("nvidia-nsight");
}

bool installs_driver(const Command& command) {
  const auto install = package_command(command);
  if (install.installs)
    for (const auto& package : install.packages)
      if (package.starts_with("nvidia-driver") || package.starts_with("cuda-drivers") ||
          package.starts_with("nvidia-open") || package == "cuda" || package.starts_with("nvidia-headless") ||
          package.starts_with("nvidia-kernel") || package.starts_with("@nvidia-driver") ||
          package.starts_with("nvidia-fabricmanager") || package.starts_with("kmod-nvidia") ||
          package.starts_with("nvidia-dkms"))
        return true;
  for (const auto& word : command.words) {
    const sv base = parse::base_name(word);
    if (base.starts_with("NVIDIA-Linux-") || (base.starts_with("cuda_") && base.ends_with(".run")))
      return true;
  }
  return tool_index(command, "ubuntu-drivers") < command.words.size() ||
         (has_word(command, "module") && joined(command).find("nvidia-driver") != std::string::npos);
}

void removes_driver(Context& context, const Command& command) {
  const auto remove = package_command(command);
  if (!remove.removes || context.input.kind == ConfigKind::dockerfile) return;
  const auto bad = std::ranges::find_if(remove.packages, takes_the_driver);
  if (bad == remove.packages.end()) return;
  const auto& all = context.input.facts.commands;
  const auto self = static_cast<std::size_t>(&command - all.data());
  for (std::size_t n = self + 1; n < all.size(); ++n)
    if (installs_driver(all[n])) return;
  Found& found = context.add("CMD01", command, "single packages by name");
  found.finding.subject = *bad;
}

// --- CMD02, CMD03
// ----------------------------------------------------------------------------------------------

void ofed_options(Context& context, const Command& command) {
  if (context.input.kind == ConfigKind::dockerfile) return;
  const bool installer = std::ranges::any_of(command.words, [](const auto& word) {
    const sv base = parse::base_name(word);
    return base == "mlnxofedinstall" || base == "mlnx_add_kernel_support.sh";
  });
  const std::size_t at = parse::program_index(command.words);
  if (!installer || at >= command.words.size() ||
      is_one_of(command.words[at], {"echo", "printf", "grep", "ls", "chmod"}))
    return;
  std::string option;
  for (const auto& word : command.words) {
    const bool ineffective = is_one_of(word, {"--user-space-only", "--dpdk"});
    const bool unknown = is_one_of(word, {"--with-mlnx-virt", "--with-ucx", "--enable-ethernet"});
    if (ineffective || unknown) option += (option.empty() ? "" : " ") + word;
  }
  if (option.empty()) return;
  const bool container = context.mentions({"docker build", "podman build", "/.dockerenv", "chroot "});
  if (container && option == "--user-space-only") return;
  Found& found = context.add("CMD02", command, "a full install on the host");
  found.finding.subject = "mlnxofedinstall";
  found.finding.title = fmt::format("mlnxofedinstall {} installs nothing that GPUDirect needs", option);
}

bool system_folder(sv path) {
  if (path.find("-packages/") != sv::npos) return false;  // a Python package's own
  return std::ranges::any_of(std::initializer_list<sv>{"/usr/lib", "/lib/", "/lib64/", "/usr/local/lib"},
                             [&](sv prefix) { return path.starts_with(prefix); });
}

// ln -s libmlx5.so.1 libmlx5.so: the link without a version that a development package would make.
bool development_link(sv source, sv target) {
  const sv base = parse::base_name(target), from = parse::base_name(source);
  if (!base.ends_with(".so") || from.size() <= base.size() + 1) return false;
  const bool same_library = from.starts_with(base) && from[base.size()] == '.';
  return same_library && (source.find('/') == sv::npos || system_folder(source));
}

void overwrites_library(Context& context, const Command& command) {
  const std::size_t at = parse::program_index(command.words);
  if (at >= command.words.size() ||
      !is_one_of(parse::base_name(command.words[at]), {"ln", "cp", "mv", "install"}))
    return;
  std::vector<std::string> operands;
  for (std::size_t n = at + 1; n < command.words.size(); ++n)
    if (!command.words[n].starts_with('-')) operands.push_back(command.words[n]);
  if (operands.size() < 2 || !system_folder(operands.back())) return;
  const sv target = operands.back();
  const sv base = parse::base_name(target);
  const bool folder = base.find(".so") == sv::npos;
  const sv library = folder ? parse::base_name(operands.front()) : base;
  const bool rdma =
      library.starts_with("libibverbs") || library.starts_with("libmlx5") || library.starts_with("librdmacm");
  const bool nccl = library.starts_with("libnccl.") || library.starts_with("libnccl*");
  if ((!rdma && !nccl) || library.find(".so") == sv::npos) return;
  if (parse::base_name(command.words[at]) == "ln" && operands.size() == 2 &&
      development_link(operands.front(), target))
    return;
  Found& found = context.add("CMD03", command, "the distribution's or the OFED's package");
  found.finding.subject = library;
  if (nccl) found.finding.severity = Severity::warn;
}

// --- VER01
// -----------------------------------------------------------------------------------------------------

struct Stated {
  Version version;
  parse::Place at;
  std::string text;
};

std::optional<Version> version_behind(sv word, sv prefix) {
  if (!word.starts_with(prefix)) return std::nullopt;
  std::string text(word.substr(prefix.size()));
  std::ranges::replace(text, '-', '.');
  std::ranges::replace(text, '_', '.');
  if (text.empty() || !is_digit(text[0])) return std::nullopt;
  return parse_version(text);
}

std::optional<Version> driver_in(sv word) {
  for (const sv prefix :
       {"nvidia-driver-", "cuda-drivers-", "nvidia-open-", "nvidia-headless-", "nvidia-dkms-",
        "nvidia-kernel-open-", "nvidia-driver:", "nvidia-driver=", "NVIDIA-Linux-x86_64-",
        "NVIDIA-Linux-aarch64-", "nvidia-utils-", "nvidia-driver-assistant-"})
    if (const auto version = version_behind(word, prefix); version && version->major >= 340) return version;
  return std::nullopt;
}

std::optional<Version> cuda_in(sv word) {
  for (const sv prefix : {"cuda-toolkit-", "cuda-runtime-", "cuda-", "cuda-libraries-", "cuda-compiler-",
                          "cuda-toolkit=", "cuda=", "pytorch-cuda=", "cudatoolkit="})
    if (const auto version = version_behind(word, prefix);
        version && version->major >= 9 && version->major < 30)
      return version;
  if (const auto at = word.find("nvidia/cuda:"); at != sv::npos) return parse_version(word.substr(at + 12));
  if (const auto at = word.find("/usr/local/cuda-"); at != sv::npos)
    return parse_version(word.substr(at + 16));
  for (const sv mark : {"/whl/cu", "+cu"})
    if (const auto at = word.find(mark); at != sv::npos) {
      const auto number = parse_int<int>(word.substr(at + mark.size(), 3));
      if (number && *number >= 100) return Version{*number / 10, *number % 10, 0};
    }
  return std::nullopt;
}

int driver_floor(int cuda_major) {
  return cuda_major == 11 ? 450 : cuda_major == 12 ? 525 : cuda_major == 13 ? 580 : 0;
}

void driver_and_cuda(Context& context) {
  std::optional<Stated> driver, cuda;
  bool compatibility = false;
  for (const auto& command : context.input.facts.commands) {
    const std::size_t at = parse::program_index(command.words);
    if (at >= command.words.size() || is_one_of(command.words[at], {"echo", "printf", "grep"})) continue;
    for (const auto& word : command.words) {
      if (word.find("cu") == std::string::npos && word.find("nvidia") == std::string::npos &&
          word.find("NVIDIA") == std::string::npos)
        continue;
      const sv base = word.find("nvidia/cuda:") == std::string::npos &&
                              word.find("/whl/") == std::string::npos &&
                              word.find("/usr/local/cuda-") == std::string::npos
                          ? parse::base_name(word)
                          : sv(word);
      if (base.starts_with("cuda-compat")) compatibility = true;
      if (const auto version = driver_in(base);
          version && (!driver || version->major > driver->version.major))
        driver = Stated{*version, command.at, std::string(base)};
      if (const auto version = cuda_in(base); version && (!cuda || version->major > cuda->version.major))
        cuda = Stated{*version, command.at, std::string(base)};
    }
  }
  for (const auto* setting : context.settings())
    if (setting->name == "CUDA_VERSION" && setting->literal && !cuda)
      if (const auto version = parse_version(setting->value))
        cuda = Stated{*version, setting->at, "CUDA_VERSION=" + setting->value};
  std::string stated = driver ? driver->text : "";
  std::optional<Version> have = driver ? std::optional(driver->version) : std::nullopt;
  if (context.options.driver && (!driver || context.options.driver->major != driver->version.major)) {
    if (!driver) have = context.options.driver;
    if (!driver) stated = fmt::format("driver {}", context.options.driver->major);
  }
  if (!have || !cuda || compatibility || have->major >= driver_floor(cuda->version.major)) return;
  Found& found = context.add("VER01", cuda->at, cuda->text,
                             fmt::format("driver {} or newer", driver_floor(cuda->version.major)), stated);
  found.finding.title = fmt::format("CUDA {} needs driver {} or newer, not {}", cuda->version.major,
                                    driver_floor(cuda->version.major), have->major);
}

// --- VER02
// -----------------------------------------------------------------------------------------------------

bool released(int major, int minor) {
  if (major < 5) return true;
  if (major == 5) return minor <= 9;
  if (major == 23) return minor == 4 || minor == 7 || minor == 10;
  if (major == 24) return minor == 1 || minor == 4 || minor == 7 || minor == 10;
  return false;
}

void ofed_release(Context& context) {
  if (!context.mentions({"ofed"})) return;
  std::set<std::string> seen;
  const auto look = [&](sv word, parse::Place at) {
    for (const sv mark : {"MLNX_OFED_LINUX-", "MLNX_OFED-", "MLNX_OFED_SRC-", "mlnx-ofed-", "mlnx_ofed/",
                          "ofed/MLNX_OFED-"}) {
      const auto found_at = word.find(mark);
      if (found_at == sv::npos) continue;
      const sv rest = word.substr(found_at + mark.size());
      const auto dot = rest.find('.');
      const auto major = dot == sv::npos ? std::nullopt : parse_int<int>(rest.substr(0, dot));
      std::size_t end = dot == sv::npos ? 0 : dot + 1;
      while (end < rest.size() && is_digit(rest[end])) ++end;
      const auto minor = major ? parse_int<int>(rest.substr(dot + 1, end - dot - 1)) : std::nullopt;
      if (!major || !minor || released(*major, *minor)) continue;
      const std::string version = fmt::format("{}", rest.substr(0, end));
      if (!seen.insert(version).second) return;
      Found& found =
          context.add("VER02", at, "MLNX_OFED " + version, "5.8, 23.10, 24.10, or DOCA-OFED", version);
      found.finding.title = fmt::format("MLNX_OFED {} was never released", version);
      return;
    }
  };
  for (const auto& command : context.input.facts.commands)
    for (const auto& word : command.words) look(word, command.at);
  for (const auto* setting : context.settings()) {
    look(setting->value, setting->at);
    if (is_one_of(setting->name, {"MLNX_OFED_VERSION", "OFED_VERSION", "MOFED_VERSION", "MLNX_OFED_VER"}) &&
        setting->literal)
      look("MLNX_OFED-" + setting->value, setting->at);
  }
}

// --- VER05
// -----------------------------------------------------------------------------------------------------

struct KnownFault {
  Version version;
  sv feature, why;
};

bool uses(const Context& context, sv feature) {
  const auto* profiler = context.last("NCCL_PROFILER_PLUGIN");
  if (feature == "inspector") {
    const auto* on = context.last("NCCL_INSPECTOR_ENABLE");
    return (on != nullptr && on->value == "1") ||
           (profiler != nullptr && profiler->value.find("inspector") != std::string::npos);
  }
  if (feature == "profiler") return profiler != nullptr && !profiler->value.empty();
  if (feature == "mask") {
    const auto* mask = context.last("NCCL_PROFILE_EVENT_MASK");
    return mask != nullptr && mask->value == "4095";
  }
  const auto* tuner = context.last("NCCL_TUNER_PLUGIN");
  return tuner != nullptr && tuner->value.find("example") != std::string::npos;
}

void known_faults(Context& context) {
  static constexpr KnownFault kFaults[] = {
      {{2, 28, 9}, "inspector", "NCCL 2.28.9 crashes in the inspector plugin"},
      {{2, 29, 2}, "tuner", "NCCL 2.29.2: the example tuner fails with CUDA graphs"},
      {{2, 30, 3}, "mask", "NCCL 2.30.3: event mask 4095 crashes with all-to-all; use mask 6"},
      {{2, 31, 2}, "profiler", "NCCL 2.31.2: the profiler costs 4-13 % of bandwidth"},
  };
  for (const auto& fault : kFaults) {
    if (!context.nccl || *context.nccl != fault.version || !uses(context, fault.feature)) continue;
    const sv name = fault.feature == "mask"    ? "NCCL_PROFILE_EVENT_MASK"
                    : fault.feature == "tuner" ? "NCCL_TUNER_PLUGIN"
                                               : "NCCL_PROFILER_PLUGIN";
    const auto* setting = context.last(name);
    if (setting == nullptr) setting = context.last("NCCL_INSPECTOR_ENABLE");
    if (setting == nullptr) continue;
    Found& found = context.add("VER05", *setting, "another version");
    found.finding.title = fault.why;
  }
}

void ended_packages(Context& context) {
  const auto report = [&](parse::Place at, sv what) {
    Found& found = context.add("VER05", at, std::string(what), "ucxx", std::string(what));
    found.finding.title = "UCX-Py ended with 0.45";
    found.finding.remedy = "UCXX (package ucxx)";
    found.finding.impact = "no fixes, no new UCX";
  };
  for (const auto& command : context.input.facts.commands) {
    if (!has_word(command, "install")) continue;
    for (const auto& word : command.words)
      if (word == "ucx-py" || word.starts_with("ucx-py=") || word.starts_with("ucx-py-cu") ||
          word.starts_with("ucx-py>")) {
        report(command.at, word);
        return;
      }
  }
}

}  // namespace

void check_packages(Context& context) {
  for (const auto& command : context.input.facts.commands) {
    if (command.words.empty()) continue;
    removes_driver(context, command);
    ofed_options(context, command);
    overwrites_library(context, command);
  }
  driver_and_cuda(context);
  ofed_release(context);
  known_faults(context);
  ended_packages(context);
}

void check_containers(Context& context) {
  for (const auto& shm : context.input.facts.shared_memory) {
    if (shm.host_ipc || shm.bytes >= (std::uint64_t{1} << 30) || shm.gpus.value_or(0) < 2) continue;
    Found& found = context.add("CONT01", shm.at, shm.scope.empty() ? "/dev/shm" : shm.scope,
                               "8g or more, or the host's IPC namespace", shm.text);
    const bool tiny = shm.bytes <= (std::uint64_t{64} << 20);
    const bool by_shm =
        older(context.nccl, since(2, 24));  // later versions may take cuMem host buffers instead
    found.finding.severity = tiny && by_shm ? Severity::error : Severity::warn;
    found.finding.title =
        fmt::format("/dev/shm of {} is too small for {}", shm.text,
                    *shm.gpus >= parse::kAllGpus ? "several GPUs" : fmt::format("{} GPUs", *shm.gpus));
  }
}

}  // namespace topotune::lint
