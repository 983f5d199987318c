package tidb

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dolthub/vitess/go/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process/pdserver"
)

const (
	// terminal is what the command-line client of MariaDB 10.11 sends: several
	// statements in one packet, connection attributes, EOF packets, no database.
	terminal = 0x00bfa285
	// newer is that of a client that does without EOF packets, as MySQL 8's.
	newer = terminal | mysql.CapabilityClientDeprecateEOF
	// single is that of a client that sends one statement at a time.
	single = terminal &^ mysql.CapabilityClientMultiStatements
)

// client speaks the protocol packet by packet, so that a test can say what it
// sends and in which order: tests with Go's driver, which names a database at
// login, say nothing about connections without one.
type client struct {
	t            *testing.T
	conn         net.Conn
	in           *bufio.Reader
	sequence     byte
	capabilities uint32
}

// login connects without naming a database.
func login(t *testing.T, r *running, capabilities uint32, plugin, user, password string) *client {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", r.address())
	require.NoError(t, err)
	// The server may have ended the connection, as tests of failures want.
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(timeout)))
	c := &client{t: t, conn: conn, in: bufio.NewReader(conn), capabilities: capabilities}

	greeting := c.read()
	require.Equal(t, byte(10), greeting[0], "protocol version")
	version, rest, ok := strings.Cut(string(greeting[1:]), "\x00")
	require.True(t, ok)
	assert.Equal(t, "8.0.11-TiDB-v8.5.7", version)
	// What follows: connection, salt's first 8 bytes, 0, low flags, collation,
	// status, high flags, length of the salt, 10 reserved, rest of the salt.
	offered := uint32(binary.LittleEndian.Uint16([]byte(rest[13:]))) | uint32(binary.LittleEndian.Uint16([]byte(rest[18:])))<<16
	require.Zero(t, offered&mysql.CapabilityClientSSL, "without TLS on offer a client that prefers it goes on in plain text")
	salt := rest[4:12] + rest[31:43]

	hello := binary.LittleEndian.AppendUint32(nil, capabilities)
	hello = binary.LittleEndian.AppendUint32(hello, 1<<24)
	hello = append(hello, 33)
	hello = append(hello, make([]byte, 23)...)
	hello = append(hello, user+"\x00"...)
	answer := scramble(plugin, salt, password)
	hello = append(hello, byte(len(answer)))
	hello = append(hello, answer...)
	hello = append(hello, plugin+"\x00"...)
	attributes := "\x0cprogram_name\x05mysql"
	hello = append(hello, byte(len(attributes)))
	c.write(append(hello, attributes...))
	return c
}

func scramble(plugin, salt, password string) []byte {
	switch {
	case password == "":
		return nil
	case plugin == string(mysql.CachingSha2Password):
		return mysql.ScrambleCachingSha2Password([]byte(salt), []byte(password))
	default:
		return mysql.ScrambleMysqlNativePassword([]byte(salt), []byte(password))
	}
}

// welcome reads on until the server lets the client in, or says why not.
func (c *client) welcome(password string) string {
	c.t.Helper()
	p := c.read()
	if p[0] == mysql.AuthSwitchRequestPacket {
		plugin, salt, ok := strings.Cut(string(p[1:]), "\x00")
		require.True(c.t, ok)
		c.write(scramble(plugin, strings.TrimSuffix(salt, "\x00"), password))
		p = c.read()
	}
	return failure(p)
}

func failure(p []byte) string {
	if p[0] != mysql.ErrPacket {
		return ""
	}
	return fmt.Sprintf("%d %s", binary.LittleEndian.Uint16(p[1:]), p[9:])
}

func (c *client) read() []byte {
	c.t.Helper()
	var head [4]byte
	_, err := io.ReadFull(c.in, head[:])
	require.NoError(c.t, err, "the server ended the connection")
	require.Equal(c.t, c.sequence, head[3], "sequence number")
	c.sequence++
	p := make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16)
	_, err = io.ReadFull(c.in, p)
	require.NoError(c.t, err)
	require.NotEmpty(c.t, p)
	return p
}

func (c *client) write(p []byte) {
	c.t.Helper()
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(p)))
	head[3] = c.sequence
	c.sequence++
	_, err := c.conn.Write(append(head, p...))
	require.NoError(c.t, err)
}

// command sends one and returns the first packet of its answer.
func (c *client) command(what byte, argument string) []byte {
	c.t.Helper()
	c.sequence = 0
	c.write(append([]byte{what}, argument...))
	return c.read()
}

// query returns every result, one row after another: "1,x" and so on; a
// statement without rows is "ok", a failure the number and text of its error.
func (c *client) query(statements string) []string {
	c.t.Helper()
	var all []string
	p := c.command(mysql.ComQuery, statements)
	for {
		if f := failure(p); f != "" {
			return append(all, f)
		}
		var status uint16
		if p[0] == mysql.OKPacket {
			all = append(all, "ok")
			status = binary.LittleEndian.Uint16(p[3:])
		} else {
			var rows []string
			rows, status = c.rows(int(p[0]))
			all = append(all, rows...)
		}
		if status&mysql.ServerMoreResultsExists == 0 {
			return all
		}
		p = c.read()
	}
}

// rows reads a result of so many columns, up to its end.
func (c *client) rows(columns int) (rows []string, status uint16) {
	c.t.Helper()
	for range columns {
		c.read()
	}
	noEOF := c.capabilities&mysql.CapabilityClientDeprecateEOF != 0
	if !noEOF {
		require.Equal(c.t, byte(mysql.EOFPacket), c.read()[0], "end of the columns")
	}
	for {
		p := c.read()
		if p[0] == mysql.EOFPacket {
			// Both have two more numbers before or after the status.
			return rows, binary.LittleEndian.Uint16(p[3:])
		}
		var row []string
		for len(p) > 0 {
			end := 1 + int(p[0])
			row = append(row, string(p[1:end]))
			p = p[end:]
		}
		rows = append(rows, strings.Join(row, ","))
	}
}

func TestClientsThatNameNoDatabaseAreServed(t *testing.T) {
	pd := pdserver.StartWithStore(t)
	script := write(t, "CREATE USER 'app'@'%' IDENTIFIED BY 'secret';\nGRANT ALL ON test.* TO 'app'@'%';\nFLUSH PRIVILEGES;\n")
	r := start(t, pd, "--initialize-sql-file="+script).ready(t)
	other := start(t, pd).ready(t)
	table := 0
	for name, kind := range map[string]struct {
		capabilities uint32
		plugin       string
	}{
		"the command-line client of MariaDB": {terminal, "mysql_native_password"},
		"a client that wants no EOF packets": {newer, "caching_sha2_password"},
		"a client of single statements":      {single, "mysql_native_password"},
	} {
		table++
		t.Run(name, func(t *testing.T) {
			as := func(user, password string) *client {
				c := login(t, r, kind.capabilities, kind.plugin, user, password)
				require.Empty(t, c.welcome(password))
				return c
			}
			c := as("root", "")
			assert.Equal(t, []string{"TiDB Server (stand-in) v8.5.7"}, c.query("select @@version_comment limit 1"), "what a terminal asks first")
			assert.Equal(t, []string{"8.0.11-TiDB-v8.5.7"}, c.query("select version()"))
			assert.Subset(t, c.query("show databases"), []string{"test", "mysql", "information_schema"})
			made := fmt.Sprintf("t%d", table)
			assert.Contains(t, c.query("create table " + made + " (a int)")[0], "no database selected")
			assert.Equal(t, []string{"ok"}, c.query("create table test."+made+" (a int primary key, b varchar(10))"))

			assert.Equal(t, byte(mysql.OKPacket), c.command(mysql.ComInitDB, "test")[0], "use test")
			assert.Equal(t, []string{"test"}, c.query("select database()"))
			assert.Equal(t, []string{"ok"}, c.query("insert into "+made+" values (1, 'x')"))
			assert.Equal(t, []string{"1,x"}, c.query("select * from "+made))
			assert.Contains(t, c.query("select tidb_version()")[0], "Release Version: v8.5.7")
			assert.Contains(t, c.query("selekt")[0], "syntax error")
			if kind.capabilities&mysql.CapabilityClientMultiStatements != 0 {
				assert.Equal(t, []string{"ok", "ok", "ok", "2"}, c.query("begin; insert into "+made+" values (2, 'y'); commit; select count(*) from "+made))
			}
			db := other.db(t, "root", "")
			require.Eventually(t, func() bool {
				var b string
				return db.QueryRowContext(t.Context(), "SELECT b FROM "+made+" WHERE a = 1").Scan(&b) == nil && b == "x"
			}, timeout, 10*time.Millisecond, "statements with and without a database reach the other server")

			for what, command := range map[string]byte{"a ping": mysql.ComPing, "a reset": mysql.ComResetConnection} {
				fresh := as("root", "")
				assert.Equal(t, byte(mysql.OKPacket), fresh.command(command, "")[0], what)
				assert.Equal(t, []string{"1"}, fresh.query("select 1"), "%s before any statement", what)
			}
			app := as("app", "secret")
			assert.Equal(t, []string{"app@%"}, app.query("select current_user()"))
			assert.Equal(t, []string{"1"}, app.query("select a from test."+made+" where a = 1"))
			assert.Contains(t, app.query("select user from mysql.user")[0], "Access denied")
			assert.Contains(t, login(t, r, kind.capabilities, kind.plugin, "app", "wrong").welcome("wrong"), "1045 Access denied")
		})
	}
}

func TestTheCommandLineClientIsServed(t *testing.T) {
	path, err := exec.LookPath("mariadb")
	if err != nil {
		if path, err = exec.LookPath("mysql"); err != nil {
			t.Skip("neither mariadb nor mysql is installed")
		}
	}
	script := write(t, "CREATE USER 'app'@'%' IDENTIFIED BY 'secret';\nGRANT ALL ON test.* TO 'app'@'%';\n")
	r := start(t, pdserver.StartWithStore(t), "--initialize-sql-file="+script).ready(t)
	run := func(args ...string) string {
		all := append([]string{"--no-defaults", "--host=" + r.cfg.Host, "--port=" + strconv.Itoa(r.cfg.Port), "--batch", "--skip-column-names"}, args...)
		cmd := exec.CommandContext(t.Context(), path, all...)
		// Nothing of the user who runs the test, such as a login path.
		cmd.Env = []string{"HOME=" + t.TempDir()}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return strings.TrimSpace(string(out))
	}
	assert.Equal(t, "8.0.11-TiDB-v8.5.7", run("--user=root", "--execute=select version()"))
	assert.Contains(t, run("--user=root", "--execute=show databases; use test; create table t(a int primary key, b varchar(10)); "+
		"insert into t values (1,'x'); select * from t; select tidb_version()\\G"), "test\n1\tx\n*")
	assert.Equal(t, "1\tx", run("--user=app", "--password=secret", "--execute=select * from t", "test"))
}
