package resign

import (
	"context"
	"errors"
	"flag"
	"time"

	"github.com/tidb-groups/tidb-groups/shared/hook"
)

// Command is a command line of the program, and what is changed of it.
type Command struct {
	// Line has the verb, install or stop.
	hook.Line
	// Job of a member that is stopped.
	Job Job
	// Within bounds it.
	Within time.Duration
}

// Parse reads a command line, without the program's name. env fills in $(NAME) in the
// member's name.
func Parse(args []string, env func(string) string) (c Command, err error) {
	c.Line, err = hook.ParseLine(args, []string{"stop"}, func(set *flag.FlagSet) {
		set.StringVar(&c.Job.PD, "pd", "", "base URL of the member")
		set.StringVar(&c.Job.Name, "name", "", "name of the member; $(NAME) stands for a variable")
		c.Job.TLS.AddFlags(set)
		set.DurationVar(&c.Within, "within", 0, "for how long")
	})
	if err != nil || c.Into != "" {
		return c, err
	}
	if c.Job.PD == "" || c.Job.Name == "" || c.Within <= 0 {
		return c, errors.New("stop wants --pd, --name and --within")
	}
	c.Job.Name = hook.Expand(c.Job.Name, env)
	c.Job.TLS.ServerName = hook.Expand(c.Job.TLS.ServerName, env)
	return c, nil
}

// Run implements hook.Command.
func (c Command) Run(ctx context.Context, say hook.Say) error {
	if c.Into != "" {
		return hook.Install(c.Into)
	}
	ctx, cancel := context.WithTimeout(ctx, c.Within)
	defer cancel()
	c.Job.Say = say
	return c.Job.Stop(ctx)
}
