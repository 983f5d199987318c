package sqlrun

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"
)

// Parse reads a command line, without the program's name.
func Parse(args []string) (Run, error) {
	r := Run{}
	set := flag.NewFlagSet("sql", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&r.Address, "address", "", "host:port of TiDB")
	set.StringVar(&r.User, "user", "", "user to connect as")
	set.StringVar(&r.Password, "password", "", "file with the password to connect with")
	set.StringVar(&r.PasswordOf, "password-of", "", "where that file comes from; if empty, the file may be missing, and then there is no password")
	set.StringVar(&r.TLS, "tls", "", "folder with ca.crt of TiDB's certificate, and tls.crt and tls.key to show, if it wants one; without, the server is not verified")
	set.StringVar(&r.File, "file", "", "file with the SQL")
	set.StringVar(&r.Users, "users", "", "folder with a file for each user, which has the password")
	set.StringVar(&r.Host, "host", "%", "host that the users connect from")
	set.StringVar(&r.Taken, "taken", "", "user whose password must not be set here")
	set.StringVar(&r.Of, "of", "", "where file or users come from")
	set.BoolVar(&r.Secret, "secret", false, "do not print the SQL or its errors")
	set.DurationVar(&r.Within, "within", 0, "how long all of it may take")
	set.StringVar(&r.Result, "result", "", "file to write the result to")
	if err := set.Parse(args); err != nil {
		return r, fmt.Errorf("read flags: %w", err)
	}
	switch {
	case set.NArg() > 0:
		return r, fmt.Errorf("unexpected argument %q", set.Arg(0))
	case (r.File == "") == (r.Users == ""):
		return r, errors.New("want one of --file and --users")
	case r.Address == "" || r.User == "" || r.Of == "" || r.Result == "" || r.Within <= 0:
		return r, errors.New("want --address, --user, --of, --result and --within")
	}
	r.Pause = time.Second
	return r, nil
}
