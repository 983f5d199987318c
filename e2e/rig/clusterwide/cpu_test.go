package clusterwide_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cpu is the processor time that was used: by this process, which is six
// operators and the simulated world, and by the API server with its store.
type cpu struct{ own, server time.Duration }

func cpuNow() cpu {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return cpu{}
	}
	out := cpu{own: time.Duration(usage.Utime.Nano() + usage.Stime.Nano())}
	notes, err := filepath.Glob(filepath.Join(filepath.Dir(plane.Logs), "*.pid"))
	if err != nil {
		return out
	}
	for _, note := range notes {
		pid, err := os.ReadFile(note)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(string(pid)), "stat"))
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		const user, system, tick = 11, 12, 10 * time.Millisecond
		if len(fields) <= system {
			continue
		}
		for _, field := range []int{user, system} {
			if ticks, err := strconv.Atoi(fields[field]); err == nil {
				out.server += time.Duration(ticks) * tick
			}
		}
	}
	return out
}

func (c cpu) since(before cpu) string {
	return "processor time " + (c.own - before.own).Round(time.Millisecond).String() + " here and " +
		(c.server - before.server).Round(time.Millisecond).String() + " in the API server"
}
