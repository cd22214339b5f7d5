package settings

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// parseSize reads a number of bytes: a whole number and B, KiB, MiB or GiB, or
// nothing, which is B. KB and MB are refused, since they mean different things to
// different people.
func parseSize(text string) (int64, error) {
	digits, unit := text, int64(1)
	for _, u := range sizeUnits() {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			digits, unit = rest, u.bytes
			break
		}
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil {
		return 0, errors.New("no size")
	}
	if int64(n) > math.MaxInt64/unit {
		return 0, errors.New("too large a size")
	}
	return int64(n) * unit, nil
}

// formatSize writes a size in the largest unit that it is a whole number of.
func formatSize(n int64) string {
	for _, u := range sizeUnits() {
		if n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return ""
}

type sizeUnit struct {
	name  string
	bytes int64
}

// sizeUnits begins with the largest unit; B is last, as it ends all other names.
func sizeUnits() []sizeUnit {
	return []sizeUnit{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}
}

// formatDuration is Go's form without the zeros: 5m and not 5m0s.
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
