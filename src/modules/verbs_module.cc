// libtopotune-verbs.so: the part that is linked with libibverbs (rdma-core). One process holds both ends of a
// reliable connection and moves data with RDMA writes and reads.
#include <infiniband/verbs.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "gdr/module_api.h"

namespace {

using Fault = TopotuneVerbsFault;

constexpr int kDeepest = 128;        // work requests of a queue
constexpr std::uint8_t kReads = 16;  // reads under way

struct Failure {
  const char* step;
  int number;
  std::string text;
};

[[noreturn]] void fail(const char* step, const char* call, int number) {
  throw Failure{step, number, std::string(call) + ": " + std::strerror(number)};
}

double now() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

struct End {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  ibv_qp* qp = nullptr;
  ibv_mr* mr = nullptr;
  ibv_port_attr attributes{};
  ibv_gid gid{};
  int port = 1, gid_index = -1;
  std::uint8_t reads = 1;  // reads and atomics under way that the device can do at either side
  std::uint64_t memory = 0;

  ~End() {
    if (qp != nullptr) ibv_destroy_qp(qp);
    if (cq != nullptr) ibv_destroy_cq(cq);
    if (mr != nullptr) ibv_dereg_mr(mr);
    if (pd != nullptr) ibv_dealloc_pd(pd);
    if (context != nullptr) ibv_close_device(context);
  }
};

template <class F>
int guarded(Fault* fault, const F& f) {
  try {
    f();
    return 0;
  } catch (const Failure& failure) {
    std::snprintf(fault->step, sizeof fault->step, "%s", failure.step);
    std::snprintf(fault->text, sizeof fault->text, "%s", failure.text.c_str());
    fault->number = failure.number;
  } catch (const std::bad_alloc&) {
    std::snprintf(fault->step, sizeof fault->step, "open");
    std::snprintf(fault->text, sizeof fault->text, "not enough memory");
    fault->number = ENOMEM;
  }
  return 1;
}

class List {
 public:
  List() : list_(ibv_get_device_list(&count_)) {
    // Without the kernel's RDMA modules: ENOSYS, not an empty list.
    if (list_ == nullptr) fail("devices", "ibv_get_device_list", errno);
  }
  ~List() { ibv_free_device_list(list_); }
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ibv_device** begin() const { return list_; }
  ibv_device** end() const { return list_ + count_; }

 private:
  int count_ = 0;
  ibv_device** list_;
};

int devices(char* names, std::size_t size, Fault* fault) {
  return guarded(fault, [&] {
    std::string out;
    for (auto* device : List()) out += (out.empty() ? "" : " ") + std::string(ibv_get_device_name(device));
    std::snprintf(names, size, "%s", out.c_str());
  });
}

void open_device(End& end, const char* name) {
  const List list;
  for (auto* device : list) {
    if (std::strcmp(ibv_get_device_name(device), name) != 0) continue;
    end.context = ibv_open_device(device);
    if (end.context == nullptr) fail("open", "ibv_open_device", errno);
    return;
  }
  throw Failure{"open", ENODEV, std::string("libibverbs has no device ") + name};
}

void query(End& end) {
  if (const int e = ibv_query_port(end.context, static_cast<std::uint8_t>(end.port), &end.attributes); e != 0)
    fail("open", "ibv_query_port", e);
  if (end.attributes.state != IBV_PORT_ACTIVE) throw Failure{"open", ENETDOWN, "the port is not active"};
  if (end.gid_index >= 0 &&
      ibv_query_gid(end.context, static_cast<std::uint8_t>(end.port), end.gid_index, &end.gid) != 0)
    fail("open", "ibv_query_gid", errno);
  ibv_device_attr device{};
  if (const int e = ibv_query_device(end.context, &device); e != 0) fail("open", "ibv_query_device", e);
  const int reads = std::min({int{kReads}, device.max_qp_rd_atom, device.max_qp_init_rd_atom});
  end.reads = static_cast<std::uint8_t>(std::max(reads, 1));
}

void make_queue(End& end) {
  end.pd = ibv_alloc_pd(end.context);
  if (end.pd == nullptr) fail("queue pair", "ibv_alloc_pd", errno);
  end.cq = ibv_create_cq(end.context, kDeepest, nullptr, nullptr, 0);
  if (end.cq == nullptr) fail("queue pair", "ibv_create_cq", errno);
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = end.cq;
  wanted.cap.max_send_wr = kDeepest;
  wanted.cap.max_recv_wr = wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
  wanted.qp_type = IBV_QPT_RC;
  end.qp = ibv_create_qp(end.pd, &wanted);
  if (end.qp == nullptr) fail("queue pair", "ibv_create_qp", errno);
  ibv_qp_attr init{};
  init.qp_state = IBV_QPS_INIT;
  init.port_num = static_cast<std::uint8_t>(end.port);
  init.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  const int e =
      ibv_modify_qp(end.qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (e != 0) fail("queue pair", "ibv_modify_qp to INIT", e);
}

void* open(const char* device, int port, int gid_index, Fault* fault) {
  auto end = std::make_unique<End>();
  end->port = port;
  end->gid_index = gid_index;
  const int failed = guarded(fault, [&] {
    open_device(*end, device);
    query(*end);
    make_queue(*end);
  });
  return failed != 0 ? nullptr : end.release();
}

int register_memory(void* handle, void* address, std::size_t bytes, int dmabuf_fd, Fault* fault) {
  return guarded(fault, [&] {
    auto& end = *static_cast<End*>(handle);
    if (end.mr != nullptr) ibv_dereg_mr(end.mr);
    constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    end.memory = reinterpret_cast<std::uint64_t>(address);
    end.mr = dmabuf_fd >= 0 ? ibv_reg_dmabuf_mr(end.pd, 0, bytes, end.memory, dmabuf_fd, kAccess)
                            : ibv_reg_mr(end.pd, address, bytes, kAccess);
    if (end.mr != nullptr) return;
    const char* const call = dmabuf_fd >= 0 ? "ibv_reg_dmabuf_mr" : "ibv_reg_mr";
    fail(call, call, errno);
  });
}

void address_of(const End& from, const End& to, ibv_qp_attr& attributes) {
  auto& ah = attributes.ah_attr;
  ah.port_num = static_cast<std::uint8_t>(from.port);
  ah.dlid = to.attributes.lid;
  if (from.gid_index < 0) return;
  ah.is_global = 1;
  ah.grh.dgid = to.gid;
  ah.grh.sgid_index = static_cast<std::uint8_t>(from.gid_index);
  ah.grh.hop_limit = 64;
}

void ready_to_receive(const End& end, const End& other) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = std::min(end.attributes.active_mtu, other.attributes.active_mtu);
  attributes.dest_qp_num = other.qp->qp_num;
  attributes.max_dest_rd_atomic = end.reads;
  attributes.min_rnr_timer = 12;
  address_of(end, other, attributes);
  const int e = ibv_modify_qp(end.qp, &attributes,
                              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (e != 0) fail("connect", "ibv_modify_qp to RTR", e);
}

void ready_to_send(const End& end, const End& other) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = 14;  // 4.096 us x 2^14 = 67 ms
  attributes.retry_cnt = attributes.rnr_retry = 7;
  attributes.max_rd_atomic = std::min(end.reads, other.reads);
  const int e = ibv_modify_qp(end.qp, &attributes,
                              IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  if (e != 0) fail("connect", "ibv_modify_qp to RTS", e);
}

int connect(void* first, void* second, Fault* fault) {
  return guarded(fault, [&] {
    const auto &a = *static_cast<End*>(first), &b = *static_cast<End*>(second);
    ready_to_receive(a, b);
    ready_to_receive(b, a);
    ready_to_send(a, b);
    ready_to_send(b, a);
  });
}

// One kind of work, again and again.
class Mover {
 public:
  Mover(const End& a, const End& b, int op, std::size_t from, std::size_t to, std::size_t bytes) : a_(a) {
    const bool write = op == 0;
    sge_.addr = a.memory + (write ? from : to);
    sge_.length = static_cast<std::uint32_t>(bytes);
    sge_.lkey = a.mr->lkey;
    work_.sg_list = &sge_;
    work_.num_sge = 1;
    work_.opcode = write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
    work_.send_flags = IBV_SEND_SIGNALED;
    work_.wr.rdma.remote_addr = b.memory + (write ? to : from);
    work_.wr.rdma.rkey = b.mr->rkey;
  }

  void run(std::uint64_t count, std::uint64_t window, double limit_seconds) {
    std::uint64_t posted = 0, completed = 0;
    const double end = now() + limit_seconds;
    unsigned turns = 0;
    while (completed < count) {
      for (; posted < count && posted - completed < window; ++posted) post();
      completed += poll();
      if ((++turns & 0x3ff) == 0 && now() > end)
        throw Failure{"completion", ETIMEDOUT, "no completion within the limit"};
    }
  }

 private:
  void post() {
    ibv_send_wr* bad = nullptr;
    if (const int e = ibv_post_send(a_.qp, &work_, &bad); e != 0) fail("post", "ibv_post_send", e);
  }
  std::uint64_t poll() const {
    ibv_wc done[16];
    const int n = ibv_poll_cq(a_.cq, 16, done);
    if (n < 0) throw Failure{"completion", EIO, "ibv_poll_cq failed"};
    for (int i = 0; i < n; ++i)
      if (done[i].status != IBV_WC_SUCCESS)
        throw Failure{"completion", done[i].status, ibv_wc_status_str(done[i].status)};
    return static_cast<std::uint64_t>(n);
  }

  const End& a_;
  ibv_sge sge_{};
  ibv_send_wr work_{};
};

int transfer(void* first, void* second, int op, std::size_t from_offset, std::size_t to_offset,
             std::size_t bytes, std::uint64_t count, int window, double limit_seconds, double* seconds,
             Fault* fault) {
  return guarded(fault, [&] {
    const auto &a = *static_cast<End*>(first), &b = *static_cast<End*>(second);
    if (bytes > std::min(a.attributes.max_msg_sz, b.attributes.max_msg_sz))
      throw Failure{"post", EMSGSIZE, "the port sends no message of that size"};
    Mover mover(a, b, op, from_offset, to_offset, bytes);
    const double start = now();
    mover.run(count, static_cast<std::uint64_t>(std::clamp(window, 1, kDeepest)), limit_seconds);
    *seconds = now() - start;
  });
}

void close(void* end) { delete static_cast<End*>(end); }

constexpr TopotuneVerbs kModule{
    kVerbsModuleVersion, devices, open, register_memory, connect, transfer, close};

}  // namespace

extern "C" __attribute__((visibility("default"))) const TopotuneVerbs* topotune_verbs() { return &kModule; }
