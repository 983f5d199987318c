package faults

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// stream is the body of a watch, which the injector reads along.
type stream struct {
	wire     *wire
	resource string
	body     io.ReadCloser
	decoder  *json.Decoder
	initial  bool   // what comes is the initial list
	rest     []byte // of the event that is being read

	once   sync.Once
	closed chan struct{}
}

func newStream(w *wire, resource string, body io.ReadCloser, initial bool) *stream {
	return &stream{wire: w, resource: resource, body: body, decoder: json.NewDecoder(body), initial: initial, closed: make(chan struct{})}
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		var raw json.RawMessage
		if err := s.decoder.Decode(&raw); err != nil {
			return 0, err
		}
		passes, err := s.passes(raw)
		if err != nil {
			return 0, err
		}
		if passes {
			s.rest = raw
			s.rest = append(s.rest, '\n')
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.body.Close()
}

// passes judges one event, and holds a stale one up.
func (s *stream) passes(raw []byte) (bool, error) {
	var event struct {
		Type   watch.EventType `json:"type"`
		Object struct {
			Metadata struct {
				Name        string            `json:"name"`
				Annotations map[string]string `json:"annotations"`
			} `json:"metadata"`
		} `json:"object"`
	}
	if err := json.Unmarshal(raw, &event); err != nil {
		return false, fmt.Errorf("read event of %s: %w", s.resource, err)
	}
	switch {
	case event.Type == watch.Bookmark:
		if event.Object.Metadata.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
			s.initial = false
		}
		return true, nil
	case event.Type == watch.Error, s.initial:
		return true, nil
	}
	if err := s.wire.life.over(); err != nil {
		return false, err
	}
	strikes := s.wire.injector.strikesEvent(Event{Operator: s.wire.life.operator, Resource: s.resource, Name: normalizeName(s.resource, event.Object.Metadata.Name)})
	if !strikes {
		return true, nil
	}
	defer close(s.wire.injector.over)
	if s.wire.injector.fault.Kind == Drop {
		return false, nil
	}
	still := time.NewTimer(s.wire.injector.fault.For)
	defer still.Stop()
	select {
	case <-still.C:
		return true, nil
	case <-s.closed:
		return false, io.ErrClosedPipe
	case <-s.wire.life.dead:
		return false, errDead
	}
}
