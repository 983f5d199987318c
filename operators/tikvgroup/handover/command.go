package handover

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/tidb-groups/tidb-groups/shared/hook"
)

// Command is a command line of the program, and what is changed of it.
type Command struct {
	// Line has the verb, install, stop or start.
	hook.Line
	// Job of stop and start.
	Job Job
	// Within bounds stop and start.
	Within time.Duration
}

// Parse reads a command line, without the program's name. env fills in $(NAME) in the
// address: Kubernetes does not in the commands of hooks.
func Parse(args []string, env func(string) string) (c Command, err error) {
	c.Line, err = hook.ParseLine(args, []string{"stop", "start"}, func(set *flag.FlagSet) {
		set.StringVar(&c.Job.PD, "pd", "", "base URL of PD")
		set.StringVar(&c.Job.Address, "address", "", "address that the store advertises; $(NAME) stands for a variable")
		set.StringVar(&c.Job.Record, "record", "", "file that records that leaders were given away")
		c.Job.TLS.AddFlags(set)
		set.DurationVar(&c.Within, "within", 0, "for how long")
	})
	if err != nil || c.Into != "" {
		return c, err
	}
	if c.Job.PD == "" || c.Job.Record == "" || c.Within <= 0 || c.Verb == "stop" && c.Job.Address == "" {
		return c, fmt.Errorf("%s wants --pd, --address, --record and --within", c.Verb)
	}
	c.Job.Address = hook.Expand(c.Job.Address, env)
	c.Job.TLS.ServerName = hook.Expand(c.Job.TLS.ServerName, env)
	return c, nil
}

// Run implements hook.Command.
func (c Command) Run(ctx context.Context, say hook.Say) error {
	if c.Verb == "install" {
		return hook.Install(c.Into)
	}
	c.Job.Say = say
	if c.Verb == "start" {
		return c.Job.Start(ctx, c.Within)
	}
	ctx, cancel := context.WithTimeout(ctx, c.Within)
	defer cancel()
	return c.Job.Stop(ctx)
}
