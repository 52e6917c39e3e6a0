#include "launch/meeting.h"

#include "base/text.h"
#include "launch/exchange.h"

namespace topotune::launch {

namespace {

Error usage(std::string text, std::string hint) {
  return Error{Errc::usage, std::move(text), {}, {}, {}, std::move(hint)};
}

std::optional<int> number(const Environment& environment, const char* name) {
  return parse_int<int>(environment(name).value_or(""));
}

// torchrun's workers meet at MASTER_PORT; where its agent keeps the store there, at the next one.
std::optional<peers::Meeting> torchrun_meeting(const Environment& environment) {
  const auto host = environment("MASTER_ADDR");
  const auto port = number(environment, "MASTER_PORT");
  if (!host || host->empty() || !port || *port < 1 || *port > 65534) return std::nullopt;
  peers::Meeting m;
  m.host = *host;
  m.port = environment("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True" ? *port + 1 : *port;
  return m;
}

// Rank 0 of a step is on its first node. Ports from 20000, below the kernel's own range.
std::optional<peers::Meeting> slurm_meeting(const Environment& environment) {
  const auto nodes = environment("SLURM_STEP_NODELIST");
  const auto job = number(environment, "SLURM_JOB_ID"), step = number(environment, "SLURM_STEP_ID");
  if (!nodes || !job) return std::nullopt;
  peers::Meeting m;
  m.host = first_host(*nodes);
  m.port = 20000 + static_cast<int>((static_cast<long>(*job) * 37 + step.value_or(0)) % 10000);
  return m.host.empty() ? std::nullopt : std::optional(m);
}

}  // namespace

std::string first_host(const std::string& list) {
  const auto open = list.find('['), comma = list.find(',');
  if (open == std::string::npos || comma < open) return list.substr(0, comma);
  const auto end = list.find_first_of(",-]", open + 1);
  if (end == std::string::npos) return "";
  const auto close = list.find(']', open);
  const auto rest =
      close == std::string::npos ? std::string() : list.substr(close + 1, list.find(',', close) - close - 1);
  return list.substr(0, open) + list.substr(open + 1, end - open - 1) + rest;
}

Result<JobPlace> job_place(const Environment& environment, const JobOptions& options) {
  const auto rank = detect_rank(environment);
  if (!rank) return tl::unexpected(rank.error());
  JobPlace place;
  if (options.rank || options.ranks) {
    if (!options.rank || !options.ranks)
      return tl::unexpected(
          usage("--rank and --ranks belong together", "--rank 0 --ranks 2 --rendezvous node1:29400"));
    if (*options.ranks < 1 || *options.rank < 0 || *options.rank >= *options.ranks)
      return tl::unexpected(
          usage(fmt::format("rank {} of {} is none", *options.rank, *options.ranks), "ranks count from 0"));
    place.rank = *options.rank, place.size = *options.ranks;
    return place;
  }
  if (!*rank) return place;
  const auto& r = **rank;
  place.launcher = r.launcher;
  place.local = r.local;
  place.local_size = r.local_size;
  if (!r.global || !r.size) {
    if (r.local_size == 1) return place;
    return fail(Errc::malformed, "{} tells this process no rank of the whole job", r.launcher);
  }
  place.rank = *r.global, place.size = *r.size;
  return place;
}

Result<std::optional<peers::Meeting>> meeting_by_environment(const Environment& environment,
                                                             const JobOptions& options) {
  if (!options.rendezvous.empty()) {
    auto m = peers::meeting_from(options.rendezvous);
    if (!m) return tl::unexpected(m.error());
    return std::optional(*m);
  }
  if (environment("RANK")) {
    if (auto m = torchrun_meeting(environment)) return m;
  }
  if (environment("SLURM_STEP_ID")) return slurm_meeting(environment);
  return std::optional<peers::Meeting>();
}

Result<std::unique_ptr<peers::Peers>> meet_job(const Environment& environment, const JobOptions& options,
                                               const JobPlace& place) {
  if (place.size == 1) return peers::alone();
  std::optional<peers::Meeting> meeting;
  if (options.rendezvous.empty() && !environment("RANK")) {
    auto exchanged = exchange_address(environment, place.rank, options.limit_seconds);
    if (!exchanged) return tl::unexpected(exchanged.error());
    meeting = std::move(*exchanged);
  }
  if (!meeting) {
    auto found = meeting_by_environment(environment, options);
    if (!found) return tl::unexpected(found.error());
    meeting = std::move(*found);
  }
  if (!meeting)
    return tl::unexpected(
        usage(fmt::format("rank {} of {} does not know where to meet the others{}", place.rank, place.size,
                          place.launcher.empty() ? "" : " (" + place.launcher + " has no PMIx or PMI)"),
              "--rendezvous HOST:PORT with the address of rank 0"));
  meeting->rank = place.rank, meeting->size = place.size;
  meeting->limit_seconds = options.limit_seconds, meeting->stop = options.stop;
  return peers::meet(*meeting);
}

}  // namespace topotune::launch
