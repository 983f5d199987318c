package workload

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"regexp"
	"time"
)

// Login is where and as whom the database is asked.
type Login struct {
	// Address is host and port.
	Address string
	// User and Password.
	User     string
	Password string
	// TLS is how the server is known; nil without TLS.
	TLS *tls.Config
}

// Config is what a workload does. Only Login has to be set; what is zero or empty has
// the default that is named.
type Config struct {
	// Login is asked for before every connection: addresses and passwords change.
	Login func(context.Context) (Login, error)
	// Database that is made, tidb_groups_workload; its tables are dropped first.
	Database string
	// Inserters, Transferrers, Readers and Prepared are how many sessions of each kind there are: 4,
	// 2, 1, 2. Negative is none.
	Inserters    int
	Transferrers int
	Readers      int
	Prepared     int
	// Accounts for transfers, 20.
	Accounts int
	// Interval between the turns of a session, 500 ms. A session that is late does not
	// catch up.
	Interval time.Duration
	// Deadline of a statement, from when it is due until it is acknowledged, 30 s.
	Deadline time.Duration
	// Lifetime of a connection of insert, transfer and sum, 5 s.
	Lifetime time.Duration
	// Slow is how long a pause has to be to be listed, 500 ms.
	Slow time.Duration
	// Split is the number of regions, as a power of two, that each table of rows begins with; 0 is
	// one region. Servers other than TiDB ignore it.
	Split int
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// complete fills the defaults in and checks the rest.
func (c Config) complete() (Config, error) {
	count := func(n, normal int) int { return max(cmp.Or(n, normal), 0) }
	c.Database = cmp.Or(c.Database, "tidb_groups_workload")
	c.Inserters, c.Transferrers, c.Readers, c.Prepared = count(c.Inserters, 4), count(c.Transferrers, 2), count(c.Readers, 1), count(c.Prepared, 2)
	c.Accounts = cmp.Or(c.Accounts, 20)
	c.Interval, c.Deadline = cmp.Or(c.Interval, 500*time.Millisecond), cmp.Or(c.Deadline, 30*time.Second)
	c.Lifetime, c.Slow = cmp.Or(c.Lifetime, 5*time.Second), cmp.Or(c.Slow, 500*time.Millisecond)
	switch {
	case c.Login == nil:
		return c, errors.New("a workload needs a login")
	case !identifier.MatchString(c.Database):
		return c, fmt.Errorf("database %q: a name has letters, digits and underscores, and begins with no digit", c.Database)
	case c.Interval < 0, c.Deadline < 0, c.Lifetime < 0, c.Slow < 0:
		return c, errors.New("interval, deadline, lifetime and slow must not be negative")
	case c.Accounts < 2:
		return c, fmt.Errorf("%d accounts: a transfer needs two", c.Accounts)
	case c.Split < 0, c.Split > 6:
		return c, fmt.Errorf("split %d: it is a power of two from 0 to 6", c.Split)
	case c.Inserters+c.Transferrers+c.Readers+c.Prepared == 0:
		return c, errors.New("a workload needs a session")
	}
	return c, nil
}
