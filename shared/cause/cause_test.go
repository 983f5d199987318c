package cause_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidb-groups/tidb-groups/shared/cause"
)

func TestTheSameCauseReadsTheSame(t *testing.T) {
	from := func(port int) net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: port} }
	to := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 2379}
	reset := func(port int) error {
		return &net.OpError{Op: "read", Net: "tcp", Source: from(port), Addr: to, Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	}
	cases := []struct {
		name  string
		cause error
		want  string
	}{
		{"a reset", reset(40001), "connection reset by peer"},
		{"a reset of another local port", reset(40002), "connection reset by peer"},
		{"an unknown name", &net.DNSError{Err: "no such host", Name: "basic-pd.default.svc", Server: "10.0.0.10:53", IsNotFound: true}, "no such host basic-pd.default.svc"},
		{"a name server that does not answer", &net.DNSError{Err: "read udp 10.0.0.1:40003->10.0.0.10:53: i/o timeout", Name: "basic-pd", IsTimeout: true}, "the name basic-pd could not be resolved"},
		{"a deadline", fmt.Errorf("get: %w", context.DeadlineExceeded), "no answer in time"},
		{"a timeout of the network", &net.OpError{Op: "dial", Addr: to, Err: os.ErrDeadlineExceeded}, "no answer in time"},
		{"a closed connection", io.ErrUnexpectedEOF, "the connection was closed"},
		{"an answer that is no HTTP", errors.New("malformed HTTP response \"\\x00\""), "network error"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, cause.Describe(c.cause))
		})
	}
}
