package vulncheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Database is the one of the Go project.
const Database = "https://vuln.go.dev"

// reachTimeout bounds the question whether the database answers.
const reachTimeout = 15 * time.Second

// Options say what is checked, and by what.
type Options struct {
	// Program is the path of govulncheck.
	Program func(context.Context) (string, error)
	// Database is the URL of a vulnerability database: https, http or file.
	Database string
	// Modules are directories with a go.mod.
	Modules []string
	// Optional makes a database that does not answer no error. That nothing was checked is
	// said all the same.
	Optional bool
	// Out gets what is checked and what is found.
	Out io.Writer
}

// Run checks every module, those after a bad one as well. It fails if code of one
// can reach a known vulnerability, if govulncheck fails, and, unless the check is
// optional, if the database does not answer.
func Run(ctx context.Context, options Options) error {
	if err := checkDatabase(ctx, options.Database); err != nil {
		err = fmt.Errorf("vulnerabilities were NOT CHECKED: %w; name one that answers in $GOVULNDB", err)
		if !options.Optional || ctx.Err() != nil {
			return err
		}
		_, err = fmt.Fprintln(options.Out, "vulncheck:", err)
		return err
	}
	program, err := options.Program(ctx)
	if err != nil {
		return fmt.Errorf("find govulncheck: %w", err)
	}
	var errs []error
	for _, module := range options.Modules {
		if _, err := fmt.Fprintln(options.Out, "vulncheck", filepath.Base(module)); err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, program, "-db", options.Database, "./...")
		cmd.Dir, cmd.Stdout, cmd.Stderr = module, options.Out, options.Out
		if err := cmd.Run(); err != nil {
			errs = append(errs, fmt.Errorf("check %s for vulnerabilities: %w", module, err))
		}
	}
	return errors.Join(errs...)
}

// checkDatabase asks a database for its index.
func checkDatabase(ctx context.Context, database string) error {
	where, err := url.Parse(strings.TrimSuffix(database, "/") + "/index/db.json")
	if err != nil {
		return fmt.Errorf("read the address of the vulnerability database: %w", err)
	}
	if where.Scheme == "file" {
		if _, err := os.Stat(where.Path); err != nil {
			return fmt.Errorf("read vulnerability database %s: %w", database, err)
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, where.String(), nil)
	if err != nil {
		return fmt.Errorf("ask vulnerability database %s: %w", database, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask vulnerability database %s: %w", database, err)
	}
	defer func() { _ = response.Body.Close() }() // it is not read
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("ask vulnerability database %s: it answers %s", database, response.Status)
	}
	return nil
}
