#include "modules/ucx_side.h"

#include <time.h>

namespace topotune::ucx {

const ucp_request_param_t Side::kPlain{};

namespace {

struct Note {
  std::uint32_t word, number;
  std::uint64_t value;
};

const char* name_of(std::uint32_t word) {
  static const char* const names[] = {"nothing", "ready", "count", "sent", "received"};
  return word < 5 ? names[word] : "unknown";
}

void append(std::vector<unsigned char>& blob, const void* data, std::size_t bytes) {
  const auto* const at = static_cast<const unsigned char*>(data);
  blob.insert(blob.end(), at, at + bytes);
}

void append_sized(std::vector<unsigned char>& blob, const void* data, std::uint64_t bytes) {
  append(blob, &bytes, 8);
  append(blob, data, bytes);
}

// `bytes` from the front.
const unsigned char* take(const unsigned char*& at, const unsigned char* end, std::uint64_t bytes) {
  if (static_cast<std::uint64_t>(end - at) < bytes) throw Failure{"the peer's address is cut short"};
  const auto* const start = at;
  at += bytes;
  return start;
}

std::uint64_t take_number(const unsigned char*& at, const unsigned char* end) {
  std::uint64_t value = 0;
  std::memcpy(&value, take(at, end, 8), 8);
  return value;
}

void modify(ucp_config_t* config, const char* name, const char* value) {
  if (value != nullptr && *value != '\0') ok(ucp_config_modify(config, name, value), name);
}

}  // namespace

void ok(ucs_status_t status, const char* what) {
  if (status != UCS_OK) throw Failure{std::string(what) + ": " + ucs_status_string(status)};
}

double now() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

void Side::long_wait(Patience& patience, const char* what) const {
  const double at = now();
  if (patience.since == 0) patience.since = at;
  if (at - patience.since > limit_)
    throw Failure{std::string(what) + ": the other side did not answer in time"};
}

bool Side::done_later(Request& request, const char* what) const {
  if (UCS_PTR_IS_ERR(request)) {
    const auto status = UCS_PTR_STATUS(request);
    request = nullptr;
    ok(status, what);
  }
  const auto status = ucp_request_check_status(request);
  if (status == UCS_INPROGRESS) return false;
  ucp_request_free(request);
  request = nullptr;
  ok(status, what);
  return true;
}

void Side::tell(Connection& c, int me, Word word, std::uint64_t value) {
  const Note note{static_cast<std::uint32_t>(word), c.told++, value};
  wait(ucp_tag_send_nbx(c.ep, &note, sizeof note, tag_of(me, Use::control), &kPlain), "control message");
}

std::uint64_t Side::hear(Connection& c, int peer, Word word) {
  Note note{};
  wait(ucp_tag_recv_nbx(worker_, &note, sizeof note, tag_of(peer, Use::control), ~std::uint64_t{0}, &kPlain),
       name_of(static_cast<std::uint32_t>(word)));
  const auto number = c.heard++;
  if (note.number != number || note.word != static_cast<std::uint32_t>(word))
    throw Failure{"the two sides are out of step: control message " + std::to_string(note.number) + " '" +
                  name_of(note.word) + "' came where " + std::to_string(number) + " '" +
                  name_of(static_cast<std::uint32_t>(word)) + "' was due"};
  return note.value;
}

const Connection* Side::find(int peer) const {
  const auto found = peers_.find(peer);
  return found == peers_.end() ? nullptr : &found->second;
}

Connection& Side::connection(int peer) {
  const auto found = peers_.find(peer);
  if (found == peers_.end()) throw Failure{"there is no connection to peer " + std::to_string(peer)};
  return found->second;
}

ucs_status_t Side::on_active(void* self, const void*, std::size_t, void* data, std::size_t length,
                             const ucp_am_recv_param_t* param) {
  auto* const side = static_cast<Side*>(self);
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
    const bool copied = side->copied_in(side->in(), data, length < side->half_ ? length : side->half_);
    ++side->active_arrived_;
    return copied ? UCS_OK : UCS_ERR_IO_ERROR;
  }
  ucp_request_param_t p{};
  p.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  p.user_data = self;
  p.cb.recv_am = [](void* request, ucs_status_t, std::size_t, void* user) {
    ++static_cast<Side*>(user)->active_arrived_;
    ucp_request_free(request);
  };
  const auto got = ucp_am_recv_data_nbx(side->worker_, data, side->in(), length, &p);
  if (got == nullptr) ++side->active_arrived_;
  return UCS_PTR_IS_ERR(got) ? UCS_PTR_STATUS(got) : UCS_INPROGRESS;
}

void Side::open(const TopotuneNetSetup& setup) {
  foreign_ = setup.memory;
  open_context(setup);
  open_worker();
  open_memory(setup.bytes);
}

void Side::open_context(const TopotuneNetSetup& setup) {
  ucp_config_t* config = nullptr;
  ok(ucp_config_read(nullptr, nullptr, &config), "UCX's configuration");
  modify(config, "TLS", setup.tls);
  modify(config, "NET_DEVICES", setup.devices);
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_RMA;
  const auto status = ucp_init(&params, config, &context_);
  ucp_config_release(config);
  ok(status, "ucp_init");
  if (foreign_ == nullptr) return;
  ucp_context_attr_t attributes{};
  attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
  ok(ucp_context_query(context_, &attributes), "ucp_context_query");
  if ((attributes.memory_types & (std::uint64_t{1} << UCS_MEMORY_TYPE_CUDA)) == 0)
    throw Failure{
        "this UCX knows no GPU memory: built without CUDA, or its cuda_copy transport is not "
        "among those chosen"};
}

void Side::open_worker() {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ok(ucp_worker_create(context_, &params, &worker_), "ucp_worker_create");
  ucp_am_handler_param_t handler{};
  handler.field_mask =
      UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = 0;
  handler.cb = on_active;
  handler.arg = this;
  ok(ucp_worker_set_am_recv_handler(worker_, &handler), "active message handler");
}

void Side::open_memory(std::size_t bytes) {
  half_ = (bytes + 8191) / 4096 * 4096;
  ucp_mem_map_params_t params{};
  params.field_mask =
      UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
  params.length = 2 * half_;
  if (foreign_ == nullptr) {
    params.flags = UCP_MEM_MAP_ALLOCATE;
  } else {
    params.address = foreign_->allocate(foreign_->self, 2 * half_);
    if (params.address == nullptr) throw Failure{"the GPU has no memory left"};
    memory_ = static_cast<unsigned char*>(params.address);
    params.field_mask |= UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
    params.memory_type = UCS_MEMORY_TYPE_CUDA;
  }
  ok(ucp_mem_map(context_, &params, &mem_), "ucp_mem_map");
  ucp_mem_attr_t attributes{};
  attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
  ok(ucp_mem_query(mem_, &attributes), "ucp_mem_query");
  memory_ = static_cast<unsigned char*>(attributes.address);
  set(memory_, 0, params.length);
}

void Side::address(std::vector<unsigned char>& blob) const {
  ucp_address_t* address = nullptr;
  std::size_t size = 0;
  ok(ucp_worker_get_address(worker_, &address, &size), "ucp_worker_get_address");
  append_sized(blob, address, size);
  ucp_worker_release_address(worker_, address);
  void* key = nullptr;
  ok(ucp_rkey_pack(context_, mem_, &key, &size), "ucp_rkey_pack");
  append_sized(blob, key, size);
  ucp_rkey_buffer_release(key);
  const auto in = reinterpret_cast<std::uint64_t>(this->in());
  append(blob, &in, 8);
}

void Side::connect(int peer, const unsigned char*& at, const unsigned char* end) {
  const auto* const worker = take(at, end, take_number(at, end));
  const auto* const key = take(at, end, take_number(at, end));
  Connection c;
  c.memory = take_number(at, end);
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(worker);
  params.err_mode = UCP_ERR_HANDLING_MODE_NONE;
  params.err_handler.cb = [](void*, ucp_ep_h, ucs_status_t) {};
  ok(ucp_ep_create(worker_, &params, &c.ep), "ucp_ep_create");
  ok(ucp_ep_rkey_unpack(c.ep, key, &c.rkey), "ucp_ep_rkey_unpack");
  peers_[peer] = c;
}

bool Side::copied_in(unsigned char* to, const void* from, std::size_t bytes) const {
  if (foreign_ != nullptr) return foreign_->copy_in(foreign_->self, to, from, bytes) == 0;
  std::memcpy(to, from, bytes);
  return true;
}

void Side::use() const {
  if (foreign_ != nullptr && foreign_->use(foreign_->self) != 0)
    throw Failure{"this thread may not use the GPU"};
}

void Side::write(unsigned char* to, const void* from, std::size_t bytes) const {
  if (!copied_in(to, from, bytes)) throw Failure{"copying to the GPU failed"};
}

void Side::read(void* to, const unsigned char* from, std::size_t bytes) const {
  if (foreign_ == nullptr) {
    std::memcpy(to, from, bytes);
  } else if (foreign_->copy_out(foreign_->self, to, from, bytes) != 0) {
    throw Failure{"copying from the GPU failed"};
  }
}

void Side::set(unsigned char* to, unsigned char value, std::size_t bytes) const {
  if (foreign_ == nullptr) {
    std::memset(to, value, bytes);
    return;
  }
  const std::vector<unsigned char> all(bytes, value);
  write(to, all.data(), bytes);
}

// Peers may be gone already: what they say of it is no error.
Side::~Side() {
  const double end = now() + 1;
  for (auto& [number, c] : peers_) {
    if (c.rkey != nullptr) ucp_rkey_destroy(c.rkey);
    auto request = ucp_ep_close_nbx(c.ep, &kPlain);
    while (request != nullptr && !UCS_PTR_IS_ERR(request) &&
           ucp_request_check_status(request) == UCS_INPROGRESS && now() < end)
      progress();
    if (request != nullptr && !UCS_PTR_IS_ERR(request)) ucp_request_free(request);
  }
  if (mem_ != nullptr) ucp_mem_unmap(context_, mem_);
  if (foreign_ != nullptr && memory_ != nullptr) foreign_->release(foreign_->self, memory_);
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
  if (context_ != nullptr) ucp_cleanup(context_);
}

}  // namespace topotune::ucx
