package sqlrun

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

const (
	// maxName and maxPassword are how long a user's name may be, in characters, and a
	// password, in bytes.
	maxName     = 32
	maxPassword = 1024
	// root is the user that TiDB makes itself.
	root = "root"
)

// user is one that is to be there with a password.
type user struct{ name, password string }

// readUsers reads the users of a Secret that is mounted: each key is a user. It
// refuses what cannot be meant, as the SQL of the first users does.
func readUsers(dir, taken string) ([]user, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the Secret: %w", err)
	}
	var out []user
	for _, e := range entries {
		// The kubelet lays a Secret out as links into a folder, which begins with two dots.
		if strings.HasPrefix(e.Name(), "..") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name())) //nolint:gosec // of the Secret that is mounted
		if err != nil {
			return nil, fmt.Errorf("read key %s: %w", e.Name(), err)
		}
		u := user{e.Name(), strings.TrimRight(string(text), "\n")}
		if why := u.findProblem(taken); why != "" {
			return nil, fmt.Errorf("key %s: %s", u.name, why)
		}
		out = append(out, u)
	}
	return out, nil
}

// findProblem says why a user cannot be meant, empty if it can.
func (u user) findProblem(taken string) string {
	switch {
	case u.name == taken:
		return "its password is generated, by spec.initialization.rootPassword: remove the key"
	case utf8.RuneCountInString(u.name) > maxName:
		return "a user's name may have 32 characters: shorten it"
	case len(u.password) > maxPassword:
		return "the password is longer than 1024 bytes: is it one? shorten it"
	case u.password == "":
		return "the password is empty: set one"
	case strings.Contains(u.password, "\n"):
		return "the password has a second line: a password is one line"
	case strings.Contains(u.password, "\r"):
		return "the password has a carriage return, as a file from Windows has at its end: remove it"
	}
	return ""
}

// account is a user as SQL names it.
func (u user) account(host string) string { return quoteString(u.name) + "@" + quoteString(host) }

// countStatement asks whether a user is there.
func (u user) countStatement(host string) string {
	return "SELECT COUNT(*) FROM mysql.user WHERE User = " + quoteString(u.name) + " AND Host = " + quoteString(host)
}

// passwordStatement makes a user that is not there and gives one that is its password. One who
// is made is not altered besides: a history of passwords would refuse the same one
// again. Root is never made: it would have no privileges.
func (u user) passwordStatement(host string, there bool) string {
	verb := "CREATE"
	if there || u.name == root {
		verb = "ALTER"
	}
	return verb + " USER " + u.account(host) + " IDENTIFIED BY " + quoteString(u.password)
}

// quoteString writes a string as SQL does.
func quoteString(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}
