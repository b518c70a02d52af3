/*
 * The life-cycle table.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "vmm/vm_state.h"

/* Written out by hand, not from the table under test. */
static const char *const edges[] = {
	"configuring starting", "configuring ended",  "starting configuring", "starting running",
	"starting stopping",    "running pausing",    "running stopping",     "pausing paused",
	"pausing stopping",     "paused resuming",    "paused stopping",      "resuming running",
	"resuming stopping",    "stopping ended",
};

static bool is_edge(enum vm_phase from, enum vm_phase to)
{
	char text[64];
	size_t i;

	snprintf(text, sizeof(text), "%s %s", vm_phase_name(from), vm_phase_name(to));
	for (i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
		if (!strcmp(edges[i], text))
			return true;
	}
	return false;
}

static void begins_configuring_without_a_reason(void **state)
{
	struct vm_state s;

	vm_state_init(&s);
	assert_int_equal(s.phase, VM_CONFIGURING);
	assert_int_equal(s.reason, VM_END_NONE);
}

static void takes_exactly_the_transitions_of_the_picture(void **state)
{
	int from, to, taken = 0;

	for (from = 0; from < VM_PHASES; from++) {
		for (to = 0; to < VM_PHASES; to++) {
			struct vm_state s = { .phase = (enum vm_phase)from };
			bool moved = vm_state_move(&s, (enum vm_phase)to);

			assert_int_equal(moved, is_edge((enum vm_phase)from, (enum vm_phase)to));
			taken += moved;
		}
	}
	assert_int_equal(taken, sizeof(edges) / sizeof(edges[0]));
}

static void a_refused_transition_changes_nothing(void **state)
{
	struct vm_state s = { .phase = VM_PAUSED, .reason = VM_END_NONE };

	assert_false(vm_state_move(&s, VM_RUNNING));
	assert_int_equal(s.phase, VM_PAUSED);
}

static void nothing_follows_the_end(void **state)
{
	struct vm_state s = { .phase = VM_ENDED };
	int to;

	for (to = 0; to < VM_PHASES; to++)
		assert_false(vm_state_move(&s, (enum vm_phase)to));
}

static void every_phase_and_reason_has_a_name(void **state)
{
	int i;

	for (i = 0; i < VM_PHASES; i++)
		assert_true(vm_phase_name((enum vm_phase)i)[0] != '\0');
	for (i = VM_END_NONE + 1; i < VM_END_REASONS; i++)
		assert_true(vm_end_reason_name((enum vm_end_reason)i)[0] != '\0');
	assert_string_equal(vm_end_reason_name(VM_END_NONE), "");
}

/* What the guest or a client ended went well; what broke did not. */
static void exit_status_tells_an_end_from_a_failure(void **state)
{
	assert_int_equal(vm_end_exit_status(VM_END_GUEST_POWEROFF), 0);
	assert_int_equal(vm_end_exit_status(VM_END_GUEST_RESET), 0);
	assert_int_equal(vm_end_exit_status(VM_END_GUEST_TRIPLE_FAULT), 0);
	assert_int_equal(vm_end_exit_status(VM_END_STOPPED), 0);
	assert_int_equal(vm_end_exit_status(VM_END_VCPU_FAILED), 1);
	assert_int_equal(vm_end_exit_status(VM_END_MEMORY_LOST), 1);
	assert_int_equal(vm_end_exit_status(VM_END_INTERNAL), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(begins_configuring_without_a_reason),
		cmocka_unit_test(takes_exactly_the_transitions_of_the_picture),
		cmocka_unit_test(a_refused_transition_changes_nothing),
		cmocka_unit_test(nothing_follows_the_end),
		cmocka_unit_test(every_phase_and_reason_has_a_name),
		cmocka_unit_test(exit_status_tells_an_end_from_a_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
