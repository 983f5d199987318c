package sqlrun

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// Numbers of errors by which TiDB says that it takes no connection now.
const (
	tooManyConnections = 1040
	shuttingDown       = 1053
	tooManyOfTheUser   = 1203
)

// Numbers of errors by which TiDB says that a statement did not succeed now.
const (
	schemaChanged = 8028
	firstOfStores = 9001 // PD or a store does not answer, is busy, or a region has no leader
	lastOfStores  = 9011
)

// errorMeanings are short words for errors whose text must not be printed: it quotes the SQL.
func errorMeanings() map[uint16]string {
	return map[uint16]string{
		1007: "the database exists", 1008: "no such database", 1044: "access to the database denied", 1045: "access denied", 1046: "no database chosen",
		1049: "no such database", 1050: "the table exists", 1051: "no such table", 1054: "no such column", 1060: "the column exists", 1061: "the index exists",
		1062: "duplicate entry", 1064: "syntax error", 1142: "privilege missing", 1146: "no such table", 1193: "no such variable", 1227: "privilege missing",
		1396: "the user exists, or does not", 1819: "the password does not satisfy the policy", 3638: "the password was used before", 8121: "privilege missing",
	}
}

// describeError is an error of the server as it may be printed.
func describeError(err error, secret bool) string {
	var answer *mysql.MySQLError
	var network net.Error
	switch {
	case errors.As(err, &answer):
	case secret && !errors.As(err, &network) && !errors.Is(err, mysql.ErrInvalidConn) && !errors.Is(err, driver.ErrBadConn):
		return "an error of the client" // which may quote a file name of the SQL
	default:
		return oneLine(err.Error())
	}
	number := fmt.Sprintf("error %d", answer.Number)
	if answer.SQLState != [5]byte{} {
		number += fmt.Sprintf(" (%s)", answer.SQLState[:])
	}
	text := answer.Message
	if secret {
		text = errorMeanings()[answer.Number]
	}
	if text == "" {
		return oneLine(number)
	}
	return oneLine(number + ": " + text)
}

// isRefusal reports whether the server has said no. Then nothing is tried again.
func isRefusal(err error) bool {
	var answer *mysql.MySQLError
	return errors.As(err, &answer) && answer.Number != tooManyConnections && answer.Number != shuttingDown
}

// isFinal reports whether the server has refused what may be done twice. That is tried again after
// what passes: too many connections of the user, a schema that changes, or stores and PD that do not
// answer.
func isFinal(err error) bool {
	var answer *mysql.MySQLError
	passes := errors.As(err, &answer) && (answer.Number == tooManyOfTheUser || answer.Number == schemaChanged || answer.Number >= firstOfStores && answer.Number <= lastOfStores)
	return isRefusal(err) && !passes
}

// oneLine makes a text one line of printable characters.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }), " ")
}
