package resign

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
	// Into is where the program is copied to; empty to stop a member.
	Into string
	// Job of a member that is stopped.
	Job Job
	// Within bounds it.
	Within time.Duration
}

// Parse reads a command line, without the program's name. env fills in $(NAME) in the
// member's name.
func Parse(args []string, env func(string) string) (Command, error) {
	c := Command{}
	if len(args) == 0 {
		return c, errors.New("want install or stop")
	}
	set := flag.NewFlagSet(args[0], flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&c.Job.PD, "pd", "", "base URL of the member")
	set.StringVar(&c.Job.Name, "name", "", "name of the member; $(NAME) stands for a variable")
	set.DurationVar(&c.Within, "within", 0, "for how long")
	if err := set.Parse(args[1:]); err != nil {
		return c, fmt.Errorf("read flags: %w", err)
	}
	switch {
	case args[0] == "install" && set.NArg() == 1:
		c.Into = set.Arg(0)
		return c, nil
	case args[0] == "install":
		return c, errors.New("install wants the place to install to")
	case args[0] != "stop":
		return c, fmt.Errorf("%q is neither install nor stop", args[0])
	case set.NArg() > 0:
		return c, fmt.Errorf("unexpected argument %q", set.Arg(0))
	case c.Job.PD == "" || c.Job.Name == "" || c.Within <= 0:
		return c, errors.New("stop wants --pd, --name and --within")
	}
	c.Job.Name = hook.Expand(c.Job.Name, env)
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
