package drain

import (
	"context"
	"errors"
	"flag"

	"github.com/tidb-groups/tidb-groups/shared/hook"
)

// Command is a command line of the program.
type Command struct {
	// Line has the verb, install or stop.
	hook.Line
	// Job of stop.
	Job Job
}

// Parse reads a command line, without the program's name. env fills in $(NAME) in the name
// that is expected.
func Parse(args []string, env func(string) string) (c Command, err error) {
	c.Line, err = hook.ParseLine(args, []string{"stop"}, func(set *flag.FlagSet) {
		set.StringVar(&c.Job.Metrics, "metrics", "", "URL of TiProxy's metrics")
		set.DurationVar(&c.Job.Delay, "delay", 0, "for how long new connections are still taken")
		c.Job.TLS.AddFlags(set)
		set.DurationVar(&c.Job.Within, "within", 0, "for how long clients may then close theirs, at most")
	})
	if err == nil && c.Verb == "stop" && (c.Job.Metrics == "" || c.Job.Delay < 0 || c.Job.Within < 0) {
		return c, errors.New("stop wants --metrics, --delay and --within")
	}
	c.Job.TLS.ServerName = hook.Expand(c.Job.TLS.ServerName, env)
	return c, err
}

// Run implements hook.Command.
func (c Command) Run(ctx context.Context, say hook.Say) error {
	if c.Into != "" {
		return hook.Install(c.Into)
	}
	c.Job.Say = say
	return c.Job.Stop(ctx)
}
