package settings

// checkAvailable refuses what is described but not built yet, so that nobody gets
// another promise than the one asked for. When a mode is there, its lines go, and
// nothing else in this package changes.
func (l *loader) checkAvailable(s *Settings) {
	if s.Delivery == ExactlyOnce && s.RowFaults == DeadLetter {
		l.broken([]string{"RELAY_DELIVERY", "RELAY_ROW_FAULTS"}, "dead letters are not available in exactly-once in this version: set RELAY_ROW_FAULTS=park")
	}
}
