/*
 * Registers of the MC146818 and their bits (Motorola MC146818 data sheet; the
 * century and the date of the alarm are where the FADT says). Constants only.
 */
#ifndef LULL_RTC_CMOS_REGS_H
#define LULL_RTC_CMOS_REGS_H

#include "devices/rtc_cmos.h"
#include "vmm/base/bits.h"

enum rtc_reg {
	RTC_REG_SECONDS = 0x00,
	RTC_REG_SECONDS_ALARM = 0x01,
	RTC_REG_MINUTES = 0x02,
	RTC_REG_MINUTES_ALARM = 0x03,
	RTC_REG_HOURS = 0x04,
	RTC_REG_HOURS_ALARM = 0x05,
	RTC_REG_DAY_OF_WEEK = 0x06, /* 1: Sunday */
	RTC_REG_DAY = 0x07,
	RTC_REG_MONTH = 0x08,
	RTC_REG_YEAR = 0x09,
	RTC_REG_A = 0x0a,
	RTC_REG_B = 0x0b,
	RTC_REG_C = 0x0c,
	RTC_REG_D = 0x0d,
	RTC_REG_CENTURY = RTC_CMOS_CENTURY,
	RTC_REG_DAY_ALARM = RTC_CMOS_DAY_ALARM,
	RTC_REG_MONTH_ALARM = RTC_CMOS_MONTH_ALARM,
};

#define RTC_BYTES 128u /* registers and memory */

#define RTC_A_UIP BIT(7)
#define RTC_A_DV_MASK 0x70u
#define RTC_A_DV_32KHZ 0x20u /* higher values hold the divider in reset or test it */
#define RTC_A_RS_MASK 0x0fu  /* rate of the periodic interrupt; 0: none */
#define RTC_A_RS_1024HZ 0x06u

#define RTC_B_SET BIT(7)
#define RTC_B_PIE BIT(6) /* these three stand where their flags stand in C */
#define RTC_B_AIE BIT(5)
#define RTC_B_UIE BIT(4)
#define RTC_B_DM BIT(2) /* binary, not BCD */
#define RTC_B_24H BIT(1)
#define RTC_B_ENABLES (RTC_B_PIE | RTC_B_AIE | RTC_B_UIE)

#define RTC_C_IRQF BIT(7) /* one of the flags is set and enabled */
#define RTC_C_PF BIT(6)
#define RTC_C_AF BIT(5)
#define RTC_C_UF BIT(4)
#define RTC_C_FLAGS (RTC_C_PF | RTC_C_AF | RTC_C_UF)

#define RTC_D_VRT BIT(7)

#define RTC_HOURS_PM BIT(7)
#define RTC_ALARM_ANY 0xc0u /* alarm bytes from here on match everything */

#endif
