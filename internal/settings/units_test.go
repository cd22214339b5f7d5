package settings

import (
	"testing"
	"time"
)

func TestSizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "30": 30, "1B": 1, "4KiB": 4096, "4MiB": 4 << 20, "3GiB": 3 << 30, "8589934591GiB": 8589934591 << 30,
	} {
		if got, err := parseSize(text); got != want || err != nil {
			t.Errorf("parseSize(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", " ", "B", "KiB", "-1", "+1", "1 KiB", "1kib", "1KB", "1K", "1.5MiB", "1MiBB", "0x10", "1_000", "8589934592GiB", "9223372036854775808"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("parseSize(%q) = %d", text, got)
		}
	}
	for n, want := range map[int64]string{1: "1B", 1023: "1023B", 1024: "1KiB", 4 << 20: "4MiB", 1 << 30: "1GiB", 1<<20 + 1: "1048577B"} {
		if got := formatSize(n); got != want {
			t.Errorf("formatSize(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestFormatDuration(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 10 * time.Millisecond: "10ms", time.Second: "1s", 30 * time.Second: "30s", 10 * time.Minute: "10m",
		90 * time.Second: "1m30s", time.Hour: "1h", 24 * time.Hour: "24h", time.Hour + time.Second: "1h0m1s", 20 * time.Hour: "20h",
	} {
		if got := formatDuration(d); got != want {
			t.Errorf("formatDuration(%d) = %q, want %q", d, got, want)
		}
	}
}
