package drain

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/tidb-groups/tidb-groups/shared/hook"
)

// Command is a command line of the program.
type Command struct {
	// Verb is install or stop.
	Verb string
	// Into is where install copies the program.
	Into string
	// Job of stop.
	Job Job
}

// Parse reads a command line, without the program's name.
func Parse(args []string, _ func(string) string) (Command, error) {
	c := Command{}
	if len(args) == 0 {
		return c, errors.New("want install or stop")
	}
	c.Verb = args[0]
	set := flag.NewFlagSet(c.Verb, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&c.Job.API, "api", "", "base URL of the capture's HTTP API")
	set.DurationVar(&c.Job.Within, "within", 0, "for how long it may take, at most")
	if err := set.Parse(args[1:]); err != nil {
		return c, fmt.Errorf("read flags: %w", err)
	}
	switch {
	case c.Verb == "install" && set.NArg() == 1:
		c.Into = set.Arg(0)
		return c, nil
	case c.Verb == "install":
		return c, errors.New("install wants the place to install to")
	case c.Verb != "stop":
		return c, fmt.Errorf("%q is none of install and stop", c.Verb)
	case set.NArg() > 0:
		return c, fmt.Errorf("unexpected argument %q", set.Arg(0))
	case c.Job.API == "" || c.Job.Within < 0:
		return c, errors.New("stop wants --api and --within")
	}
	return c, nil
}

// Run implements hook.Command.
func (c Command) Run(ctx context.Context, say hook.Say) error {
	if c.Verb == "install" {
		return hook.Install(c.Into)
	}
	c.Job.Say = say
	return c.Job.Stop(ctx)
}
