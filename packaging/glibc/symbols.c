/* What RocksDB and the static libstdc++ of a newer system need of a newer glibc, for glibc 2.28. */
#include <stdlib.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* Since glibc 2.32: whether the process has one thread. 0 is always right, and a little slower. */
__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;

/* Since glibc 2.36: a random number. std::random_device calls it. */
__attribute__((visibility("hidden"))) unsigned int arc4random(void) {
  unsigned int number;
  if (getrandom(&number, sizeof number, 0) != sizeof number)
    abort();
  return number;
}

/* Since glibc 2.30: the id of the thread. */
__attribute__((visibility("hidden"))) pid_t gettid(void) { return (pid_t)syscall(SYS_gettid); }
