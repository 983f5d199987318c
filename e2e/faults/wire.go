package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// wire is the connection of one start of an operator to the API server.
type wire struct {
	injector *Injector
	life     *life
	next     http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	select {
	case <-w.life.dead:
		return nil, errDead
	default:
	}
	r, err := read(req)
	if err != nil {
		return nil, err
	}
	switch r.verb {
	case "":
		return w.next.RoundTrip(req)
	case "watch":
		return w.watch(req, r)
	}
	strikes := w.injector.write(Write{Operator: w.life.operator, Verb: r.verb, Resource: r.resource, Name: r.name})
	if strikes {
		defer close(w.injector.over)
	}
	if strikes && !w.injector.fault.Kind.served() {
		return w.answer(req, r)
	}
	reply, err := w.next.RoundTrip(req)
	if err != nil || !strikes {
		return reply, err
	}
	// It has been served. What was said about it is never read.
	_, _ = io.Copy(io.Discard, reply.Body)
	_ = reply.Body.Close()
	if w.injector.fault.Kind == Lost {
		return nil, broken(req)
	}
	w.injector.kill(w.life)
	return nil, errDead
}

// served says whether the server sees the write that the fault strikes.
func (k Kind) served() bool { return k == Crash || k == CrashAll || k == Lost }

// answer answers a write that the server never sees.
func (w *wire) answer(req *http.Request, r request) (*http.Response, error) {
	resource, _, _ := strings.Cut(r.resource, ".")
	kind := schema.GroupResource{Resource: resource}
	var status *apierrors.StatusError
	switch w.injector.fault.Kind {
	case Conflict:
		status = apierrors.NewConflict(kind, r.name, errors.New("it has been changed"))
	case TooMany:
		status = apierrors.NewTooManyRequests("too many requests", 1)
	case Timeout:
		status = apierrors.NewTimeoutError("request did not complete within the allotted timeout", 1)
	case Reset:
		return nil, broken(req)
	default:
		status = apierrors.NewInternalError(errors.New("something is wrong"))
	}
	if req.Body != nil {
		_ = req.Body.Close() // a RoundTripper closes it, read or not
	}
	status.ErrStatus.Kind, status.ErrStatus.APIVersion = "Status", "v1"
	body, err := json.Marshal(status.ErrStatus)
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if w.injector.fault.Kind == TooMany {
		header.Set("Retry-After", "1")
	}
	return &http.Response{
		StatusCode: int(status.ErrStatus.Code), Status: http.StatusText(int(status.ErrStatus.Code)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: req,
	}, nil
}

// broken is the error of a connection that broke.
func broken(req *http.Request) error {
	if req.Body != nil {
		_ = req.Body.Close() // a RoundTripper closes it, read or not
	}
	return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
}

// watch opens a watch whose events pass the injector. They are asked for as
// JSON, which can be told apart without knowing the kind.
func (w *wire) watch(req *http.Request, r request) (*http.Response, error) {
	req = req.Clone(req.Context())
	var accept []string
	for _, one := range strings.Split(req.Header.Get("Accept"), ",") {
		if strings.HasPrefix(strings.TrimSpace(one), "application/json") {
			accept = append(accept, one)
		}
	}
	if len(accept) == 0 {
		accept = []string{"application/json"}
	}
	req.Header.Set("Accept", strings.Join(accept, ","))
	reply, err := w.next.RoundTrip(req)
	if err != nil || reply.StatusCode != http.StatusOK {
		return reply, err
	}
	reply.Body = newStream(w, r.resource, reply.Body, req.URL.Query().Get("sendInitialEvents") == "true")
	return reply, nil
}
