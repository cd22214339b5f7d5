package main

import (
	"fmt"
	"slices"
	"time"
)

// median is the middle of some values, or of the two in the middle their mean.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// percentile is the least value that p of 100 values do not exceed.
func percentile(values []time.Duration, p int) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, (len(sorted)*p+99)/100-1)]
}

// spread shows values as their median, and from where to where they go if there are several.
func spread(values []float64, format func(float64) string) string {
	if len(values) < 2 {
		return format(median(values))
	}
	return fmt.Sprintf("%s (%s to %s)", format(median(values)), format(slices.Min(values)), format(slices.Max(values)))
}

// each takes one value of each result.
func each[T any](results []T, value func(T) float64) (values []float64) {
	for _, r := range results {
		values = append(values, value(r))
	}
	return values
}

// whole shows a number without decimals, in groups of three digits.
func whole(v float64) string {
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// tenths shows a number with one decimal.
func tenths(v float64) string { return fmt.Sprintf("%.1f", v) }

// hundredths shows a number with two.
func hundredths(v float64) string { return fmt.Sprintf("%.2f", v) }

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
