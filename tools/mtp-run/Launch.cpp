// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mtp-run/Launch.h"

#include "runtime/io/Npz.h"
#include "runtime/support/System.h"
#include "tools/common/ArtifactFile.h"
#include "tools/mtp-run/LauncherOutput.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace mtp;
using Clock = std::chrono::steady_clock;

namespace {

const char *const kLaunched = "MTP_LAUNCHED";
/// After a signal ranks have this long to end, then mpirun to end them.
constexpr double kGrace = 10;
constexpr double kLastGrace = 5;
constexpr int kPollMilliseconds = 50;

std::atomic<bool> gone{false};

void onTerminate(int) {
  gone.store(true, std::memory_order_relaxed);
  requestStop(SIGTERM);
}
void onInterruptOrder(int) { requestStop(SIGINT); }
void onTerminateOrder(int) { requestStop(SIGTERM); }
void exitInterrupted(int) { _exit(128 + SIGINT); }
void exitTerminated(int) { _exit(128 + SIGTERM); }

void handle(int signal, void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

/// For whoever runs mpirun: Open MPI 4 and 5; others ignore them. A rank has
/// threads of its own, so it is not bound to a core; mtp has checked that there
/// are as many processes as ranks, however few cores.
void setLauncherOptions() {
  for (auto [name, value] :
       {std::pair("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
        {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
        {"OMPI_MCA_hwloc_base_binding_policy", "none"},
        {"PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"},
        {"PRTE_MCA_hwloc_default_binding_policy", "none"}})
    setenv(name, value, 0);
  setenv(kLaunched, "1", 1);
}

/// mpirun in a group of its own: a terminal's interrupt reaches it through this
/// process only. -1 with errno.
pid_t startMpirun(const std::vector<std::string> &arguments, int errorPipe,
                  int failurePipe) {
  std::vector<char *> argv;
  for (const std::string &argument : arguments)
    argv.push_back(const_cast<char *>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t parent = getpid();
  pid_t child = fork();
  if (child != 0)
    return child;
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent)
    _exit(128 + SIGTERM);
  int null = open("/dev/null", O_RDONLY);
  dup2(null, STDIN_FILENO);
  dup2(errorPipe, STDERR_FILENO);
  setLauncherOptions();
  execvp(argv[0], argv.data());
  int reason = errno;
  ssize_t ignored = write(failurePipe, &reason, sizeof(reason));
  _exit(ignored < 0 ? 126 : 127);
}

/// Before any process is started: what each of them would have to say.
Error checkArtifact(const Options &options) {
  std::string bytes, reason;
  std::vector<Artifact> programs;
  Error error;
  if (!readFile(options.model, bytes, error))
    return error;
  if (!parseArtifacts(bytes, programs, reason))
    return {exits::BadInput, "artifact", options.model + ": " + reason, {}};
  const Artifact &first = programs[0];
  return checkLaunch(options, first.device, first.axes, first.mesh);
}

/// Passes on what mpirun writes to standard error, and signals to it, until it
/// has ended. What ranks say after a signal is not passed on: it comes of the
/// signal. What waitpid gives.
int superviseMpirun(pid_t child, int errors, LauncherOutput &output) {
  int passed = 0, status = 0, strength = 0;
  Clock::time_point since;
  auto waited = [&] {
    return std::chrono::duration<double>(Clock::now() - since).count();
  };
  while (true) {
    pollfd ready{errors, POLLIN, 0};
    if (poll(&ready, 1, kPollMilliseconds) > 0) {
      char bytes[4096];
      ssize_t size = read(errors, bytes, sizeof(bytes));
      if (size > 0) {
        if (!stopRequested())
          output.take(bytes, static_cast<size_t>(size));
        continue;
      }
      usleep(kPollMilliseconds * 1000);
    }
    if (int signal = stopRequested(); signal && signal != passed) {
      passed = signal;
      since = Clock::now();
      kill(child, signal == SIGINT ? SIGUSR1 : SIGUSR2);
    }
    if (passed && strength == 0 && waited() > kGrace) {
      strength = 1;
      kill(child, SIGTERM);
    }
    if (strength == 1 && waited() > kGrace + kLastGrace) {
      strength = 2;
      kill(child, SIGKILL);
    }
    if (waitpid(child, &status, WNOHANG) == child)
      break;
  }
  char bytes[4096];
  ssize_t size;
  while ((size = read(errors, bytes, sizeof(bytes))) > 0)
    if (!stopRequested())
      output.take(bytes, static_cast<size_t>(size));
  return status;
}

/// The exit code of all; sets `error` where no rank has said why.
int verdict(int status, const LauncherOutput &output, Error &error) {
  if (int signal = stopRequested()) {
    error = endedBySignal(signal);
    return error.exitCode;
  }
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : exits::RankFailure;
  bool known = (code >= 0 && code <= exits::NotPresent) ||
               code == 128 + SIGINT || code == 128 + SIGTERM;
  if (output.killed().empty() && known && (code == 0 || output.ranksSpoke()))
    return code;
  std::string reason = output.killed();
  if (reason.empty())
    reason = "mpirun ended with exit code " + std::to_string(code) +
             (output.swallowed().empty() ? "" : ":\n" + output.swallowed());
  error = {exits::RankFailure, "communication", reason, {}};
  return error.exitCode;
}

} // namespace

bool mtp::isLaunched() { return getenv(kLaunched) != nullptr; }

void mtp::exitOnLauncherSignals() {
  handle(SIGUSR1, exitInterrupted);
  handle(SIGUSR2, exitTerminated);
}

void mtp::installLauncherSignals() {
  handle(SIGUSR1, onInterruptOrder);
  handle(SIGUSR2, onTerminateOrder);
  handle(SIGTERM, onTerminate);
}

bool mtp::otherRankGone() { return gone.load(std::memory_order_relaxed); }

int mtp::launchProcesses(const Options &options, int argc,
                         const char *const *argv, Error &error) {
  if (options.isArtifact && (error = checkArtifact(options)))
    return error.exitCode;
  std::vector<std::string> arguments = {
      "mpirun", "-n", std::to_string(options.launch), programPath()};
  arguments.insert(arguments.end(), argv + 1, argv + argc);
  int errors[2], failure[2];
  if (pipe2(errors, O_CLOEXEC) || pipe2(failure, O_CLOEXEC)) {
    error = {exits::Internal,
             "internal",
             std::string("cannot make a pipe: ") + strerror(errno),
             {}};
    return error.exitCode;
  }
  installSignalHandlers();
  pid_t child = startMpirun(arguments, errors[1], failure[1]);
  close(errors[1]);
  close(failure[1]);
  fcntl(errors[0], F_SETFL, O_NONBLOCK);
  int reason = child < 0 ? errno : 0;
  if (child > 0 && read(failure[0], &reason, sizeof(reason)) > 0)
    waitpid(child, nullptr, 0);
  if (reason) {
    error = {exits::NotPresent,
             "communicator",
             std::string("--launch needs mpirun, which can't be started: ") +
                 strerror(reason),
             {}};
    return error.exitCode;
  }
  LauncherOutput output;
  int status = superviseMpirun(child, errors[0], output);
  output.end();
  return verdict(status, output, error);
}
