/*
 * clock-reader: reads the CMOS clock a number of times from several CPUs at
 * once, as fast as it goes, for whoever counts what that costs the host.
 *
 * usage: clock-reader busy|device READERS READS
 *
 *	busy	each reader is bound to a CPU and does what Linux does for one
 *		reading of the time, by ports 0x70 and 0x71; beside them others
 *		write to the console, read /dev/vda and read /dev/hwrng
 *	device	the kernel does it, asked by an ioctl on /dev/rtc0; begun where a
 *		second has just begun, for a reading that meets an update is
 *		repeated
 *
 * Before the first and after the last read a byte goes to I/O port 0xf4, 2 and
 * 3, which who counts can see. Prints "LULL:clock-reader MODE READERS READS US": the
 * microseconds that it took.
 *
 * Freestanding, for x86_64: the whole program is this file.
 */

enum { MARK_PORT = 0xf4, MARK_BEGIN = 2, MARK_END = 3 };
enum { INDEX_PORT = 0x70, DATA_PORT = 0x71 };
enum { RTC_RD_TIME = 0x80247009 };
enum { SIGCHLD = 17, CLOCK_REALTIME = 0, CLOCK_MONOTONIC = 1 };

enum { SYS_READ = 0, SYS_WRITE = 1, SYS_OPEN = 2, SYS_CLOSE = 3, SYS_IOCTL = 16, SYS_PIPE = 22,
       SYS_PREAD = 17, SYS_NANOSLEEP = 35, SYS_CLONE = 56, SYS_EXIT = 60, SYS_WAIT4 = 61,
       SYS_KILL = 62, SYS_IOPERM = 173, SYS_SCHED_SETAFFINITY = 203, SYS_CLOCK_GETTIME = 228 };
enum { O_DIRECT = 040000, SIGKILL = 9, BLOCK = 4096, PAUSE_NS = 10000000 };

static long call(long number, long a, long b, long c)
{
	register long r10 __asm__("r10") = 0;
	register long r8 __asm__("r8") = 0;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return result;
}

static void out(unsigned short port, unsigned char byte)
{
	__asm__ volatile("outb %b0, %w1" : : "a"(byte), "Nd"(port));
}

static unsigned char in(unsigned short port)
{
	unsigned char byte;

	__asm__ volatile("inb %w1, %b0" : "=a"(byte) : "Nd"(port));
	return byte;
}

static void print(const char *text)
{
	long n = 0;

	while (text[n])
		n++;
	call(SYS_WRITE, 1, (long)text, n);
}

static void print_number(unsigned long n)
{
	char text[24], *at = text + sizeof(text) - 1;

	*at = '\0';
	do {
		*--at = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	print(at);
}

static unsigned long number(const char *text)
{
	unsigned long n = 0;

	while (*text >= '0' && *text <= '9')
		n = n * 10 + (unsigned long)(*text++ - '0');
	return n;
}

static unsigned long now_us(int clock)
{
	long ts[2];

	call(SYS_CLOCK_GETTIME, clock, (long)ts, 0);
	return (unsigned long)ts[0] * 1000000 + (unsigned long)ts[1] / 1000;
}

/* Well clear of the update, by the kernel's own clock. */
static void wait_for_a_new_second(void)
{
	unsigned long part;

	do
		part = now_us(CLOCK_REALTIME) % 1000000;
	while (part < 10000 || part > 50000);
}

static void fail(const char *what)
{
	print("LULL:clock-reader error ");
	print(what);
	print("\n");
	call(SYS_EXIT, 1, 0, 0);
}

/* mc146818_get_time() of Linux 6.1, without an update in progress. */
static void read_by_ports(void)
{
	static const unsigned char order[] = { 0x00, 0x0a, 0x00, 0x02, 0x04, 0x07, 0x08, 0x09,
					       0x32, 0x0b, 0x0a, 0x00 };

	for (unsigned long i = 0; i < sizeof(order); i++) {
		out(INDEX_PORT, order[i]);
		in(DATA_PORT);
	}
}

static void read_by_device(long fd)
{
	int time[9];

	if (call(SYS_IOCTL, fd, RTC_RD_TIME, (long)time) < 0)
		fail("RTC_RD_TIME");
}

/* One reader, a process of its own: waits for the pipe to close, then reads. */
static void reader(long go, long fd, unsigned long cpu, unsigned long reads)
{
	unsigned long mask = 1ul << cpu;
	char byte;

	call(SYS_SCHED_SETAFFINITY, 0, sizeof(mask), (long)&mask);
	call(SYS_READ, go, (long)&byte, 1);
	for (unsigned long i = 0; i < reads; i++) {
		if (fd >= 0)
			read_by_device(fd);
		else
			read_by_ports();
	}
	call(SYS_EXIT, 0, 0, 0);
}

/* What keeps another device busy, for ever, a hundred times a second at most. */

static void write_console(long fd)
{
	static const char line[] = "a line for the serial port, as long as they are\n";

	call(SYS_WRITE, fd, (long)line, sizeof(line) - 1);
}

static void read_drive(long fd)
{
	static char block[BLOCK] __attribute__((aligned(BLOCK)));

	call(SYS_PREAD, fd, (long)block, BLOCK); /* of offset 0, always the same */
}

static void read_entropy(long fd)
{
	char bytes[64];

	call(SYS_READ, fd, (long)bytes, sizeof(bytes));
}

static long other(const char *path, long flags, void (*use)(long fd))
{
	static const long pause[2] = { 0, PAUSE_NS };
	long fd = path ? call(SYS_OPEN, (long)path, flags, 0) : 1;
	long pid;

	if (fd < 0)
		fail(path);
	pid = call(SYS_CLONE, SIGCHLD, 0, 0);
	if (pid != 0)
		return pid;
	for (;;) {
		use(fd);
		call(SYS_NANOSLEEP, (long)pause, 0, 0);
	}
}

static unsigned long run(long fd, unsigned long readers, unsigned long reads)
{
	unsigned long begin;
	long others[3] = { 0 };
	int pipe[2];

	if (fd < 0) { /* before there is a pipe for them to keep open */
		others[0] = other(0, 0, write_console);
		others[1] = other("/dev/vda", O_DIRECT, read_drive);
		others[2] = other("/dev/hwrng", 0, read_entropy);
	}
	if (call(SYS_PIPE, (long)pipe, 0, 0) < 0)
		fail("pipe");
	for (unsigned long i = 0; i < readers; i++) {
		long pid = call(SYS_CLONE, SIGCHLD, 0, 0);

		if (pid < 0)
			fail("fork");
		if (pid == 0) {
			call(SYS_CLOSE, pipe[1], 0, 0);
			reader(pipe[0], fd, i, reads);
		}
	}
	if (fd >= 0)
		wait_for_a_new_second();
	out(MARK_PORT, MARK_BEGIN);
	begin = now_us(CLOCK_MONOTONIC);
	call(SYS_CLOSE, pipe[1], 0, 0);
	for (unsigned long i = 0; i < readers; i++)
		call(SYS_WAIT4, -1, 0, 0);
	begin = now_us(CLOCK_MONOTONIC) - begin;
	out(MARK_PORT, MARK_END);
	for (int i = 0; i < 3; i++) {
		if (others[i])
			call(SYS_KILL, others[i], SIGKILL, 0);
	}
	return begin;
}

__attribute__((noreturn, used)) static void begin(long argc, char **argv)
{
	unsigned long readers, reads, us;
	long fd = -1;

	if (argc != 4)
		fail("usage");
	readers = number(argv[2]);
	reads = number(argv[3]);
	if (call(SYS_IOPERM, MARK_PORT, 1, 1) < 0 || call(SYS_IOPERM, INDEX_PORT, 2, 1) < 0)
		fail("ioperm");
	if (argv[1][0] == 'd') {
		fd = call(SYS_OPEN, (long)"/dev/rtc0", 0, 0);
		if (fd < 0)
			fail("/dev/rtc0");
	}
	us = run(fd, readers, reads);
	print("\nLULL:clock-reader "); /* what was written before may be half a line */
	print(argv[1]);
	print(" ");
	print_number(readers);
	print(" ");
	print_number(reads);
	print(" ");
	print_number(us);
	print("\n");
	for (;;)
		call(SYS_EXIT, 0, 0, 0);
}

__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tmov (%rsp), %rdi\n\tlea 8(%rsp), %rsi\n\t"
	"and $-16, %rsp\n\tcall begin\n");
