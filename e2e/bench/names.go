package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	// namePort is where programs ask for names; no file says another one.
	namePort = 53
	// nameTime is how long an answer may be remembered, in seconds: a pod that is made again has
	// another address.
	nameTime = 1
	// nameBytes is how long a question may be.
	nameBytes = 1 << 10
)

// nameServer tells processes of other operators the addresses of Services and pods.
type nameServer struct {
	connection net.PacketConn
	resolve    func(name string) (ip string, found bool)
}

// serveNames answers on a port of a free loopback address until it is stopped.
func serveNames(ctx context.Context, port int, resolve func(string) (string, bool)) (*nameServer, error) {
	var errs []error
	for last := range 50 {
		address := net.JoinHostPort(fmt.Sprintf("127.0.0.%d", 100+last), strconv.Itoa(port))
		connection, err := new(net.ListenConfig).ListenPacket(ctx, "udp", address)
		if err == nil {
			s := &nameServer{connection: connection, resolve: resolve}
			go s.serve()
			return s, nil
		}
		errs = append(errs, err)
		if errors.Is(err, os.ErrPermission) {
			return nil, fmt.Errorf("serve names: %w: only root may listen on port %d", err, port)
		}
	}
	return nil, fmt.Errorf("serve names: %w", errors.Join(errs...))
}

// stop ends it.
func (s *nameServer) stop() { _ = s.connection.Close() } // nothing is left to fail

// serve answers one question after the other.
func (s *nameServer) serve() {
	buffer := make([]byte, nameBytes)
	for {
		n, from, err := s.connection.ReadFrom(buffer)
		if err != nil {
			return // closed
		}
		if answer, err := s.answer(buffer[:n]); err == nil { // what is no question gets none
			_, _ = s.connection.WriteTo(answer, from)
		}
	}
}

// answer is what a question is told: an IPv4 address, that there is none of the kind that is
// asked for, or that there is no such name.
func (s *nameServer) answer(question []byte) ([]byte, error) {
	var parser dnsmessage.Parser
	header, err := parser.Start(question)
	if err != nil {
		return nil, err
	}
	asked, err := parser.Question()
	if err != nil {
		return nil, err
	}
	out := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: header.ID, Response: true, Authoritative: true, RecursionDesired: header.RecursionDesired, RecursionAvailable: true},
		Questions: []dnsmessage.Question{asked},
	}
	text, found := s.resolve(asked.Name.String())
	ip, err := netip.ParseAddr(text)
	switch {
	case !found || err != nil:
		out.RCode = dnsmessage.RCodeNameError
	case asked.Type == dnsmessage.TypeA && ip.Is4():
		out.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: asked.Name, Class: dnsmessage.ClassINET, TTL: nameTime},
			Body:   &dnsmessage.AResource{A: ip.As4()},
		}}
	}
	return out.Pack()
}

// file writes what tells a program where to ask for names.
func (s *nameServer) file(dir string) (string, error) {
	host, _, err := net.SplitHostPort(s.connection.LocalAddr().String())
	if err != nil {
		return "", fmt.Errorf("tell where names are asked for: %w", err)
	}
	out := filepath.Join(dir, "resolv.conf")
	if err := os.WriteFile(out, []byte("nameserver "+host+"\n"), 0o644); err != nil { //nolint:gosec // a program of another user may read it
		return "", fmt.Errorf("tell where names are asked for: %w", err)
	}
	return out, nil
}

// withNames returns a program that asks for names where a file says: it sees the file in place of
// the machine's own, which stays as it is for all others.
func withNames(file string, program []string) []string {
	return append([]string{"unshare", "--mount", "sh", "-c", `mount --bind "$0" /etc/resolv.conf && exec "$@"`, file}, program...)
}
