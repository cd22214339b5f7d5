package settings

// checkAvailable refuses what is described but not built yet, so that nobody gets
// another promise than the one asked for. When a mode is there, its lines go, and
// nothing else in this package changes.
func (l *loader) checkAvailable(s *Settings) {
	if s.Delivery == ExactlyOnce {
		l.broken([]string{"RELAY_DELIVERY"}, "exactly-once is not available in this version")
	}
}
