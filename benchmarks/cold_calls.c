/*
 * Measure what a call takes longer, the longer its CPU has not made it: of reads and writes of a
 * file in the page cache, after sleeps of 0.1 to 50 ms.
 *
 *     gcc -O2 -o cold_calls benchmarks/cold_calls.c && ./cold_calls FILE [spin]
 *
 * FILE is made, and removed; it should lie on ext4. With `spin` a task of SCHED_IDLE computes on the
 * same CPU, so that it never halts. The host must do nothing else. From the table follow
 * machine.vfs.read_refill and write_refill (what a call takes longer after 50 ms) and cache_life
 * (after so long it takes 63 % of that longer): sim/sched/caches.py.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLES_MAX = 400, SAMPLES_MIN = 20, EACH_US = 400000, BYTES = 2300 };

static const double sleeps_us[] = {100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000};
static char bytes[2 * 4096];
static int fd;

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static double call_us(int writes)
{
	double began = now_us();
	ssize_t done = writes ? pwrite(fd, bytes, BYTES, 0) : pread(fd, bytes, BYTES, 0);

	if (done != BYTES) {
		perror("cold_calls");
		exit(1);
	}
	return now_us() - began;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(int writes, double sleep_us)
{
	struct timespec pause = {0, (long)(sleep_us * 1e3)};
	double first[SAMPLES_MAX], again[SAMPLES_MAX];
	int n = EACH_US / sleep_us;

	n = n > SAMPLES_MAX ? SAMPLES_MAX : n < SAMPLES_MIN ? SAMPLES_MIN : n;
	for (int i = 0; i < n; i++) {
		nanosleep(&pause, NULL);
		first[i] = call_us(writes);
		again[i] = call_us(writes);
	}
	qsort(first, n, sizeof *first, by_size);
	qsort(again, n, sizeof *again, by_size);
	printf("%-5s %8g %8.2f %8.2f %8.2f\n", writes ? "write" : "read", sleep_us / 1e3,
	       first[n / 2], again[n / 2], first[n / 2] - again[n / 2]);
}

int main(int argc, char **argv)
{
	struct sched_param none = {0};
	pid_t spinner = 0;
	cpu_set_t last;

	if (argc < 2 || (fd = open(argv[1], O_RDWR | O_CREAT | O_EXCL, 0600)) < 0) {
		fprintf(stderr, "usage: cold_calls FILE [spin]; FILE is made, it must not exist\n");
		return 1;
	}
	CPU_ZERO(&last);
	CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) - 1, &last);
	sched_setaffinity(0, sizeof last, &last);
	prctl(PR_SET_TIMERSLACK, 1);
	if (argc > 2 && !(spinner = fork())) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sched_setscheduler(0, SCHED_IDLE, &none);
		for (;;)
			;
	}
	printf("%-5s %8s %8s %8s %8s\n", "call", "sleep ms", "first us", "again us", "more us");
	for (int writes = 1; writes >= 0; writes--)
		for (unsigned i = 0; i < sizeof sleeps_us / sizeof *sleeps_us; i++)
			measure(writes, sleeps_us[i]);
	if (spinner > 0) {
		kill(spinner, SIGKILL);
		waitpid(spinner, NULL, 0);
	}
	return unlink(argv[1]) != 0;
}
