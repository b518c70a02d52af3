/*
 * lulld: the daemon over the kernel's KVM.
 */
#include "vmm/main.h"

int main(int argc, char **argv)
{
	return lulld_main(argc, argv, &kvm_ops_linux);
}
