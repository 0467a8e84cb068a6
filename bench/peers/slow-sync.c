/* Every sync of a process takes so much longer, as on a slower disk: HOLDFAST_SYNC_US, loaded before the C library (run.ts --sync). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

static void wait_longer(void) {
  const char *given = getenv("HOLDFAST_SYNC_US");
  const long us = given == NULL ? 0 : atol(given);
  struct timespec left = {us / 1000000, us % 1000000 * 1000};
  const int kept = errno;
  /* Or the kernel would take its 50 µs more, to wake several at once. */
  prctl(PR_SET_TIMERSLACK, 1UL);
  while (nanosleep(&left, &left) != 0 && errno == EINTR);
  errno = kept;
}

static int synced(const char *name, int fd) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  const int answer = real(fd);
  wait_longer();
  return answer;
}

int fsync(int fd) { return synced("fsync", fd); }
int fdatasync(int fd) { return synced("fdatasync", fd); }
