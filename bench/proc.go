package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor times in /proc/PID/stat, the same on every Linux.
const tick = 10 * time.Millisecond

// stat is what we use of /proc/PID/stat.
type stat struct {
	pid, parent int
	name        string
	own         time.Duration // of all its threads, ended ones included
	reaped      time.Duration // of its children that have ended
}

func readStat(pid int) (stat, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, err
	}
	return parseStat(content)
}

// parseStat reads the form that proc(5) tells of. The name may hold blanks and brackets.
func parseStat(content []byte) (s stat, err error) {
	open, shut := bytes.IndexByte(content, '('), bytes.LastIndexByte(content, ')')
	if open < 0 || shut < open {
		return s, errors.New("/proc: no name in stat")
	}
	fields := strings.Fields(string(content[shut+1:])) // from the third on
	if len(fields) < 15 {
		return s, errors.New("/proc: stat is too short")
	}
	s.name = string(content[open+1 : shut])
	var numbers [6]int
	for i, text := range []string{strings.TrimSpace(string(content[:open])), fields[1], fields[11], fields[12], fields[13], fields[14]} {
		if numbers[i], err = strconv.Atoi(text); err != nil {
			return s, fmt.Errorf("/proc: stat: %w", err)
		}
	}
	s.pid, s.parent = numbers[0], numbers[1]
	s.own = time.Duration(numbers[2]+numbers[3]) * tick
	s.reaped = time.Duration(numbers[4]+numbers[5]) * tick
	return s, nil
}

// processes are all that run now. Those that end meanwhile are left out.
func processes() (all []stat, err error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(files) == 0 {
		return nil, errors.New("/proc can't be read: this program runs on Linux only")
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		s, err := parseStat(content)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// childNamed is the child of ours that runs the program of that name.
func childNamed(name string) (pid int, err error) {
	all, err := processes()
	if err != nil {
		return 0, err
	}
	for _, s := range all {
		if s.parent == os.Getpid() && s.name == name {
			return s.pid, nil
		}
	}
	return 0, fmt.Errorf("no child of ours is called %s", name)
}

// cpuTime is the processor time that a process and its own children have used so far. It looks once more if a child's time went to
// its parent meanwhile, lest it be counted in neither.
func cpuTime(pid int) (time.Duration, error) {
	for {
		before, err := readStat(pid)
		if err != nil {
			return 0, fmt.Errorf("no process %d: %w", pid, err)
		}
		all, err := processes()
		if err != nil {
			return 0, err
		}
		sum := before.own + before.reaped
		for _, s := range all {
			if s.parent == pid {
				sum += s.own
			}
		}
		if after, err := readStat(pid); err != nil || after.reaped == before.reaped {
			return sum, err
		}
	}
}

// runTime is the processor time of a process with one thread, to the nanosecond.
func runTime(pid int) (time.Duration, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		return 0, err
	}
	nanoseconds, _, _ := strings.Cut(string(content), " ")
	n, err := strconv.ParseInt(nanoseconds, 10, 64)
	return time.Duration(n), err
}

// peakMemory is the most memory that a process has had resident.
func peakMemory(pid int) (mebibytes float64, err error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(content)) {
		if size, found := strings.CutPrefix(line, "VmHWM:"); found {
			kibibytes, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(size), "kB")), 64)
			return kibibytes / 1024, err
		}
	}
	return 0, errors.New("/proc: status tells no VmHWM")
}
