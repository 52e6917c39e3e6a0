#pragma once

#include <cstddef>

// The C interface between the program and libtopotune-mpi.so, which alone is linked with MPI. Functions
// return 0, or another number and a text in `error`.
extern "C" {

struct TopotuneMpi {
  int version;  // kMpiModuleVersion
  // Starts MPI, once. Waits for all processes.
  int (*start)(char* error, std::size_t error_size);
  int (*rank)();
  int (*size)();
  // One line.
  void (*library)(char* text, std::size_t size);
  // Gathers `bytes` of each process, which may differ, into memory that `release` frees; sizes[rank].
  int (*gather)(const char* mine, std::size_t bytes, char** all, std::size_t* sizes, char* error,
                std::size_t error_size);
  void (*release)(char* all);
  // A collective by the numbers of coll::Op, coll::Type and coll::Reduction. `count` elements as in NCCL's
  // call. In place: `send` is not read; the data are where NCCL has them in place.
  int (*run)(int op, int type, int reduction, int root, const void* send, void* recv, std::size_t count,
             int in_place, char* error, std::size_t error_size);
  // Makes `count` communicators of all processes, for streams that run beside each other; once.
  int (*streams)(int count, char* error, std::size_t error_size);
  // Begins a collective on a stream and returns; out of place, a broadcast in `recv` alone. One at a time on
  // a stream. Only all_reduce, all_gather, reduce_scatter, broadcast and all_to_all.
  int (*begin)(int stream, int op, int type, int reduction, int root, const void* send, void* recv,
               std::size_t count, char* error, std::size_t error_size);
  // Moves all streams on; *done: 1 when this one's collective has ended.
  int (*test)(int stream, int* done, char* error, std::size_t error_size);
  // Ends MPI: in order, or (at once) with all processes.
  void (*finish)();
};

inline constexpr int kMpiModuleVersion = 2;
// Exported by the module.
const TopotuneMpi* topotune_mpi();

}  // extern "C"
