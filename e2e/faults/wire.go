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

	"github.com/tidb-groups/tidb-groups/e2e/apirequest"
)

// wire is the connection of one start of an operator to the API server.
type wire struct {
	injector *Injector
	life     *life
	next     http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := w.life.over(); err != nil {
		return nil, err
	}
	asks := apirequest.Parse(req)
	switch {
	case asks.Verb == apirequest.Watch && asks.Resource != "events":
		return w.watch(req, asks.Resource)
	case !isFaultPoint(req, asks):
		return w.next.RoundTrip(req)
	}
	point, err := WriteOf(w.life.operator, req, asks)
	if err != nil {
		return nil, err
	}
	strikes := w.injector.strikesWrite(point)
	if strikes {
		defer close(w.injector.over)
	}
	if strikes && !w.injector.fault.Kind.reachesServer() {
		return w.answer(req, schema.GroupResource{Resource: asks.Resource}, point.Name)
	}
	reply, err := w.next.RoundTrip(req)
	if err != nil || !strikes {
		return reply, err
	}
	if w.injector.fault.Kind.IsConcurrent() {
		w.injector.act()
		return reply, nil
	}
	// It has been served. What was said about it is never read.
	_, _ = io.Copy(io.Discard, reply.Body)
	_ = reply.Body.Close()
	if w.injector.fault.Kind == Lost {
		return nil, newResetError()
	}
	w.injector.kill(w.life)
	return nil, errDead
}

// reachesServer says whether the server sees the write that the fault strikes.
func (k Kind) reachesServer() bool {
	return k == Crash || k == CrashAll || k == Lost || k.IsConcurrent()
}

// answer answers a write that the server never sees.
func (w *wire) answer(req *http.Request, kind schema.GroupResource, name string) (*http.Response, error) {
	if req.Body != nil {
		_ = req.Body.Close() // a RoundTripper closes it, read or not
	}
	var status *apierrors.StatusError
	switch w.injector.fault.Kind {
	case Conflict:
		status = apierrors.NewConflict(kind, name, errors.New("it has been changed"))
	case TooMany:
		status = apierrors.NewTooManyRequests("too many requests", 1)
	case Timeout:
		status = apierrors.NewTimeoutError("request did not complete within the allotted timeout", 1)
	case Reset:
		return nil, newResetError()
	default:
		status = apierrors.NewInternalError(errors.New("something is wrong"))
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

// newResetError is the error of a connection that broke.
func newResetError() error {
	return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
}

// watch opens a watch whose events pass the injector. They are asked for as
// JSON, which can be told apart without knowing the kind.
func (w *wire) watch(req *http.Request, resource string) (*http.Response, error) {
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
	reply.Body = newStream(w, resource, reply.Body, req.URL.Query().Get("sendInitialEvents") == "true")
	return reply, nil
}
