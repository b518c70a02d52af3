/*
 * Runs a fuzz target once over each file of the folders that are named: what
 * the fuzzer once found stays found, without the fuzzer.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#define INPUT_BYTES (1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(int folder, const char *name)
{
	static uint8_t data[INPUT_BYTES];
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, data, sizeof(data));

	if (fd >= 0)
		close(fd);
	if (n < 0)
		return 0;
	LLVMFuzzerTestOneInput(data, (size_t)n);
	return 1;
}

int main(int argc, char **argv)
{
	int i, files = 0;

	for (i = 1; i < argc; i++) {
		DIR *folder = opendir(argv[i]);
		struct dirent *entry;

		if (!folder) {
			fprintf(stderr, "%s: cannot be read\n", argv[i]);
			return 1;
		}
		while ((entry = readdir(folder)))
			if (entry->d_name[0] != '.')
				files += replay_file(dirfd(folder), entry->d_name);
		closedir(folder);
	}
	printf("%d files replayed\n", files);
	return files > 0 ? 0 : 1;
}
