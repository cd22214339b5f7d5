package kafkasink

import "time"

// pace is how often the sink looks at things, and how long it waits for them.
type pace struct {
	settings      time.Duration // between two looks at the topics' settings
	settingsAgain time.Duration // after a look that failed, or found a topic that won't do
	ask           time.Duration // for the answers of one look
	stuck         time.Duration // when a client that has not answered is thrown away
	stuckLook     time.Duration // between two looks for one
	life          time.Duration // when a client that does well is replaced
}

// usual is the pace of New. Tests have a quicker one.
func usual() pace {
	return pace{
		settings: 10 * time.Second, settingsAgain: time.Second, ask: 5 * time.Second,
		stuck: 60 * time.Second, stuckLook: time.Second, life: 6 * time.Hour,
	}
}
