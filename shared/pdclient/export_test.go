package pdclient

import "time"

// The tests of this package see how long PD has.
const (
	AnswerDeadline = answerDeadline
	LeaderProbe    = leaderProbe
)

// WithTiming has PD answer within another time, and be asked for its leader after another one.
func WithTiming(answer, probe time.Duration) DialerOption {
	return func(d *dialer) { d.timing = timing{answer, probe} }
}
