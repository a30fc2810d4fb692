package bench

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc/PID/stat: Linux's USER_HZ is 100 on each processor that Go supports.
const tick = time.Second / 100

var errStat = errors.New("the process's stat has an unknown format")

// ProcessorTime returns the user and system time of a process and of its children that have ended. It reads Linux's /proc.
func ProcessorTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the processor time of a process: %w", err)
	}
	taken, err := processorTimeIn(string(text))
	if err != nil {
		return 0, fmt.Errorf("read the processor time of process %d: %w", pid, err)
	}
	return taken, nil
}

// processorTimeIn returns the sum of utime, stime, cutime and cstime, see proc_pid_stat(5). Fields are counted from the last parenthesis,
// because the process's name before it may contain spaces and parentheses.
func processorTimeIn(stat string) (sum time.Duration, err error) {
	const first, last = 14 - 3, 17 - 3 // the field after the name is the third
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) <= last || !strings.Contains(stat, ")") {
		return 0, errStat
	}
	for _, field := range fields[first : last+1] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, errStat
		}
		sum += time.Duration(ticks) * tick
	}
	return sum, nil
}
