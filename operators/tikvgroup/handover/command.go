package handover

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/tidb-groups/tidb-groups/shared/hook"
)

// Command is a command line of the program, and what is changed of it.
type Command struct {
	// Verb is install, stop or start.
	Verb string
	// Into is where install copies the program.
	Into string
	// Job of stop and start.
	Job Job
	// Within bounds stop and start.
	Within time.Duration
}

// Parse reads a command line, without the program's name. env fills in $(NAME) in the
// address: Kubernetes does not in the commands of hooks.
func Parse(args []string, env func(string) string) (Command, error) {
	c := Command{}
	if len(args) == 0 {
		return c, errors.New("want install, stop or start")
	}
	c.Verb = args[0]
	set := flag.NewFlagSet(c.Verb, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&c.Job.PD, "pd", "", "base URL of PD")
	set.StringVar(&c.Job.Address, "address", "", "address that the store advertises; $(NAME) stands for a variable")
	set.StringVar(&c.Job.Record, "record", "", "file that tells that leaders were given away")
	set.DurationVar(&c.Within, "within", 0, "for how long")
	if err := set.Parse(args[1:]); err != nil {
		return c, fmt.Errorf("read flags: %w", err)
	}
	switch {
	case c.Verb == "install" && set.NArg() == 1:
		c.Into = set.Arg(0)
		return c, nil
	case c.Verb == "install":
		return c, errors.New("install wants the place to install to")
	case c.Verb != "stop" && c.Verb != "start":
		return c, fmt.Errorf("%q is none of install, stop and start", c.Verb)
	case set.NArg() > 0:
		return c, fmt.Errorf("unexpected argument %q", set.Arg(0))
	case c.Job.PD == "" || c.Job.Record == "" || c.Within <= 0 || c.Verb == "stop" && c.Job.Address == "":
		return c, fmt.Errorf("%s wants --pd, --address, --record and --within", c.Verb)
	}
	c.Job.Address = hook.Expand(c.Job.Address, env)
	return c, nil
}

// Run implements hook.Command.
func (c Command) Run(ctx context.Context, say hook.Say) error {
	if c.Verb == "install" {
		return hook.Install(c.Into)
	}
	c.Job.Say = say
	ctx, cancel := context.WithTimeout(ctx, c.Within)
	defer cancel()
	if c.Verb == "start" {
		return c.Job.Start(ctx)
	}
	return c.Job.Stop(ctx)
}
