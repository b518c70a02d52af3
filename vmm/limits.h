/*
 * Every cap on what a guest, a client or a file can make us hold or do, in one
 * place, each with its reason. For each there is a test at it and one above.
 */
#ifndef LULL_LIMITS_H
#define LULL_LIMITS_H

/* Control socket */
#define LIMIT_API_CONNECTIONS 10   /* as Firecracker's server; further clients wait in the backlog */
#define LIMIT_API_BODY 51200       /* bytes; default of --http-api-max-payload-size */
#define LIMIT_API_BODY_MAX 1048576 /* bytes; the most that option may ask for */
#define LIMIT_API_HEADERS 8192     /* bytes of request line and headers */
#define LIMIT_API_HEADER_COUNT 64
#define LIMIT_API_URI 256          /* bytes of the raw request target */
#define LIMIT_API_DEADLINE_MS 5000 /* of one request: from its first byte, or from connecting */
#define LIMIT_API_ORPHANS 32       /* calls that go on when the clients who made them have left */
#define LIMIT_API_IDLE_MS 60000    /* a kept-alive connection without a request */
#define LIMIT_API_REPLY 1048576    /* bytes of one reply body */
#define LIMIT_LOCK_ROWS 512        /* call sites, and locks, in one report: some 200 KB of JSON */
#define LIMIT_JSON_DEPTH 16
#define LIMIT_JSON_TOKENS 2048     /* small objects cost json-c 250 times their text */

/* Names and text from clients */
#define LIMIT_ID 64        /* characters of a VM, drive or interface id */
#define LIMIT_PATH 4096    /* bytes of a path, final NUL included */
#define LIMIT_CMDLINE 2048 /* COMMAND_LINE_SIZE of x86 and arm64 Linux, final NUL included */

/* The machine */
#define LIMIT_VCPUS 32
#define LIMIT_NUMA_NODES LIMIT_VCPUS /* none is without a CPU */
#define LIMIT_NUMA_NODE_MIB 4        /* at least: Linux leaves smaller nodes out */
#define LIMIT_HOST_CPUS 1024         /* that threads can be pinned to: libc's CPU_SETSIZE */
#define LIMIT_DEVICE_NAME 96         /* bytes of TYPE:ID */
#define LIMIT_PINNED_DEVICES 32      /* devices whose affinity is kept before the start */
#define LIMIT_MEM_MIB (1024ull * 1024ull) /* 1 TiB; the host decides below that */
#define LIMIT_MEM_REGIONS 4
#define LIMIT_VIRTIO_DEVICES 18 /* GSIs 5 to 23 without the clock's 8, one line each */
#define LIMIT_DRIVES 16
#define LIMIT_NETS 8
#define LIMIT_BUS_REGIONS 64 /* per bus */

/* Virtio */
#define LIMIT_QUEUES 2       /* per device: receive and transmit of a network device */
#define LIMIT_QUEUE_SIZE 256 /* descriptors */
#define LIMIT_CHAIN_IOV 258  /* host ranges of one chain: a full queue, split at one slot boundary */
#define LIMIT_RNG_BYTES 65536       /* entropy in one request */
#define LIMIT_NET_FRAME 65562       /* 64 KiB of GSO payload, Ethernet, VLAN and vnet headers */
#define LIMIT_BLK_INFLIGHT 128      /* requests of one drive in the io_uring */
#define LIMIT_BLK_REQUEST (32u << 20) /* bytes of data in one request: 128 segments of 256 KiB */

/* Serial console */
#define LIMIT_SERIAL_INPUT 64    /* bytes held for the guest: the receive FIFO */
#define LIMIT_SERIAL_OUTPUT 16384 /* bytes held for a slow host side, then dropped and counted */

/* Clock */
#define LIMIT_RTC_BACKLOG 8192 /* periodic ticks kept for a slow guest: a second of the fastest */

/* Spinning guests */
#define LIMIT_SPIN_PERIOD_MIN_MS 100 /* shorter, and reading statistics is work of its own */
#define LIMIT_SPIN_PERIOD_MAX_MS 60000
#define LIMIT_KVM_STATS 256        /* statistics of one VM or vCPU; Linux 6.1 has some 50 */
#define LIMIT_KVM_STAT_NAME 64     /* bytes of a name, final NUL included; Linux has 48 */
#define LIMIT_KVM_STATS_BYTES 65536 /* of their values */
#define LIMIT_SPIN_EVENTS 64       /* decisions kept to be shown: some 1 KB of JSON each */
#define LIMIT_HALT_POLL_NS 10000000u /* a poll of 10 ms is a spin of our own making */

/* Files */
#define LIMIT_KERNEL_BYTES (1ull << 30)
#define LIMIT_ELF_PHDRS 128
#define LIMIT_CONFIG_FILE (1ull << 20)
#define LIMIT_CONFIG_TOKENS 16384 /* JSON values and keys in a configuration file */

#endif
