// libtopotune-mpi.so: the part that is linked with MPI.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "coll/collective.h"
#include "mpi/module_api.h"

namespace {

using topotune::coll::Op;
using topotune::coll::Reduction;
using topotune::coll::Type;

int said(int rc, char* error, std::size_t size) {
  if (rc == MPI_SUCCESS) return 0;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(rc, text, &length);
  std::snprintf(error, size, "%s", text);
  return rc;
}

int start(char* error, std::size_t size) {
  int initialised = 0;
  MPI_Initialized(&initialised);
  if (initialised != 0) return 0;
  // Of threads only the main one calls MPI.
  int provided = 0;
  if (const int rc = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided); rc != MPI_SUCCESS)
    return said(rc, error, size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  return 0;
}

int rank() {
  int out = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &out);
  return out;
}

int size() {
  int out = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &out);
  return out;
}

// "Open MPI v4.1.4, package: ..." -> "Open MPI v4.1.4"; of MPICH the first line.
void library(char* text, std::size_t bytes) {
  char all[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(all, &length);
  all[std::strcspn(all, ",\n")] = '\0';
  for (char* c = all; *c != '\0'; ++c)
    if (*c == '\t') *c = ' ';
  std::snprintf(text, bytes, "%s", all);
}

int gather(const char* mine, std::size_t bytes, char** all, std::size_t* sizes, char* error,
           std::size_t error_size) {
  const auto n = static_cast<std::size_t>(size());
  const int count = static_cast<int>(bytes);
  std::vector<int> counts(n), places(n);
  int rc = MPI_Allgather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, MPI_COMM_WORLD);
  if (rc != MPI_SUCCESS) return said(rc, error, error_size);
  int total = 0;
  for (std::size_t i = 0; i < n; ++i) {
    places[i] = total;
    total += counts[i];
    sizes[i] = static_cast<std::size_t>(counts[i]);
  }
  *all = static_cast<char*>(std::malloc(static_cast<std::size_t>(total) + 1));
  rc = MPI_Allgatherv(mine, count, MPI_CHAR, *all, counts.data(), places.data(), MPI_CHAR, MPI_COMM_WORLD);
  return said(rc, error, error_size);
}

void release(char* all) { std::free(all); }

MPI_Datatype type_of(int type) {
  switch (static_cast<Type>(type)) {
    case Type::int8:
      return MPI_INT8_T;
    case Type::uint8:
      return MPI_UINT8_T;
    case Type::int32:
      return MPI_INT32_T;
    case Type::uint32:
      return MPI_UINT32_T;
    case Type::int64:
      return MPI_INT64_T;
    case Type::uint64:
      return MPI_UINT64_T;
    case Type::float32:
      return MPI_FLOAT;
    case Type::float64:
      return MPI_DOUBLE;
    case Type::float16:
    case Type::bfloat16:
      return MPI_UINT16_T;  // moved only
    default:
      return MPI_UINT8_T;
  }
}

MPI_Op op_of(int reduction) {
  switch (static_cast<Reduction>(reduction)) {
    case Reduction::prod:
      return MPI_PROD;
    case Reduction::max:
      return MPI_MAX;
    case Reduction::min:
      return MPI_MIN;
    default:
      return MPI_SUM;
  }
}

struct Call {
  MPI_Datatype type;
  MPI_Op op;
  int root, n, me, count;
  std::size_t bytes;  // of `count` elements
  const void* send;
  char* recv;
  bool in_place;
  const void* send_or_place() const { return in_place ? MPI_IN_PLACE : send; }
};

// In place the root's data are at its rank's part of the whole buffer, another rank's at its part too (as
// NCCL has it), which for MPI is an ordinary send or receive buffer.
int gather_call(const Call& c) {
  char* const mine = c.recv + static_cast<std::size_t>(c.me) * c.bytes;
  if (c.me == c.root)
    return MPI_Gather(c.send_or_place(), c.count, c.type, c.recv, c.count, c.type, c.root, MPI_COMM_WORLD);
  return MPI_Gather(c.in_place ? mine : c.send, c.count, c.type, nullptr, c.count, c.type, c.root,
                    MPI_COMM_WORLD);
}

int scatter_call(const Call& c) {
  char* const mine = c.in_place ? c.recv + static_cast<std::size_t>(c.me) * c.bytes : c.recv;
  if (c.me == c.root && c.in_place)
    return MPI_Scatter(c.recv, c.count, c.type, MPI_IN_PLACE, c.count, c.type, c.root, MPI_COMM_WORLD);
  return MPI_Scatter(c.send, c.count, c.type, mine, c.count, c.type, c.root, MPI_COMM_WORLD);
}

int reduce_scatter_call(const Call& c) {
  if (!c.in_place) return MPI_Reduce_scatter_block(c.send, c.recv, c.count, c.type, c.op, MPI_COMM_WORLD);
  // MPI leaves the result at the start of the buffer, NCCL at the rank's part.
  const int rc = MPI_Reduce_scatter_block(MPI_IN_PLACE, c.recv, c.count, c.type, c.op, MPI_COMM_WORLD);
  if (c.me != 0) std::memmove(c.recv + static_cast<std::size_t>(c.me) * c.bytes, c.recv, c.bytes);
  return rc;
}

int broadcast_call(const Call& c) {
  if (!c.in_place && c.me == c.root) std::memcpy(c.recv, c.send, c.bytes);
  return MPI_Bcast(c.recv, c.count, c.type, c.root, MPI_COMM_WORLD);
}

int reduce_call(const Call& c) {
  const void* const send = c.in_place ? c.recv : c.send;
  if (c.me != c.root) return MPI_Reduce(send, nullptr, c.count, c.type, c.op, c.root, MPI_COMM_WORLD);
  return MPI_Reduce(c.send_or_place(), c.recv, c.count, c.type, c.op, c.root, MPI_COMM_WORLD);
}

int send_recv_call(const Call& c) {
  const int next = (c.me + 1) % c.n, before = (c.me + c.n - 1) % c.n;
  if (c.in_place)
    return MPI_Sendrecv_replace(c.recv, c.count, c.type, next, 1, before, 1, MPI_COMM_WORLD,
                                MPI_STATUS_IGNORE);
  return MPI_Sendrecv(c.send, c.count, c.type, next, 1, c.recv, c.count, c.type, before, 1, MPI_COMM_WORLD,
                      MPI_STATUS_IGNORE);
}

int called(int op, const Call& c) {
  switch (static_cast<Op>(op)) {
    case Op::all_reduce:
      return MPI_Allreduce(c.send_or_place(), c.recv, c.count, c.type, c.op, MPI_COMM_WORLD);
    case Op::all_gather:
      return MPI_Allgather(c.send_or_place(), c.count, c.type, c.recv, c.count, c.type, MPI_COMM_WORLD);
    case Op::reduce_scatter:
      return reduce_scatter_call(c);
    case Op::broadcast:
      return broadcast_call(c);
    case Op::reduce:
      return reduce_call(c);
    case Op::all_to_all:
      return MPI_Alltoall(c.send_or_place(), c.count, c.type, c.recv, c.count, c.type, MPI_COMM_WORLD);
    case Op::gather:
      return gather_call(c);
    case Op::scatter:
      return scatter_call(c);
    case Op::send_recv:
      return send_recv_call(c);
  }
  return MPI_ERR_OP;
}

int run(int op, int type, int reduction, int root, const void* send, void* recv, std::size_t count,
        int in_place, char* error, std::size_t error_size) {
  const auto t = type_of(type);
  int width = 1;
  MPI_Type_size(t, &width);
  const Call c{t,
               op_of(reduction),
               root,
               size(),
               rank(),
               static_cast<int>(count),
               count * static_cast<std::size_t>(width),
               send,
               static_cast<char*>(recv),
               in_place != 0};
  return said(called(op, c), error, error_size);
}

struct Stream {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
};
std::vector<Stream> all_streams;

int streams(int count, char* error, std::size_t error_size) {
  while (static_cast<int>(all_streams.size()) < count) {
    Stream stream;
    if (const int rc = MPI_Comm_dup(MPI_COMM_WORLD, &stream.comm); rc != MPI_SUCCESS)
      return said(rc, error, error_size);
    MPI_Comm_set_errhandler(stream.comm, MPI_ERRORS_RETURN);
    all_streams.push_back(stream);
  }
  return 0;
}

int begun(int op, const Call& c, Stream& stream) {
  auto* const request = &stream.request;
  switch (static_cast<Op>(op)) {
    case Op::all_reduce:
      return MPI_Iallreduce(c.send, c.recv, c.count, c.type, c.op, stream.comm, request);
    case Op::all_gather:
      return MPI_Iallgather(c.send, c.count, c.type, c.recv, c.count, c.type, stream.comm, request);
    case Op::reduce_scatter:
      return MPI_Ireduce_scatter_block(c.send, c.recv, c.count, c.type, c.op, stream.comm, request);
    case Op::broadcast:
      return MPI_Ibcast(c.recv, c.count, c.type, c.root, stream.comm, request);
    case Op::all_to_all:
      return MPI_Ialltoall(c.send, c.count, c.type, c.recv, c.count, c.type, stream.comm, request);
    default:
      return MPI_ERR_OP;
  }
}

int begin(int stream, int op, int type, int reduction, int root, const void* send, void* recv,
          std::size_t count, char* error, std::size_t error_size) {
  Call c{};
  c.type = type_of(type), c.op = op_of(reduction);
  c.root = root, c.n = size(), c.me = rank(), c.count = static_cast<int>(count);
  c.send = send, c.recv = static_cast<char*>(recv);
  return said(begun(op, c, all_streams[static_cast<std::size_t>(stream)]), error, error_size);
}

int test(int stream, int* done, char* error, std::size_t error_size) {
  return said(MPI_Test(&all_streams[static_cast<std::size_t>(stream)].request, done, MPI_STATUS_IGNORE),
              error, error_size);
}

void finish() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized == 0) MPI_Finalize();
}

constexpr TopotuneMpi kModule{kMpiModuleVersion, start, rank,    size,  library, gather,
                              release,           run,   streams, begin, test,    finish};

}  // namespace

extern "C" __attribute__((visibility("default"))) const TopotuneMpi* topotune_mpi() { return &kModule; }
