package store

// ParkedTexts are the statements about parked rows by what they do.
func (s *Store) ParkedTexts(indexed bool) map[string]string {
	return map[string]string{
		"ids": s.sql.parkedIDs, "reasons": s.sql.parkedReasons, "payload": s.sql.parkedPayload, "find": s.sql.parkedFind.text(indexed),
		"retry": s.sql.parkedRetry.text(indexed), "discard": s.sql.parkedDiscard.text(indexed), "behind": s.sql.parkedBehind.text(indexed),
	}
}
