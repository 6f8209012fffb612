// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- GpuCommunicatorTest.cpp - the suite on communicators of GPUs -------===//
#include "runtime/cuda/GpuCommunicator.h"
#include "runtime/cuda/Products.h"
#include "test/cuda/GpuFixture.h"
#include "test/unit/runtime/CommunicatorSuite.h"

#include <cstring>
#include <thread>

using namespace mtp;
using namespace mtp::cuda;
using mtp::test::registerReductions;

namespace {

/// What the ranks of one test share.
struct Shared {
  Libraries libraries = loadLibraries(LibraryNames::ofThisProcess(), {});
  std::vector<std::unique_ptr<Device>> devices;
  std::shared_ptr<MeetingPlaces> places = std::make_shared<MeetingPlaces>();
};

/// Moves host buffers to a device and back around a GpuCommunicator.
class HostAdapter : public Communicator {
public:
  HostAdapter(std::shared_ptr<Shared> shared, const Device &device,
              std::shared_ptr<Crew> crew, const Mesh &mesh,
              const std::vector<CollectiveSite> &sites, int rank, bool loopback)
      : Communicator(mesh, sites, rank), shared(std::move(shared)),
        device(device), crew(crew), underWay(sites.size()) {
    device.makeCurrent();
    module = device.loadModule(test::ptxOf({}).c_str());
    reductions = Reductions(device, module, sites);
    stream = device.makeStream();
    GpuCommContext context{
        this->shared->libraries, device,      reductions, crew,
        this->shared->places,    stream.get()};
    gpu = (loopback ? makeLoopbackCommunicator
                    : makeNcclCommunicator)(context, mesh, sites, rank);
  }
  ~HostAdapter() override { device.makeCurrent(); }

protected:
  void begin(int64_t site, const char *in, char *out) override {
    device.makeCurrent();
    const DriverApi &driver = device.api();
    const SiteGeometry &g = geometry[static_cast<size_t>(site)];
    UnderWay &u = underWay[static_cast<size_t>(site)];
    u.host = out;
    u.in = device.allocate(g.inBytes, "a test");
    check(driver,
          driver.copyToDevice(u.in.get(), in, static_cast<size_t>(g.inBytes),
                              stream.get()),
          "copy");
    u.isInPlace = in == out;
    if (!u.isInPlace) {
      u.out = device.allocate(g.outBytes, "a test");
      // Padding keeps what the host has there.
      check(driver,
            driver.copyToDevice(u.out.get(), out,
                                static_cast<size_t>(g.outBytes), stream.get()),
            "copy");
    }
    gpu->start(site, pointerTo(u.in.get()), pointerTo(u.result()));
  }
  void finish(int64_t site) override {
    const DriverApi &driver = device.api();
    UnderWay &u = underWay[static_cast<size_t>(site)];
    gpu->done(site);
    check(driver,
          driver.copyToHost(
              u.host, u.result(),
              static_cast<size_t>(geometry[static_cast<size_t>(site)].outBytes),
              stream.get()),
          "copy");
    finishStream(driver, stream.get(), *crew);
  }

private:
  struct UnderWay {
    DeviceMemory in, out;
    char *host = nullptr;
    bool isInPlace = false;
    Address result() const { return isInPlace ? in.get() : out.get(); }
  };
  std::shared_ptr<Shared> shared;
  const Device &device;
  std::shared_ptr<Crew> crew;
  Module module;
  Reductions reductions;
  Stream stream;
  std::vector<UnderWay> underWay;
  std::unique_ptr<GpuCommunicator> gpu;
};

std::vector<std::unique_ptr<Communicator>>
make(bool loopback, std::shared_ptr<Crew> crew, const Mesh &mesh,
     const std::vector<CollectiveSite> &sites) {
  registerReductions();
  auto shared = std::make_shared<Shared>();
  auto count = static_cast<size_t>(mesh.ranks());
  for (size_t i = 0; i < (loopback ? 1 : count); ++i)
    shared->devices.push_back(std::make_unique<Device>(shared->libraries.driver,
                                                       static_cast<int>(i)));
  std::vector<std::unique_ptr<Communicator>> ranks(count);
  std::vector<std::thread> threads; // NCCL connects all at once
  for (size_t i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      ranks[i] = std::make_unique<HostAdapter>(
          shared, *shared->devices[loopback ? 0 : i], crew, mesh, sites,
          static_cast<int>(i), loopback);
    });
  for (std::thread &thread : threads)
    thread.join();
  return ranks;
}

} // namespace

std::vector<mtp::test::Implementation> mtp::test::communicators() {
  using namespace std::placeholders;
  return {{"nccl", std::bind(make, false, _1, _2, _3), false, true},
          {"loopback", std::bind(make, true, _1, _2, _3), false, true}};
}
