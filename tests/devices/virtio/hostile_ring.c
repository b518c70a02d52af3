/* Runs the groups of the hostile ring suite and counts their cases. */
#include "tests/devices/virtio/hostile_ring.h"

#include <stdio.h>

#define CASES_AT_LEAST 120

int main(void)
{
	static const struct hostile_group *const groups[] = {
		&hostile_queue, &hostile_chain, &hostile_mmio, &hostile_blk, &hostile_net,
		&hostile_rng,
	};
	size_t i, cases = 0;
	int failed = 0;

	for (i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		failed += _cmocka_run_group_tests(groups[i]->name, groups[i]->tests,
						  groups[i]->count, NULL, NULL);
		cases += groups[i]->count;
	}
	printf("hostile ring suite: %zu cases, %d failed\n", cases, failed);
	return failed || cases < CASES_AT_LEAST;
}
