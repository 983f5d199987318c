// Package workload writes to a database and reads from it while something is done
// to the database, and proves afterwards what that cost: which statements failed,
// how long SQL paused, and that no acknowledged row is lost.
//
// # What it does
//
// Sessions, a goroutine with one connection each, take turns at a fixed interval:
//
//   - insert: one row (writer, seq) of the table numbers, autocommit;
//   - transfer: a transaction that moves money between two accounts and books that in
//     the table transfers;
//   - sum: a transaction that reads all accounts twice, added up by the server and row
//     by row: both have to be what the accounts began with;
//   - prepared: on a long connection, a prepared insert as above, then a prepared read of
//     the row.
//
// [Run.Check] reads everything back. Every acknowledged row has to be there once and
// with the content that was written. A row whose statement failed may be there or not,
// once at most. A row whose statement was never sent must not be there, and nothing else
// may. The balances have to be what the booked transfers make of them. The server checks
// its indexes (ADMIN CHECK TABLE), and sums of checksums (CRC32) by the server have to be
// those of the rows that came over the wire.
//
// # What is sent again, and what is counted as failed
//
// No statement that may have been executed is ever sent twice. The driver answers
// driver.ErrBadConn only if not one byte of the statement was written; this package looks
// before each turn whether the server has closed the connection meanwhile
// (driver.SessionResetter, which reads from the socket). In both cases the statement was
// provably not sent: the session connects again and sends it, which counts as a
// reconnection, not as a failure. In a transaction that has begun there is no such way out.
// database/sql repeats a statement on driver.ErrBadConn alone, and never on a [database/sql.Conn],
// which is all that is used here.
//
// Counted as failed is every statement that ended with an error and was, or may have
// been, sent; one that was not acknowledged within the deadline; and one for which no
// connection could be had within the deadline. A connection that is refused is tried again
// until then, because connecting executes nothing; refusals are counted by themselves, and
// the statement's latency contains them.
//
// # Connections at the drain of a TiDB
//
// A TiDB that is told to stop serves on for graceful-wait-before-shutdown. Then it closes
// its port and, as soon as the running statements and transactions have ended, every
// connection. In between it reads one more statement from each connection and closes it
// without an answer (pkg/server/conn.go, Run): the client cannot know that it was not
// executed. So only a client that leaves in time loses nothing. Connections of insert,
// transfer and sum are closed between turns when they are [Config.Lifetime] old, which has to be
// less than the graceful wait; those of prepared stay until they fail. Failures of the two
// are counted apart: Failed and FailedLong.
//
// # Pauses
//
// The pause of a session is the time from the moment a statement was due to the next
// success of the session: the latency of a statement that succeeds at once, and more
// where statements failed before. A gap is a time in which no session had a success.
package workload
